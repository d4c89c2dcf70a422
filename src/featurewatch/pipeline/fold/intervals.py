"""State that lets the fold emit each interval and each roll as one complete row.

The image holds only the current state; an interval also needs the time at which it began. That time
is kept in rows beside the image's, so each boundary yields a complete row without reading any
table, and the same messages give the same rows however they are batched.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import orjson
from immutables import Map

from featurewatch.controller.software import release_name, software_name
from featurewatch.monitor.alerts import Cause
from featurewatch.monitor.rolls.roll import (
    NO_ROLLS,
    CapabilityChange,
    Roll,
    RollHistory,
    capability_changes,
)
from featurewatch.monitor.rolls.tracker import track_rolls
from featurewatch.monitor.rules import Subject, SubjectKind
from featurewatch.monitor.step import MonitorState, StepResult
from featurewatch.streams.outputs import Alert
from featurewatch.streams.types import ClusterId, FeatureName, NodeKey
from featurewatch.tables.image.nodes import Capabilities

CAPABILITY, EXCLUSION, ROLL = "capability", "exclusion", "roll"
"""The kinds of the rows that this module emits."""

EXCLUDING: Final = frozenset({"incompatible-node", "missing-feature"})
"""The rules whose alerts mean that a finalized level excludes a node."""


class IntervalStart(NamedTuple):
    """The beginning of an interval: its time (ms) and the id of the event that caused it."""

    at_ms: int
    cause: str


class Exclusion(NamedTuple):
    """A finalized level that excludes a node, or may; ``reason`` is the alert's summary."""

    level: int
    range: tuple[int, int] | None
    verdict: str
    reason: str
    since: IntervalStart


Exclusions = Mapping[FeatureName, Exclusion]


@dataclass(frozen=True, slots=True)
class OpenIntervals:
    """The starts of all open intervals of a cluster, and its rolls.

    ``dirty``: the current roll has progressed since its row was last emitted. ``row_count`` numbers
    the rows emitted for rolls: of two rows of one roll, the one with the higher number counts.
    """

    nodes: Map[NodeKey, IntervalStart] = field(default_factory=Map)
    excluded: Map[NodeKey, Exclusions] = field(default_factory=Map)
    rolls: RollHistory = NO_ROLLS
    dirty: bool = False
    row_count: int = 0


NO_PAST: Final = OpenIntervals()


class HistoryRow(NamedTuple):
    """A row of a gold table: its kind, its id, and its fields; times are in milliseconds."""

    kind: str
    id: str
    fields: Mapping[str, Any]

    def encoded(self) -> bytes:
        """Returns the fields as JSON."""
        return orjson.dumps(self.fields, default=list)


def update_intervals(
    past: OpenIntervals, before: MonitorState, outcome: StepResult
) -> tuple[OpenIntervals, list[HistoryRow]]:
    """Applies one step to the open intervals and returns them with the rows that the step completes
    or begins. Pure; the cost follows the number of changes."""
    delta, cause = outcome.delta, outcome.cause
    touched = [subject for subject in outcome.alert_changes if subject.kind is SubjectKind.NODE]
    if not (delta.nodes or delta.levels or touched):
        return past, []
    after = outcome.state
    changes = capability_changes(before.image, after.image, delta)
    if not (changes or delta.levels or touched):
        return past, []  # a fencing, the ordinary case
    rows: list[HistoryRow] = []
    nodes = past.nodes.mutate()
    for change in changes:
        rows += _boundary(after, change, nodes.pop(change.key, None), cause)
        if change.after is not None:
            nodes[change.key] = IntervalStart(cause.at_ms, cause.id)
    excluded = past.excluded
    for subject in touched:
        excluded, exclusion_rows = _exclusions(after, excluded, subject, cause)
        rows += exclusion_rows
    past = replace(past, nodes=nodes.finish() if changes else past.nodes, excluded=excluded)
    if changes or delta.levels:
        rolls, ended = track_rolls(past.rolls, after.image, changes, delta.levels, cause)
        cluster, row_count = after.image.cluster, past.row_count
        rows += [_roll_row(cluster, roll, row_count + index) for index, roll in enumerate(ended)]
        is_dirty = past.dirty or rolls.current != past.rolls.current
        past = replace(past, rolls=rolls, dirty=is_dirty, row_count=row_count + len(ended))
    return past, rows


def flush_roll(cluster: ClusterId, past: OpenIntervals) -> tuple[OpenIntervals, list[HistoryRow]]:
    """Returns the row of the current roll if it has progressed since the last one.

    Called once after a batch of messages, since a row lists all nodes of the roll.
    """
    if not past.dirty or past.rolls.current is None:
        return past, []
    row = _roll_row(cluster, past.rolls.current, past.row_count)
    return replace(past, dirty=False, row_count=past.row_count + 1), [row]


