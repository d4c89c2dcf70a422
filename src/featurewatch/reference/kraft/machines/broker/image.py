"""The metadata of a broker: the records of a snapshot, and the product's image of the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from featurewatch.reference.kraft.machines.batches import Batch, control_records
from featurewatch.reference.kraft.machines.levels import LevelRecords, StateRecord
from featurewatch.reference.kraft.machines.metadata_state import (
    InvalidStateError,
    MetadataState,
    state_of,
)
from featurewatch.streams.events import CommitKind, LogCommit, SnapshotChunk
from featurewatch.streams.kraft.records.selection import PUBLISHED_RECORD_TYPES
from featurewatch.streams.types import ClusterId
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import ClusterImage

REGISTER_BROKER = "REGISTER_BROKER_RECORD"


@dataclass(frozen=True, slots=True)
class Position:
    """The end of what is applied: the next offset, and the epoch and time of the last record."""

    offset: int = 0
    epoch: int = 0
    append_ms: int = 0


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """The metadata at a position, as a broker publishes it to its components.

    ``state`` must not be changed. ``faults`` is the number of records that could not be applied.
    """

    position: Position
    level: int | None
    cluster: ClusterImage
    state: MetadataState
    faults: int = 0


class Metadata:
    """The metadata that a broker applies; an `image` of it stays as it is."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = ClusterId(cluster_id)
        self._cluster = ClusterImage(self._cluster_id)
        self._controls: dict[str, dict[str, Any]] = {}
        self.state = MetadataState()
        self.position = Position()
        self.faults = 0

    def image(self) -> BrokerImage:
        """The image of what is applied."""
        state = self.state
        return BrokerImage(self.position, state.level, self._cluster, state.copy(), self.faults)

    def apply(self, first_offset: int, records: Sequence[StateRecord], end: Position) -> list[str]:
        """Applies consecutive records; returns what is wrong with those that do not fit."""
        faults: list[str] = []
        known: list[dict[str, Any]] = []
        for offset, record in enumerate(records, first_offset):
            try:
                self.state.apply(record)
            except InvalidStateError as error:
                faults.append(f"offset {offset}: {error}")
            known.append(_json(record, offset))
        self._fold(first_offset, known, end)
        return faults

    def apply_control(self, batch: Batch, end: Position) -> None:
        """Applies a batch of control records."""
        records = control_records([batch])
        self._controls |= {
            record["type"]: record for record in records if record["type"] in PUBLISHED_RECORD_TYPES
        }
        self._fold(batch.base, records, end)

    def _fold(self, first_offset: int, records: list[dict[str, Any]], end: Position) -> None:
        """Folds records, of those of the metadata the ones that a monitor publishes."""
        published = [record for record in records if record["type"] in PUBLISHED_RECORD_TYPES]
        if published:
            commit = LogCommit(
                cluster=self._cluster_id,
                kind=CommitKind.BATCH,
                first_offset=first_offset,
                last_offset=end.offset - 1,
                leader_epoch=end.epoch,
                append_ms=end.append_ms,
                records=published,
                skipped={},
                seen_ms=end.append_ms,
            )
            self._cluster, _ = fold(self._cluster, commit)
        self.position = end

    def skip(self, end: Position) -> None:
        """Passes over records without effect on the metadata, or that cannot be read."""
        self.position = end

    def reload(self, records: Sequence[StateRecord], end: Position) -> None:
        """Replaces the metadata by the records of a snapshot that ends at a position.

        The image that was there is loaded over, so that only real differences are changes.

        Raises:
            InvalidStateError: if they do not fit each other; nothing is changed then.
        """
        self.state = state_of(records)
        json = [_json(record, number) for number, record in enumerate(records)]
        chunk = SnapshotChunk(
            cluster=self._cluster_id,
            end_offset=end.offset,
            leader_epoch=end.epoch,
            index=0,
            last=True,
            append_ms=end.append_ms,
            records=[
                *self._controls.values(),
                *(record for record in json if record["type"] in PUBLISHED_RECORD_TYPES),
            ],
            skipped={},
            seen_ms=end.append_ms,
        )
        self._cluster, _ = fold(self._cluster, chunk)
        self.position = end

    def at_level(self, level: int) -> LevelRecords:
        """The records of a snapshot of what is applied, as a level holds them."""
        return self.state.at_level(level)


def _json(record: StateRecord, offset: int) -> dict[str, Any]:
    return {
        "offset": offset,
        "type": record.type,
        "version": record.version,
        "data": dict(record.data),
    }
