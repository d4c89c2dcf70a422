"""Reads the output of ``kafka-dump-log --cluster-metadata-decoder``.

Where only the tool's output is left of a log, its batches are lines: one of the batch, one of each
record, the content as the same JSON that `streams.kraft.records.decoder` returns. A printed batch
is therefore a `RecordBatch` whose buffer is text, and every function that takes batches takes it
(Kafka: ``DumpLogSegments``).

Tools before 4.0 print of LEADER_CHANGE the type alone: who led is not known from their text, and
such a record counts as skipped.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from featurewatch.common.text import shortened
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.errors import RecordDecodeError, UnknownRecordError
from featurewatch.streams.kraft.records.batch import BatchScan, RecordBatch
from featurewatch.streams.kraft.records.decoder import (
    DecodedBatch,
    Record,
    RecordDecoder,
    UndecodedRecord,
)
from featurewatch.streams.kraft.records.selection import (
    DEFAULT_RECORD_TYPES,
    REDACTED_RECORD_TYPES,
    TYPE_BY_KEY,
)
from featurewatch.streams.kraft.snapshot import SnapshotOutput as SnapshotOutput
from featurewatch.streams.kraft.snapshot import SnapshotReader
from featurewatch.streams.types import NO_CHECKSUM, NO_OFFSET, ClusterId, LastRecord, OffsetAndEpoch

SECTION: Final = b"Dumping "
BATCH: Final = b"baseOffset: "
_RECORD: Final = b"| "
_UTF8_MARK: Final = b"\xef\xbb\xbf"
_PREAMBLE_BYTES: Final = 4096
_FIRST_LINE: Final = re.compile(
    rb"^(?:Log starting offset: \d|Snapshot end offset: \d|baseOffset: \d+ lastOffset: \d)", re.M
)
_PIECE_BYTES: Final = 4 << 20

# Gaps and numbers are bounded: a text from a bundle may hold anything, and its lines any length.
_BATCH_LINE: Final = re.compile(
    rb"baseOffset: (\d{1,18}) lastOffset: (\d{1,18}) count: (\d{1,9}) "
    rb".{0,400}?partitionLeaderEpoch: (-?\d{1,9}) .{0,400}?isControl: (true|false) "
    rb".{0,400}?(?:CreateTime|LogAppendTime): (-?\d{1,18}) "
    rb".{0,400}?(?:crc: (\d{1,10}) )?isvalid: (true|false)"
)
_PAYLOAD: Final = re.compile(
    rb'\| (?:offset: \d+ .{0,400}?)??(?:key: .{0,400}? )??payload: (\{"type":"(\w+)".*)'
)
_CONTROL: Final = re.compile(
    rb"\| (?:offset: \d+ .{0,400}?headerKeys: \[\] )?(\w{1,40}):? (\{.*\})"
)
_CONTROL_TYPE: Final = re.compile(rb"\| offset: \d+ .*controlType: (\w+)\(\d+\)")
_CONTROL_NAMES: Final = {
    b"LeaderChange": "LEADER_CHANGE",
    b"SnapshotHeader": "SNAPSHOT_HEADER",
    b"SnapshotFooter": "SNAPSHOT_FOOTER",
    b"KRaftVersion": "KRAFT_VERSION",
    b"KRaftVoters": "KRAFT_VOTERS",
}
_HEADER: Final = "SNAPSHOT_HEADER"
_WRITABLE_DEPTH: Final = 200
_KEY_BY_TYPE: Final = {name: key for key, name in TYPE_BY_KEY.items()}


class DumpSection(NamedTuple):
    """The tool's output for one file: the name as printed, and where its lines are."""

    name: str
    start: int
    end: int


def is_dump_log(head: bytes) -> bool:
    """Whether a file that begins with ``head`` is such a text.

    A mark of the encoding, blank lines, and lines of Java's loggers may come before it.
    """
    begin = head[:_PREAMBLE_BYTES].removeprefix(_UTF8_MARK).lstrip()
    if begin.startswith((SECTION, BATCH)):
        return True
    return b"\0" not in begin and _FIRST_LINE.search(begin) is not None


