"""Where the events of sources go."""

import time
from typing import Any, Protocol

from featurewatch.streams.events import DeadLetter, Event
from featurewatch.streams.topics import Topic


class Sink(Protocol):
    """`streams.bus.publisher.Publisher`, or a list in a test."""

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> Any:
        """Take an event, once there is room."""

    async def flush(self) -> None:
        """Wait until everything is acknowledged."""

    @property
    def error(self) -> str | None:
        """Why the bus takes nothing at present, in one line."""


def wall_clock_ms() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    """Milliseconds of a clock that does not go back."""
    return time.monotonic_ns() // 1_000_000
