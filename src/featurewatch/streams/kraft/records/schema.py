"""The table of metadata records (``records.json``), typed.

``scripts/generate_records.py`` writes the table from the schemas in Kafka's jars.
"""

import json
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record or struct.

    ``kind`` is ``bool``, ``int8`` … ``int64``, ``uint16``, ``float64``, ``uuid``, ``string``,
    ``bytes`` or ``struct``, or one of these after ``[]``. ``tag`` is -1 where the field always
    is in the record; a tagged field is there when its value is not ``default``.
    """

    name: str
    kind: str
    since: int
    nullable: bool
    tag: int
    default: Any
    fields: tuple["Field", ...]

    @property
    def tagged(self) -> bool:
        """Whether the field is in the tagged section."""
        return self.tag >= 0


@dataclass(frozen=True, slots=True)
class RecordSchema:
    """One record type, all its versions: ``key`` is its API key or its control type."""

    key: int
    type: str
    newest: int
    fields: tuple[Field, ...]

    def at(self, version: int) -> tuple["Field", ...]:
        """The fields that a version has."""
        return tuple(field for field in self.fields if field.since <= version)


_DEFAULTS = {"bool": False, "uuid": "AAAAAAAAAAAAAAAAAAAAAA", "string": "", "bytes": ""}


def _field(row: dict[str, Any]) -> Field:
    kind = row["type"]
    implied: Any = [] if kind.startswith("[]") else _DEFAULTS.get(kind, 0)
    return Field(
        name=row["name"],
        kind=kind,
        since=int(row.get("versions", "0+").rstrip("+")),
        nullable=row.get("nullable", False),
        tag=row.get("tag", -1),
        default=row.get("default", implied),
        fields=tuple(map(_field, row.get("fields", ()))),
    )


def _record(row: dict[str, Any]) -> RecordSchema:
    newest = int(row["versions"].split("-")[-1])
    return RecordSchema(row["key"], row["type"], newest, tuple(map(_field, row["fields"])))


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Every metadata record by API key, and every raft control record by control type."""

    records: dict[int, RecordSchema]
    controls: dict[int, RecordSchema]


@cache
def record_table() -> RecordTable:
    """The table that comes with the package."""
    # importlib.resources takes longer to import than the table to read.
    content = pkgutil.get_data("featurewatch.kafka.releases", "records.json")
    assert content is not None  # noqa: S101 - the package has its data
    rows = json.loads(content)
    return RecordTable(
        records={row["key"]: _record(row) for row in rows["records"]},
        controls={row["key"]: _record(row) for row in rows["controls"]},
    )
