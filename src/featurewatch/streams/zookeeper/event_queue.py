"""Hands session events from kazoo's threads to the event loop, in order."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from featurewatch.streams.zookeeper.paths import WatchTarget
from featurewatch.streams.zookeeper.watcher.requests import ReadResult


class SessionConnected(NamedTuple):
    """A connection is open."""

    session: int


@dataclass(frozen=True, slots=True)
class SessionDisconnected:
    """There is no connection; ``permanent``: the client will not reconnect."""

    permanent: bool


class ReadCompleted(NamedTuple):
    """The response to a request; ``zxid`` came with it."""

    token: int
    outcome: ReadResult
    zxid: int


class WatchTriggered(NamedTuple):
    """A watch triggered."""

    generation: int
    target: WatchTarget


SessionEvent = SessionConnected | SessionDisconnected | ReadCompleted | WatchTriggered


class EventQueue:
    """Bounded by the pending requests and the watches: each triggers once."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._items: deque[SessionEvent] = deque()
        self._filled = asyncio.Event()
        self._woken = False

    def put(self, item: SessionEvent) -> None:
        """Add an event; from any thread."""
        if isinstance(item, SessionDisconnected):
            # Everything that came over the connection is void, and must not pile up while nobody
            # takes events.
            self._items.clear()
        self._items.append(item)
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # The loop is closed.
                self._loop.call_soon_threadsafe(self._filled.set)

    async def wait(self, timeout_s: float) -> None:
        """Return when there is an event, or after ``timeout_s`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._filled.wait()

    def take(self) -> Iterator[SessionEvent]:
        """All events so far."""
        self._filled.clear()
        # Reset first: an event that is put after the last one taken wakes the loop again.
        self._woken = False
        while self._items:
            try:
                yield self._items.popleft()
            except IndexError:
                return
