"""Metadata records as the controller writes and reads them, each with its bytes.

A record's data has the names of the JSON of Kafka's message converters; tagged fields are left out
at their default. Records whose content the controller does not use are read as far as their key
reaches, and keep their bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from featurewatch.reference.kraft.machines.batches import Batch, struct_bytes
from featurewatch.streams.kraft.errors import RecordDecodeError
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.compiler import Decoder, compiled
from featurewatch.streams.kraft.records.frames import FAILURES, frame, reason_of, record_end
from featurewatch.streams.kraft.records.schema import Field, RecordSchema, record_table
from featurewatch.streams.kraft.records.varint import uvarint, write_uvarint

_FRAME_VERSION: Final = 1
_SECRET: Final = ("USER_SCRAM_CREDENTIAL_RECORD", ("name", "mechanism"))
"""The one type with fields of bytes, which are not decoded, and the fields before them."""

Data = Mapping[str, Any]


class UnreadableRecordError(ValueError):
    """A record that this software does not know, or that does not fit the state; one phrase."""


class Record(NamedTuple):
    """A record: its type (``REGISTER_BROKER_RECORD``), version, data, and bytes with the frame."""

    type: str
    version: int
    data: Data
    value: bytes


@cache
def _schema(record_type: str) -> RecordSchema:
    return next(schema for schema in record_table().records.values() if schema.type == record_type)


def record(record_type: str, version: int = 0, /, **data: Any) -> Record:
    """A record to write; fields that are not given have their default.

    Raises:
        ValueError: The version does not have a field that is given with another value.
    """
    schema = _schema(record_type)
    for field in schema.fields:
        if field.since > version and data.get(field.name, field.default) != field.default:
            raise ValueError(f"version {version} of {record_type} has no field {field.name}")
    filled = _filled(schema.at(version), data)
    head = write_uvarint(_FRAME_VERSION) + write_uvarint(schema.key) + write_uvarint(version)
    value = head + struct_bytes(schema.at(version), filled, version)
    return Record(record_type, version, filled, value)


def _filled(fields: Sequence[Field], data: Data) -> dict[str, Any]:
    """The data with defaults; tagged fields are there only with another value."""
    filled = {}
    for field in fields:
        value = data.get(field.name, field.default)
        if not field.tagged or value != field.default:
            filled[field.name] = value
    return filled


@cache
def _decoder(key: int, version: int) -> Decoder:
    schema = record_table().records.get(key)
    if schema is None:
        raise UnreadableRecordError(f"record type {key} is not known")
    if version > schema.newest:
        raise UnreadableRecordError(f"version {version} of {schema.type} is not known")
    return compiled(schema, version, _SECRET[1] if schema.type == _SECRET[0] else None)


def read_record(value: bytes, offset: int) -> Record:
    """A record from its bytes with the frame.

    Raises:
        UnreadableRecordError: Its type or version is not known, or it is damaged.
    """
    try:
        frame_version, at = uvarint(value, 0)
        key, at = uvarint(value, at)
        version, at = uvarint(value, at)
        if frame_version != _FRAME_VERSION:
            raise UnreadableRecordError(f"frame version {frame_version} is not known")
        found = _decoder(key, version)(value, at, len(value), offset)
    except FAILURES as failure:
        raise UnreadableRecordError(reason_of(failure)) from None
    return Record(found["type"], version, found["data"], value)


def records_of(batch: Batch) -> Iterator[tuple[int, Record]]:
    """The records of a data batch with their offsets.

    Raises:
        UnreadableRecordError: One is not known or damaged; those before it were given.
    """
    (scanned,) = scan_batches(batch.data).batches
    at = scanned.start
    for delta in range(scanned.record_count):
        try:
            at, end = record_end(batch.data, at, scanned.end)
            parts = frame(batch.data, at, end, delta)
            if parts.key_start >= 0:
                raise RecordDecodeError("it has a key, which no metadata record has")
        except FAILURES as failure:
            raise UnreadableRecordError(reason_of(failure)) from None
        yield (
            batch.base + delta,
            read_record(batch.data[parts.start : parts.end], batch.base + delta),
        )
        at = end
