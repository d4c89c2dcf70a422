"""The rolls of all clusters as far as this process has seen them: nodes over time, and alerts.

Pure. It begins with the messages of the topic `state` that are not compacted yet; what was before
is known at the revisions only, which `web.history.cluster_history` holds. Its size is bounded for
each cluster, by that of `Timeline` and by `MAX_MARKS`.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from featurewatch.controller.kraft.releases import releases
from featurewatch.monitor.roll_picture.assembly import roll_picture
from featurewatch.monitor.roll_picture.model import (
    AlertMark,
    Condition,
    LevelChange,
    Period,
    RollPicture,
)
from featurewatch.monitor.roll_picture.timeline import Timeline, node_states, timeline_of
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Snapshot
from featurewatch.streams.types import NodeId, NodeKey, Role

MAX_MARKS: Final = 500
"""Alerts of a cluster that are held, those that fire among them."""

MAX_SUMMARY_CHARS: Final = 300
MAX_PICTURE_MS: Final = 366 * 86_400_000
"""A picture begins at most this long ago."""


@dataclass(slots=True)
class _Roll:
    """What is held of one cluster; ``version`` changes with it."""

    nodes: Timeline = field(default_factory=Timeline)
    marks: OrderedDict[tuple[str, int], AlertMark] = field(default_factory=OrderedDict)
    version: int = 0


class RollHistory:
    """The fold of the topics `state` and `alerts` over time, for pictures."""

    def __init__(self) -> None:
        self._rolls: dict[str, _Roll] = {}

    def observe(self, snapshot: Snapshot) -> None:
        """Folds a state of a cluster."""
        roll = self._roll(snapshot.cluster)
        roll.nodes.observe(snapshot)
        roll.version += 1

    def note_alert(self, alert: Alert) -> None:
        """Folds an alert that fires, changed or was resolved; one without a time is ignored."""
        if alert.since_ms < 0:
            return
        roll, key = self._roll(alert.cluster), (alert.id, alert.since_ms)
        roll.marks[key] = _mark(alert)
        roll.marks.move_to_end(key)
        if len(roll.marks) > MAX_MARKS:
            roll.marks.popitem(last=False)
        roll.version += 1

    def keep(self, clusters: Collection[str]) -> None:
        """Drops all other clusters, which were retired."""
        for cluster in self._rolls.keys() - {*clusters}:
            del self._rolls[cluster]

    def version(self, cluster: str) -> int:
        """A number that changes with what is held of a cluster."""
        return self._roll(cluster).version

    def past_software(self, cluster: str) -> frozenset[str]:
        """The names of what nodes of a cluster were seen to run before what they run now."""
        return frozenset(software.name for software in self._roll(cluster).nodes.past_software())

    def picture(
        self,
        snapshot: Snapshot,
        revisions: Iterable[Snapshot],
        changes: Iterable[FeatureChange],
        now_ms: int,
    ) -> RollPicture:
        """The picture of a cluster from the first known moment until ``now_ms``.

        ``snapshot`` is its newest state; ``revisions`` and ``changes`` are those that are held.
        """
        roll = self._roll(snapshot.cluster)
        recorded = roll.nodes.known(now_ms)
        begin_ms = recorded[0].begin_ms if recorded else now_ms
        earlier = timeline_of(item for item in revisions if 0 <= item.at_ms < begin_ms)
        known = [*earlier.known(0), *recorded]
        spans = earlier.spans(begin_ms)
        for key, later in roll.nodes.spans(now_ms).items():
            spans.setdefault(key, []).extend(later)
        first_ms = min((period.begin_ms for period in known), default=now_ms)
        running = node_states(snapshot).values() if snapshot.ready else ()
        return roll_picture(
            snapshot.cluster,
            Period(min(max(first_ms, now_ms - MAX_PICTURE_MS), now_ms - 1), now_ms),
            known,
            spans,
            levels=snapshot.finalized,
            changes=map(_change, changes),
            alerts=roll.marks.values(),
            running={
                state.software
                for state in running
                if state.condition is Condition.RUNNING and state.software.name in releases()
            },
            notes=[*_notes(begin_ms if recorded else None, earlier.known(0))],
        )

    def _roll(self, cluster: str) -> _Roll:
        return self._rolls.setdefault(cluster, _Roll())


def _notes(recorded_ms: int | None, earlier: Collection[Period]) -> Iterator[str]:
    if recorded_ms is None:
        yield "No state of the nodes is known: none was published with a time, or all is unread."
    if earlier:
        yield (
            "Before this page followed the cluster, its nodes are known at the moments of its "
            "revisions only. `featurewatch history plot` has the rest, if there is a lake."
        )


def _mark(alert: Alert) -> AlertMark:
    node, role = alert.subject.get("node"), alert.subject.get("role")
    is_node = isinstance(node, int) and role in list(Role)
    end_ms = max(alert.at_ms, alert.since_ms) if alert.state is AlertState.RESOLVED else None
    return AlertMark(
        alert.id,
        alert.since_ms,
        end_ms,
        str(alert.severity),
        alert.rule,
        alert.summary[:MAX_SUMMARY_CHARS],
        NodeKey(Role(str(role)), NodeId(int(node))) if is_node and node is not None else None,
    )


def _change(change: FeatureChange) -> LevelChange:
    return LevelChange(
        change.append_ms if change.append_ms >= 0 else change.seen_ms,
        change.revision,
        change.feature,
        change.finalized_before,
        change.finalized_after,
        not change.from_snapshot,
    )
