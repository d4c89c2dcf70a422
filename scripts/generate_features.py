"""Writes ``controller/kraft/features.json``: the feature levels of Kafka 3.3 to 4.3, as one table.

A small Java program (``scripts/java/FeatureTable.java``) asks each release's own classes; this
script lays the answers over one another. It stops when two releases disagree about a level of
metadata.version that is in production in both: such levels are facts. Levels that are not yet in
production may change their meaning with the next release, so they stand with their release.

Usage: ``python -m scripts.generate_features [--check]``. With ``--check`` nothing is written and
the exit code says whether the table is what the jars say. Any Java 17 runtime will do.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from featurewatch.deploy.java.jars import Cache, default_cache, java_command
from scripts.java_source import compile_java, jar

Answer = dict[str, Any]

RELEASES = {
    "3.3": "3.3.2",
    "3.4": "3.4.1",
    "3.5": "3.5.2",
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.1",
    "4.0": "4.0.0",
    "4.1": "4.1.0",
    "4.2": "4.2.0",
    "4.3": "4.3.0",
}
"""The release that each table is taken from. Bug-fix releases do not change levels."""

METADATA_VERSION = "metadata.version"
ROOT = Path(__file__).resolve().parent
TABLE = ROOT.parent / "controller" / "kraft" / "features.json"


def answers(cache: Cache) -> dict[str, Answer]:
    """What each release says of itself, by release."""
    with tempfile.TemporaryDirectory() as classes:
        compile_java([ROOT / "java" / "FeatureTable.java"], Path(classes), cache)
        return {release: _ask(Path(classes), kafka, cache) for release, kafka in RELEASES.items()}


def _ask(classes: Path, kafka: str, cache: Cache) -> Answer:
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
    found: Answer = json.loads(run.stdout)
    return found


def production(said: Mapping[str, Answer]) -> list[Answer]:
    """The levels of metadata.version that are in production in some release, each once."""
    levels: dict[int, Answer] = {}
    for release, answer in said.items():
        _, newest = answer["supported"][METADATA_VERSION]
        for one in answer["levels"]:
            entry = {key: one[key] for key in ("level", "name", "release", "changes_metadata")}
            if one["level"] > newest:
                continue
            known = levels.setdefault(one["level"], {**entry, "since": release})
            if {**entry, "since": known["since"]} != known:
                raise SystemExit(f"Kafka {release} changed level {one['level']}: {known}, {entry}")
    for level, gates in _gates(said).items():
        if level in levels:
            levels[level]["gates"] = gates
    return [levels[level] for level in sorted(levels)]


def _gates(said: Mapping[str, Answer]) -> dict[int, Answer]:
    """By level, the gates that open with it: as the newest release that knows the gate has it."""
    values: dict[str, dict[int, Any]] = {}
    for answer in said.values():
        asked: dict[str, dict[int, Any]] = {}
        for one in answer["levels"]:
            for gate, value in one["gates"].items():
                asked.setdefault(gate, {})[one["level"]] = value
        for gate, by_level in asked.items():
            older = {n: v for n, v in values.get(gate, {}).items() if n < min(by_level)}
            values[gate] = {**older, **by_level}
    opened: dict[int, Answer] = {}
    for gate, by_level in sorted(values.items()):
        for level, value in by_level.items():
            opened.setdefault(level, {})
            if level - 1 in by_level and by_level[level - 1] != value:
                opened[level][gate] = value
    return opened


def of_release(kafka: str, answer: Answer) -> Answer:
    """What is true of one release alone."""
    _, newest = answer["supported"][METADATA_VERSION]
    keys = ("level", "name", "release", "changes_metadata")
    return {
        "kafka": kafka,
        "minimum": answer["minimum"],
        "bootstrap": answer["bootstrap"],
        "supported": answer["supported"],
        "unstable": answer["unstable"],
        "floors": {one["level"]: one["floor"] for one in answer["levels"]},
        "unstable_levels": [
            {key: one[key] for key in keys} for one in answer["levels"] if one["level"] > newest
        ],
        "features": answer["features"],
    }


def text(said: Mapping[str, Answer]) -> str:
    """The table as JSON that people can read: one line a level."""

    def rows(ones: Iterable[Any], indent: int) -> str:
        lines = [" " * indent + json.dumps(one) for one in ones]
        return "[\n" + ",\n".join(lines) + "\n" + " " * (indent - 2) + "]" if lines else "[]"

    def release(one: Answer) -> str:
        features = ",\n".join(
            f'        "{name}": {rows(levels, 10)}' for name, levels in one["features"].items()
        )
        parts = [
            *(f'      "{key}": {json.dumps(one[key])}' for key in ("kafka", "minimum")),
            *(f'      "{key}": {json.dumps(one[key])}' for key in ("bootstrap", "supported")),
            *(f'      "{key}": {json.dumps(one[key])}' for key in ("unstable", "floors")),
            f'      "unstable_levels": {rows(one["unstable_levels"], 8)}',
            f'      "features": {{\n{features}\n      }}' if features else '      "features": {}',
        ]
        return "{\n" + ",\n".join(parts) + "\n    }"

    releases = ",\n".join(
        f'    "{name}": {release(of_release(kafka, said[name]))}'
        for name, kafka in RELEASES.items()
    )
    levels = rows(production(said), 4)
    return f'{{\n  "metadata.version": {levels},\n  "releases": {{\n{releases}\n  }}\n}}\n'


def main(arguments: list[str]) -> int:
    """Writes the table, or with ``--check`` compares it: 0 the same, 3 not."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m scripts.generate_features [--check]\n")
        return 2
    table = text(answers(Cache(default_cache())))
    if arguments:
        return 0 if TABLE.read_text() == table else 3
    TABLE.write_text(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
