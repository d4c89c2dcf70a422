"""The table of faults, and the part of it that takes under three minutes."""

import pytest

from tests.faults.rows.registry import ROWS
from tests.faults.runner import runner
from tests.faults.table import Row, json_line, markdown, read_rows, terminal
from tests.faults.verdict import Verdict

QUICK = [row for row in ROWS if row.quick]


def test_names_are_unique() -> None:
    """A row is selected by its name."""
    assert len({row.name for row in ROWS}) == len(ROWS)


def test_the_table_marks_what_did_not_hold() -> None:
    """Counts are sums over the runs; a run that never recovered is named."""
    good, bad = Verdict(recovered_s=1.0), Verdict(lost=2, recovered_s=None)
    rows = [Row("good", "about", (good, good)), Row("bad", "about", (good, bad)), Row("no", "", ())]
    lines = terminal(rows).splitlines()
    assert [line[:1] for line in lines] == [" ", " ", "!", " "]
    assert lines[2].split() == [
        *("!", "bad", "2", "1", "2", "0", "0", "0", "0", "0", "1.0,", "never", "1×", "0")
    ]
    assert "not run" in lines[3]
    assert markdown(rows).count("\n") == 4
    written = [json_line(row) for row in (*rows, rows[1])]
    assert read_rows(written) == [rows[0], Row("bad", "about", (good, bad, good, bad)), rows[2]]


@pytest.mark.stack
def test_quick_rows_hold() -> None:
    """Nothing is lost, doubled or contradicted, no alert is false or stays, and all go on."""
    with runner() as running:
        for row in QUICK:
            verdict = running.play(row, seed=1)
            assert verdict.failures == (), (row.name, verdict)
