"""Metadata records, and their bytes (``MetadataRecordSerde``); whole, secrets too.

A record's data has the names of the JSON of Kafka's message converters. The decoders are the
product's (`streams.kraft.records.compiler`), the encoder is that of `batches`. What is read here
stays in the process: a quorum has to keep credentials that a monitor must not.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from featurewatch.kafka.releases import from_releases
from featurewatch.reference.kraft.machines.batches import Batch, struct_bytes
from featurewatch.streams.kraft.errors import RecordDecodeError, UnknownRecordError
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.compiler import Decoder, compiled
from featurewatch.streams.kraft.records.frames import FAILURES, frame, reason_of, record_end
from featurewatch.streams.kraft.records.primitives import count, misfit, required, skip_tags, string
from featurewatch.streams.kraft.records.schema import Field, RecordSchema, record_table
from featurewatch.streams.kraft.records.varint import uvarint, write_uvarint

Data = Mapping[str, Any]
_FRAME_VERSION: Final = 1
_INTEGERS: Final = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}


class Record(NamedTuple):
    """A metadata record; ``data`` is never changed. Tagged fields at their default are left out."""

    type: str
    version: int
    data: Data


@from_releases
def _schemas() -> Mapping[str, RecordSchema]:
    """The schemas of metadata records by type."""
    return {schema.type: schema for schema in record_table().records.values()}


def record(record_type: str, version: int = 0, /, **data: Any) -> Record:
    """A record to write; fields that are not given have their default.

    Raises:
        KeyError: if no release has the type.
        ValueError: if the version does not have a field that is given with another value.
    """
    schema = _schemas()[record_type]
    for one in schema.fields:
        if one.since > version and data.get(one.name, one.default) != one.default:
            raise ValueError(f"version {version} of {record_type} has no field {one.name}")
    return Record(record_type, version, _filled(schema.at(version), data))


def _filled(fields: Sequence[Field], data: Data) -> dict[str, Any]:
    values = ((one, data.get(one.name, one.default)) for one in fields)
    return {one.name: value for one, value in values if not one.tagged or value != one.default}


def record_bytes(record: Record) -> bytes:
    """The value of a record in a batch.

    Raises ``KeyError`` if no release has its type, or a field of its version is missing.
    """
    schema = _schemas()[record.type]
    head = write_uvarint(_FRAME_VERSION) + write_uvarint(schema.key) + write_uvarint(record.version)
    return head + struct_bytes(schema.fields, record.data, record.version)


def read_batch(batch: Batch) -> Iterator[tuple[int, Record | RecordDecodeError]]:
    """The records of a batch of data with their offsets; what cannot be read as its error.

    After a record whose end is not known there are no others.
    """
    (scanned,) = scan_batches(batch.data).batches
    at = scanned.start
    for delta in range(scanned.record_count):
        try:
            start, end = record_end(batch.data, at, scanned.end)
        except FAILURES as failure:
            yield batch.base + delta, RecordDecodeError(reason_of(failure))
            return
        try:
            parts = frame(batch.data, start, end, delta)
            if parts.key_start >= 0:
                raise RecordDecodeError("it has a key, which no metadata record has")
            yield batch.base + delta, _read(batch.data, parts.start, parts.end)
        except RecordDecodeError as error:
            yield batch.base + delta, error
        except FAILURES as failure:
            yield batch.base + delta, RecordDecodeError(reason_of(failure))
        at = end


def records_of(batch: Batch) -> Iterator[tuple[int, Record]]:
    """The records of a batch of data with their offsets.

    Raises:
        UnknownRecordError: at a record that no known release has; those before it were given.
        RecordDecodeError: at bytes that are not a record.
    """
    for offset, found in read_batch(batch):
        if isinstance(found, RecordDecodeError):
            raise found
        yield offset, found


def _read(buffer: bytes, start: int, end: int) -> Record:
    try:
        frame_version, at = uvarint(buffer, start)
        key, at = uvarint(buffer, at)
        version, at = uvarint(buffer, at)
        if at > end:
            raise RecordDecodeError("it is cut off")
        if frame_version != _FRAME_VERSION:
            raise RecordDecodeError(f"frame version {frame_version} is not known")
        read = _decoder(key, version)(buffer, at, end, 0)
    except UnknownRecordError:
        raise
    except FAILURES as failure:
        raise RecordDecodeError(reason_of(failure)) from None
    return Record(read["type"], version, read["data"])


@from_releases
def _decoder(key: int, version: int) -> Decoder:
    schema = record_table().records.get(key)
    if schema is None:
        raise UnknownRecordError(f"RECORD_TYPE_{key}-v{version}", f"record type {key} is not known")
    if version > schema.newest:
        kind = f"{schema.type}-v{version}"
        raise UnknownRecordError(kind, f"version {version} of {schema.type} is not known")
    if any(field.kind == "bytes" for field in schema.fields):
        return _flat_decoder(schema, version)
    return compiled(schema, version, None)


def _flat_decoder(schema: RecordSchema, version: int) -> Decoder:
    """A decoder of records with fields of bytes, as credentials have, and without structures."""
    fields = schema.at(version)

    def decode(buffer: bytes, at: int, end: int, offset: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for field in fields:
            data[field.name], at = _value(field, buffer, at, end)
        at = skip_tags(buffer, at + 1, buffer[at], end)
        if at != end:
            raise misfit(at, end)
        return {"offset": offset, "type": schema.type, "version": version, "data": data}

    return decode


def _value(field: Field, buffer: bytes, at: int, end: int) -> tuple[Any, int]:
    if width := _INTEGERS.get(field.kind):
        return int.from_bytes(buffer[at : at + width], "big", signed=True), at + width
    if field.kind == "string":
        return string(buffer, at + 1, buffer[at], end, field.nullable)
    if field.kind != "bytes" or field.tagged:
        raise RecordDecodeError(f"field {field.name} is of a type that is not decoded")
    size, at = count(buffer, at + 1, buffer[at], end, 1)
    after = at + required(size)
    return buffer[at:after], after
