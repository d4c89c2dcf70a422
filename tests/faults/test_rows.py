"""The table of faults, and the part of it that takes under three minutes."""

import os
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.fault import RECOVERY_S, Fault
from tests.faults.rows.registry import ROWS
from tests.faults.runner import Runner, runner
from tests.faults.table import Row, json_line, markdown, read_rows, terminal
from tests.faults.verdict import Verdict
from tests.plugins.nightly import nightly_but

PLANTED = Path(__file__).parent / "planted"
QUICK = [row for row in ROWS if row.quick]
BY_DAY = [row for row in QUICK if row.name == "kill-both"]
"""Its processes are those of the other quick rows."""


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


@pytest.fixture(scope="module")
def running() -> Iterator[Runner]:
    """Servers, and a stack on them."""
    with runner() as running:
        yield running


@pytest.mark.stack
@pytest.mark.nightly
def test_a_real_loss_is_noticed(running: Runner) -> None:
    """A worker that leaves changes out fails its row by that and nothing else."""
    path = os.pathsep.join([str(PLANTED), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    fault = Fault(
        "planted",
        "nothing happens, to a worker with a planted bug",
        lambda _: nullcontext(),
        changes=12,
        limit_s=RECOVERY_S,
        environment={"PYTHONPATH": path},
    )
    verdict = running.play(fault, seed=1)
    assert verdict.lost > 0, verdict
    assert verdict.failures == ("lost",)


@pytest.mark.stack
@pytest.mark.parametrize("row", nightly_but(BY_DAY, QUICK), ids=lambda row: row.name)
def test_quick_rows_hold(running: Runner, row: Fault) -> None:
    """Nothing is lost, doubled or contradicted, no alert is false or stays, and all continues.

    How soon is judged by `make faults` alone: the suite shares the machine with other tests.
    """
    verdict = running.play(replace(row, limit_s=RECOVERY_S), seed=1)
    assert verdict.failures == (), verdict
