"""The content of an output as text, in which the order of a map's entries does not count.

Spark can neither compare nor group maps. The expressions are made as SQL text: to make them out of
columns takes thousands of calls to the JVM, and so most of a second.
"""

from collections.abc import Iterable
from typing import Final

from pyspark.sql.types import ArrayType, AtomicType, DataType, MapType, StructType

JSON: Final = ("evidence", "details")
"""Columns that hold a JSON object as text."""


def content(schema: StructType, names: Iterable[str]) -> str:
    """Returns the SQL of an array that has a text for each of the named columns of a row: JSON if
    the column holds others, null if it is null."""
    return f"array({', '.join(_text(schema, name) for name in names)})"


def _text(schema: StructType, name: str) -> str:
    if name in JSON:
        entries = f"array_sort(map_entries(from_json(`{name}`, 'map<string, string>')))"
        return f"coalesce(to_json({entries}), `{name}`)"
    kind = schema[name].dataType
    if isinstance(kind, AtomicType):
        return f"cast(`{name}` AS string)"
    return f"to_json({canonical(f'`{name}`', kind)})"


def canonical(value: str, kind: DataType, depth: int = 0) -> str:
    """Returns the SQL of a value with every map, at any depth, as a sorted array of entries.

    ``value`` is the SQL of a value of this type, inside ``depth`` lambda functions.
    """
    if not _has_map(kind):
        return value
    item = f"item{depth}"
    if isinstance(kind, MapType):
        inner = canonical(item, kind.valueType, depth + 1)
        values = f"transform_values({value}, (key{depth}, {item}) -> {inner})"
        return f"array_sort(map_entries({values if inner != item else value}))"
    if isinstance(kind, ArrayType):
        return f"transform({value}, {item} -> {canonical(item, kind.elementType, depth + 1)})"
    assert isinstance(kind, StructType)  # noqa: S101 - the only other type that holds others
    fields = (
        f"'{field.name}', {canonical(f'{value}.`{field.name}`', field.dataType, depth)}"
        for field in kind.fields
    )
    return f"if({value} IS NULL, NULL, named_struct({', '.join(fields)}))"


def _has_map(kind: DataType) -> bool:
    """Whether values of a type are maps, or hold some."""
    if isinstance(kind, StructType):
        return any(_has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or (isinstance(kind, ArrayType) and _has_map(kind.elementType))
