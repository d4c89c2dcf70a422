"""The interface of what reads the metadata log: over the wire, or from a log directory."""

from collections.abc import Sequence
from typing import Protocol

from featurewatch.streams.kraft.observer.states import LogProgress, ObserverOutput


class LogReader(Protocol):
    """Reads the committed log from a position on, in order, each part once."""

    @property
    def progress(self) -> LogProgress:
        """How far the log has been read, and what prevents more."""

    async def read(self) -> Sequence[ObserverOutput]:
        """The next outputs, maybe none, within a few seconds.

        Does not raise: a failure becomes the progress' ``stall_reason``, and the next call retries.
        """

    async def close(self) -> None:
        """Close connections and files."""
