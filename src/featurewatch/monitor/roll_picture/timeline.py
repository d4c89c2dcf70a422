"""The states of a cluster's nodes over time, folded from its snapshots. Pure.

A node costs nothing while nothing changes: what is held are the newest snapshot, the spans of nodes
that ended, and the periods in which snapshots came. Two snapshots that are further apart than
`HOLD_MS` leave the time between them unknown, even if they are equal.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from featurewatch.monitor.roll_picture.model import (
    Condition,
    NodeState,
    Period,
    Software,
    Span,
    software_of,
)
from featurewatch.streams.outputs import Snapshot
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.nodes import intern_capabilities

HOLD_MS: Final = 60_000
"""A snapshot holds for this long, or until the next one: a worker publishes one every few seconds,
and at each change."""

MAX_SPANS: Final = 40_000
"""Spans of a cluster that are held, of 32 bytes each."""

MAX_PERIODS: Final = 500
MAX_STATES: Final = 1_000
"""Different states of nodes: releases times conditions, unless ranges are made up."""

_FIELDS: Final = 4
_ROLES: Final = (*Role,)


class Timeline:
    """The fold of one cluster's snapshots, in the order of their times."""

    def __init__(self, max_spans: int = MAX_SPANS) -> None:
        self._max_spans = max_spans
        self._last: Snapshot | None = None
        """The newest snapshot that was ready."""
        self._last_ms = -1
        self._is_open = False
        self._periods: list[Period] = []
        self._begins: dict[NodeKey, int] = {}
        """Since when nodes are in their current state, where not since the first snapshot."""
        self._ended = array("q")
        """Begin, end, node and state of each span that ended, in the order of their ends."""
        self._states: dict[NodeState, int] = {}

    def observe(self, snapshot: Snapshot) -> None:
        """Folds the next snapshot. One that is older than another, or without a time, is ignored,
        and nothing is known from one that is not ready, as it may be a part of the cluster."""
        at_ms = snapshot.at_ms
        if at_ms < 0 or at_ms < self._last_ms:
            return
        is_held = self._is_open and at_ms - self._last_ms <= HOLD_MS
        if is_held:
            self._periods[-1] = Period(self._periods[-1].begin_ms, at_ms)
        self._last_ms, self._is_open = at_ms, snapshot.ready
        if not snapshot.ready:
            return
        if not is_held:
            self._periods.append(Period(at_ms, at_ms))
        before, self._last = self._last, snapshot
        if before is not None and (not before.digest or before.digest != snapshot.digest):
            self._change(before, snapshot, at_ms if is_held else self._periods[-2].end_ms)
        if len(self._periods) > MAX_PERIODS:
            self._forget_until(self._periods[-MAX_PERIODS].begin_ms)

    def known(self, now_ms: int) -> list[Period]:
        """The periods in which the state is known, in order; the newest snapshot holds on."""
        known = [*self._periods]
        if self._is_open and now_ms > self._last_ms:
            known[-1] = Period(known[-1].begin_ms, min(now_ms, self._last_ms + HOLD_MS))
        return known

    def spans(self, end_ms: int) -> dict[NodeKey, list[Span]]:
        """The spans of each node, in order; those that have not ended last until ``end_ms``."""
        found: dict[NodeKey, list[Span]] = defaultdict(list)
        states = [*self._states]
        values = self._ended
        for place in range(0, len(values), _FIELDS):
            begin, end, node, number = values[place : place + _FIELDS]
            found[_node_of(node)].append(Span(begin, end, states[number]))
        if self._last is not None and self._periods:
            first_ms = self._periods[0].begin_ms
            for key, state in node_states(self._last).items():
                begin = self._begins.get(key, first_ms)
                found[key].append(Span(begin, max(end_ms, begin), state))
        return found

    def past_software(self) -> frozenset[Software]:
        """What nodes were seen to run in spans that have ended."""
        return frozenset(state.software for state in self._states)

    def _change(self, before: Snapshot, after: Snapshot, end_ms: int) -> None:
        """Ends the spans of nodes whose state differs at ``end_ms``; their next ones begin now."""
        old, new = node_states(before), node_states(after)
        first_ms = self._periods[0].begin_ms
        for key, state in old.items():
            if new.get(key) != state:
                begin = self._begins.pop(key, first_ms)
                place = self._states.setdefault(state, len(self._states))
                self._ended.extend((begin, max(begin, end_ms), _number_of(key), place))
        for key, state in new.items():
            if old.get(key) != state:
                self._begins[key] = after.at_ms
        if len(self._ended) > _FIELDS * self._max_spans:
            self._forget_until(self._ended[len(self._ended) // _FIELDS // 4 * _FIELDS + 1])
        if len(self._states) > MAX_STATES:
            self._forget_until(after.at_ms)

    def _forget_until(self, horizon_ms: int) -> None:
        """Drops what ended by then, and the periods before."""
        values, place = self._ended, 0
        while place < len(values) and values[place + 1] <= horizon_ms:
            place += _FIELDS
        del values[:place]
        if not values:
            self._states.clear()
        self._periods = [
            Period(max(begin, horizon_ms), end) for begin, end in self._periods if end >= horizon_ms
        ]


def node_states(snapshot: Snapshot) -> dict[NodeKey, NodeState]:
    """The state of each registered node."""
    found = {}
    for item in snapshot.classes:
        software = software_of(intern_capabilities(item.ranges, complete=item.complete))
        running = NodeState(Condition.RUNNING, software)
        found.update(dict.fromkeys((NodeKey(item.role, node) for node in item.nodes), running))
        for nodes, condition in (
            (item.silent, Condition.SILENT),
            (item.fenced, Condition.FENCED),
        ):
            state = NodeState(condition, software)
            found.update(dict.fromkeys((NodeKey(item.role, node) for node in nodes), state))
    return found


def timeline_of(snapshots: Iterable[Snapshot]) -> Timeline:
    """The timeline of snapshots in any order."""
    timeline = Timeline()
    for snapshot in sorted(snapshots, key=lambda item: (item.at_ms, item.revision)):
        timeline.observe(snapshot)
    return timeline


def _number_of(key: NodeKey) -> int:
    return key.node_id * len(_ROLES) + _ROLES.index(key.role)


def _node_of(number: int) -> NodeKey:
    node_id, role = divmod(number, len(_ROLES))
    return NodeKey(_ROLES[role], NodeId(node_id))
