"""Encodes the open intervals and rolls of a cluster as rows of its state, and decodes them.

A row of nodes holds `PAGE` neighbours by id, as the rows of the image do.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

import orjson
from immutables import Map

from featurewatch.controller.downgrade_path import RollbackPath
from featurewatch.controller.software import Direction
from featurewatch.monitor.rolls.roll import Roll, RolledNode, RollHistory
from featurewatch.pipeline.fold.intervals import Exclusion, Exclusions, IntervalStart, OpenIntervals
from featurewatch.streams.types import FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.nodes import Capabilities, intern_capabilities

PAGE: Final = 64
PREFIX: Final = "past/"
"""The prefix of the names of these rows."""

_ROLLS: Final = f"{PREFIX}rolls"


def interval_rows(past: OpenIntervals) -> Iterator[tuple[str, bytes]]:
    """Yields all state rows of the open intervals, as name and value."""
    pages: dict[tuple[Role, int], list[Any]] = {}
    # A node that left before the cluster was read completely has no interval and may still be
    # counted as excluded.
    for key in {*past.nodes, *past.excluded}:
        member = (key.node_id, past.nodes.get(key), past.excluded.get(key, {}))
        pages.setdefault((key.role, key.node_id // PAGE), []).append(member)
    for (role, page), members in sorted(pages.items()):
        members.sort(key=lambda member: member[0])
        yield f"{PREFIX}{role}/{page}", _dumps(members)
    rolls = past.rolls
    content = {
        "current": rolls.current and _roll_fields(rolls.current),
        "before": rolls.before and _roll_fields(rolls.before),
        "lowered": rolls.lowered,
        "last": [(key, _fields(capabilities)) for key, capabilities in rolls.last.items()],
        "dirty": past.dirty,
        "row_count": past.row_count,
    }
    yield _ROLLS, _dumps(content)


def _dumps(content: Any) -> bytes:
    return orjson.dumps(content, default=list)  # encodes named tuples


def intervals_of_rows(rows: Mapping[str, bytes]) -> OpenIntervals:
    """Decodes the open intervals from state rows; without rows, none is open."""
    nodes: dict[NodeKey, IntervalStart] = {}
    excluded: dict[NodeKey, Exclusions] = {}
    for name, value in rows.items():
        if name == _ROLLS:
            continue
        role = Role(name.removeprefix(PREFIX).partition("/")[0])
        for node_id, since, exclusions in orjson.loads(value):
            key = NodeKey(role, NodeId(node_id))
            if since:
                nodes[key] = IntervalStart(*since)
            if exclusions:
                excluded[key] = {
                    FeatureName(name): _exclusion(fields) for name, fields in exclusions.items()
                }
    content = orjson.loads(rows[_ROLLS]) if _ROLLS in rows else None
    if content is None:
        return OpenIntervals(Map(nodes), Map(excluded))
    last = {NodeKey(Role(key[0]), key[1]): _capabilities(fields) for key, fields in content["last"]}
    rolls = RollHistory(
        current=_roll(content["current"]),
        before=_roll(content["before"]),
        lowered=_levels(content["lowered"]),
        last=last,
    )
    return OpenIntervals(Map(nodes), Map(excluded), rolls, content["dirty"], content["row_count"])


def _exclusion(fields: list[Any]) -> Exclusion:
    level, bounds, verdict, reason, since = fields
    range_ = None if bounds is None else (bounds[0], bounds[1])
    return Exclusion(level, range_, verdict, reason, IntervalStart(*since))


def _fields(capabilities: Capabilities) -> tuple[Any, ...]:
    return capabilities.ranges, capabilities.complete


def _capabilities(fields: list[Any]) -> Capabilities:
    ranges, complete = fields
    bounds = {FeatureName(name): (low, high) for name, (low, high) in ranges.items()}
    return intern_capabilities(bounds, complete=complete)


def _roll_fields(roll: Roll) -> dict[str, Any]:
    content = {name: getattr(roll, name) for name in Roll.__slots__}
    content["old"] = [_fields(capabilities) for capabilities in roll.old]
    content["new"] = [_fields(capabilities) for capabilities in roll.new]
    content["rollback_path"] = roll.rollback_path and asdict(roll.rollback_path)
    return content


def _roll(content: dict[str, Any] | None) -> Roll | None:
    if content is None:
        return None
    rollback_path = content["rollback_path"]
    typed = {
        "direction": Direction(content["direction"]),
        "old": tuple(map(_capabilities, content["old"])),
        "new": tuple(map(_capabilities, content["new"])),
        "nodes": tuple(RolledNode(Role(role), *rest) for role, *rest in content["nodes"]),
        "levels": _levels(content["levels"]),
        "rollback_path": None if rollback_path is None else RollbackPath(**rollback_path),
    }
    return Roll(**{**content, **typed})


def _levels(content: dict[str, list[int]]) -> Any:
    return {FeatureName(name): (before, after) for name, (before, after) in content.items()}
