"""The metadata of a broker: the state, and the product's image of the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from featurewatch.reference.kraft.machines.batches import Batch, control_records
from featurewatch.reference.kraft.machines.metadata.records import Record
from featurewatch.reference.kraft.machines.metadata.replay import apply
from featurewatch.reference.kraft.machines.metadata.snapshots import rewritten, state_of
from featurewatch.reference.kraft.machines.metadata.state import (
    EMPTY,
    MetadataState,
    MisfitRecordError,
)
from featurewatch.streams.events import CommitKind, LogCommit, SnapshotChunk
from featurewatch.streams.kraft.records.selection import PUBLISHED_RECORD_TYPES
from featurewatch.streams.types import ClusterId
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import ClusterImage


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
    cluster: ClusterImage
    state: MetadataState
    faults: int = 0

    @property
    def level(self) -> int | None:
        """The finalized metadata.version; None if the log has none."""
        return self.state.level


class Metadata:
    """The metadata that a broker applies; an `image` of it stays as it is."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = ClusterId(cluster_id)
        self._cluster = ClusterImage(self._cluster_id)
        self._controls: dict[str, dict[str, Any]] = {}
        self.state = EMPTY
        self.position = Position()
        self.faults = 0

    def image(self) -> BrokerImage:
        """The image of what is applied."""
        return BrokerImage(self.position, self._cluster, self.state, self.faults)

    def apply(self, first_offset: int, records: Sequence[Record], end: Position) -> list[str]:
        """Applies consecutive records; returns what is wrong with those that do not fit."""
        faults: list[str] = []
        known: list[dict[str, Any]] = []
        for offset, record in enumerate(records, first_offset):
            try:
                self.state = apply(self.state, offset, record)
            except MisfitRecordError as error:
                faults.append(str(error))
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
        self.skip(end)

    def skip(self, end: Position) -> None:
        """Passes over records without effect on the metadata, or that cannot be read."""
        self.position = end
        self.state = self.state._replace(offset=end.offset)

    def load(self, records: Sequence[Record], end: Position) -> None:
        """Replaces the metadata by the records of a snapshot that ends at a position.

        The image that was there is loaded over, so that only real differences are changes.

        Raises:
            MisfitRecordError: if they do not fit each other; nothing is changed then.
        """
        self._reload(state_of(records, end.offset), records, end)

    def rewrite(self, records: Sequence[Record]) -> None:
        """Replaces the metadata by its own records at its level (`rewritten`)."""
        self._reload(rewritten(self.state, records), records, self.position)

    def _reload(self, state: MetadataState, records: Sequence[Record], end: Position) -> None:
        self.state = state
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


def _json(record: Record, offset: int) -> dict[str, Any]:
    return {
        "offset": offset,
        "type": record.type,
        "version": record.version,
        "data": dict(record.data),
    }
