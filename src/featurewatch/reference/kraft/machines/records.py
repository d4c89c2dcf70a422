"""Metadata records as bytes and as `StateRecord` (``MetadataRecordSerde``); whole, secrets too.

The decoders are the product's (`streams.kraft.records.compiler`), the encoder that of `batches`.
What is read here stays in the process: a quorum has to keep credentials that a monitor must not.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from featurewatch.kafka.releases import from_releases
from featurewatch.reference.kraft.machines.batches import Batch, struct_bytes
from featurewatch.reference.kraft.machines.levels import StateRecord
from featurewatch.streams.kraft.errors import RecordDecodeError, UnknownRecordError
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.compiler import Decoder, compiled
from featurewatch.streams.kraft.records.frames import FAILURES, frame, reason_of, record_end
from featurewatch.streams.kraft.records.primitives import count, misfit, required, skip_tags, string
from featurewatch.streams.kraft.records.schema import Field, RecordSchema, record_table
from featurewatch.streams.kraft.records.varint import uvarint, write_uvarint

_FRAME_VERSION: Final = 1
_INTEGERS: Final = {"int8": 1, "int16": 2, "int32": 4, "int64": 8}


@from_releases
def keys() -> Mapping[str, int]:
    """The API keys of the types of metadata records."""
    return {schema.type: key for key, schema in record_table().records.items()}


def record_bytes(record: StateRecord) -> bytes:
    """The value of a record in a batch.

    Raises ``KeyError`` if no release has its type, or a field of its version is missing.
    """
    key = keys()[record.type]
    head = write_uvarint(_FRAME_VERSION) + write_uvarint(key) + write_uvarint(record.version)
    return head + struct_bytes(record_table().records[key].fields, record.data, record.version)


def read_record(value: bytes) -> StateRecord:
    """The record in the value of a record of a batch.

    Raises:
        UnknownRecordError: if no known release has its type or its version.
        RecordDecodeError: if it is not a record.
    """
    return _read(value, 0, len(value))


def read_batch(batch: Batch) -> Iterator[tuple[int, StateRecord | RecordDecodeError]]:
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
            yield batch.base + delta, _read(batch.data, parts.start, parts.end)
        except RecordDecodeError as error:
            yield batch.base + delta, error
        except FAILURES as failure:
            yield batch.base + delta, RecordDecodeError(reason_of(failure))
        at = end


def read_records(batches: Iterable[Batch]) -> Iterator[StateRecord]:
    """The records of batches in order, without control records.

    Raises:
        UnknownRecordError: at a record that no known release has.
        RecordDecodeError: at bytes that are not a record.
    """
    for batch in batches:
        if not batch.is_control:
            for _, record in read_batch(batch):
                if isinstance(record, RecordDecodeError):
                    raise record
                yield record


def _read(buffer: bytes, start: int, end: int) -> StateRecord:
    try:
        frame_version, at = uvarint(buffer, start)
        key, at = uvarint(buffer, at)
        version, at = uvarint(buffer, at)
        if frame_version != _FRAME_VERSION or at > end:
            raise RecordDecodeError("it does not begin as a metadata record does")
        read = _decoder(key, version)(buffer, at, end, 0)
    except UnknownRecordError:
        raise
    except FAILURES as failure:
        raise RecordDecodeError(reason_of(failure)) from None
    return StateRecord(read["type"], version, read["data"])


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
