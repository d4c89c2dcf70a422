"""Polls until a condition holds or a deadline passes."""

import time
from collections.abc import Iterator

POLL_S = 0.1


class Deadline:
    """A point in time ``timeout_s`` seconds from now that several waits share."""

    def __init__(self, timeout_s: float) -> None:
        self._end = time.monotonic() + timeout_s

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; 0 afterwards."""
        return max(0.0, self._end - time.monotonic())


def attempts(timeout_s: float, pause_s: float = POLL_S) -> Iterator[None]:
    """Yields at least once, then after each pause until ``timeout_s`` is over.

    for _ in attempts(30.0):
        if is_ready():
            return
    raise StartError("it is not ready after 30 s")
    """
    deadline = Deadline(timeout_s)
    while True:
        yield
        if deadline.left_s <= pause_s:
            return
        time.sleep(pause_s)
