"""Writes metadata records and batches, driven by the same table that the decoders come from.

Kafka's own tools are the judge of what is written here: see ``tests/conformance``.
"""

import struct
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from crc32c import crc32c

from featurewatch.kafka.address import Address
from featurewatch.streams.kraft.records.schema import Field, RecordSchema, record_table
from featurewatch.streams.kraft.records.varint import write_uvarint
from featurewatch.streams.kraft.records.varint import write_varint as _write_varint
from featurewatch.streams.types import Role

write_varint = lru_cache(4096)(_write_varint)  # millions of records have the same few numbers

_FIXED = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
}


def value_bytes(kind: str, value: Any, fields: Sequence[Field], version: int) -> bytes:
    """One value in Kafka's flexible encoding."""
    if kind.startswith("[]"):
        if value is None:
            return b"\x00"
        body = b"".join(value_bytes(kind[2:], item, fields, version) for item in value)
        return write_uvarint(len(value) + 1) + body
    if kind == "struct":
        return body_bytes(fields, value, version)
    if kind == "uuid":
        return urlsafe_b64decode(value + "==")
    if kind in ("string", "bytes"):
        if value is None:
            return b"\x00"
        raw = value.encode() if isinstance(value, str) else value
        return write_uvarint(len(raw) + 1) + raw
    return struct.pack(">" + _FIXED[kind], value)


def body_bytes(
    fields: Sequence[Field],
    data: Mapping[str, Any],
    version: int,
    unknown_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """A struct with its tagged section; tagged fields are there when ``data`` has them."""
    out = bytearray()
    tags = dict(unknown_tags or {})
    for field in fields:
        if field.since > version:
            continue
        if not field.tagged:
            out += value_bytes(field.kind, data[field.name], field.fields, version)
        elif field.name in data:
            tags[field.tag] = value_bytes(field.kind, data[field.name], field.fields, version)
    out += write_uvarint(len(tags))
    for tag, raw in sorted(tags.items()):
        out += write_uvarint(tag) + write_uvarint(len(raw)) + raw
    return bytes(out)


def metadata_value(
    schema: RecordSchema,
    version: int,
    data: Mapping[str, Any],
    unknown_tags: Mapping[int, bytes] | None = None,
) -> bytes:
    """A metadata record's value: frame version, API key, version, body."""
    head = write_uvarint(1) + write_uvarint(schema.key) + write_uvarint(version)
    return head + body_bytes(schema.fields, data, version, unknown_tags)


def record_of(kind: str, data: Mapping[str, Any] | None = None, version: int = 0) -> bytes:
    """A metadata record's value by type name."""
    schema = next(record for record in record_table().records.values() if record.type == kind)
    return metadata_value(schema, version, data or {})


def framed(value: bytes, delta: int, key: bytes | None = None, tail: bytes = b"\x00") -> bytes:
    """A record as it is in a batch."""
    key_bytes = write_varint(-1) if key is None else write_varint(len(key)) + key
    body = b"\x00" + write_varint(0) + write_varint(delta) + key_bytes
    body += write_varint(len(value)) + value + tail
    return write_varint(len(body)) + body


def control_framed(control_type: int, data: Mapping[str, Any], delta: int) -> bytes:
    """A control record as it is in a batch."""
    schema = record_table().controls[control_type]
    value = body_bytes(schema.fields, data, data["version"])
    return framed(value, delta, key=struct.pack(">hh", 0, control_type))


def batch_of(
    records: Sequence[bytes],
    base_offset: int = 0,
    leader_epoch: int = 1,
    append_ms: int = 1_700_000_000_000,
    control: bool = False,
    attributes: int = 0,
) -> bytes:
    """A record batch from framed records."""
    content = struct.pack(
        ">hiqqqhii",
        attributes | (0x20 if control else 0),
        len(records) - 1,
        append_ms,
        append_ms,
        -1,
        -1,
        -1,
        len(records),
    ) + b"".join(records)
    rest = struct.pack(">ibI", leader_epoch, 2, crc32c(content)) + content
    return struct.pack(">qi", base_offset, len(rest)) + rest


def data_batch(values: Sequence[bytes], base_offset: int = 0, **fields: Any) -> bytes:
    """A batch of metadata record values."""
    framed_records = [framed(value, delta) for delta, value in enumerate(values)]
    return batch_of(framed_records, base_offset, **fields)


HEADER = {"version": 0, "lastContainedLogTimestamp": 1_700_000_000_000}


def snapshot_batches(values: list[bytes], batch_size: int = 100) -> list[bytes]:
    """The batches of a snapshot."""
    head = [control_framed(3, HEADER, 0), control_framed(5, {"version": 0, "kRaftVersion": 1}, 1)]
    out, offset = [batch_of(head, 0, leader_epoch=7, control=True)], 2
    for start in range(0, len(values), batch_size):
        some = values[start : start + batch_size]
        out.append(data_batch(some, offset, leader_epoch=7))
        offset += len(some)
    foot = [control_framed(4, {"version": 0}, 0)]
    return [*out, batch_of(foot, offset, leader_epoch=7, control=True)]


def registration(address: Address, role: Role) -> bytes:
    """The record of node 1, which listens at an address."""
    endpoint = {"name": "L", "host": address.host, "port": address.port, "securityProtocol": 0}
    data = {
        f"{role}Id": 1,
        "incarnationId": "A" * 22,
        "brokerEpoch": 1,
        "endPoints": [endpoint],
        "features": [],
        "zkMigrationReady": False,
        "rack": None,
        "fenced": False,
    }
    return record_of(f"REGISTER_{role.name}_RECORD", data)
