"""From record batches to commits: one for a batch, one for a whole metadata transaction.

A controller writes what belongs together into one batch, or, from metadata.version 13 on, between
BeginTransaction and EndTransaction records (KIP-868). The records of a transaction appear at its
end or, aborted, not at all (Kafka: ``MetadataBatchLoader``).
"""

from collections.abc import Collection
from typing import Final

import orjson

from featurewatch.streams.events import UNREADABLE, CommitKind, DeadLetter, LogCommit
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.kraft.records.decoder import (
    DecodedBatch,
    Record,
    RecordDecoder,
    redacted,
    unreadable,
)
from featurewatch.streams.kraft.records.selection import (
    ABORT,
    BEGIN,
    CONTROL_RECORDS,
    DEFAULT_RECORD_TYPES,
    END,
    PUBLISHED_RECORD_TYPES,
    TRANSACTION_MARKERS,
    TYPE_BY_KEY,
    count_types,
)
from featurewatch.streams.types import NO_OFFSET, ClusterId, LastRecord

MAX_COMMIT_BYTES: Final = 12 << 20
"""The JSON of the records of one commit: the bus accepts messages of 16 MiB."""

MAX_BATCH_DEAD_LETTERS: Final = 100
"""The dead letters of one batch, which could hold two million records that cannot be read."""

_SMALL_BYTES: Final = 512 << 10
"""Records take up to twenty times their bytes as JSON: so many fit without being measured."""

_KEY_BY_TYPE: Final = {name: key for key, name in TYPE_BY_KEY.items()}

LOG: Final = "__cluster_metadata-0"

AssemblerEvent = LogCommit | DeadLetter

_NO_OP: Final = "NO_OP_RECORD"
_MARKER_KEYS: Final = {BEGIN: b"\x17", END: b"\x18", ABORT: b"\x19"}


class _Part:
    """Consecutive records: the wanted ones, and the keys of the others."""

    def __init__(self, first: int) -> None:
        self.first = first
        self.size_bytes = 0
        self.records: list[Record] = []
        self.skipped = bytearray()

    def extend(self, records: list[Record], skipped: bytes, size_bytes: int) -> None:
        self.records += records
        self.skipped += skipped
        self.size_bytes += size_bytes if records else 0


class _Transaction(_Part):
    """An open transaction; ``before`` is where to resume so that nothing of it is missed."""

    def __init__(self, first: int, before: LastRecord) -> None:
        super().__init__(first)
        self.before = before
        self.skipped += _MARKER_KEYS[BEGIN]


class _Cursor:
    """Walks a decoded batch by offset."""

    def __init__(self, decoded: DecodedBatch, at: int) -> None:
        self._decoded = decoded
        self._at, self._record, self._skipped = at, 0, 0

    def take(self, until: int) -> tuple[list[Record], bytes]:
        """Everything before the offset ``until``: records, and keys of skipped ones."""
        records, begin = self._decoded.records, self._record
        while self._record < len(records) and records[self._record]["offset"] < until:
            self._record += 1
        begin_skipped = self._skipped
        self._skipped += until - self._at - (self._record - begin)
        self._at = until
        return (
            records[begin : self._record],
            self._decoded.skipped[begin_skipped : self._skipped],
        )

    def pass_marker(self) -> None:
        """Skip the one record at the current offset."""
        self._record += 1
        self._at += 1


