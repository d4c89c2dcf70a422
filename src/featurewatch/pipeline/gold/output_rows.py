"""Rows of gold from the outputs of the fold. Pure.

An output is a JSON document with a field for each column; times are in milliseconds, and named so.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa

from featurewatch.pipeline.fold.daily_readiness import READINESS
from featurewatch.pipeline.fold.intervals import CAPABILITY, EXCLUSION, ROLL
from featurewatch.pipeline.fold.messages import ALERT, CHANGE, OPERATION, SNAPSHOT, FoldOutput
from featurewatch.pipeline.gold.tables import (
    ALERTS,
    CAPABILITY_INTERVALS,
    EPOCHS,
    FEATURE_CHANGES,
    INCOMPATIBILITIES,
    OPERATIONS,
    READINESS_BY_DAY,
    UPGRADES,
)
from featurewatch.pipeline.lake.row_blocks import RowBuilder, arrow_type
from featurewatch.pipeline.lake.tables import Table

Document = Mapping[str, Any]
Convert = Callable[[Any], Any]

CLOSES: Final = "old.until IS NULL AND new.until IS NOT NULL"
"""An ended interval is final; repeated outputs do not change it."""

_TIMES: Final = {"appended_at": "append_ms", "seen_at": "seen_ms"}
"""Times whose fields are not named after the column."""
_NAMES: Final = {"alert_id": "id"}


class GoldTableSpec(NamedTuple):
    """A table, and the kind of the outputs that are its rows.

    ``replace_when`` is a SQL condition on ``old`` and ``new`` under which a row replaces the one
    with its key (empty: never). ``rank`` tells which of several documents for one key counts.
    """

    table: Table
    kind: str
    replace_when: str = ""
    rank: Callable[[Document], int] = lambda _: 0


def _is_closed(document: Document) -> int:
    return int(document["until_ms"] is not None)


def _number(document: Document) -> int:
    return int(document["number"])


TABLES: Final = (
    GoldTableSpec(EPOCHS, SNAPSHOT),
    GoldTableSpec(FEATURE_CHANGES, CHANGE),
    GoldTableSpec(ALERTS, ALERT),
    GoldTableSpec(OPERATIONS, OPERATION),
    GoldTableSpec(CAPABILITY_INTERVALS, CAPABILITY, CLOSES, _is_closed),
    GoldTableSpec(INCOMPATIBILITIES, EXCLUSION, CLOSES, _is_closed),
    GoldTableSpec(UPGRADES, ROLL, "TRUE", _number),
    GoldTableSpec(READINESS_BY_DAY, READINESS, "TRUE"),
)

SPECS: Final = {spec.kind: spec for spec in TABLES}
"""The tables by the kind of their rows."""


def add_outputs(builder: RowBuilder, outputs: Iterable[FoldOutput]) -> None:
    """Adds the row of each output to a builder that has gold's tables."""
    for output in outputs:
        spec = SPECS[output.kind]
        document = orjson.loads(output.value)
        columns = (convert(document) for convert in _COLUMNS[spec.kind])
        builder.add(spec.table, (output.cluster, output.id, *columns), spec.rank(document))
        builder.count_bytes(len(output.value))


def _column(name: str, type_: pa.DataType) -> Convert:
    """A function from a document to the value of a column."""
    field = _NAMES.get(name, name)
    if pa.types.is_timestamp(type_):
        field = _TIMES.get(name, f"{name}_ms")
    convert = _converter(type_)
    return lambda document: convert(document.get(field))


def _converter(type_: pa.DataType) -> Convert:
    """A function from a JSON value to what `pyarrow.array` takes for a type; what is of another
    type becomes null."""
    if pa.types.is_map(type_):
        item = _converter(type_.item_type)
        return lambda value: (
            [(name, item(one)) for name, one in value.items()] if type(value) is dict else None
        )
    if pa.types.is_list(type_):
        element = _converter(type_.value_type)
        return lambda value: [element(one) for one in value] if type(value) is list else None
    if pa.types.is_struct(type_):
        fields = {field.name: _column(field.name, field.type) for field in type_}
        return lambda value: (
            {name: convert(value) for name, convert in fields.items()}
            if type(value) is dict
            else None
        )
    return _SIMPLE[type_]


def _integer(bits: int) -> Convert:
    bound = 1 << (bits - 1)
    return lambda value: value if type(value) is int and -bound <= value < bound else None


def _text(value: Any) -> str | None:
    """A text; any other value as JSON."""
    return value if value is None or type(value) is str else orjson.dumps(value).decode()


def _time(value: Any) -> int | None:
    """Milliseconds as microseconds; negative means unknown."""
    return value * 1000 if type(value) is int and value >= 0 else None


def _day(value: Any) -> date | None:
    return date.fromisoformat(value) if type(value) is str else None


_SIMPLE: Final[Mapping[pa.DataType, Convert]] = {
    pa.string(): _text,
    pa.bool_(): lambda value: value if type(value) is bool else None,
    pa.int32(): _integer(32),
    pa.int64(): _integer(64),
    pa.date32(): _day,
    pa.timestamp("us", "UTC"): _time,
}

_COLUMNS: Final = {
    spec.kind: [
        _column(name, arrow_type(type_))
        for name, type_ in spec.table.columns.items()
        if name not in ("cluster", "id")
    ]
    for spec in TABLES
}
"""For each kind of outputs, the functions that give the table's columns after the key."""
