"""Merges the files of several releases. Pure."""

from collections.abc import Iterable
from typing import Any

from featurewatch.kafka.releases import ReleaseFile

METADATA_VERSION = "metadata.version"
Row = dict[str, Any]


def production_levels(files: Iterable[ReleaseFile]) -> dict[int, Row]:
    """Every level of metadata.version that is in production, by its number.

    ``since`` is the first release that has it in production, ``gates`` what changes with it.

    Raises:
        ValueError: Two releases disagree about a level; such levels never change.
    """
    files = tuple(files)
    levels: dict[int, Row] = {}
    for file in files:
        _, newest = file.content["supported"][METADATA_VERSION]
        for entry in file.content["levels"]:
            number = entry["level"]
            if number > newest:
                continue
            known = levels.setdefault(number, {**entry, "since": file.release, "gates": {}})
            if {**known, **entry} != known:
                raise ValueError(f"Kafka {file.release} changed level {number}: {known}, {entry}")
    for gate, steps in gates(files).items():
        for level, value in steps.items():
            if level in levels:
                levels[level]["gates"][gate] = value
    return {number: levels[number] for number in sorted(levels)}


def gates(files: Iterable[ReleaseFile]) -> dict[str, dict[int, Any]]:
    """The gates by name, each with its values by the level from which on it has them."""
    merged: dict[str, dict[int, Any]] = {}
    for file in files:
        lowest = file.content["minimum"]
        for gate, steps in file.content["gates"].items():
            older = {at: value for at, value in merged.get(gate, {}).items() if at <= lowest}
            merged[gate] = older | {int(at): value for at, value in steps.items()}
    return {gate: merged[gate] for gate in sorted(merged)}


def records(files: Iterable[ReleaseFile], kind: str = "records") -> dict[int, Row]:
    """The newest layout of every metadata record, or of raft's ``controls``, by its number."""
    newest = {row["key"]: row for file in files for row in file.content[kind]}
    return {key: newest[key] for key in sorted(newest)}


def requests(files: Iterable[ReleaseFile]) -> dict[str, str]:
    """The versions of every request that the newest of the releases has."""
    versions: dict[str, str] = {}
    for file in files:
        versions |= file.content["requests"]
    return {name: of for name, of in versions.items() if of != "none"}
