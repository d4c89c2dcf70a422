"""Metadata records with the content that a test names, and plain values for the rest."""

from typing import Any, Final

from featurewatch.reference.kraft.machines.batches import data_batch
from featurewatch.reference.kraft.machines.metadata.records import Record, records_of
from featurewatch.streams.kraft.records.schema import Field, record_table

TOPIC: Final = "kZGNLvwmTvaTYYZ2YjBjyA"
_SCHEMAS: Final = {schema.type: schema for schema in record_table().records.values()}


def _plain(field: Field) -> Any:
    if field.nullable:
        return None
    if field.kind.startswith("[]"):
        return []
    return {"bool": False, "string": "", "bytes": b"", "uuid": "A" * 22}.get(field.kind, 0)


def of_type(kind: str, version: int = 0, /, **data: Any) -> Record:
    """A record of a type; tagged fields are there only if they are named."""
    plain = {field.name: _plain(field) for field in _SCHEMAS[kind].at(version) if not field.tagged}
    return Record(kind, version, plain | data)


def read_record(value: bytes) -> Record:
    """The record in the value of a record of a batch; raises as `records_of` does."""
    ((_, read),) = records_of(data_batch(0, 1, 0, [value]))
    return read
