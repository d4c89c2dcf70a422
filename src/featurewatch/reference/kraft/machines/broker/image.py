"""The metadata of a broker: the state that a controller has, at a position of the log."""

from collections.abc import Sequence
from dataclasses import dataclass

from featurewatch.reference.kraft.machines.metadata.records import Record
from featurewatch.reference.kraft.machines.metadata.replay import apply
from featurewatch.reference.kraft.machines.metadata.snapshots import rewritten, state_of
from featurewatch.reference.kraft.machines.metadata.state import (
    EMPTY,
    MetadataState,
    MisfitRecordError,
)


@dataclass(frozen=True, slots=True)
class Position:
    """The end of what is applied: the next offset, and the epoch and time of the last record."""

    offset: int = 0
    epoch: int = 0
    append_ms: int = 0


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """The metadata at a position, as a broker publishes it to its components.

    ``faults`` is the number of records that could not be applied.
    """

    position: Position
    state: MetadataState
    faults: int = 0

    @property
    def level(self) -> int | None:
        """The finalized metadata.version; None if the log has none."""
        return self.state.level


class Metadata:
    """The metadata that a broker applies; an `image` of it stays as it is."""

    def __init__(self) -> None:
        self.state = EMPTY
        self.position = Position()
        self.faults = 0

    def image(self) -> BrokerImage:
        """The image of what is applied."""
        return BrokerImage(self.position, self.state, self.faults)

    def apply(self, first_offset: int, records: Sequence[Record], end: Position) -> list[str]:
        """Applies consecutive records; returns what is wrong with those that do not fit."""
        faults: list[str] = []
        for offset, record in enumerate(records, first_offset):
            try:
                self.state = apply(self.state, offset, record)
            except MisfitRecordError as error:
                faults.append(str(error))
        self.skip(end)
        return faults

    def skip(self, end: Position) -> None:
        """Passes over records without effect on the metadata, or that cannot be read."""
        self.position = end
        self.state = self.state._replace(offset=end.offset)

    def load(self, records: Sequence[Record], end: Position) -> None:
        """Replaces the metadata by the records of a snapshot that ends at a position.

        Raises:
            MisfitRecordError: if they do not fit each other; nothing is changed then.
        """
        self.state = state_of(records, end.offset)
        self.position = end

    def rewrite(self, records: Sequence[Record]) -> None:
        """Replaces the metadata by its own records at its level (`rewritten`)."""
        self.state = rewritten(self.state, records)
