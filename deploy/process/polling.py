"""Asking again until something is so, or a deadline has passed."""

import time
from collections.abc import Iterator

POLL_S = 0.1


class Deadline:
    """So many seconds from now, shared by several waits."""

    def __init__(self, timeout_s: float) -> None:
        self._end = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """Seconds until then, 0 afterwards."""
        return max(0.0, self._end - time.monotonic())


def attempts(timeout_s: float, pause_s: float = POLL_S) -> Iterator[None]:
    """Yields at least once, then again after each pause, until the time is over.

    for _ in attempts(30.0):
        if stands():
            return
    raise StartError("it does not stand after 30 s")
    """
    deadline = Deadline(timeout_s)
    while True:
        yield
        if deadline.left_s <= pause_s:
            return
        time.sleep(pause_s)