def sections(file: BinaryIO) -> Iterator[DumpSection]:
    """The files that a text contains, in order. Reads it in pieces."""
    at = len(_UTF8_MARK) if file.read(len(_UTF8_MARK)) == _UTF8_MARK else 0
    file.seek(at)
    name, start, buffered = "", at, b"\n"
    begun = False
    while data := file.read(_PIECE_BYTES):
        buffered += data
        search_from = 0
        while (newline := buffered.find(b"\n" + SECTION, search_from)) >= 0:
            end = buffered.find(b"\n", newline + 1)
            if end < 0:
                break
            where = at + newline
            # Text before the first name belongs to a file only if it has batches.
            if where > start and (begun or b"\n" + BATCH in buffered[:newline]):
                yield DumpSection(name, start, where)
            name = buffered[newline + 1 + len(SECTION) : end].decode(errors="replace").strip()
            start, search_from, begun = where, end, True
        # A name that is cut off is whole in the next piece.
        keep = max(search_from, buffered.rfind(b"\n"))
        begun = begun or b"\n" + BATCH in buffered[:keep]
        at, buffered = at + keep, buffered[keep:]
    end = file.seek(0, 2)
    if end > start:
        yield DumpSection(name, start, end)


def scan_text(data: bytes, *, whole: bool) -> BatchScan:
    """The batches whose lines are all in ``data``, which begins with a line.

    A batch ends where the next begins: ``whole`` means that nothing follows ``data``. Nothing is
    raised on any content.
    """
    batches: list[RecordBatch] = []
    at = _next_batch(data, 0)
    while 0 <= at < len(data):
        after = _next_batch(data, at + 1)
        if after < 0 and not whole:
            break
        end = len(data) if after < 0 else after
        batches.append(_batch(data, at, end))
        at = end
    if at < 0:
        # The line that is not whole yet may be one of a batch.
        at = len(data) if whole else max(data.rfind(b"\n"), 0)
    return BatchScan(batches, at, "")


def _next_batch(data: bytes, at: int) -> int:
    """Where the next line of a batch begins (-1: nowhere)."""
    if at == 0 and data.startswith(BATCH):
        return 0
    newline = data.find(b"\n" + BATCH, max(at - 1, 0))
    return newline + 1 if newline >= 0 else -1


def _batch(data: bytes, at: int, end: int) -> RecordBatch:
    line_end = data.find(b"\n", at, end)
    start = end if line_end < 0 else line_end + 1
    line = _BATCH_LINE.match(data[at:start])
    if line is None:
        error = "the line of the record batch was not printed by kafka-dump-log"
        return RecordBatch(data, at, start, end, 0, 0, -1, -1, False, 0, error)
    base, last, count, epoch = (int(line[number]) for number in range(1, 5))
    printed = data.count(b"\n" + _RECORD, start - 1, end)
    error = ""
    if line[8] == b"false":
        error = "the checksum of the record batch does not match its content"
    elif printed != count or count != last - base + 1:
        error = f"{printed} of the {count} records of the record batch are printed"
    last = base if error else last
    control = line[5] == b"true"
    crc = int(line[7]) if line[7] else NO_CHECKSUM
    return RecordBatch(
        data, at, start, end, base, last, epoch, int(line[6]), control, count, error, crc
    )


