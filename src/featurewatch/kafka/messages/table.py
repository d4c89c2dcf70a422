"""Builds the class of a message in a version from its row of the table, when it is first used.

The rows are those of ``messages.json``, which ``scripts/generate_messages.py`` writes from the
schemas in Kafka's jars, and those of `drafts`. A class has Kafka's names of fields in snake case
and, as attributes, the classes of its structures by Kafka's names. Its constructor takes fields by
name; those with a default in the schema may be left out. `kafka.encode` and `kafka.decode` write
and read the fields that it lists.

A process that sends one request waits for the classes of that one alone, for a tenth of a
millisecond each; `dataclasses` would take five times as long.
"""

import os
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final, Generic, TypeVar

from featurewatch.kafka.field import REQUIRED, Field

_RESPONSE = TypeVar("_RESPONSE", covariant=True)
_EMPTY: Final = {"bool": False, "bytes": b"", "records": b"", "string": "", "uuid": None}


class Message:
    """A request, a response or a structure of one."""

    __slots__ = ()
    __api_key__: ClassVar[int]
    __version__: ClassVar[int]
    __flexible__: ClassVar[bool]
    __fields__: ClassVar[tuple[Field, ...]] = ()
    """In the order of the bytes."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, field.name) == getattr(other, field.name) for field in self.__fields__
        )

    __hash__ = None  # type: ignore[assignment]  # its fields may be set

    def __repr__(self) -> str:
        values = (f"{field.name}={getattr(self, field.name)!r}" for field in self.__fields__)
        return f"{type(self).__name__}({', '.join(values)})"


class Request(Message, Generic[_RESPONSE]):
    """A request, whose type names that of its response."""

    __slots__ = ()


@cache
def message_class(name: str, version: int) -> Any:
    """The class of a message such as ``MetadataRequest`` in a version.

    Raises:
        KeyError: The table has no such message, or not in this version.
    """
    row = _row(name)
    if not _has(row["versions"], version):
        raise KeyError(f"{name} has no version {version}")
    structs: dict[str, Any] = {}
    is_flexible = _has(row["flexible"], version)
    fields = _fields(row["fields"], version, is_flexible, structs)
    members = structs | {"__api_key__": row["key"], "__version__": version}
    base = Request if name.endswith("Request") else Message
    return _class(name, base, fields, is_flexible, members)


def response_class(request: Request[_RESPONSE]) -> type[_RESPONSE]:
    """The class of the response to a request."""
    name = type(request).__name__.removesuffix("Request")
    found: type[_RESPONSE] = message_class(f"{name}Response", request.__version__)
    return found


def build_message(kind: Any, **values: Any) -> Any:
    """A message or structure of those of the values that its version has fields for."""
    return kind(**{name: values[name] for name in kind.__slots__ if name in values})


def request_names() -> Mapping[int, str]:
    """The names of the released requests by their keys, without ``Request``."""
    import json

    rows = json.loads(_released())
    return {row["key"]: name[:-7] for name, row in rows.items() if name.endswith("Request")}


def versions_of(name: str) -> tuple[int, int]:
    """The oldest and the newest version of a message that the table has."""
    first, _, last = _row(name)["versions"].partition("-")
    return int(first), int(last)


def _row(name: str) -> dict[str, Any]:
    from json import JSONDecoder

    text, key = _released(), f'\n  "{name}": '
    at = text.find(key)
    if at >= 0:
        # Parsing one row takes a hundredth of the time of the whole table.
        released: dict[str, Any] = JSONDecoder().raw_decode(text, at + len(key))[0]
        return released
    from featurewatch.kafka.messages.drafts import DRAFTS

    if name not in DRAFTS:
        raise KeyError(f"there is no message {name}")
    return DRAFTS[name]


@cache
def _released() -> str:
    with open(os.path.join(os.path.dirname(__file__), "messages.json")) as table:
        return table.read()


def _fields(
    rows: list[dict[str, Any]], version: int, is_flexible: bool, structs: dict[str, Any]
) -> tuple[Field, ...]:
    """The fields of a version; adds the classes of their structures."""
    fields = []
    for row in rows:
        if not _has(row.get("versions", "0+"), version):
            continue
        kind, struct = row["type"].removeprefix("[]"), None
        is_array = kind != row["type"]
        if "fields" in row:
            if kind not in structs:
                inner = _fields(row["fields"], version, is_flexible, structs)
                structs[kind] = _class(kind, Message, inner, is_flexible, {})
            kind, struct = "struct", structs[kind]
        nullable = row.get("nullable", "none")
        fields.append(
            Field(
                row["name"],
                kind,
                is_array,
                nullable is True or _has(nullable, version),
                row.get("optional", False),
                row.get("tag"),
                _default(row, kind, is_array, struct),
                struct,
                # Other versions of these fields are read like any field.
                _reader(row["reader"]) if is_flexible and "reader" in row else None,
            )
        )
    return tuple(fields)


def _reader(name: str) -> Any:
    from featurewatch.kafka.messages import config_entries

    return getattr(config_entries, name)


def _default(row: dict[str, Any], kind: str, is_array: bool, struct: Any) -> Any:
    default = row.get("default", REQUIRED)
    if is_array and (default == [] or (default is REQUIRED and "tag" in row)):
        return ()
    if default is not REQUIRED or "tag" not in row:
        return default
    if row.get("nullable"):
        return None
    return _EMPTY.get(kind, 0) if struct is None else _empty(struct)


def _empty(struct: type[Message]) -> Message:
    """A structure whose fields have their defaults, or are zero."""
    values = {
        field.name: () if field.is_array else _EMPTY.get(field.kind, 0)
        for field in struct.__fields__
        if not field.has_default
    }
    return struct(**values)


def _class(
    name: str, base: Any, fields: tuple[Field, ...], is_flexible: bool, members: dict[str, Any]
) -> Any:
    ordered = sorted(fields, key=lambda field: field.has_default)
    names = [field.name for field in ordered]
    lines = [f"def __init__(self, {', '.join(names)}):", *(f" self.{one} = {one}" for one in names)]
    made: dict[str, Any] = {}
    exec("\n".join([*lines, " pass"]), {}, made)  # noqa: S102 - of names in our own table
    made["__init__"].__defaults__ = tuple(field.default for field in ordered if field.has_default)
    body = {
        **members,
        **made,
        "__module__": "featurewatch.kafka.messages",
        "__slots__": names,
        "__fields__": fields,
        "__flexible__": is_flexible,
    }
    return type(base)(name, (base,), body)


def _has(versions: str, version: int) -> bool:
    """Whether ``0-4``, ``2+``, ``0`` or ``none`` has a version."""
    if versions == "none":
        return False
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)
