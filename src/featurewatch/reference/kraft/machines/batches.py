"""Record batches as the quorum writes and reads them: format 2, as ``DefaultRecordBatch``."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from crc32c import crc32c

from featurewatch.streams.kraft.records.batch import RecordBatch, scan_batches
from featurewatch.streams.kraft.records.decoder import RecordDecoder
from featurewatch.streams.kraft.records.frames import frame, record_end
from featurewatch.streams.kraft.records.schema import Field, record_table
from featurewatch.streams.kraft.records.varint import write_uvarint, write_varint

LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6

_CONTROL: Final = 0x20
_HEAD: Final = struct.Struct(">hiqqqhii")
_FRAME: Final = struct.Struct(">qi")
_REST: Final = struct.Struct(">ibI")
_FIXED: Final = {
    "bool": struct.Struct(">?"),
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "float64": struct.Struct(">d"),
}
_CONTROLS: Final = frozenset({"LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"})


class InvalidBatchesError(ValueError):
    """Bytes that are not a whole number of valid record batches; the text is one phrase."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A record batch of the log; offsets are inclusive and ``data`` is its bytes."""

    base: int
    last: int
    epoch: int
    append_ms: int
    is_control: bool
    data: bytes


ControlRecord = tuple[int, Mapping[str, Any]]
"""The type of a control record and its data, as the JSON of Kafka's message converters."""


def data_batch(base: int, epoch: int, append_ms: int, values: Sequence[bytes]) -> Batch:
    """A batch of metadata records, given as their bytes."""
    records = [(None, value) for value in values]
    return _batch(base, epoch, append_ms, records, is_control=False)


def control_batch(base: int, epoch: int, append_ms: int, records: Sequence[ControlRecord]) -> Batch:
    """A batch of control records of Raft."""
    written = [
        (struct.pack(">hh", 0, kind), struct_bytes(_fields(kind), data, data["version"]))
        for kind, data in records
    ]
    return _batch(base, epoch, append_ms, written, is_control=True)


def read_batches(data: bytes) -> list[Batch]:
    """The batches in the answer of a leader, or in a segment.

    Raises:
        InvalidBatchesError: if there is anything else in it.
    """
    scan = scan_batches(data)
    fault = scan.error or next((batch.error for batch in scan.batches if batch.error), "")
    if fault or scan.consumed != len(data):
        raise InvalidBatchesError(fault or "the last record batch is cut off")
    return [of_scanned(batch) for batch in scan.batches]


def of_scanned(batch: RecordBatch) -> Batch:
    """A batch of this module of one that was read."""
    return Batch(
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        batch.append_ms,
        batch.control,
        batch.buffer[batch.at : batch.end],
    )


def control_records(batches: Iterable[Batch]) -> list[dict[str, Any]]:
    """The control records about leaders and voters, as JSON; others are left out.

    One that no known release has is there as ``UNREADABLE`` (`streams.kraft.records.decoder`).
    """
    found: list[dict[str, Any]] = []
    for batch in batches:
        if batch.is_control:
            (scanned,) = scan_batches(batch.data).batches
            found += RecordDecoder(_CONTROLS).decode(scanned).records
    return found


def control_types(batches: Iterable[Batch]) -> list[int]:
    """The types of all control records, known or not."""
    found: list[int] = []
    for batch in batches:
        if batch.is_control:
            (scanned,) = scan_batches(batch.data).batches
            at = scanned.start
            for delta in range(scanned.record_count):
                at, end = record_end(batch.data, at, scanned.end)
                one = frame(batch.data, at, end, delta)
                found.append(int.from_bytes(batch.data[one.key_start + 2 : one.key_end], "big"))
                at = end
    return found


def struct_bytes(fields: Sequence[Field], data: Mapping[str, Any], version: int) -> bytes:
    """A structure in Kafka's flexible encoding; tagged fields are left out at their default."""
    out, tags = bytearray(), list[tuple[int, bytes]]()
    for field in fields:
        if field.since > version:
            continue
        if not field.tagged:
            out += _value_bytes(field.kind, data[field.name], field.fields, version)
        elif data.get(field.name, field.default) != field.default:
            content = _value_bytes(field.kind, data[field.name], field.fields, version)
            tags.append((field.tag, content))
    out += write_uvarint(len(tags))
    for tag, content in sorted(tags):
        out += write_uvarint(tag) + write_uvarint(len(content)) + content
    return bytes(out)


def _fields(control_type: int) -> Sequence[Field]:
    return record_table().controls[control_type].fields


def _value_bytes(kind: str, value: Any, fields: Sequence[Field], version: int) -> bytes:
    if kind.startswith("[]"):
        if value is None:
            return b"\0"
        items = b"".join(_value_bytes(kind[2:], item, fields, version) for item in value)
        return write_uvarint(len(value) + 1) + items
    if kind == "struct":
        return struct_bytes(fields, value, version)
    if kind == "uuid":
        from base64 import urlsafe_b64decode

        return urlsafe_b64decode(value + "==")
    if kind in ("string", "bytes"):
        if value is None:
            return b"\0"
        content = value.encode() if isinstance(value, str) else value
        return write_uvarint(len(content) + 1) + content
    return _FIXED[kind].pack(value)


def _record(delta: int, key: bytes | None, value: bytes) -> bytes:
    body = b"".join(
        (
            b"\0",  # no attributes, and the time of the batch
            write_varint(0),
            write_varint(delta),
            write_varint(-1) if key is None else write_varint(len(key)) + key,
            write_varint(len(value)),
            value,
            write_varint(0),
        )
    )
    return write_varint(len(body)) + body


def _batch(
    base: int,
    epoch: int,
    append_ms: int,
    records: Sequence[tuple[bytes | None, bytes]],
    *,
    is_control: bool,
) -> Batch:
    count = len(records)
    attributes = _CONTROL if is_control else 0
    content = b"".join(
        (
            _HEAD.pack(attributes, count - 1, append_ms, append_ms, -1, -1, -1, count),
            *(_record(delta, key, value) for delta, (key, value) in enumerate(records)),
        )
    )
    rest = _REST.pack(epoch, 2, crc32c(content)) + content
    data = _FRAME.pack(base, len(rest)) + rest
    return Batch(base, base + count - 1, epoch, append_ms, is_control, data)
