"""Generates ``kafka/releases/records.json``: all metadata records of Kafka 3.3 to 4.3.

Kafka's jars contain the schemas of its metadata records (``common/metadata/*.json`` of
``kafka-metadata``) and of the raft control records (``common/message`` of ``kafka-clients``). This
script reads one jar per release, which must be in ``jars.lock.json``, merges the releases and
writes what a decoder needs. It fails if two releases lay out the same version of a record
differently, unless `CHANGED_IN_PLACE` explains it.

Usage: ``python -m scripts.generate_records [--check]``. With ``--check`` nothing is written; the
exit code is 3 if the table differs from the jars.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

from featurewatch.stack.java.jars import Cache, default_cache
from scripts.java_source import jar
from scripts.releases import RELEASES as KAFKA_RELEASES

Schema = dict[str, Any]

RELEASES = tuple(KAFKA_RELEASES.values())

CHANGED_IN_PLACE = {
    "UserScramCredentialRecord": "3.5 split the list of credentials; older KRaft never wrote one",
    "DelegationTokenRecord": "3.6 added Requester; older KRaft never wrote one",
}
"""Records whose version 0 has two layouts, and why a log only contains the newer one."""

CONTROL_TYPES = {
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""Control record types (Kafka: ``ControlRecordType``) and the messages that they carry."""

TABLE = Path(__file__).resolve().parents[1] / "src/featurewatch/kafka/releases/records.json"


def schemas(artifact: str, release: str, folder: str) -> dict[str, Schema]:
    """The message schemas in ``folder`` of one of Kafka's jars, by name."""
    path = jar(f"org.apache.kafka:{artifact}:{release}", Cache(default_cache()))
    by_name = {}
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            if entry.startswith(folder) and entry.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", archive.read(entry).decode(), flags=re.MULTILINE)
                schema = json.loads(text)
                by_name[schema["name"]] = schema
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


def field(schema: Schema, structs: dict[str, Schema]) -> Schema:
    """One field, reduced to what a decoder needs; ``versions`` is omitted if it is ``0+``."""
    versions: str = schema["versions"]
    for limit in ("nullableVersions", "taggedVersions"):
        if not covers(schema.get(limit, versions), versions):
            raise SystemExit(
                f"{schema['name']}: {limit} differ from versions; teach the decoder so"
            )
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
    """One record, reduced in the same way."""
    if schema["flexibleVersions"] != "0+":
        raise SystemExit(f"{schema['name']} has versions that are not flexible")
    structs = {struct["name"]: struct for struct in schema.get("commonStructs", ())}
    return {
        "versions": schema["validVersions"],
        "fields": [field(child, structs) for child in schema["fields"]],
    }


def layout(record_layout: Schema, newest_version: int) -> str:
    """The byte layout of a record up to a version, as comparable text without field names."""

    def lay(fields: list[Schema]) -> list[Any]:
        return [
            [
                entry["type"],
                entry.get("versions", "0+"),
                entry.get("tag"),
                lay(entry.get("fields", [])),
            ]
            for entry in fields
            if int(entry.get("versions", "0+").rstrip("+")) <= newest_version
        ]

    return json.dumps(sorted(lay(record_layout["fields"]), key=lambda entry: entry[2] is not None))


def newest(versions: str) -> int:
    """The last of ``0-4`` or ``0``."""
    return int(versions.split("-")[-1])


def metadata_records() -> list[Schema]:
    """Every metadata record of `RELEASES` in its newest layout, sorted by key."""
    merged: dict[str, Schema] = {}
    for release in RELEASES:
        for name, raw in schemas("kafka-metadata", release, "common/metadata/").items():
            current = record(raw)
            previous = merged.get(name)
            if previous is not None and name not in CHANGED_IN_PLACE:
                version = newest(previous["versions"])
                if layout(previous, version) != layout(current, version):
                    raise SystemExit(f"{name} changed in place in Kafka {release}")
            releases = [*(previous["releases"] if previous else ()), release]
            head = {"key": raw["apiKey"], "type": upper_snake_case(name), "releases": releases}
            merged[name] = {**head, **current}
    return sorted(merged.values(), key=lambda entry: int(entry["key"]))


def control_records() -> list[Schema]:
    """The raft control records of the newest release, in the order of `CONTROL_TYPES`."""
    messages = schemas("kafka-clients", RELEASES[-1], "common/message/")
    return [
        {"key": key, "type": name, **record(messages[message])}
        for key, (name, message) in CONTROL_TYPES.items()
    ]


def text(records: list[Schema], controls: list[Schema]) -> str:
    """The table as readable JSON: one line per field."""

    def lines(entry: Schema) -> str:
        releases = entry.pop("releases", RELEASES)
        fields = entry.pop("fields")
        head = {**entry, "releases": f"{releases[0]}-{releases[-1]}"}
        body = ",\n".join(f"      {json.dumps(child)}" for child in fields)
        body = f"[\n{body}\n    ]" if fields else "[]"
        return f'    {json.dumps(head)[:-1]}, "fields": {body}}}'

    def section(entries: list[Schema]) -> str:
        return ",\n".join(lines(dict(entry)) for entry in entries)

    return (
        f'{{\n  "releases": {json.dumps(RELEASES)},\n'
        f'  "records": [\n{section(records)}\n  ],\n'
        f'  "controls": [\n{section(controls)}\n  ]\n}}\n'
    )


def main(arguments: list[str]) -> int:
    """Writes the table, or compares it with ``--check``; returns 0, or 3 if it differs."""
    table = text(metadata_records(), control_records())
    if arguments == ["--check"]:
        return 0 if TABLE.read_text() == table else 3
    if arguments:
        sys.stderr.write("usage: python -m scripts.generate_records [--check]\n")
        return 2
    TABLE.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
