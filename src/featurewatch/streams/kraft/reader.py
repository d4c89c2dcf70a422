"""The interface of what reads the metadata log: over the wire, or from a log directory."""

from collections.abc import Sequence
from typing import Protocol

from featurewatch.streams.kraft.observer.states import ObserverOutput
from featurewatch.streams.source_status import StallReason
from featurewatch.streams.types import LeaderAndEpoch, OffsetAndEpoch


class LogReader(Protocol):
    """Reads the committed log from a position on, in order, each part once."""

    @property
    def next_position(self) -> OffsetAndEpoch:
        """The position after the last record that was released."""

    @property
    def fetch_position(self) -> OffsetAndEpoch:
        """The position after the last record that was read, committed or not."""

    @property
    def high_watermark(self) -> int:
        """The end of the committed log, if it is known (else -1)."""

    @property
    def leader(self) -> LeaderAndEpoch:
        """The leader, if it is known."""

    @property
    def caught_up(self) -> bool:
        """Whether everything that is known to be committed was released."""

    @property
    def stall_reason(self) -> StallReason | None:
        """Why nothing can be read now."""

    async def read(self) -> Sequence[ObserverOutput]:
        """The next outputs, maybe none, within a few seconds.

        Does not raise: a failure becomes `stall_reason`, and the next call retries.
        """

    async def close(self) -> None:
        """Close connections and files."""
