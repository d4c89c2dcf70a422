"""Writes ``streams/kraft/records/records.json``: every metadata record of Kafka 3.3 to 4.3, as one
table.

Kafka ships the schemas of its metadata records inside its jars (``common/metadata/*.json`` of
``kafka-metadata``; those of the raft control records in ``common/message`` of ``kafka-clients``).
This script fetches one jar a release from Maven Central, lays the releases over one another and
writes what a decoder needs. It stops when two releases lay out the same version of a record
differently in a way that is not explained in `CHANGED_IN_PLACE`.

Usage: ``python -m scripts.generate_records [--check]``. With ``--check`` nothing is written and the
exit code says whether the table is what the jars say.
"""

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

from jgo.maven import MavenContext

from featurewatch.deploy.java.jars import Cache, default_cache

Schema = dict[str, Any]

RELEASES = (
    *("3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1"),
    *("4.0.0", "4.1.0", "4.2.0", "4.3.0"),
)

CHANGED_IN_PLACE = {
    "UserScramCredentialRecord": "3.5 split the list of credentials; older KRaft never wrote one",
    "DelegationTokenRecord": "3.6 added Requester; older KRaft never wrote one",
}
"""Records whose version 0 has two shapes, and why the newer one is the only one met in a log."""

CONTROL_TYPES = {
    2: ("LEADER_CHANGE", "LeaderChangeMessage"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord"),
    6: ("KRAFT_VOTERS", "VotersRecord"),
}
"""Control record types (Kafka: ``ControlRecordType``) and the messages that they carry."""

TABLE = Path(__file__).resolve().parent.parent / "streams" / "kraft" / "records" / "records.json"


def schemas(artifact: str, release: str, folder: str) -> dict[str, Schema]:
    """The message schemas by name that one jar of Kafka carries in ``folder``."""
    context = MavenContext(repo_cache=Cache(default_cache()).repository, timeout=120)
    component = context.project("org.apache.kafka", artifact).at_version(release)
    found = {}
    with zipfile.ZipFile(component.artifact().resolve()) as jar:
        for entry in jar.namelist():
            if entry.startswith(folder) and entry.endswith(".json"):
                text = re.sub(r"^\s*//.*$", "", jar.read(entry).decode(), flags=re.MULTILINE)
                schema = json.loads(text)
                found[schema["name"]] = schema
    return found


def camel(name: str) -> str:
    """Kafka's JSON name of a field: ``KRaftVersion`` is ``kRaftVersion``."""
    return name[0].lower() + name[1:]


def upper_snake(name: str) -> str:
    """Kafka's name of a record type: ``NoOpRecord`` is ``NO_OP_RECORD``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def field(schema: Schema, structs: dict[str, Schema]) -> Schema:
    """One field, reduced to what a decoder needs. ``versions`` is left out where it is ``0+``."""
    versions = schema["versions"]
    for also in ("nullableVersions", "taggedVersions"):
        if schema.get(also, versions) != versions:
            raise SystemExit(f"{schema['name']}: {also} differ from versions; teach the decoder so")
    kind = schema["type"]
    out: Schema = {"name": camel(schema["name"]), "type": kind}
    if versions != "0+":
        out["versions"] = versions
    if "nullableVersions" in schema:
        out["nullable"] = True
    if "tag" in schema:
        out["tag"] = int(schema["tag"])
        if "default" in schema:
            out["default"] = json.loads(str(schema["default"]))
    element = kind.removeprefix("[]")
    children = schema.get("fields") or structs.get(element, {}).get("fields")
    if children:
        out["type"] = kind.replace(element, "struct")
        out["fields"] = [field(child, structs) for child in children]
    return out


def record(schema: Schema) -> Schema:
    """One record, reduced likewise."""
    if schema["flexibleVersions"] != "0+":
        raise SystemExit(f"{schema['name']} has versions that are not flexible")
    structs = {struct["name"]: struct for struct in schema.get("commonStructs", ())}
    return {
        "versions": schema["validVersions"],
        "fields": [field(child, structs) for child in schema["fields"]],
    }


def layout(one: Schema, newest_version: int) -> str:
    """How the bytes of a record lie, up to a version; names do not count, only their order."""

    def lay(fields: list[Schema]) -> list[Any]:
        return [
            [f["type"], f.get("versions", "0+"), f.get("tag"), lay(f.get("fields", []))]
            for f in fields
            if int(f.get("versions", "0+").rstrip("+")) <= newest_version
        ]

    return json.dumps(sorted(lay(one["fields"]), key=lambda f: f[2] is not None))


def newest(versions: str) -> int:
    """The last of ``0-4`` or ``0``."""
    return int(versions.split("-")[-1])


def metadata_records() -> list[Schema]:
    """Every metadata record of `RELEASES`, the newest shape of each, by key."""
    merged: dict[str, Schema] = {}
    for release in RELEASES:
        for name, raw in schemas("kafka-metadata", release, "common/metadata/").items():
            now = record(raw)
            before = merged.get(name)
            if before is not None and name not in CHANGED_IN_PLACE:
                known = newest(before["versions"])
                if layout(before, known) != layout(now, known):
                    raise SystemExit(f"{name} changed in place in Kafka {release}")
            releases = [*(before["releases"] if before else ()), release]
            about = {"key": raw["apiKey"], "type": upper_snake(name), "releases": releases}
            merged[name] = {**about, **now}
    return sorted(merged.values(), key=lambda one: int(one["key"]))


def control_records() -> list[Schema]:
    """The raft control records of the newest release, by type."""
    found = schemas("kafka-clients", RELEASES[-1], "common/message/")
    return [
        {"key": key, "type": name, **record(found[message])}
        for key, (name, message) in CONTROL_TYPES.items()
    ]


def text(records: list[Schema], controls: list[Schema]) -> str:
    """The table as JSON that people can read: one line a field."""

    def lines(one: Schema) -> str:
        releases = one.pop("releases", RELEASES)
        fields = one.pop("fields")
        head = {**one, "releases": f"{releases[0]}-{releases[-1]}"}
        body = ",\n".join(f"      {json.dumps(child)}" for child in fields)
        body = f"[\n{body}\n    ]" if fields else "[]"
        return f'    {json.dumps(head)[:-1]}, "fields": {body}}}'

    def section(ones: list[Schema]) -> str:
        return ",\n".join(lines(dict(one)) for one in ones)

    return (
        f'{{\n  "releases": {json.dumps(RELEASES)},\n'
        f'  "records": [\n{section(records)}\n  ],\n'
        f'  "controls": [\n{section(controls)}\n  ]\n}}\n'
    )


def main(arguments: list[str]) -> int:
    """Writes the table, or with ``--check`` compares it: 0 the same, 3 not."""
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
