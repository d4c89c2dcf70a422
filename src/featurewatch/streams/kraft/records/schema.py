"""The metadata records of all releases (`kafka.releases`), typed."""

import re
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.kafka.releases import from_releases, record_files
from featurewatch.kafka.releases.merge import records


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


@from_releases
def record_table() -> RecordTable:
    """The records of every release, each in its newest layout."""
    files = record_files()
    return RecordTable(
        records={key: _record(row) for key, row in records(files).items()},
        controls={key: _record(row) for key, row in records(files, "controls").items()},
    )


_KIND: Final = re.compile(r"(RECORD|CONTROL)_TYPE_(\d{1,5})(?:-v(\d{1,5}))?|(\w{1,100})-v(\d{1,5})")


def is_known(kind: str) -> bool:
    """Whether a release has a kind of records that a source did not know (`UnknownRecordError`)."""
    match = _KIND.fullmatch(kind)
    if match is None:
        return False
    table = record_table()
    space, number, numbered_version, name, version = match.groups()
    if name is not None:
        named = (*table.records.values(), *table.controls.values())
        return any(it.type == name and it.newest >= int(version) for it in named)
    numbered = table.records if space == "RECORD" else table.controls
    schema = numbered.get(int(number))
    return schema is not None and schema.newest >= int(numbered_version or 0)