class CommitAssembler:
    """Makes commits, and dead letters, of committed batches in offset order.

    Batches that were added before are ignored. Batches without a wanted record, and NoOps, make
    no commit.

    The records of an open transaction are held until it ends, and no more than those: with the
    default set a transaction that creates a million partitions holds nothing but one byte a record.
    With every type wanted it holds its records, and above `MAX_COMMIT_BYTES` only those that a
    state depends on.
    """

    def __init__(
        self,
        cluster: ClusterId,
        wanted: Collection[str] = DEFAULT_RECORD_TYPES,
        position: LastRecord = NO_OFFSET,
        settings: Collection[str] = (),
    ) -> None:
        self._cluster = cluster
        types = (frozenset(wanted) | TRANSACTION_MARKERS) - {_NO_OP}
        self._decoder = RecordDecoder(types, settings)
        self._last = position
        self._open: _Transaction | None = None
        self.records_read = 0
        """Records decoded, unreadable ones included."""
        self.records_skipped = 0
        """Records that were skipped."""

    @property
    def unknown_kinds(self) -> set[str]:
        """The kinds of unknown records that have a dead letter (`RecordDecoder`)."""
        return self._decoder.unknown_kinds

    @property
    def position(self) -> LastRecord:
        """The last record that is finished: in a commit, skipped, or dropped.

        A source that resumes after it misses nothing: while a transaction is open it stays before
        its beginning.
        """
        return self._open.before if self._open else self._last

    def reset(self, position: LastRecord) -> None:
        """Continue after ``position``, after a snapshot or a gap; drops an open transaction."""
        self._last = position
        self._open = None

    def add(self, batch: RecordBatch, seen_ms: int) -> list[AssemblerEvent]:
        """The commits and dead letters of this batch, read at ``seen_ms``. Nothing is raised."""
        if batch.last_offset <= self._last.offset:
            return []
        events: list[AssemblerEvent] = []
        if batch.error:
            self._add_corrupt(batch, seen_ms, events)
        else:
            decoded = self._decoder.decode(batch)
            self._add_decoded(batch, decoded, seen_ms, events)
            self.records_read += len(decoded.records)
            self.records_skipped += len(decoded.skipped)
        self._last = LastRecord(batch.last_offset, batch.leader_epoch, batch.checksum)
        return events

    def _add_decoded(
        self, batch: RecordBatch, decoded: DecodedBatch, seen_ms: int, events: list[AssemblerEvent]
    ) -> None:
        if not decoded.records and self._open is None:
            return
        unread = [lost for lost in decoded.undecoded if lost.offset > self._last.offset]
        for offset, reason, payload in unread[:MAX_BATCH_DEAD_LETTERS]:
            events.append(self._dead_letter(f"offset {offset}", reason, payload, seen_ms))
        if len(unread) > MAX_BATCH_DEAD_LETTERS:
            count = len(unread) - MAX_BATCH_DEAD_LETTERS
            where = f"batch at offset {batch.base_offset}"
            reason = f"{count} more of its records cannot be read, and get no dead letter"
            events.append(self._dead_letter(where, reason, b"", seen_ms))
        first = max(batch.base_offset, self._last.offset + 1)
        cursor = _Cursor(decoded, batch.base_offset)
        cursor.take(first)
        for marker in decoded.records:
            if marker["type"] in TRANSACTION_MARKERS and marker["offset"] >= first:
                self._part(first, cursor.take(marker["offset"]), batch, seen_ms, events)
                self._marker(marker, batch, seen_ms, events)
                cursor.pass_marker()
                first = marker["offset"] + 1
        self._part(first, cursor.take(batch.last_offset + 1), batch, seen_ms, events)

    def _part(
        self,
        first: int,
        records_and_skipped: tuple[list[Record], bytes],
        batch: RecordBatch,
        seen_ms: int,
        events: list[AssemblerEvent],
    ) -> None:
        """Records of a batch between two markers: a commit, or more of the open transaction."""
        size_bytes = batch.end - batch.start
        if self._open is not None:
            self._open.extend(*records_and_skipped, size_bytes)
            if self._open.size_bytes > MAX_COMMIT_BYTES:
                # It may never end: what cannot be published is not held either.
                self._shrink(self._open, seen_ms, events)
        elif records_and_skipped[0]:
            part = _Part(first)
            part.extend(*records_and_skipped, size_bytes)
            last = first + len(records_and_skipped[0]) + len(records_and_skipped[1]) - 1
            self._add_commit(part, last, CommitKind.BATCH, batch, seen_ms, events)

    def _marker(
        self, marker: Record, batch: RecordBatch, seen_ms: int, events: list[AssemblerEvent]
    ) -> None:
        kind, offset = marker["type"], marker["offset"]
        if (kind == BEGIN) == (self._open is not None):
            where = "inside a transaction" if self._open else "outside of a transaction"
            reason = f"{kind} {where}"
            events.append(self._dead_letter(f"offset {offset}", reason, b"", seen_ms))
            self._part(offset, ([unreadable(offset, reason)], b""), batch, seen_ms, events)
        elif self._open is None:
            inside = offset > batch.base_offset
            last = LastRecord(offset - 1, batch.leader_epoch, batch.checksum)
            before = last if inside else self._last
            self._open = _Transaction(offset, before)
        else:
            transaction, self._open = self._open, None
            transaction.skipped += _MARKER_KEYS[kind]
            if kind == ABORT:
                _drop(transaction)
            if transaction.records:
                kind_of_commit = CommitKind.TRANSACTION
                self._add_commit(transaction, offset, kind_of_commit, batch, seen_ms, events)

    def _add_corrupt(self, batch: RecordBatch, seen_ms: int, events: list[AssemblerEvent]) -> None:
        """A batch that must not be read.

        An open transaction ends with it: the batch may have held its end, and to wait for another
        one would hold back everything that follows.
        """
        offset, reason = batch.base_offset, batch.error
        part: _Part = _Part(offset)
        if self._open is not None:
            part, self._open = self._open, None
            _drop(part)
            reason = f"{reason}; the transaction from offset {part.first} on is dropped with it"
        part.records.append(unreadable(offset, reason))
        self.records_read += 1
        events.append(
            self._dead_letter(f"batch at offset {offset}", reason, redacted(batch), seen_ms)
        )
        events.append(self._commit(part, offset, CommitKind.BATCH, batch, seen_ms))

    def _add_commit(
        self,
        part: _Part,
        last: int,
        kind: CommitKind,
        batch: RecordBatch,
        seen_ms: int,
        events: list[AssemblerEvent],
    ) -> None:
        self._shrink(part, seen_ms, events)
        events.append(self._commit(part, last, kind, batch, seen_ms))

    def _shrink(self, part: _Part, seen_ms: int, events: list[AssemblerEvent]) -> None:
        """Make a commit small enough for the bus, if it is not.

        First without the records that no state depends on; if that is not enough, one stand-in
        takes the place of all records, and the readers count it as unreadable.
        """
        size_bytes = _json_bytes(part)
        if size_bytes > MAX_COMMIT_BYTES:
            reason = (
                f"the commit from offset {part.first} on has {size_bytes} bytes as JSON, and at "
                f"most {MAX_COMMIT_BYTES} are published"
            )
            _keep_published(part)
            size_bytes = _json_bytes(part)
            if size_bytes > MAX_COMMIT_BYTES:
                part.skipped += bytes(_KEY_BY_TYPE[r["type"]] for r in _typed(part.records))
                part.records = [unreadable(part.first, reason)]
                size_bytes = len(reason)
            else:
                reason += ": only the records that a state depends on"
            events.append(self._dead_letter(f"offset {part.first}", reason, b"", seen_ms))
        if part.size_bytes > MAX_COMMIT_BYTES:
            part.size_bytes = size_bytes

    def _commit(
        self, part: _Part, last: int, kind: CommitKind, batch: RecordBatch, seen_ms: int
    ) -> LogCommit:
        return LogCommit(
            cluster=self._cluster,
            kind=kind,
            first_offset=part.first,
            last_offset=last,
            leader_epoch=batch.leader_epoch,
            append_ms=batch.append_ms,
            records=part.records,
            skipped=count_types(bytes(part.skipped)),
            seen_ms=seen_ms,
            checksum=batch.checksum,
        )

    def _dead_letter(self, where: str, reason: str, payload: bytes, seen_ms: int) -> DeadLetter:
        return DeadLetter(self._cluster, f"{LOG} {where}", reason, payload, seen_ms)


def _json_bytes(part: _Part) -> int:
    """The JSON of a part's records in bytes; 0 where they cannot be too large."""
    if part.size_bytes <= _SMALL_BYTES:
        return 0
    # One by one: a list of all would take as much memory once more.
    return sum(len(orjson.dumps(record)) + 1 for record in part.records)


def _typed(records: Collection[Record]) -> list[Record]:
    return [record for record in records if record["type"] != UNREADABLE]


def _keep_published(part: _Part) -> None:
    """Count, and no more, the records that no state depends on."""
    kept = PUBLISHED_RECORD_TYPES | {UNREADABLE}
    part.skipped += bytes(
        _KEY_BY_TYPE[record["type"]] for record in part.records if record["type"] not in kept
    )
    part.records = [record for record in part.records if record["type"] in kept]


def _drop(part: _Part) -> None:
    """Keep only control records: they are no part of a metadata transaction."""
    part.records = [record for record in part.records if record["type"] in CONTROL_RECORDS]
