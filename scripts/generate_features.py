"""Generates ``kafka/releases/features.json``: the feature levels of Kafka 3.3 to 4.3.

A Java program (``scripts/java/FeatureTable.java``) reads the levels from each release's own
classes, and this script merges the releases. It fails if two releases disagree about a level of
metadata.version that is in production in both, because such levels never change. Levels that are
not in production may change with the next release, so they are listed per release.

Usage: ``python -m scripts.generate_features [--check]``. With ``--check`` nothing is written; the
exit code is 3 if the table differs from the jars. Any Java 17 runtime will do.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from featurewatch.stack.java.jars import Cache, default_cache, java_command
from scripts.java_source import compile_java, jar
from scripts.releases import RELEASES

ReleaseTable = dict[str, Any]

METADATA_VERSION = "metadata.version"
ROOT = Path(__file__).resolve().parent
TABLE = ROOT.parent / "src/featurewatch/kafka/releases/features.json"


def release_tables(cache: Cache) -> dict[str, ReleaseTable]:
    """The table of each release, by release, read from its own classes."""
    with tempfile.TemporaryDirectory() as classes:
        compile_java([ROOT / "java" / "FeatureTable.java"], Path(classes), cache)
        return {
            release: _read_release(Path(classes), kafka, cache)
            for release, kafka in RELEASES.items()
        }


def _read_release(classes: Path, kafka: str, cache: Cache) -> ReleaseTable:
    modules = ("kafka-clients", "kafka-metadata", "kafka-server-common")
    jars = [jar(f"org.apache.kafka:{module}:{kafka}", cache) for module in modules]
    jars += [jar("org.slf4j:slf4j-api:1.7.36", cache), classes]
    run = subprocess.run(
        java_command(jars, "FeatureTable", heap_mb=64),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if run.returncode:
        raise SystemExit(f"Kafka {kafka}: {run.stderr}")
    table: ReleaseTable = json.loads(run.stdout)
    return table


def production(tables: Mapping[str, ReleaseTable]) -> list[ReleaseTable]:
    """The levels of metadata.version that are in production in any release, sorted."""
    levels: dict[int, ReleaseTable] = {}
    for release, table in tables.items():
        _, newest = table["supported"][METADATA_VERSION]
        for entry in table["levels"]:
            level = {key: entry[key] for key in ("level", "name", "release", "changes_metadata")}
            if entry["level"] > newest:
                continue
            existing = levels.setdefault(entry["level"], {**level, "since": release})
            if {**level, "since": existing["since"]} != existing:
                raise SystemExit(
                    f"Kafka {release} changed level {entry['level']}: {existing}, {level}"
                )
    for number, gates in _gates(tables).items():
        if number in levels:
            levels[number]["gates"] = gates
    return [levels[number] for number in sorted(levels)]


def _gates(tables: Mapping[str, ReleaseTable]) -> dict[int, ReleaseTable]:
    """Level → the gates that change with it, as in the newest release that has the gate."""
    values: dict[str, dict[int, Any]] = {}
    for table in tables.values():
        current: dict[str, dict[int, Any]] = {}
        for entry in table["levels"]:
            for gate, value in entry["gates"].items():
                current.setdefault(gate, {})[entry["level"]] = value
        for gate, by_level in current.items():
            previous = values.get(gate, {})
            older = {level: previous[level] for level in previous if level < min(by_level)}
            values[gate] = {**older, **by_level}
    gates: dict[int, ReleaseTable] = {}
    for gate, by_level in sorted(values.items()):
        for level, value in by_level.items():
            gates.setdefault(level, {})
            if level - 1 in by_level and by_level[level - 1] != value:
                gates[level][gate] = value
    return gates


def of_release(kafka: str, table: ReleaseTable) -> ReleaseTable:
    """The part of the table that belongs to one release."""
    _, newest = table["supported"][METADATA_VERSION]
    keys = ("level", "name", "release", "changes_metadata")
    return {
        "kafka": kafka,
        "minimum": table["minimum"],
        "bootstrap": table["bootstrap"],
        "supported": table["supported"],
        "unstable": table["unstable"],
        "floors": {entry["level"]: entry["floor"] for entry in table["levels"]},
        "unstable_levels": [
            {key: entry[key] for key in keys}
            for entry in table["levels"]
            if entry["level"] > newest
        ],
        "features": table["features"],
    }


def text(tables: Mapping[str, ReleaseTable]) -> str:
    """The table as readable JSON: one line per level."""

    def rows(entries: Iterable[Any], indent: int) -> str:
        lines = [" " * indent + json.dumps(entry) for entry in entries]
        return "[\n" + ",\n".join(lines) + "\n" + " " * (indent - 2) + "]" if lines else "[]"

    def release(entry: ReleaseTable) -> str:
        features = ",\n".join(
            f'        "{name}": {rows(levels, 10)}' for name, levels in entry["features"].items()
        )
        parts = [
            *(f'      "{key}": {json.dumps(entry[key])}' for key in ("kafka", "minimum")),
            *(f'      "{key}": {json.dumps(entry[key])}' for key in ("bootstrap", "supported")),
            *(f'      "{key}": {json.dumps(entry[key])}' for key in ("unstable", "floors")),
            f'      "unstable_levels": {rows(entry["unstable_levels"], 8)}',
            f'      "features": {{\n{features}\n      }}' if features else '      "features": {}',
        ]
        return "{\n" + ",\n".join(parts) + "\n    }"

    releases = ",\n".join(
        f'    "{name}": {release(of_release(kafka, tables[name]))}'
        for name, kafka in RELEASES.items()
    )
    levels = rows(production(tables), 4)
    return f'{{\n  "metadata.version": {levels},\n  "releases": {{\n{releases}\n  }}\n}}\n'


def main(arguments: list[str]) -> int:
    """Writes the table, or compares it with ``--check``; returns 0, or 3 if it differs."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m scripts.generate_features [--check]\n")
        return 2
    table = text(release_tables(Cache(default_cache())))
    if arguments:
        return 0 if TABLE.read_text() == table else 3
    TABLE.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
