"""Composes the file of a release from the content of its jars, and writes it as text. Pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from featurewatch.kafka.releases import ReleaseFile
from featurewatch.kafka.releases.merge import (
    METADATA_VERSION,
    Row,
    gates,
    production_levels,
    records,
    requests,
)
from featurewatch.kafka.releases.schemas import (
    SchemaError,
    control_records,
    metadata_records,
    request_versions,
)

CHANGED_IN_PLACE: Final = {
    "USER_SCRAM_CREDENTIAL_RECORD": "3.5 split credentials; older KRaft never wrote one",
    "DELEGATION_TOKEN_RECORD": "3.6 added requester; older KRaft never wrote one",
}
"""Records whose version 0 has two layouts, and why a log only contains the newer one."""


def compose(
    kafka: str,
    table: Mapping[str, Any],
    metadata: Mapping[str, Row],
    messages: Mapping[str, Row],
    sources: Mapping[str, str],
    before: Sequence[ReleaseFile],
    apis: Iterable[str],
) -> dict[str, Any]:
    """The content of a release's file, without ``rules`` and ``consequences``.

    ``table`` is what ``FeatureTable.java`` prints, ``metadata`` and ``messages`` the schemas of
    kafka-metadata and kafka-clients (`schemas.schemas`), ``before`` the files of the releases
    before, oldest first, ``apis`` the requests whose versions are recorded.

    Raises:
        SchemaError: The layout of a version of a record is another than in a release before.
    """
    keys = ("level", "name", "release", "changes_metadata")
    known = {
        number: {key: level[key] for key in keys}
        for number, level in production_levels(before).items()
    }
    newest = table["supported"][METADATA_VERSION][1]
    levels = [{key: entry[key] for key in keys} for entry in table["levels"]]
    return {
        "release": ".".join(kafka.split(".")[:2]),
        "kafka": kafka,
        "minimum": table["minimum"],
        "bootstrap": table["bootstrap"],
        "supported": table["supported"],
        "unstable": table["unstable"],
        "floors": {str(entry["level"]): entry["floor"] for entry in table["levels"]},
        "levels": [
            level
            for level in levels
            if level["level"] > newest or known.get(level["level"]) != level
        ],
        "gates": _gates(table, before),
        "features": table["features"],
        **compose_records(kafka, metadata, messages, sources, before, apis),
    }


def compose_records(
    kafka: str,
    metadata: Mapping[str, Row],
    messages: Mapping[str, Row],
    sources: Mapping[str, str],
    before: Sequence[ReleaseFile],
    apis: Iterable[str],
) -> dict[str, Any]:
    """The part of a release's file that needs no classes; parameters and errors as of `compose`."""
    return {
        "release": ".".join(kafka.split(".")[:2]),
        "kafka": kafka,
        "requests": _requests(request_versions(messages, apis), before),
        "records": _records(metadata_records(metadata), records(before), kafka),
        "controls": _records(control_records(messages), records(before, "controls"), kafka),
        "sources": dict(sorted(sources.items())),
    }


def _gates(table: Mapping[str, Any], before: Sequence[ReleaseFile]) -> dict[str, Row]:
    """The steps of the gates that differ from those before, from the lowest level on."""
    lowest = table["minimum"]
    steps: dict[str, Row] = {}
    values: dict[str, Any] = {}
    for entry in table["levels"]:
        for gate, value in entry["gates"].items():
            of_gate = steps.setdefault(gate, {})
            if gate in values and values[gate] != value:
                of_gate[str(entry["level"])] = value
            values[gate] = value
    known = {
        gate: {str(at): value for at, value in of.items() if at > lowest}
        for gate, of in gates(before).items()
    }
    return {gate: steps[gate] for gate in sorted(steps) if known.get(gate, {}) != steps[gate]}


def _requests(found: Mapping[str, str], before: Sequence[ReleaseFile]) -> dict[str, str]:
    """The versions that differ; ``none`` of a request that the release no longer has."""
    known = requests(before)
    removed = {name: "none" for name in known if name not in found}
    return {name: of for name, of in sorted(found.items()) if known.get(name) != of} | removed


def _records(found: Iterable[Row], known: Mapping[int, Row], kafka: str) -> list[Row]:
    """The records that differ from those known by their numbers."""
    changed = [row for row in found if known.get(row["key"]) != row]
    for row in changed:
        previous = known.get(row["key"])
        if previous is not None and row["type"] not in CHANGED_IN_PLACE:
            version = int(previous["versions"].split("-")[-1])
            if _layout(previous, version) != _layout(row, version):
                raise SchemaError(f"{row['type']} changed in place in Kafka {kafka}")
    return changed


def _layout(record: Row, newest_version: int) -> str:
    """The byte layout of a record up to a version, as comparable text without field names."""

    def lay(fields: Iterable[Row]) -> list[Any]:
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

    return json.dumps(sorted(lay(record["fields"]), key=lambda entry: entry[2] is not None))


_ONE_A_LINE: Final = ("supported", "unstable", "floors")
"""Objects that are short enough for one line."""


def text(content: Mapping[str, Any]) -> str:
    """A file as readable JSON: a line for each level, gate, field and consequence."""
    parts = (f'  "{key}": {_part(key, value)}' for key, value in content.items())
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _part(key: str, value: Any) -> str:
    if key in ("records", "controls"):
        return _lines("[]", (_record(row) for row in value))
    if key == "features":
        rows = (f'"{it}": {_lines("[]", map(json.dumps, of), 4)}' for it, of in value.items())
        return _lines("{}", rows)
    if isinstance(value, list):
        return _lines("[]", map(json.dumps, value))
    if isinstance(value, dict) and key not in _ONE_A_LINE:
        return _lines("{}", (f"{json.dumps(it)}: {json.dumps(of)}" for it, of in value.items()))
    return json.dumps(value)


def _record(row: Row) -> str:
    head = {key: value for key, value in row.items() if key != "fields"}
    return f'{json.dumps(head)[:-1]}, "fields": {_lines("[]", map(json.dumps, row["fields"]), 4)}}}'


def _lines(brackets: str, rows: Iterable[str], indent: int = 2) -> str:
    lines = [" " * (indent + 2) + row for row in rows]
    return (
        f"{brackets[0]}\n" + ",\n".join(lines) + f"\n{' ' * indent}{brackets[1]}"
        if lines
        else brackets
    )
