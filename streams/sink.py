"""Where the events of sources go."""

from typing import Any, Protocol

from streams.events import DeadLetter, Event
from streams.topics import Topic


class Sink(Protocol):
    """`streams.bus.Publisher`, or a list in a test."""

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> Any:
        """Take an event, once there is room."""

    async def flush(self) -> None:
        """Wait until everything is acknowledged."""

    @property
    def error(self) -> str | None:
        """Why the bus takes nothing at present, in one line."""
