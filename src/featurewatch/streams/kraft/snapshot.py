"""Metadata snapshots (``.checkpoint`` files and the bytes of FetchSnapshot) as chunks of records.

A snapshot begins with one control batch whose first record is the SnapshotHeader, and ends with one
that holds the SnapshotFooter (KIP-630; Kafka: ``RecordsSnapshotWriter``). Its own offsets start at
0. ``bootstrap.checkpoint``, with which a cluster is formatted, has the same form.
"""

import re
from collections.abc import Collection, Iterator
from typing import BinaryIO, Final

import orjson

from featurewatch.streams.events import DeadLetter, SnapshotChunk
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.records.batch import RecordBatch, scan_batches
from featurewatch.streams.kraft.records.decoder import Record, RecordDecoder
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES, count_types
from featurewatch.streams.types import LOG_START, ClusterId, OffsetAndEpoch

CHUNK_BYTES: Final = 256 << 10
"""About how much JSON a chunk may hold: well below the 1 MiB that brokers accept in one message."""

_READ_BYTES: Final = 1 << 20
_HEADER: Final = "SNAPSHOT_HEADER"
_FOOTER: Final = "SNAPSHOT_FOOTER"
_HEADER_KEY: Final = b"\x83"
_FOOTER_KEY: Final = b"\x84"
_NAME: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

SnapshotOutput = SnapshotChunk | DeadLetter


def snapshot_name(snapshot: OffsetAndEpoch) -> str:
    """The file name of the snapshot of everything before an offset (Kafka: ``Snapshots``)."""
    return f"{snapshot.offset:020}-{snapshot.epoch:010}.checkpoint"


def parse_name(name: str) -> OffsetAndEpoch:
    """The snapshot that has a file name; ``bootstrap.checkpoint`` is `LOG_START`.

    Raises `CorruptSnapshotError` for any other name.
    """
    if name == "bootstrap.checkpoint":
        return LOG_START
    match = _NAME.fullmatch(name)
    if match is None:
        raise CorruptSnapshotError(f"{name} is not the name of a metadata snapshot")
    return OffsetAndEpoch(int(match[1]), int(match[2]))


class SnapshotReader:
    """Makes chunks of the bytes of one snapshot, which come in pieces.

    Memory is bounded by a chunk, a piece and a batch. The last chunk comes from `finish` alone, so
    a snapshot that is cut off never looks whole. After `CorruptSnapshotError` the reader is of no
    use.
    """

    def __init__(
        self,
        cluster: ClusterId,
        snapshot: OffsetAndEpoch,
        wanted: Collection[str] = DEFAULT_RECORD_TYPES,
        settings: Collection[str] = (),
        unknown_kinds: set[str] | None = None,
    ) -> None:
        self._cluster = cluster
        self._snapshot = snapshot
        self._decoder = RecordDecoder(
            frozenset(wanted) | {_HEADER, _FOOTER}, settings, unknown_kinds
        )
        self._tail = b""
        self._position = 0
        self._append_ms: int | None = None
        self._complete = False
        self._index = 0
        self._records: list[Record] = []
        self._size = 0
        self._skipped = bytearray()

    def feed(self, data: bytes, seen_ms: int) -> list[SnapshotOutput]:
        """The next bytes of the snapshot; raises `CorruptSnapshotError` when it cannot be
        trusted."""
        scan = scan_batches(buffered := self._tail + data)
        outputs: list[SnapshotOutput] = []
        for batch in scan.batches:
            if batch.error:
                raise self._bad(batch.error, batch.at)
            self._add_batch(batch, seen_ms, outputs)
        if scan.error:
            raise self._bad(scan.error, scan.consumed)
        self._tail = buffered[scan.consumed :]
        self._position += scan.consumed
        return outputs

    def finish(self, seen_ms: int) -> SnapshotChunk:
        """The last chunk; raises `CorruptSnapshotError` when the snapshot ends too early."""
        if not self._complete or self._tail:
            raise self._bad("it is cut off before its footer", 0)
        return self._chunk(seen_ms, last=True)

    def _add_batch(self, batch: RecordBatch, seen_ms: int, outputs: list[SnapshotOutput]) -> None:
        if self._complete:
            raise self._bad("it continues after its footer", batch.at)
        decoded = self._decoder.decode(batch)
        for offset, reason, payload in decoded.undecoded:
            location = f"snapshot {self._snapshot.offset}-{self._snapshot.epoch} offset {offset}"
            outputs.append(DeadLetter(self._cluster, location, reason, payload, seen_ms))
        self._skipped += decoded.skipped
        for record in decoded.records:
            if record["type"] in (_HEADER, _FOOTER):
                self._on_header_or_footer(record, batch)
                continue
            if self._append_ms is None:
                raise self._bad("it does not begin with a snapshot header", batch.at)
            size = len(orjson.dumps(record))
            if self._records and self._size + size > CHUNK_BYTES:
                outputs.append(self._chunk(seen_ms, last=False))
            self._records.append(record)
            self._size += size
        if self._append_ms is None:
            raise self._bad("it does not begin with a snapshot header", batch.at)

    def _on_header_or_footer(self, record: Record, batch: RecordBatch) -> None:
        if record["type"] == _HEADER and self._append_ms is None:
            self._append_ms = record["data"]["lastContainedLogTimestamp"]
            self._skipped += _HEADER_KEY
        elif record["type"] == _FOOTER and self._append_ms is not None and not self._complete:
            self._complete = True
            self._skipped += _FOOTER_KEY
        else:
            raise self._bad(f"a {record['type']} is in a wrong place", batch.at)

    def _chunk(self, seen_ms: int, *, last: bool) -> SnapshotChunk:
        chunk = SnapshotChunk(
            cluster=self._cluster,
            end_offset=self._snapshot.offset,
            leader_epoch=self._snapshot.epoch,
            index=self._index,
            last=last,
            append_ms=-1 if self._append_ms is None else self._append_ms,
            records=self._records,
            skipped=count_types(bytes(self._skipped)),
            seen_ms=seen_ms,
        )
        self._index += 1
        self._records, self._size, self._skipped = [], 0, bytearray()
        return chunk

    def _bad(self, reason: str, at: int) -> CorruptSnapshotError:
        where = (
            f"snapshot {self._snapshot.offset}-{self._snapshot.epoch} of cluster {self._cluster}"
        )
        return CorruptSnapshotError(f"{where}, byte {self._position + at}: {reason}")


def read_snapshot(
    file: BinaryIO,
    cluster: ClusterId,
    name: str,
    seen_ms: int,
    wanted: Collection[str] = DEFAULT_RECORD_TYPES,
    settings: Collection[str] = (),
    unknown_kinds: set[str] | None = None,
) -> Iterator[SnapshotOutput]:
    """The chunks of a snapshot file, read in pieces; ``name`` is the file's name.

    ``wanted``, ``settings`` and ``unknown_kinds`` are those of `RecordDecoder`.

    Raises `CorruptSnapshotError`; the chunk that is marked as the last comes only from a whole
    snapshot.
    """
    reader = SnapshotReader(cluster, parse_name(name), wanted, settings, unknown_kinds)
    while data := file.read(_READ_BYTES):
        yield from reader.feed(data, seen_ms)
    yield reader.finish(seen_ms)
