"""Reduces the schemas in Kafka's jars to the rows of a release's file.

``common/metadata/*.json`` of ``kafka-metadata`` are the metadata records, ``common/message`` of
``kafka-clients`` the requests and raft's control records.
"""

import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

Schema = dict[str, Any]

COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)

METADATA: Final = "common/metadata/"
MESSAGES: Final = "common/message/"

CONTROL_TYPES: Final = {
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""Control record types (Kafka: ``ControlRecordType``) and the messages that they carry."""


class SchemaError(ValueError):
    """A jar's schemas have something that the decoder of records does not know."""


def schemas(jar: Path, folder: str) -> dict[str, Schema]:
    """The message schemas in a folder of one of Kafka's jars, by name."""
    by_name = {}
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.namelist():
            if entry.startswith(folder) and entry.endswith(".json"):
                text = COMMENT.sub("", archive.read(entry).decode())
                schema = json.loads(text)
                by_name[schema["name"]] = schema
    return by_name


def metadata_records(by_name: Mapping[str, Schema]) -> list[Schema]:
    """The metadata records, by their keys."""
    rows = [
        {"key": schema["apiKey"], "type": upper_snake_case(name), **record(schema)}
        for name, schema in by_name.items()
    ]
    return sorted(rows, key=lambda row: int(row["key"]))


def control_records(by_name: Mapping[str, Schema]) -> list[Schema]:
    """Raft's control records, in the order of `CONTROL_TYPES`."""
    return [
        {"key": key, "type": name, **record(by_name[message])}
        for key, (name, message) in CONTROL_TYPES.items()
        if message in by_name
    ]


def request_versions(by_name: Mapping[str, Schema], names: Iterable[str]) -> dict[str, str]:
    """The versions of the named requests (without ``Request``) that there are."""
    found = {name: by_name.get(f"{name}Request") for name in names}
    return {name: schema["validVersions"] for name, schema in found.items() if schema}


def record(schema: Schema) -> Schema:
    """One record, reduced to what a decoder needs.

    Raises:
        SchemaError: The decoder could not read it.
    """
    if schema["flexibleVersions"] != "0+":
        raise SchemaError(f"{schema['name']} has versions that are not flexible")
    structs = {struct["name"]: struct for struct in schema.get("commonStructs", ())}
    return {
        "versions": schema["validVersions"],
        "fields": [_field(child, structs) for child in schema["fields"]],
    }


def _field(schema: Schema, structs: Mapping[str, Schema]) -> Schema:
    """One field, reduced in the same way; ``versions`` is omitted if it is ``0+``."""
    versions: str = schema["versions"]
    for limit in ("nullableVersions", "taggedVersions"):
        if not _covers(schema.get(limit, versions), versions):
            raise SchemaError(f"{schema['name']}: {limit} differ from versions; extend the decoder")
    type_name = schema["type"]
    row: Schema = {"name": camel_case(schema["name"]), "type": type_name}
    if versions != "0+":
        row["versions"] = versions
    if "nullableVersions" in schema:
        row["nullable"] = True
    if "tag" in schema:
        row["tag"] = int(schema["tag"])
        if "default" in schema:
            row["default"] = json.loads(str(schema["default"]))
    element = type_name.removeprefix("[]")
    children = schema.get("fields") or structs.get(element, {}).get("fields")
    if children:
        row["type"] = type_name.replace(element, "struct")
        row["fields"] = [_field(child, structs) for child in children]
    return row


def camel_case(name: str) -> str:
    """Kafka's JSON name of a field: ``KRaftVersion`` is ``kRaftVersion``."""
    return name[0].lower() + name[1:]


def upper_snake_case(name: str) -> str:
    """Kafka's name of a record type: ``NoOpRecord`` is ``NO_OP_RECORD``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def _covers(limit: str, versions: str) -> bool:
    """Whether ``limit`` has all of the versions of a field, as ``0+`` has those of ``2+``."""
    return limit == versions or (limit.endswith("+") and _oldest(limit) <= _oldest(versions))


def _oldest(versions: str) -> int:
    """The first of ``0-4``, ``2+`` or ``0``."""
    return int(versions.rstrip("+").split("-")[0])
