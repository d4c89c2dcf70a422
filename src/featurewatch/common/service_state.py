"""What the service manager learns of this process: whether its parts are ready, and whether its
loops still turn.

A part registers what ``/readyz`` answers for it. A loop that does the process's work registers how
long one turn of it may take: one that takes longer is stuck, and only a restart helps.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from featurewatch.common.text import plain, shortened

MAX_STATUS_CHARS: Final = 1_000

Reasons = Callable[[], list[str]]
"""Returns why a part is not ready, one line each; empty: it is ready."""


class Loop:
    """A loop of work; it calls `turn` whenever it has come round.

    ``is_waiting`` is true while it waits for something outside of this process, such as the bus:
    that is no fault of the loop. Methods may be called by any thread.
    """

    def __init__(
        self,
        name: str,
        limit_s: float,
        is_waiting: Callable[[], bool],
        monotonic_s: Callable[[], float],
    ) -> None:
        self.name = name
        self._limit_s = limit_s
        self._is_waiting = is_waiting
        self._monotonic_s = monotonic_s
        self._turned_s = monotonic_s()

    def turn(self) -> None:
        """Notes that the loop came round."""
        self._turned_s = self._monotonic_s()

    def trouble(self) -> str:
        """Why the loop is stuck; empty if it is not."""
        if self._is_waiting():
            self.turn()
        stopped_s = self._monotonic_s() - self._turned_s
        if stopped_s <= self._limit_s:
            return ""
        return f"{self.name} has made no progress for {stopped_s:.0f} s"


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a process is ready, and a line that says so, or why not."""

    is_ready: bool
    status: str


class ServiceState:
    """The parts and the loops of a process. ``monotonic_s`` is a clock that never goes back."""

    def __init__(self, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._monotonic_s = monotonic_s
        self._parts: dict[str, Reasons] = {}
        self._loops: set[Loop] = set()
        self._reloads: dict[str, Callable[[], str]] = {}

    def add_part(self, name: str, reasons: Reasons, reload: Callable[[], str]) -> None:
        """Adds a part, such as "worker"; ``reload`` rereads its files and returns the result."""
        self._parts[name], self._reloads[name] = reasons, reload

    def remove_part(self, name: str) -> None:
        """Removes a part that has ended."""
        self._parts.pop(name, None)
        self._reloads.pop(name, None)

    def readiness(self, required: Collection[str]) -> Readiness:
        """The readiness of all parts; those that are required and have not begun are not ready."""
        waiting = [f"{name}: it has not begun" for name in required if name not in self._parts]
        for name, reasons in self._parts.items():
            waiting += [f"{name}: {reason}" for reason in reasons()]
        text = plain(f"not ready: {'; '.join(waiting)}" if waiting else "ready")
        is_long = len(text) > MAX_STATUS_CHARS
        return Readiness(not waiting, f"{text[:MAX_STATUS_CHARS]}..." if is_long else text)

    def reload(self) -> list[str]:
        """Rereads the files of every part; returns a line for each."""
        return [f"{name}: {reload()}" for name, reload in self._reloads.items()]

    @contextlib.contextmanager
    def loop(
        self, name: str, limit_s: float, is_waiting: Callable[[], bool] = lambda: False
    ) -> Iterator[Loop]:
        """A loop that runs as long as the context does."""
        loop = Loop(name, limit_s, is_waiting, self._monotonic_s)
        self._loops.add(loop)
        try:
            yield loop
        finally:
            self._loops.discard(loop)

    def stuck(self) -> list[str]:
        """Why loops are stuck, one line for each of them."""
        return sorted(filter(None, (loop.trouble() for loop in tuple(self._loops))))


STATE: Final = ServiceState()
"""The state of this process."""


def reasons_of(body: dict[str, object]) -> list[str]:
    """Returns the reasons in the body of a ``/readyz`` response, one line each."""
    found: list[str] = []
    for name in ("waiting", "tasks"):
        items = body.get(name)
        for item in items if isinstance(items, list | tuple) else ():
            parts = item.values() if isinstance(item, dict) else (item,)
            found.append(": ".join(shortened(str(part), 400) for part in parts if part))
    if reason := body.get("reason"):
        found.append(str(reason))
    return found
