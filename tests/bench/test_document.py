"""The table of docs/reference/bench.md has the figures of a run."""

from typing import Any

import pytest

from tests.bench.document import PAGE, is_missed, with_measures

TEXT = """\
| measure | value | baseline | ratio | target | measured |
|---|---|---|---|---|---|
| `decode_vs_dump_log`: records/s | 1 | 2 | 0.5, missed | ≥ 2, goal 5 | 2026-01-01 |
| `worker_rss_mb` | 9 |  |  | ≤ 250 |  |
| `other` | 9 |  |  | reported |  |
"""


def test_rows_get_their_figures_and_the_day() -> None:
    """Of the measures that were taken; the other rows stay, and so do names and targets."""
    decode = {"measure": "decode_vs_dump_log", "value": 313084.2, "baseline": 110953, "ratio": 2.82}
    memory = {"measure": "worker_rss_mb", "value": 300.0}
    lines = with_measures(TEXT, [decode, memory], "2026-02-03").splitlines()
    assert lines[2:] == [
        "| `decode_vs_dump_log`: records/s | 313,084 | 110,953 | 2.82 | ≥ 2, goal 5 | 2026-02-03 |",
        "| `worker_rss_mb` | 300, missed |  |  | ≤ 250 | 2026-02-03 |",
        "| `other` | 9 |  |  | reported |  |",
    ]


@pytest.mark.parametrize(
    ("target", "measure", "missed"),
    [
        ("≥ 2", {"value": 1, "ratio": 2.0}, False),
        ("≥ 2", {"value": 9, "ratio": 1.9}, True),
        ("≤ 1,000 ms", {"value": 999, "ratio": 35}, False),
        ("≤ 1,000 ms", {"value": 1001, "ratio": 0.1}, True),
        ("≤ 8", {"value": 8.1}, True),
        ("reported", {"value": 8.1}, False),
        ("0", {"value": 0}, False),
    ],
)
def test_what_misses_its_target(target: str, measure: dict[str, Any], missed: bool) -> None:
    """A target with a unit is about the value."""
    assert is_missed(target, measure) == missed


def test_a_measure_without_a_row_is_an_error() -> None:
    """So that no figure is lost."""
    with pytest.raises(ValueError, match=r"bench\.md has no row for new"):
        with_measures(TEXT, [{"measure": "new", "value": 1}], "2026-02-03")


def test_every_row_of_the_page_is_one_of_a_measure() -> None:
    """The page's table has the form that a run writes."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    names = [row.split("`")[1] for row in rows]
    assert len(names) == len(set(names))
    written = with_measures(
        PAGE.read_text(), [{"measure": name, "value": 1} for name in names], "2026-02-03"
    )
    assert written.count("| 2026-02-03 |") == len(names)
