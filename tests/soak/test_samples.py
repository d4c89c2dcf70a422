"""The long run's figures: what grew, and how fast."""

import os
from pathlib import Path

from tests.soak.samples import Growth, Sample, beyond, growth_of, sample, slope


def test_a_slope_is_that_of_the_line_through_the_samples() -> None:
    """Noise around a line does not change it; one sample has none."""
    assert slope([(0, 1), (1, 3), (2, 5)]) == 2
    assert abs(slope([(at, at * 0.5 + (-1) ** at) for at in range(100)]) - 0.5) < 0.01
    assert slope([(5, 7)]) == 0


def test_growth_leaves_the_warm_up_out() -> None:
    """A heap that fills at first and stays does not grow; what is missing at times counts too."""
    samples = [Sample(at, {"rss_mb": min(at, 20.0)}) for at in range(101)]
    samples.append(Sample(101, {"rss_mb": 20.0, "tasks": 4}))
    memory, tasks = growth_of("worker", samples)
    assert (memory.first, memory.last, round(memory.per_hour)) == (20, 20, 0)
    assert (tasks.what, tasks.per_hour) == ("tasks", 0)
    leak = [Sample(at, {"rss_mb": at / 3600}) for at in range(0, 1000, 10)]
    assert round(growth_of("page", leak)[0].per_hour, 3) == 1
    assert growth_of("page", []) == []


def test_what_grows_beyond_its_bound_is_named() -> None:
    """Counts without a bound, such as log lines, may grow."""
    growths = [Growth("a", "rss_mb", 1, 9, 30), Growth("a", "tasks", 1, 1, 0)]
    growths.append(Growth("a", "log_lines", 1, 99, 1000))
    assert beyond(growths, {"rss_mb": 20, "tasks": 1}) == growths[:1]


def test_a_process_is_sampled(tmp_path: Path) -> None:
    """This one; a process that has ended has log lines alone."""
    log, counted = tmp_path / "log", tmp_path / "tasks"
    log.write_text("a\nb\n")
    counted.write_text("3")
    counts = sample(os.getpid(), log, counted)
    assert counts["rss_mb"] > 10
    assert counts["descriptors"] > 2
    assert (counts["tasks"], counts["log_lines"]) == (3, 2)
    assert sample(2**22 + 1, log, counted) == {"log_lines": 2}