def _boundary(
    state: MonitorState, change: CapabilityChange, since: IntervalStart | None, cause: Cause
) -> Iterator[HistoryRow]:
    if change.before is not None and since is not None:
        yield _capability(state, change.key, change.before, since, cause)
    if change.after is not None:
        yield _capability(
            state, change.key, change.after, IntervalStart(cause.at_ms, cause.id), None
        )


def _capability(
    state: MonitorState,
    key: NodeKey,
    capabilities: Capabilities,
    since: IntervalStart,
    until: Cause | None,
) -> HistoryRow:
    fields = {
        "ranges": capabilities.ranges,
        "complete": capabilities.complete,
        "release": release_name(capabilities),
        **_span(since, until),
    }
    return _of_node(CAPABILITY, f"{state.image.cluster}/supports/{key}", key, fields)


def _exclusions(
    state: MonitorState, excluded: Map[NodeKey, Exclusions], subject: Subject, cause: Cause
) -> tuple[Map[NodeKey, Exclusions], list[HistoryRow]]:
    """Updates the exclusions of one node; a new level, range or verdict begins a new exclusion."""
    key = subject.key
    assert isinstance(key, NodeKey)  # noqa: S101 - only nodes are touched
    before = excluded.get(key, {})
    current: dict[FeatureName, Exclusion] = {}
    for alert in state.firing.get(subject, ()):
        if alert.rule in EXCLUDING:
            feature = FeatureName(str(alert.subject["feature"]))
            old, new = before.get(feature), _exclusion(alert, cause)
            current[feature] = old if old is not None and old[:3] == new[:3] else new
    rows = [
        _exclusion_row(state, key, feature, old, cause)
        for feature, old in sorted(before.items())
        if current.get(feature) is not old
    ]
    rows += [
        _exclusion_row(state, key, feature, new, None)
        for feature, new in sorted(current.items())
        if before.get(feature) is not new
    ]
    if current:
        return excluded.set(key, current), rows
    return excluded.delete(key) if before else excluded, rows


def _exclusion(alert: Alert, cause: Cause) -> Exclusion:
    bounds = alert.evidence["range"]
    return Exclusion(
        level=alert.evidence["level"],
        range=None if bounds is None else (bounds[0], bounds[1]),
        verdict=alert.evidence["verdict"],
        reason=alert.summary,
        since=IntervalStart(cause.at_ms, cause.id),
    )


def _exclusion_row(
    state: MonitorState,
    key: NodeKey,
    feature: FeatureName,
    exclusion: Exclusion,
    until: Cause | None,
) -> HistoryRow:
    fields = {
        "feature": feature,
        "level": exclusion.level,
        "range": exclusion.range,
        "verdict": exclusion.verdict,
        "reason": exclusion.reason,
        **_span(exclusion.since, until),
    }
    return _of_node(EXCLUSION, f"{state.image.cluster}/excluded/{key}/{feature}", key, fields)


def _of_node(kind: str, about: str, key: NodeKey, fields: dict[str, Any]) -> HistoryRow:
    """The row of a node; its id has the time too, since a log that went back reuses offsets."""
    id_ = f"{about}/{fields['since_cause']}@{fields['since_ms']}"
    return HistoryRow(kind, id_, {"role": key.role, "node_id": key.node_id, **fields})


def _span(since: IntervalStart, until: Cause | None) -> dict[str, Any]:
    """The bounds of an interval; it never ends before it began, although the clocks of causes
    differ."""
    return {
        "since_ms": since.at_ms,
        "since_cause": since.cause,
        "until_ms": None if until is None else max(since.at_ms, until.at_ms),
        "until_cause": None if until is None else until.id,
    }


def _roll_row(cluster: ClusterId, roll: Roll, number: int) -> HistoryRow:
    duration_ms = roll.duration_ms
    fields = {
        "number": number,
        "direction": roll.direction,
        "state": roll.state,
        "from_releases": sorted(set(map(software_name, roll.old))),
        "to_releases": sorted(set(map(software_name, roll.new))),
        "started_ms": roll.started_ms,
        "rolled_ms": roll.rolled_ms,
        "finalized_ms": roll.finalized_ms,
        "ended_ms": roll.ended_ms,
        "duration_s": None if duration_ms is None else duration_ms // 1000,
        "nodes": [arrival._asdict() for arrival in roll.nodes],
        "levels": dict(sorted(roll.levels.items())),
        "rollback_path": roll.rollback_path,
    }
    return HistoryRow(ROLL, f"{cluster}/{roll.direction}/{roll.cause}@{roll.started_ms}", fields)
