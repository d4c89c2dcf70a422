"""The progress of a command: rows done, rows left, and an estimate of the time.

Whoever does the work names its steps; where they are shown is up to the caller.
"""

import threading
from collections.abc import Callable
from typing import Final, NamedTuple

_MIN_SHARE: Final = 0.02
"""No estimate before this share of a step is done, because the first rows wait for startup."""

FIRST_BATCH: Final = "first batch"
"""The step of the event for the first rows that are in a table."""


class ProgressEvent(NamedTuple):
    """The state of a step of a command.

    ``unit`` is what is counted: ``rows``, or ``parts`` of files. ``left`` and ``seconds_left`` (of
    this step) are None if they are not known.
    """

    step: str
    unit: str
    done: int
    left: int | None
    seconds: float
    seconds_left: float | None


Report = Callable[[ProgressEvent], None]


class Progress:
    """Follows the steps of a command, one after the other, and reports where they are.

    ``monotonic`` gives seconds of a clock that does not go back. Methods may be called by several
    threads.
    """

    def __init__(self, report: Report, monotonic: Callable[[], float]) -> None:
        self._report = report
        self._monotonic = monotonic
        self._step: str | None = None
        self._unit = "rows"
        self._total: int | None = None
        self._done = 0
        self._created = self._began = monotonic()
        self.committed = 0
        """New rows of bronze that are in the table."""
        self._lock = threading.RLock()

    def begin(self, step: str, total: int | None, unit: str = "rows") -> None:
        """Begins a step with this many rows or parts (None if unknown), and reports it."""
        with self._lock:
            self.end()
            self._step, self._unit, self._total = step, unit, total
            self._done, self._began = 0, self._monotonic()
            self._emit()

    def advance(self, done: int) -> None:
        """Reports that so many are done, of those of the whole step; fewer than before change
        nothing."""
        with self._lock:
            if self._step is not None:
                bounded = done if self._total is None else min(done, self._total)
                self._done = max(self._done, bounded)
                self._emit()

    def commit(self, rows: int) -> None:
        """Counts new rows of bronze; reports the first, with the seconds since the beginning."""
        with self._lock:
            is_first = rows > 0 and not self.committed
            self.committed += rows
            if is_first:
                seconds = self._monotonic() - self._created
                self._report(ProgressEvent(FIRST_BATCH, "rows", rows, None, seconds, None))

    def end(self) -> None:
        """Ends the current step, if any, as completely done."""
        with self._lock:
            if self._step is not None:
                if self._total is not None:
                    self._done = self._total
                self._emit()
                self._step = None

    def _emit(self) -> None:
        assert self._step is not None  # noqa: S101 - a step has begun
        seconds = self._monotonic() - self._began
        left = seconds_left = None
        if self._total is not None:
            left = self._total - self._done
            if self._done and self._done >= self._total * _MIN_SHARE:
                seconds_left = seconds * left / self._done
        self._report(ProgressEvent(self._step, self._unit, self._done, left, seconds, seconds_left))


NO_PROGRESS: Final = Progress(lambda _: None, lambda: 0.0)
"""For callers that show nothing."""
