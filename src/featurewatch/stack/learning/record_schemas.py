"""The metadata records of a release, reduced to what a decoder needs, from the schemas in its jars.

Kafka's jars contain the schemas of its metadata records (``common/metadata/*.json`` of
``kafka-metadata``) and of the raft control records (``common/message`` of ``kafka-clients``).
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from featurewatch.stack.errors import ArtifactError
from featurewatch.stack.learning.archive import Archive

Schema = dict[str, Any]

RECORDS: Final = "common/metadata/"
MESSAGES: Final = "common/message/"

CONTROL_TYPES: Final = {
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""Control record types (Kafka: ``ControlRecordType``) and the messages that they carry."""

_COMMENT: Final = re.compile(r"^\s*//.*$", re.MULTILINE)


def schemas(jar: Path, folder: str) -> dict[str, Schema]:
    """The message schemas in ``folder`` of one of Kafka's jars, by name.

    Raises:
        ArtifactError: if the jar cannot be read, or has no schemas there.
    """
    by_name: dict[str, Schema] = {}
    with Archive(jar) as archive:
        for entry, text in archive.texts(folder, ".json"):
            try:
                schema = json.loads(_COMMENT.sub("", text))
                by_name[schema["name"]] = schema
            except (ValueError, KeyError, TypeError, RecursionError):
                raise ArtifactError(f"{jar}: {entry} is not a schema of a message") from None
    if not by_name:
        raise ArtifactError(f"{jar} is not Kafka's: it has no schemas in {folder}")
    return by_name


def camel_case(name: str) -> str:
    """Kafka's JSON name of a field: ``KRaftVersion`` is ``kRaftVersion``."""
    return name[0].lower() + name[1:]


def upper_snake_case(name: str) -> str:
    """Kafka's name of a record type: ``NoOpRecord`` is ``NO_OP_RECORD``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def covers(limit: str, versions: str) -> bool:
    """Whether ``limit`` has all of the versions of a field, as ``0+`` has those of ``2+``."""
    return limit == versions or (limit.endswith("+") and oldest(limit) <= oldest(versions))


def oldest(versions: str) -> int:
    """The first of ``0-4``, ``2+`` or ``0``."""
    return int(versions.rstrip("+").split("-")[0])


def newest(versions: str) -> int:
    """The last of ``0-4`` or ``0``."""
    return int(versions.split("-")[-1])


def field(schema: Schema, structs: dict[str, Schema]) -> Schema:
    """One field, reduced to what a decoder needs; ``versions`` is omitted if it is ``0+``.

    Raises:
        ValueError: if the decoder cannot express its versions.
    """
    versions: str = schema["versions"]
    for limit in ("nullableVersions", "taggedVersions"):
        if not covers(schema.get(limit, versions), versions):
            raise ValueError(f"{schema['name']}: {limit} differ from versions")
    type_name = schema["type"]
    out: Schema = {"name": camel_case(schema["name"]), "type": type_name}
    if versions != "0+":
        out["versions"] = versions
    if "nullableVersions" in schema:
        out["nullable"] = True
    if "tag" in schema:
        out["tag"] = int(schema["tag"])
        if "default" in schema:
            out["default"] = json.loads(str(schema["default"]))
    element = type_name.removeprefix("[]")
    children = schema.get("fields") or structs.get(element, {}).get("fields")
    if children:
        out["type"] = type_name.replace(element, "struct")
        out["fields"] = [field(child, structs) for child in children]
    return out


def record(schema: Schema) -> Schema:
    """One record, reduced in the same way; raises `ValueError` as `field` does."""
    if schema["flexibleVersions"] != "0+":
        raise ValueError(f"{schema['name']} has versions that are not flexible")
    structs = {struct["name"]: struct for struct in schema.get("commonStructs", ())}
    return {
        "versions": schema["validVersions"],
        "fields": [field(child, structs) for child in schema["fields"]],
    }
