"""What a source reads the metadata log from: a quorum over the wire, or a log directory."""

from collections.abc import Sequence
from typing import Protocol

from featurewatch.streams.kraft.observer.states import ObserverOutput
from featurewatch.streams.source_status import StallReason
from featurewatch.streams.types import LeaderAndEpoch, OffsetAndEpoch


class LogReader(Protocol):
    """Gives the committed log from a place on, in order, each part once."""

    @property
    def next_position(self) -> OffsetAndEpoch:
        """The place after the last record that was given out."""

    @property
    def fetch_position(self) -> OffsetAndEpoch:
        """The place after the last record that was read, committed or not."""

    @property
    def high_watermark(self) -> int:
        """Where the committed log ends as far as it is known (-1: not at all)."""

    @property
    def leader(self) -> LeaderAndEpoch:
        """The leader as far as it is known."""

    @property
    def caught_up(self) -> bool:
        """Whether all that is known to be committed at this moment was given out."""

    @property
    def stall_reason(self) -> StallReason | None:
        """Why nothing can be read at present."""

    async def read(self) -> Sequence[ObserverOutput]:
        """The next step, within a few seconds: what it brought, maybe nothing.

        Does not raise: what goes wrong is `stall_reason`, and the next call tries again.
        """

    async def close(self) -> None:
        """Let go of connections and files."""