class DumpLogDecoder(RecordDecoder):
    """A `RecordDecoder` of printed batches. Secrets in a line are dropped."""

    def decode(self, batch: RecordBatch) -> DecodedBatch:
        """The records of a batch that `scan_text` returned."""
        if batch.error:
            raise ValueError(f"not to be read: {batch.error}")
        records: list[Record] = []
        skipped = bytearray()
        undecoded: list[UndecodedRecord] = []
        lines = batch.buffer[batch.start : batch.end].split(b"\n")
        of_records = (line for line in lines if line.startswith(_RECORD))
        for offset, line in enumerate(of_records, start=batch.base_offset):
            try:
                record = self._printed(line.rstrip(b"\r"), offset, control=batch.control)
            except RecordDecodeError as failure:
                lost = UndecodedRecord(offset, failure.reason, b"")
                self._lose(lost, failure, records, undecoded)
                continue
            if isinstance(record, int):
                skipped.append(record)
            else:
                records.append(record)
        return DecodedBatch(records, bytes(skipped), undecoded)

    def _printed(self, line: bytes, offset: int, *, control: bool) -> Record | int:
        """A record, or the key of one that is not wanted."""
        if control:
            return self._control_of(line, offset)
        match = _PAYLOAD.fullmatch(line)
        if match is None:
            raise RecordDecodeError("kafka-dump-log could not print it as a metadata record")
        kind = match[2].decode()
        key = _KEY_BY_TYPE.get(kind)
        if key is None:
            name = shortened(kind, 60)
            raise UnknownRecordError(name, f"record type {name} is not known")
        if kind not in self.wanted:
            return key
        content = _json(match[1])
        data = content.get("data")
        if type(content.get("version")) is not int or type(data) is not dict:
            raise RecordDecodeError(f"{kind} is printed without a version and data")
        if kind in REDACTED_RECORD_TYPES:
            data = {name: data[name] for name in REDACTED_RECORD_TYPES[kind] if name in data}
        return {"offset": offset, "type": kind, "version": content["version"], "data": data}

    def _control_of(self, line: bytes, offset: int) -> Record | int:
        if bare := _CONTROL_TYPE.fullmatch(line):
            kind, data = bare[1].decode(), None
        else:
            match = _CONTROL.fullmatch(line)
            if match is None or match[1] not in _CONTROL_NAMES:
                raise RecordDecodeError("it is not a control record that kafka-dump-log prints")
            kind, data = _CONTROL_NAMES[match[1]], _json(match[2])
        key = _KEY_BY_TYPE.get(kind)
        if key is None:
            name = shortened(kind, 60)
            raise UnknownRecordError(name, f"control record type {name} is not known")
        if kind == _HEADER and data is None:
            data = {"version": 0, "lastContainedLogTimestamp": -1}
        if kind == "SNAPSHOT_FOOTER" and data is None:
            data = {"version": 0}
        if kind not in self.wanted or data is None:
            return key
        version = data.get("version", 0)
        needed = [version, data.get("lastContainedLogTimestamp", -1 if kind != _HEADER else None)]
        if not all(type(number) is int for number in needed):
            raise RecordDecodeError(f"{kind} is printed without a version and a time")
        return {"offset": offset, "type": kind, "version": version, "data": data}


def _json(text: bytes) -> dict[str, Any]:
    try:
        content = orjson.loads(text)
        # What is nested deeper than this is read, and could not be written again.
        if text.count(b"{") + text.count(b"[") > _WRITABLE_DEPTH:
            orjson.dumps(content)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        raise RecordDecodeError("its printed text is cut off or not JSON") from None
    if type(content) is not dict:
        raise RecordDecodeError("its printed text is not a JSON object")
    return content


class DumpLogAssembler(CommitAssembler):
    """A `CommitAssembler` of printed batches."""

    def __init__(
        self,
        cluster: ClusterId,
        wanted: Collection[str] = DEFAULT_RECORD_TYPES,
        position: LastRecord = NO_OFFSET,
    ) -> None:
        super().__init__(cluster, wanted, position)
        self._decoder = DumpLogDecoder(self._decoder.wanted)


class DumpLogSnapshotReader(SnapshotReader):
    """A `SnapshotReader` of what the tool printed of a snapshot."""

    def __init__(
        self,
        cluster: ClusterId,
        snapshot: OffsetAndEpoch,
        wanted: Collection[str] = DEFAULT_RECORD_TYPES,
    ) -> None:
        super().__init__(cluster, snapshot, wanted)
        self._decoder = DumpLogDecoder(self._decoder.wanted)

    def feed(self, data: bytes, seen_ms: int) -> list[SnapshotOutput]:
        """The next part of the text, in whole lines; its last batch comes from `end_of_text`."""
        return self._take_text(self._tail + data, seen_ms, whole=False)

    def end_of_text(self, seen_ms: int) -> list[SnapshotOutput]:
        """The chunks of the text that was held back while more lines could follow."""
        return self._take_text(self._tail, seen_ms, whole=True)

    def _take_text(self, data: bytes, seen_ms: int, *, whole: bool) -> list[SnapshotOutput]:
        scan = scan_text(data, whole=whole)
        outputs: list[SnapshotOutput] = []
        for batch in scan.batches:
            if batch.error:
                raise self._bad(batch.error, batch.at)
            self._add_batch(batch, seen_ms, outputs)
        if whole:
            self._tail = b""
        else:
            self._tail = data[scan.consumed :] if scan.batches else data
        return outputs
