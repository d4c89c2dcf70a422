"""Generates the table of Kafka's messages, ``kafka/messages/messages.json``, and one of errors.

The table has the requests and responses that any part of the project sends or reads, in the
versions of `APIS`. The schemas are in ``common/message`` of ``kafka-clients``. A message is that of
the newest release that has all of its versions, and every other release is compared with it, so a
version that was laid out differently once fails here.

``kafka/errors.json`` has the errors of the newest release, which a Java program
(``scripts/java/ErrorTable.java``) prints.

Usage: ``python -m scripts.generate_messages [--check]``. With ``--check`` nothing is written; the
exit code is 3 if the tables differ from the jars.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from featurewatch.kafka.releases import package_files
from featurewatch.kafka.releases.schemas import MESSAGES, Schema, schemas
from featurewatch.stack.java.jars import Cache, default_cache, java_command
from scripts.java_source import compile_java, jar

RELEASES = tuple(file.content["kafka"] for file in package_files())

APIS = {
    "AddRaftVoter": "0-1",
    "AllocateProducerIds": "0",
    "AlterPartition": "0-3",
    "AlterPartitionReassignments": "0-1",
    "AlterReplicaLogDirs": "2",
    "ApiVersions": "0-5",
    "AssignReplicasToDirs": "0",
    "BeginQuorumEpoch": "0-1",
    "BrokerHeartbeat": "0-2",
    "BrokerRegistration": "0-4",
    "ControlledShutdown": "0-3",
    "ControllerRegistration": "0",
    "CreatePartitions": "0-3",
    "CreateTopics": "2-7",
    "DeleteTopics": "1-6",
    "DescribeCluster": "0-2",
    "DescribeConfigs": "1-4",
    "DescribeLogDirs": "4",
    "DescribeQuorum": "0-2",
    "DescribeTopicPartitions": "0",
    "ElectLeaders": "0-2",
    "EndQuorumEpoch": "0-1",
    "Envelope": "0",
    "Fetch": "13-18",
    "FetchSnapshot": "0-1",
    "FindCoordinator": "0-4",
    "IncrementalAlterConfigs": "0-1",
    "InitProducerId": "0-4",
    "LeaderAndIsr": "0-7",
    "ListPartitionReassignments": "0",
    "Metadata": "0-12",
    "RemoveRaftVoter": "0",
    "SaslAuthenticate": "0-1",
    "SaslHandshake": "1",
    "StopReplica": "0-4",
    "UnregisterBroker": "0",
    "UnregisterController": "0",
    "UpdateFeatures": "0-2",
    "UpdateMetadata": "0-8",
    "UpdateRaftVoter": "0",
    "Vote": "0-2",
}
"""The APIs and the versions of each that the project uses, as a client or as a server."""

DATA = {"DefaultPrincipalData": "0"}
"""Structures that are bytes in a field of a message, and their versions."""

READERS = {
    "DescribeConfigsResult.configs": "read_configs",
    "CreatableTopicResult.configs": "skip_configs",
}
"""Fields that `kafka.messages.config_entries` reads in a special way, and its function."""

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "src/featurewatch/kafka/messages/messages.json"
ERRORS = ROOT / "src/featurewatch/kafka/errors.json"

NO_KEY = -1
"""The key of `DATA`."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_EVERY = (0, 1 << 15)

Versions = tuple[int, int]
"""The first and the last version."""


# -- the table -------------------------------------------------------------------------------------


def snake_case(name: str) -> str:
    """``isKRaftController`` is ``is_kraft_controller``."""
    return _HUMP.sub("_", name.replace("KRaft", "Kraft")).lower()


def parsed(versions: str) -> Versions | None:
    """The limits of ``0-4``, ``2+`` or ``0``; None of ``none``."""
    if versions == "none":
        return None
    first, _, last = versions.rstrip("+").partition("-")
    return int(first), _EVERY[1] if versions.endswith("+") else int(last or first)


def common(one: Versions | None, other: Versions | None) -> Versions | None:
    """The versions that are in both."""
    if one is None or other is None:
        return None
    limits = max(one[0], other[0]), min(one[1], other[1])
    return limits if limits[0] <= limits[1] else None


def text_of(versions: Versions, wanted: Versions) -> str:
    """Some of the wanted versions as text: ``2+``, ``0-4`` or ``0``."""
    first, last = versions
    if last == wanted[1]:
        return f"{first}+"
    return f"{first}" if first == last else f"{first}-{last}"


def versions_of(schema: Schema) -> Versions | None:
    """The versions of a field; a tagged one may give the versions of its tag alone."""
    return parsed(schema.get("versions") or schema["taggedVersions"])


def default_of(schema: Schema) -> Any:
    """The default of a field as a value."""
    value, kind = schema["default"], schema["type"]
    if value in ("null", None):
        return None
    if kind == "bool":
        return value in (True, "true")
    if kind.startswith("[]"):
        return []
    return value if kind == "string" else int(str(value), 0)


