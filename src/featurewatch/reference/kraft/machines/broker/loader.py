"""Follows the committed log and publishes images, one for each level (``MetadataLoader``).

As KIP-778 is written: at a FeatureLevelRecord that changes metadata.version the loader makes a
snapshot at the offset right before it, turns the state into records at the new level, which may
lose some of it, and publishes that state; the components reload it. A level that is not supported
is published by no image: the broker is told, and the next supported level ends that.

As released the level is one record among others; one that the software does not know is a fault,
as is any record that it cannot read: it is left out, and the loader continues.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from featurewatch.controller.kraft import release_of
from featurewatch.controller.kraft.kip_778 import PREVIEW_LEVEL
from featurewatch.reference.kraft.machines.batches import Batch
from featurewatch.reference.kraft.machines.broker.image import BrokerImage, Metadata, Position
from featurewatch.reference.kraft.machines.broker.protocol import LevelUnsupported, WriteLog
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.metadata.levels import FEATURE_LEVEL, Loss
from featurewatch.reference.kraft.machines.metadata.records import Record, read_batch
from featurewatch.reference.kraft.machines.metadata.snapshots import (
    at_level,
    read_snapshot,
    snapshot_bytes,
)
from featurewatch.reference.kraft.machines.metadata.state import MisfitRecordError
from featurewatch.streams.kraft.errors import RecordDecodeError
from featurewatch.streams.kraft.records.selection import ABORT, BEGIN, END
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, OffsetAndEpoch

SNAPSHOT_BYTES: Final = 20 << 20
"""The default of ``metadata.log.max.record.bytes.between.snapshots``."""
_MARKERS: Final = (BEGIN, END, ABORT)


@dataclass(frozen=True, slots=True)
class SnapshotMade:
    """The state before an offset, written at a level; ``losses`` are what the level cannot hold.

    ``is_periodic``: it was made because the log has grown, not at a change of the level.
    """

    snapshot: OffsetAndEpoch
    level: int
    data: bytes
    losses: tuple[Loss, ...] = ()
    is_periodic: bool = False


@dataclass(frozen=True, slots=True)
class ImagePublished:
    """Components apply an image; with ``is_reload`` they drop what they had and load it."""

    image: BrokerImage
    is_reload: bool = False


@dataclass(frozen=True, slots=True)
class SnapshotRefused:
    """A snapshot of the leader is torn: the metadata stays as it was, and another is needed."""

    reason: str


LoaderEffect = SnapshotMade | ImagePublished | LevelUnsupported | SnapshotRefused | WriteLog


@dataclass(slots=True)
class _Transaction:
    """Records between BeginTransaction and EndTransaction, which appear at its end."""

    first: int
    records: list[Record]


class Loader:
    """Applies snapshots and batches in the order of the log; offsets that it has are ignored."""

    def __init__(self, settings: BrokerSettings) -> None:
        self._settings = settings
        self._release = release_of(settings.release)
        self._metadata = Metadata()
        self._published: BrokerImage | None = None
        self._transaction: _Transaction | None = None
        self._unsupported: FeatureLevel | None = None
        self._is_told = False
        self._next = 0
        """The offset of the next batch, also of one in a transaction that is still open."""
        self._bytes = 0
        self._out: list[LoaderEffect] = []

    @property
    def image(self) -> BrokerImage | None:
        """The image that was published last; None while it catches up for the first time."""
        return self._published

    @property
    def position(self) -> Position:
        """The end of what is applied."""
        return self._metadata.position

    @property
    def next_offset(self) -> int:
        """The offset from which on it needs batches."""
        return self._next

    def load(
        self, snapshot: OffsetAndEpoch, data: bytes, high_watermark: int
    ) -> list[LoaderEffect]:
        """Loads a snapshot of the leader, which replaces everything; returns the effects."""
        self._out = []
        try:
            records, append_ms = read_snapshot(data)
            level = next((_level(record) for record in records if _is_level(record)), None)
            self._metadata.load(records, Position(*snapshot, append_ms))
        except (RecordDecodeError, MisfitRecordError) as error:
            return [SnapshotRefused(f"the snapshot at {snapshot} is torn: {error}")]
        self._transaction, self._next, self._bytes = None, snapshot.offset, 0
        self._unsupported = None if level is None else self._unsupported_of(level)
        self._is_told = False
        self._publish(high_watermark, is_reload=True)
        return self._out

    def apply(self, batches: Sequence[Batch], high_watermark: int) -> list[LoaderEffect]:
        """Applies committed batches that follow; returns the effects.

        ``high_watermark`` is the leader's: until all before it is applied once, nothing is
        published.
        """
        self._out = []
        for batch in batches:
            if batch.base > self._next:
                reason = f"the log continues at {batch.base}, after {self._next}"
                return [*self._out, SnapshotRefused(reason)]
            if batch.last >= self._next:
                self._apply_batch(batch)
                self._next = batch.last + 1
                self._bytes += len(batch.data)
        self._publish(high_watermark)
        if self._bytes >= SNAPSHOT_BYTES and self._transaction is None:
            self._snapshot_of_size()
        return self._out

    def _publish(self, high_watermark: int, *, is_reload: bool = False) -> None:
        is_first = self._published is None
        if is_first and self.position.offset < high_watermark:
            return
        if self._unsupported is not None:
            self._tell_unsupported(self._unsupported)
            return
        before = self._published
        if before is None or before.position != self.position or is_reload:
            self._published = self._metadata.image()
            self._out.append(ImagePublished(self._published, is_first or is_reload))

    def _tell_unsupported(self, level: FeatureLevel) -> None:
        if not self._is_told:
            self._is_told = True
            self._out.append(LevelUnsupported(METADATA_VERSION, level))

    # -- batches -----------------------------------------------------------------------------------

    def _apply_batch(self, batch: Batch) -> None:
        if batch.is_control:
            self._metadata.skip(_end_of(batch, batch.last))
            return
        first, run = max(batch.base, self._next), list[Record]()
        for offset, record in read_batch(batch):
            if offset < first:
                continue  # a snapshot has it
            if isinstance(record, Record) and self._is_plain(record):
                (run if self._transaction is None else self._transaction.records).append(record)
                continue
            self._apply_run(first, run, _end_of(batch, offset - 1))
            if isinstance(record, RecordDecodeError):
                self._fault(f"offset {offset}: {record}")
            elif record.type in _MARKERS:
                self._mark(record.type, offset, batch)
            else:
                self._change_level(record, [record], _end_of(batch, offset))
            first, run = offset + 1, []
        self._apply_run(first, run, _end_of(batch, batch.last))

    def _is_plain(self, record: Record) -> bool:
        """Whether it is applied with others; in a transaction all but its end are."""
        if record.type in _MARKERS:
            return False
        return self._transaction is not None or not self._changes_level(record)

    def _apply_run(self, first: int, records: list[Record], end: Position) -> None:
        if records:
            for fault in self._metadata.apply(first, records, end):
                self._fault(fault)
        elif end.offset > self.position.offset and self._transaction is None:
            self._metadata.skip(end)

    def _mark(self, kind: str, offset: int, batch: Batch) -> None:
        """The beginning or the end of a transaction (KIP-868)."""
        if (kind == BEGIN) == (self._transaction is not None):
            self._fault(f"offset {offset}: {kind} is in a wrong place")
            return
        if self._transaction is None:
            self._transaction = _Transaction(offset, [])
            return
        done, self._transaction = self._transaction, None
        end = _end_of(batch, offset)
        if kind == ABORT:
            self._metadata.skip(end)
            return
        change = next((it for it in done.records if self._changes_level(it)), None)
        if change is None:
            self._apply_run(done.first, done.records, end)
        else:
            self._change_level(change, done.records, end)

    def _fault(self, text: str) -> None:
        self._metadata.faults += 1
        self._out.append(WriteLog(f"metadata loading fault: {text}", is_warning=True))

    # -- levels ------------------------------------------------------------------------------------

    def _changes_level(self, record: Record) -> bool:
        if not _is_level(record):
            return False
        return self._unsupported is not None or _level(record) != self._current_level()

    def _current_level(self) -> int | None:
        """That of the state; a log without a level is a preview one, an empty log has none."""
        state = self._metadata.state
        return state.level or (None if state.is_empty else PREVIEW_LEVEL)

    def _unsupported_of(self, level: FeatureLevel) -> FeatureLevel | None:
        """The level if the broker ends at it, as KIP-778 is written."""
        is_supported = self._settings.metadata_version.includes(level)
        return None if is_supported or self._settings.form is Form.RELEASED else level

    def _change_level(self, record: Record, records: list[Record], end: Position) -> None:
        """Applies records one of which changes the level."""
        level = _level(record)
        if self._settings.form is Form.RELEASED:
            if self._release.metadata_level(level) is None:
                known = [one for one in records if one is not record]
                self._fault(f"no MetadataVersion with feature level {level}")
                self._apply_run(end.offset - len(known), known, end)
                if self.position != end:
                    self._metadata.skip(end)
            else:
                self._apply_run(end.offset - len(records), records, end)
            return
        if self._unsupported is None:
            self._snapshot_before()
        for fault in self._metadata.apply(end.offset - len(records), records, end):
            self._fault(fault)
        self._unsupported = self._unsupported_of(level)
        if self._unsupported is not None:
            if self._published is not None:
                self._tell_unsupported(level)
            return
        self._is_told = False
        self._reload()

    def _snapshot_before(self) -> None:
        """Publishes and writes the state at the offset right before the change of the level."""
        if self._current_level() is None:
            return
        if self._published is not None and self._published.position != self.position:
            self._published = self._metadata.image()
            self._out.append(ImagePublished(self._published))
        self._write()

    def _reload(self) -> None:
        """Turns the state into records at the new level, and publishes that."""
        self._metadata.rewrite(self._write())
        if self._published is not None:
            self._published = self._metadata.image()
            self._out.append(ImagePublished(self._published, is_reload=True))

    def _write(self, *, is_periodic: bool = False) -> tuple[Record, ...]:
        position, found = self.position, at_level(self._metadata.state)
        data = snapshot_bytes(found.records, position.epoch, position.append_ms)
        snapshot = OffsetAndEpoch(position.offset, position.epoch)
        self._out.append(SnapshotMade(snapshot, found.level, data, found.losses, is_periodic))
        self._bytes = 0
        return found.records

    def _snapshot_of_size(self) -> None:
        """Writes the state because the log has grown."""
        if self._unsupported is None:
            self._write(is_periodic=True)


def _is_level(record: Record) -> bool:
    return record.type == FEATURE_LEVEL and record.data["name"] == METADATA_VERSION


def _level(record: Record) -> FeatureLevel:
    return FeatureLevel(record.data["featureLevel"])


def _end_of(batch: Batch, last: int) -> Position:
    return Position(last + 1, batch.epoch, batch.append_ms)
