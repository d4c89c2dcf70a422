"""Generates the reference system's ``messages.json``: requests of controllers and brokers.

They are the requests that only a controller and brokers in ZooKeeper mode exchange, which kio has
not, or not in all versions: Kafka 4.0 removed most of them. The schemas are in ``common/message``
of ``kafka-clients``; each release is compared with the newest one, so a version that was laid out
differently once fails here. Fields are reduced as in `scripts.generate_records`.

Usage: ``python -m scripts.generate_messages [--check]``. With ``--check`` nothing is written; the
exit code is 3 if the table differs from the jars.
"""

import json
import sys
from pathlib import Path

from scripts.generate_records import Schema, field, newest, oldest, schemas

RELEASES = ("3.3.2", "3.4.1", "3.5.2", "3.6.2", "3.7.2", "3.8.1", "3.9.1")
"""The last releases with ZooKeeper mode, the newest one last; it has all versions of Kafka 2.7."""

APIS = (
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "AlterPartition",
    "AllocateProducerIds",
)

TABLE = (
    Path(__file__).resolve().parents[1]
    / "src/featurewatch/reference/zookeeper/wire/messages/messages.json"
)


def message(schema: Schema) -> Schema:
    """One request or response, reduced to what a codec needs."""
    structs = {struct["name"]: struct for struct in schema.get("commonStructs", ())}
    return {
        "name": schema["name"],
        "key": schema["apiKey"],
        "versions": schema["validVersions"],
        "flexible": schema["flexibleVersions"],
        "fields": [field(child, structs) for child in schema["fields"]],
    }


def at_most(fields: list[Schema], version: int) -> list[Schema]:
    """The fields up to a version, to compare an older release.

    A tagged field may be added to a version later: readers skip tags that they do not know.
    """
    kept = []
    for entry in fields:
        versions = entry.get("versions", "0+")
        if oldest(versions) > version or "tag" in entry:
            continue
        until = version if versions.endswith("+") else min(newest(versions), version)
        entry = {**entry, "versions": f"{oldest(versions)}-{until}"}  # noqa: PLW2901 - a copy
        if "fields" in entry:
            entry["fields"] = at_most(entry["fields"], version)
        kept.append(entry)
    return kept


def messages() -> list[Schema]:
    """Every message of the newest release, if the older ones lay their versions out alike."""
    names = [f"{api}{kind}" for api in APIS for kind in ("Request", "Response")]
    by_release = {
        release: schemas("kafka-clients", release, "common/message/") for release in RELEASES
    }
    table = [message(by_release[RELEASES[-1]][name]) for name in names]
    for release, found in by_release.items():
        for entry in table:
            older = message(found[entry["name"]])
            version = newest(older["versions"])
            if at_most(older["fields"], version) != at_most(entry["fields"], version):
                raise SystemExit(f"{entry['name']} has another layout in Kafka {release}")
    return table


def text(table: list[Schema]) -> str:
    """The table as readable JSON: one line per field."""

    def lines(entry: Schema) -> str:
        head = {name: value for name, value in entry.items() if name != "fields"}
        body = ",\n".join(f"      {json.dumps(child)}" for child in entry["fields"])
        return f'    {json.dumps(head)[:-1]}, "fields": [\n{body}\n    ]}}'

    body = ",\n".join(map(lines, table))
    return f'{{\n  "releases": {json.dumps(RELEASES)},\n  "messages": [\n{body}\n  ]\n}}\n'


def main(arguments: list[str]) -> int:
    """Writes the table, or compares it with ``--check``; returns 0, or 3 if it differs."""
    table = text(messages())
    if arguments == ["--check"]:
        return 0 if TABLE.read_text() == table else 3
    if arguments:
        sys.stderr.write("usage: python -m scripts.generate_messages [--check]\n")
        return 2
    TABLE.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
