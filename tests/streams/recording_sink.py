"""A sink that keeps what a source publishes."""

import asyncio
import itertools
from typing import TypeVar

from featurewatch.streams.events import DeadLetter, Event, SourceState, SourceStatus
from featurewatch.streams.topics import Topic

E = TypeVar("E")


class RecordingSink:
    """A `streams.source.Sink`: keeps every event, in order.

    `publish` waits after ``room`` events, until `room` is released.
    """

    error: str | None = None

    def __init__(self, room: int = 1_000_000) -> None:
        self.events: list[Event | DeadLetter] = []
        self.room = asyncio.Semaphore(room)

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> asyncio.Future[None]:
        """Keeps an event once there is room; it is acknowledged at once."""
        await self.room.acquire()
        self.events.append(event)
        delivery: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        delivery.set_result(None)
        return delivery

    async def flush(self) -> None:
        """Returns at once: nothing is in flight."""

    def of(self, kind: type[E]) -> list[E]:
        """The events of a class, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def states(self) -> list[SourceState]:
        """The states that the source reported, each once in a row."""
        return [state for state, _ in itertools.groupby(s.state for s in self.of(SourceStatus))]

    def following(self) -> bool:
        """Whether the source follows, by its last status."""
        return self.states[-1:] == [SourceState.FOLLOWING]
