"""What the fold remembers of a cluster's past, so that it can say intervals and rolls whole.

The image says what is; an interval also says since when. That is kept beside the image, in rows of
the same state, so that each boundary makes a whole row by itself: no table is read to make it, and
the same messages make the same rows in whatever batches they come.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import orjson
from immutables import Map

from featurewatch.controller.alerts import Cause
from featurewatch.controller.monitor import MonitorState, StepResult
from featurewatch.controller.rolls.roll import (
    NO_ROLLS,
    CapabilityChange,
    Roll,
    RollHistory,
    capability_changes,
)
from featurewatch.controller.rolls.tracker import track_rolls
from featurewatch.controller.rules import Subject, SubjectKind
from featurewatch.controller.software import release_name, software_name
from featurewatch.streams.outputs import Alert
from featurewatch.streams.types import ClusterId, FeatureName, NodeKey
from featurewatch.tables.image.nodes import Capabilities

CAPABILITY, EXCLUSION, ROLL = "capability", "exclusion", "roll"
"""The kinds of what is said of the past."""

EXCLUDING: Final = frozenset({"incompatible-node", "missing-feature"})
"""The rules by which a finalized level excludes a node."""


class IntervalStart(NamedTuple):
    """Where an interval begins: when, and by which event."""

    at_ms: int
    cause: str


class Exclusion(NamedTuple):
    """A level that excludes a node, or may; ``why`` is the sentence of the alert."""

    level: int
    range: tuple[int, int] | None
    verdict: str
    why: str
    since: IntervalStart


Exclusions = Mapping[FeatureName, Exclusion]


@dataclass(frozen=True, slots=True)
class OpenIntervals:
    """The beginnings of what is still so, and the rolls.

    ``dirty`` says that the current roll is further than it was last said. ``words`` counts what
    was said of rolls: of two words on one roll the later counts.
    """

    nodes: Map[NodeKey, IntervalStart] = field(default_factory=Map)
    excluded: Map[NodeKey, Exclusions] = field(default_factory=Map)
    rolls: RollHistory = NO_ROLLS
    dirty: bool = False
    words: int = 0


NO_PAST: Final = OpenIntervals()


class HistoryRow(NamedTuple):
    """Something that is said of the past: a row of a table, times in milliseconds."""

    kind: str
    id: str
    fields: Mapping[str, Any]

    def encoded(self) -> bytes:
        """The row as JSON."""
        return orjson.dumps(self.fields, default=list)


def update_intervals(
    past: OpenIntervals, before: MonitorState, outcome: StepResult
) -> tuple[OpenIntervals, list[HistoryRow]]:
    """The past after a step, and what the step says of it. Pure; the cost follows what changed."""
    delta, cause = outcome.delta, outcome.cause
    touched = [subject for subject in outcome.alert_changes if subject.kind is SubjectKind.NODE]
    if not (delta.nodes or delta.levels or touched):
        return past, []
    after = outcome.state
    found = capability_changes(before.image, after.image, delta)
    if not (found or delta.levels or touched):
        return past, []  # a fencing, the ordinary case
    words: list[HistoryRow] = []
    nodes = past.nodes.mutate()
    for moved in found:
        words += _boundary(after, moved, nodes.pop(moved.key, None), cause)
        if moved.after is not None:
            nodes[moved.key] = IntervalStart(cause.at_ms, cause.id)
    excluded = past.excluded
    for subject in touched:
        excluded, more = _exclusions(after, excluded, subject, cause)
        words += more
    past = replace(past, nodes=nodes.finish() if found else past.nodes, excluded=excluded)
    if found or delta.levels:
        rolls, ended = track_rolls(past.rolls, after.image, found, delta.levels, cause)
        cluster, number = after.image.cluster, past.words
        words += [_roll_word(cluster, roll, number + at) for at, roll in enumerate(ended)]
        unsaid = past.dirty or rolls.current != past.rolls.current
        past = replace(past, rolls=rolls, dirty=unsaid, words=number + len(ended))
    return past, words


def flush_roll(cluster: ClusterId, past: OpenIntervals) -> tuple[OpenIntervals, list[HistoryRow]]:
    """The roll that goes on, if it is further than it was last said.

    It is said once for many events: a row holds all its nodes.
    """
    if not past.dirty or past.rolls.current is None:
        return past, []
    word = _roll_word(cluster, past.rolls.current, past.words)
    return replace(past, dirty=False, words=past.words + 1), [word]


def _boundary(
    state: MonitorState, moved: CapabilityChange, since: IntervalStart | None, cause: Cause
) -> Iterator[HistoryRow]:
    if moved.before is not None and since is not None:
        yield _capability(state, moved.key, moved.before, since, cause)
    if moved.after is not None:
        yield _capability(state, moved.key, moved.after, IntervalStart(cause.at_ms, cause.id), None)


def _capability(
    state: MonitorState,
    key: NodeKey,
    known: Capabilities,
    since: IntervalStart,
    until: Cause | None,
) -> HistoryRow:
    fields = {
        "ranges": known.ranges,
        "complete": known.complete,
        "release": release_name(known),
        **_span(since, until),
    }
    return _of_node(CAPABILITY, f"{state.image.cluster}/supports/{key}", key, fields)


def _exclusions(
    state: MonitorState, known: Map[NodeKey, Exclusions], subject: Subject, cause: Cause
) -> tuple[Map[NodeKey, Exclusions], list[HistoryRow]]:
    """The levels that exclude a node now; one whose level, range or verdict differs is another."""
    key = subject.key
    assert isinstance(key, NodeKey)  # noqa: S101 - only nodes are touched
    before = known.get(key, {})
    now: dict[FeatureName, Exclusion] = {}
    for alert in state.firing.get(subject, ()):
        if alert.rule in EXCLUDING:
            feature = FeatureName(str(alert.subject["feature"]))
            old, new = before.get(feature), _exclusion(alert, cause)
            now[feature] = old if old is not None and old[:3] == new[:3] else new
    words = [
        _exclusion_word(state, key, feature, old, cause)
        for feature, old in sorted(before.items())
        if now.get(feature) is not old
    ]
    words += [
        _exclusion_word(state, key, feature, new, None)
        for feature, new in sorted(now.items())
        if before.get(feature) is not new
    ]
    if now:
        return known.set(key, now), words
    return known.delete(key) if before else known, words


def _exclusion(alert: Alert, cause: Cause) -> Exclusion:
    bounds = alert.evidence["range"]
    return Exclusion(
        level=alert.evidence["level"],
        range=None if bounds is None else (bounds[0], bounds[1]),
        verdict=alert.evidence["verdict"],
        why=alert.summary,
        since=IntervalStart(cause.at_ms, cause.id),
    )


def _exclusion_word(
    state: MonitorState, key: NodeKey, feature: FeatureName, found: Exclusion, until: Cause | None
) -> HistoryRow:
    fields = {
        "feature": feature,
        "level": found.level,
        "range": found.range,
        "verdict": found.verdict,
        "why": found.why,
        **_span(found.since, until),
    }
    return _of_node(EXCLUSION, f"{state.image.cluster}/excluded/{key}/{feature}", key, fields)


def _of_node(kind: str, about: str, key: NodeKey, fields: dict[str, Any]) -> HistoryRow:
    """A word on a node; the id has the time too, since a log that went back uses offsets again."""
    id_ = f"{about}/{fields['since_cause']}@{fields['since_ms']}"
    return HistoryRow(kind, id_, {"role": key.role, "node_id": key.node_id, **fields})


def _span(since: IntervalStart, until: Cause | None) -> dict[str, Any]:
    """From when to when; clocks of two causes may differ, and nothing ends before it began."""
    return {
        "since_ms": since.at_ms,
        "since_cause": since.cause,
        "until_ms": None if until is None else max(since.at_ms, until.at_ms),
        "until_cause": None if until is None else until.id,
    }


def _roll_word(cluster: ClusterId, roll: Roll, number: int) -> HistoryRow:
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
        "way_back": roll.way_back,
    }
    return HistoryRow(ROLL, f"{cluster}/{roll.direction}/{roll.cause}@{roll.started_ms}", fields)
