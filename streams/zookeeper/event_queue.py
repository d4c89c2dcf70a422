"""From kazoo's threads into the event loop: what happened, in order."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from featurewatch.streams.zookeeper.paths import WatchTarget
from featurewatch.streams.zookeeper.watcher.requests import ReadResult


class SessionConnected(NamedTuple):
    """A connection stands."""

    session: int


@dataclass(frozen=True, slots=True)
class SessionDisconnected:
    """There is no connection; ``dead``: the client will not try again by itself."""

    dead: bool


class ReadCompleted(NamedTuple):
    """The answer to an ask; ``zxid`` came with it."""

    token: int
    outcome: ReadResult
    zxid: int


class WatchTriggered(NamedTuple):
    """A watch fired."""

    generation: int
    target: WatchTarget


SessionEvent = SessionConnected | SessionDisconnected | ReadCompleted | WatchTriggered


class EventQueue:
    """Bounded by what can be under way: answers to what was asked, and each watch fires once."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: deque[SessionEvent] = deque()
        self._there = asyncio.Event()
        self._woken = False

    def put(self, item: SessionEvent) -> None:
        """Hands over; from any thread."""
        if isinstance(item, SessionDisconnected):
            # All that came over the connection is void, and none of it may pile up while nobody
            # takes anything.
            self._items.clear()
        self._items.append(item)
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # The loop is closed: nobody listens any more.
                self._loop.call_soon_threadsafe(self._there.set)

    async def wait(self, timeout_s: float) -> None:
        """Returns when something is there, or after so many seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._there.wait()

    def take(self) -> Iterator[SessionEvent]:
        """All that is there."""
        self._there.clear()
        # Before the first look: what is put after the last one wakes again.
        self._woken = False
        while self._items:
            try:
                yield self._items.popleft()
            except IndexError:
                return
