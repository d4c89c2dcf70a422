"""The message classes of each version, made from the table of Kafka's schemas on first use.

They have the layout of kio's classes, so `kafka.encode` and `kafka.decode` write and
read them, with the bounds that hold there. ``scripts/generate_messages.py`` writes the table from
the schemas in Kafka's jars. Names of fields are Kafka's in snake case.
"""

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import field, make_dataclass
from functools import cache
from pathlib import Path
from types import GenericAlias, MappingProxyType
from typing import Any, Final

from kio.schema.response_header.v0.header import ResponseHeader as OldResponseHeader
from kio.schema.response_header.v1.header import ResponseHeader

Row = Mapping[str, Any]

_TYPES: Final[Mapping[str, Any]] = MappingProxyType(
    {
        "bool": bool,
        "int8": int,
        "int16": int,
        "int32": int,
        "int64": int,
        "string": str,
        "uuid": uuid.UUID | None,
    }
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@cache
def message_rows() -> Mapping[str, Row]:
    """The table that comes with the package, by name of message."""
    table = json.loads(Path(__file__).with_name("messages.json").read_bytes())
    return MappingProxyType({row["name"]: row for row in table["messages"]})


def versions_of(name: str) -> tuple[int, int]:
    """The oldest and the newest version of a message such as ``StopReplicaRequest``."""
    first, _, last = message_rows()[name]["versions"].partition("-")
    return int(first), int(last or first)


@cache
def message_class(name: str, version: int) -> Any:
    """The class of a message in a version; those of its nested items are in ``items``.

    Raises:
        KeyError: if the message has no such version.
    """
    row = message_rows()[name]
    if not _holds(row["versions"], version):
        raise KeyError(f"{name} has no version {version}")
    is_flexible = _holds(row["flexible"], version)
    namespace = {
        "__api_key__": row["key"],
        "__version__": version,
        "__flexible__": is_flexible,
        "__header_schema__": ResponseHeader if is_flexible else OldResponseHeader,
    }
    return _dataclass(name, row["fields"], version, namespace)


def _dataclass(name: str, rows: Sequence[Row], version: int, namespace: Mapping[str, Any]) -> Any:
    items: dict[str, Any] = {}
    fields: list[Any] = []
    for row in rows:
        if not _holds(row.get("versions", "0+"), version):
            continue
        attribute = snake_case(row["name"])
        hint, metadata = _hint(row, version, namespace)
        if row["type"].removeprefix("[]") == "struct":
            items[attribute] = hint.__args__[0] if row["type"].startswith("[]") else hint
        if row.get("nullable"):
            hint = hint | None
        if "tag" in row:
            metadata["tag"] = row["tag"]
            fields.append((attribute, hint, field(metadata=metadata, default=row["default"])))
        else:
            fields.append((attribute, hint, field(metadata=metadata)))
    return make_dataclass(
        name,
        fields,
        slots=True,
        kw_only=True,
        namespace={**namespace, "items": MappingProxyType(items)},
    )


def _hint(row: Row, version: int, namespace: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    kind = row["type"].removeprefix("[]")
    if kind == "struct":
        inner = {"__flexible__": namespace["__flexible__"]}
        hint = _dataclass(row["name"], row["fields"], version, inner)
        metadata: dict[str, Any] = {}
    else:
        hint, metadata = _TYPES[kind], {"kafka_type": kind}
    return (GenericAlias(tuple, (hint, ...)) if row["type"].startswith("[]") else hint), metadata


def _holds(versions: str, version: int) -> bool:
    """Whether ``0-4``, ``2+`` or ``0`` has a version."""
    if versions.endswith("+"):
        return version >= int(versions[:-1])
    first, _, last = versions.partition("-")
    return int(first) <= version <= int(last or first)


def snake_case(name: str) -> str:
    """``isKRaftController`` is ``is_kraft_controller``."""
    return _HUMP.sub("_", name.replace("KRaft", "Kraft")).lower()
