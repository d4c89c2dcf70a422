"""Random content for any metadata record, with the JSON that it must decode to."""

import math
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from featurewatch.streams.kraft.records.schema import Field, RecordSchema, record_table
from featurewatch.streams.kraft.records.selection import REDACTED_RECORD_TYPES

VERSIONS = [
    (schema, version)
    for schema in record_table().records.values()
    for version in range(schema.newest + 1)
]
"""Every record type in every version."""

VERSION_IDS = [f"{schema.type}-v{version}" for schema, version in VERSIONS]

_INTS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(["é" * 70, "x" * 300])
_UUIDS = st.binary(min_size=16, max_size=16).map(lambda raw: urlsafe_b64encode(raw).decode()[:22])


def _scalar(kind: str) -> st.SearchStrategy[Any]:
    if kind in _INTS:
        top = 1 << _INTS[kind]
        return st.integers(-top, top - 1)
    scalars: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "uint16": st.integers(0, 0xFFFF),
        "float64": st.floats(),
        "uuid": _UUIDS,
        "string": _TEXTS,
        "bytes": st.binary(max_size=40),
    }
    return scalars[kind]


def _value(field: Field, version: int) -> st.SearchStrategy[Any]:
    kind = field.kind.removeprefix("[]")
    element = struct_data(field.fields, version) if kind == "struct" else _scalar(kind)
    if field.kind.startswith("[]"):
        element = st.lists(element, max_size=4)
    return st.none() | element if field.nullable else element


def struct_data(fields: Sequence[Field], version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Content of a struct; tagged fields are there or not, now and then with their default."""
    present = [field for field in fields if field.since <= version]
    return st.fixed_dictionaries(
        {field.name: _value(field, version) for field in present if not field.tagged},
        optional={
            field.name: _value(field, version) | st.just(field.default)
            for field in present
            if field.tagged
        },
    )


def record_data(schema: RecordSchema, version: int) -> st.SearchStrategy[dict[str, Any]]:
    """Content of a record."""
    return struct_data(schema.fields, version)


def expected(schema: RecordSchema, data: dict[str, Any]) -> dict[str, Any]:
    """The JSON that the record must decode to."""
    if schema.type in REDACTED_RECORD_TYPES:
        return {name: data[name] for name in REDACTED_RECORD_TYPES[schema.type]}
    out = {}
    for field in schema.fields:
        if field.name not in data or (field.tagged and data[field.name] == field.default):
            continue
        value = data[field.name]
        if field.kind == "float64" and not math.isfinite(value):
            value = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        out[field.name] = value
    return out
