"""The progress of a command: rows done, rows left, and the time."""

import pytest

from featurewatch.cli.output.progress import ProgressPrinter, document, line
from featurewatch.common.progress import FIRST_BATCH, NO_PROGRESS, Progress, ProgressEvent


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time in seconds."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at 100 s."""
    return Clock()


def test_what_is_left_follows_from_what_is_done(clock: Clock) -> None:
    """The estimate is the time so far, by the share that is left; none before a share is done. A
    step never goes back, nor beyond its end, and ends with everything done."""
    events: list[ProgressEvent] = []
    progress = Progress(events.append, clock)
    progress.begin("bronze", 1000)
    clock.now += 2
    progress.advance(10)
    clock.now += 2
    progress.advance(250)
    progress.advance(200)
    clock.now += 6
    progress.advance(2000)
    progress.begin("silver and gold", None)
    progress.advance(7)
    progress.end()
    progress.end()
    progress.advance(9)
    assert [(e.step, e.done, e.left, e.seconds, e.seconds_left) for e in events] == [
        ("bronze", 0, 1000, 0, None),
        ("bronze", 10, 990, 2, None),
        ("bronze", 250, 750, 4, 12),
        ("bronze", 250, 750, 4, 12),
        ("bronze", 1000, 0, 10, 0),
        ("bronze", 1000, 0, 10, 0),
        ("silver and gold", 0, None, 0, None),
        ("silver and gold", 7, None, 0, None),
        ("silver and gold", 7, None, 0, None),
    ]


def test_the_first_batch_is_reported_once(clock: Clock) -> None:
    """With its rows and the seconds since the command began; one without rows does not count."""
    events: list[ProgressEvent] = []
    progress = Progress(events.append, clock)
    clock.now += 5
    progress.commit(0)
    clock.now += 5
    progress.commit(12)
    progress.commit(3)
    assert [(e.step, e.done, e.seconds) for e in events] == [(FIRST_BATCH, 12, 10)]
    assert progress.committed == 15


def test_nothing_is_shown_to_nobody() -> None:
    """The default reports to no one and needs no clock."""
    NO_PROGRESS.begin("x", 3)
    NO_PROGRESS.advance(2)
    NO_PROGRESS.end()


def test_texts_and_documents_say_the_same() -> None:
    """Both have what is done, what is left, and the estimate if there is one."""
    event = ProgressEvent("bronze", "rows", 1250, 3_000_000, 4.04, 12.34)
    assert line(event) == "bronze: 1,250 rows done, 3,000,000 left, about 12 s"
    assert document(event) == {
        "kind": "progress",
        "step": "bronze",
        "unit": "rows",
        "done": 1250,
        "left": 3_000_000,
        "seconds": 4.0,
        "seconds_left": 12.3,
    }
    unknown = ProgressEvent("reading", "parts", 3, None, 4, None)
    assert line(unknown) == "reading: 3 parts done"
    assert document(unknown)["left"] is None


def test_a_short_step_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Away from a terminal a line comes every ten seconds; with JSON every event does. Stdout stays
    empty."""
    for as_json in (False, True):
        printer = ProgressPrinter(as_json=as_json)
        for seconds in (0, 5, 11, 12, 22, 1):
            printer.show(ProgressEvent("bronze", "rows", seconds, 30, seconds, None))
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.splitlines()) == (6 if as_json else 2)