def field(schema: Schema, structs: dict[str, Schema], wanted: Versions, owner: str) -> Schema:
    """A field as far as a codec needs it; what it has in all of ``wanted`` has no versions."""
    versions = common(versions_of(schema), wanted)
    assert versions is not None  # noqa: S101 - the caller looks
    row: Schema = {"name": snake_case(schema["name"]), "type": schema["type"]}
    if versions != wanted:
        row["versions"] = text_of(versions, wanted)
    nullable = common(parsed(schema.get("nullableVersions", "none")), versions)
    if nullable is not None:
        row["nullable"] = True if nullable == versions else text_of(nullable, wanted)
    tagged = common(parsed(schema.get("taggedVersions", "none")), versions)
    if tagged is not None:
        if tagged != versions:
            raise SystemExit(f"{owner}: {schema['name']} is tagged in some of its versions only")
        row["tag"] = int(schema["tag"])
    if "default" in schema:
        row["default"] = default_of(schema)
    if (reader := READERS.get(f"{owner}.{row['name']}")) is not None:
        row["reader"] = reader
    element = schema["type"].removeprefix("[]")
    children = schema.get("fields") or structs.get(element, {}).get("fields")
    if children:
        row["fields"] = fields(children, structs, versions, element)
    return row


def fields(
    children: list[Schema], structs: dict[str, Schema], wanted: Versions, owner: str
) -> list[Schema]:
    """The fields of a message or a structure that some of the wanted versions have."""
    return [
        field(child, structs, wanted, owner)
        for child in children
        if common(versions_of(child), wanted) is not None
    ]


def message(schema: Schema, wanted: Versions) -> Schema:
    """One request or response in some of its versions."""
    structs = {struct["name"]: struct for struct in schema.get("commonStructs", ())}
    flexible = common(parsed(schema["flexibleVersions"]), wanted)
    return {
        "key": schema.get("apiKey", NO_KEY),
        "versions": f"{wanted[0]}-{wanted[1]}",
        "flexible": "none" if flexible is None else text_of(flexible, wanted),
        "fields": fields(schema["fields"], structs, wanted, schema["name"]),
    }


RENAMED = {
    "candidate_epoch": "replica_epoch",
    "candidate_id": "replica_id",
    "candidate_directory_id": "replica_directory_id",
}
"""Fields of VoteRequest that Kafka 4.0 renamed (KIP-996); their bytes are the same."""


def layout(rows: list[Schema]) -> list[Schema]:
    """The fields to compare with another release; a tagged one may be added to a version later."""
    return [
        {
            "name": RENAMED.get(row["name"], row["name"]),
            "type": re.sub(r"[A-Z]\w+", "struct", row["type"]),
            "versions": row.get("versions"),
            "nullable": row.get("nullable"),
            "fields": layout(row.get("fields", [])),
        }
        for row in rows
        if "tag" not in row
    ]


def messages() -> dict[str, Schema]:
    """Every message by its name, if the releases lay their versions out alike."""
    by_release = {
        release: schemas(
            jar(f"org.apache.kafka:kafka-clients:{release}", Cache(default_cache())), MESSAGES
        )
        for release in RELEASES
    }
    table = {}
    rows = [(f"{api}{kind}", APIS[api]) for api in APIS for kind in ("Request", "Response")]
    for name, versions in [*rows, *DATA.items()]:
        wanted = parsed(versions)
        offers = {
            release: (found[name], common(parsed(found[name]["validVersions"]), wanted))
            for release, found in by_release.items()
            if name in found
        }
        complete = [schema for schema, offer in offers.values() if offer == wanted]
        if wanted is None or not complete:
            raise SystemExit(f"no release has all of the versions {versions} of {name}")
        newest = complete[-1]
        table[name] = message(newest, wanted)
        for release, (schema, offer) in offers.items():
            if offer is not None and layout(message(schema, offer)["fields"]) != layout(
                message(newest, offer)["fields"]
            ):
                raise SystemExit(f"{name} has another layout in Kafka {release}")
    return table


def table_text(table: dict[str, Schema]) -> str:
    """The table as readable JSON: one line per field."""

    def lines(name: str, row: Schema) -> str:
        head = {key: value for key, value in row.items() if key != "fields"}
        body = ",\n".join(f"    {json.dumps(child)}" for child in row["fields"])
        body = f"[\n{body}\n  ]" if body else "[]"
        return f'  "{name}": {json.dumps(head)[:-1]}, "fields": {body}}}'

    return "{\n" + ",\n".join(lines(*item) for item in table.items()) + "\n}\n"


# -- the errors ------------------------------------------------------------------------------------


def errors_text() -> str:
    """The errors of the newest release as JSON, one on a line."""
    cache = Cache(default_cache())
    with tempfile.TemporaryDirectory() as classes:
        compile_java([ROOT / "scripts/java/ErrorTable.java"], Path(classes), cache)
        jars = [jar(f"org.apache.kafka:kafka-clients:{RELEASES[-1]}", cache), Path(classes)]
        jars.append(jar("org.slf4j:slf4j-api:1.7.36", cache))
        run = subprocess.run(
            java_command(jars, "ErrorTable", heap_mb=64),
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    rows = [line.split("\t") for line in run.stdout.splitlines()]
    lines = ",\n".join(f'  "{code}": {json.dumps(rest)}' for code, *rest in rows)
    return f"{{\n{lines}\n}}\n"


def main(arguments: list[str]) -> int:
    """Writes the tables, or compares them with ``--check``; returns 0, or 3 if they differ."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m scripts.generate_messages [--check]\n")
        return 2
    texts = {TABLE: table_text(messages()), ERRORS: errors_text()}
    if arguments:
        return 0 if all(path.read_text() == text for path, text in texts.items()) else 3
    for path, text in texts.items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
