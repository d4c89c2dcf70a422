"""The content of the page: newest state, alerts and changes of every cluster, folded from topics.

Pure: messages and times go in, documents come out, and the numbers of what changed. Its size
follows the clusters and alerts that exist, and the worker bounds the alerts of a cluster that fire.
It holds `MAX_CHANGES` changes of each, and resolved alerts for an hour, at most `MAX_RESOLVED`.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any, Final

from featurewatch.monitor.roll_picture.model import RollPicture
from featurewatch.monitor.roll_picture.timeline import node_states
from featurewatch.streams.codec.outputs import decode_alert, decode_change, decode_snapshot
from featurewatch.streams.outputs import Alert, AlertState, FeatureChange, Severity, Snapshot
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, STATE
from featurewatch.streams.types import ClusterId
from featurewatch.web.change_index import ChangeIndex, DocumentKey
from featurewatch.web.documents import (
    HEALTHS,
    ClusterFacts,
    cluster_document,
    summary,
    unknown_reason,
)
from featurewatch.web.event_documents import operations_event, revisions_event, state_event
from featurewatch.web.history.cluster_history import ClusterHistory
from featurewatch.web.history.roll_history import RollHistory

MAX_CHANGES: Final = 200
"""Changes of a cluster that are held."""

MAX_RESOLVED: Final = 1000
"""Resolved alerts of a cluster that are held: one that flaps may resolve any number."""

RESOLVED_MS: Final = 3_600_000
"""How long a resolved alert is shown, in milliseconds."""

_REFRESH_MS: Final = 10_000
"""A cluster whose document changes only by the time is sent to clients once per this period."""

FLEET: Final = DocumentKey("fleet", "")


class FleetModel:
    """The fold of ``state``, ``alerts`` and ``feature-changes``.

    ``boot`` is the part of the events' ids that no other process has.
    """

    def __init__(self, boot: str) -> None:
        self.index = ChangeIndex(boot)
        self.history = ClusterHistory(self.index)
        self.rolls = RollHistory()
        self.is_complete = False
        """Whether the topics have been read to their end once."""
        self.error: str | None = "the topics have not been read yet"
        """Why nothing new arrives; None if no reason is known."""
        self._snapshots: dict[str, Snapshot] = {}
        self._alerts: dict[str, Alert] = {}
        self._firing: dict[str, dict[str, Alert]] = {}
        self._resolved: dict[str, dict[str, Alert]] = {}
        """The resolved alerts of each cluster, by id, the one that was resolved first in front."""
        self._changes: dict[str, deque[FeatureChange]] = {}
        self._since: dict[str, Mapping[str, int]] = {}
        self._summaries: dict[str, dict[str, Any]] = {}
        self._fleet: dict[str, Any] = self._fleet_document()
        self._counted = 0
        self._seen: set[DocumentKey] | None = None

    def apply(self, topic: str, key: bytes, value: bytes | None, now_ms: int) -> None:
        """Folds one message of the topic with this short name.

        Raises:
            MalformedEventError: It cannot be read; nothing has changed.
        """
        if topic == STATE.short_name:
            self._apply_state(key.decode(errors="replace"), value, now_ms)
        elif topic == ALERTS.short_name and value is not None:
            self._apply_alert(decode_alert(value), now_ms)
        elif topic == FEATURE_CHANGES.short_name and value is not None:
            self._apply_change(decode_change(value))

    def set_times(self, cluster: ClusterId, since_ms: Mapping[str, int], now_ms: int) -> None:
        """Notes since when a cluster has been in an upgrade state."""
        if self._since.get(cluster, {}) != since_ms:
            self._since[cluster] = since_ms
            self._refresh(cluster, now_ms)

    def begin_reading(self) -> None:
        """Notes that the topics are read from the beginning; what is missing there was removed."""
        self._seen = set()

    def end_reading(self, now_ms: int) -> None:
        """The topics have been read to their end."""
        seen, self._seen = self._seen, None
        if seen is not None:
            for cluster in [*self._snapshots]:
                if DocumentKey("state", cluster) not in seen:
                    self._remove_cluster(cluster)
            for cluster in self._changes.keys() - self._snapshots.keys():
                self._remove_changes(cluster)  # it was retired: changes outlive it on their topic
            for alert in [*self._alerts.values()]:
                if DocumentKey("alert", alert.id) not in seen:
                    self._remove_alert(alert, now_ms)
            self.rolls.keep(self._snapshots)
        self.is_complete = True
        self.tick(now_ms)

    def tick(self, now_ms: int) -> None:
        """Applies the passage of time: states go stale, resolved alerts end; call once a second."""
        for cluster, snapshot in self._snapshots.items():
            if unknown_reason(snapshot, now_ms) != self._summaries[cluster]["unknown_reason"]:
                self._refresh(cluster, now_ms)
        for alert in [*self._alerts.values()]:
            if _is_over(alert, now_ms):
                self._remove_alert(alert, now_ms)
        is_current = self.is_complete and self.error is None and self._seen is None
        self.history.remove_retired(self._snapshots if is_current else None, now_ms)
        self._counted = -1
        self.count()

    def count(self) -> None:
        """Counts the totals again if something changed; call after each batch of messages."""
        if self._counted == self.index.content_sequence:
            return
        fleet = self._fleet_document()
        if fleet != self._fleet:
            is_content = _without_times(fleet) != _without_times(self._fleet)
            self._fleet = fleet
            self.index.mark_changed(FLEET, is_content=is_content)
        self._counted = self.index.content_sequence

    def document(self, key: DocumentKey, now_ms: int) -> dict[str, Any] | None:
        """A document as clients get it, or None if it was removed."""
        match key:
            case DocumentKey("fleet"):
                return self.fleet(now_ms)
            case DocumentKey("state", cluster):
                row = self._summaries.get(cluster)
                if row is None:
                    return None
                return state_event(row, self._facts(self._snapshots[cluster], now_ms))
            case DocumentKey("revisions", cluster):
                return revisions_event(self.history, cluster)
            case DocumentKey("operations", cluster):
                return operations_event(self.history, cluster)
            case DocumentKey("alert", alert_id):
                alert = self._alerts.get(alert_id)
                return None if alert is None else asdict(alert)
        changes = self._changes.get(key.id.rsplit("/change/", 1)[0], ())
        change = next((change for change in changes if change.id == key.id), None)
        return None if change is None else asdict(change)

    def fleet(self, now_ms: int) -> dict[str, Any]:
        """The totals of all clusters and alerts, and how current they are."""
        return {**self._fleet, "now_ms": now_ms}

    def summaries(self) -> Iterable[dict[str, Any]]:
        """A row for each cluster, in no order."""
        return self._summaries.values()

    def has_cluster(self, cluster: str) -> bool:
        """Whether a cluster has a state."""
        return cluster in self._snapshots

    def cluster(self, cluster: str, now_ms: int) -> dict[str, Any]:
        """Everything of a cluster that has a state."""
        return cluster_document(self._facts(self._snapshots[cluster], now_ms))

    def picture(self, cluster: str, now_ms: int) -> RollPicture:
        """The roll of a cluster that has a state, over time."""
        revisions, changes = self.history.revisions(cluster), self._changes.get(cluster, ())
        return self.rolls.picture(self._snapshots[cluster], revisions, changes, now_ms)

    def alerts(self) -> list[Alert]:
        """The alerts that fire, and those that were resolved lately."""
        return [*self._alerts.values()]

    def firing(self, cluster: str) -> tuple[Alert, ...]:
        """The alerts of a cluster that fire."""
        return tuple(self._firing.get(cluster, {}).values())

    def doubt(self, cluster: str) -> str | None:
        """Why the state of a cluster that has one is unknown; None: it is known."""
        reason: str | None = self._summaries[cluster]["unknown_reason"]
        return reason

    def past_software(self, cluster: str) -> frozenset[str]:
        """The names of what nodes of a cluster were seen to run before, and at its newest
        revision."""
        seen = {*self.rolls.past_software(cluster)}
        for revision in self.history.revisions(cluster, 1):
            seen.update(state.software.name for state in node_states(revision).values())
        return frozenset(seen)

    def changes(self, cluster: str) -> list[FeatureChange]:
        """The newest changes of a cluster, newest first."""
        changes = self._changes.get(cluster, ())
        return sorted(changes, key=lambda change: (change.revision, change.feature), reverse=True)

    def _apply_state(self, key: str, value: bytes | None, now_ms: int) -> None:
        if value is None:
            self._remove_cluster(key)
            return
        snapshot = decode_snapshot(value)
        self._show(snapshot, now_ms)
        self.rolls.observe(snapshot)
        self._note(DocumentKey("state", snapshot.cluster))

    def _apply_alert(self, alert: Alert, now_ms: int) -> None:
        before = self._alerts.get(alert.id)
        self.rolls.note_alert(alert)
        if _is_over(alert, now_ms):
            if before is not None:
                self._remove_alert(before, now_ms)
            return
        key = DocumentKey("alert", alert.id)
        self._note(key)
        if before == alert:
            return
        self._alerts[alert.id] = alert
        firing = self._firing.setdefault(alert.cluster, {})
        resolved = self._resolved.setdefault(alert.cluster, {})
        firing.pop(alert.id, None)
        resolved.pop(alert.id, None)
        (firing if alert.state is AlertState.FIRING else resolved)[alert.id] = alert
        self.index.mark_changed(key)
        self._refresh_firing(alert.cluster, now_ms)
        if len(resolved) > MAX_RESOLVED:
            self._remove_alert(next(iter(resolved.values())), now_ms)

    def _apply_change(self, change: FeatureChange) -> None:
        changes = self._changes.setdefault(change.cluster, deque())
        if any(known.id == change.id for known in changes):
            return
        changes.append(change)
        self.index.mark_changed(DocumentKey("change", change.id))
        if len(changes) > MAX_CHANGES:
            self.index.forget(DocumentKey("change", changes.popleft().id))

    def _refresh(self, cluster: str, now_ms: int) -> None:
        """Recomputes a cluster's row, and counts it as changed if clients have to know."""
        if cluster in self._snapshots:
            self._show(self._snapshots[cluster], now_ms)

    def _refresh_firing(self, cluster: str, now_ms: int) -> None:
        """`_refresh`, where the alerts of the cluster's document differ, if not its row."""
        key = DocumentKey("state", cluster)
        before = self.index.number(key)
        self._refresh(cluster, now_ms)
        if cluster in self._snapshots and self.index.number(key) == before:
            self.index.mark_changed(key)

    def _show(self, snapshot: Snapshot, now_ms: int) -> None:
        cluster = snapshot.cluster
        # First: a snapshot of which no row follows changes nothing.
        document, before = summary(self._facts(snapshot, now_ms)), self._summaries.get(cluster)
        self._snapshots[cluster] = snapshot
        is_content = before is None or _without_times(document) != _without_times(before)
        if is_content or before is None or document["at_ms"] - before["at_ms"] >= _REFRESH_MS:
            self._summaries[cluster] = document
            self.index.mark_changed(DocumentKey("state", cluster), is_content=is_content)

    def _facts(self, snapshot: Snapshot, now_ms: int) -> ClusterFacts:
        firing = self.firing(snapshot.cluster)
        since = self._since.get(snapshot.cluster, {})
        return ClusterFacts(snapshot, firing, since, now_ms)

    def _remove_cluster(self, cluster: str) -> None:
        if self._snapshots.pop(cluster, None) is not None:
            self._summaries.pop(cluster, None)
            self._since.pop(cluster, None)
            self.index.remove(DocumentKey("state", cluster))
            self._remove_changes(cluster)
            self.history.remove(cluster)
            self.rolls.keep(self._snapshots)

    def _remove_changes(self, cluster: str) -> None:
        for change in self._changes.pop(cluster, ()):
            self.index.forget(DocumentKey("change", change.id))

    def _remove_alert(self, alert: Alert, now_ms: int) -> None:
        del self._alerts[alert.id]
        for alerts in (self._firing, self._resolved):
            of_cluster = alerts.get(alert.cluster, {})
            of_cluster.pop(alert.id, None)
            if not of_cluster:
                alerts.pop(alert.cluster, None)
        self.index.remove(DocumentKey("alert", alert.id))
        self._refresh_firing(alert.cluster, now_ms)

    def _note(self, key: DocumentKey) -> None:
        if self._seen is not None:
            self._seen.add(key)

    def _fleet_document(self) -> dict[str, Any]:
        rows = self._summaries.values()
        healths = Counter(row["health"] for row in rows)
        states = Counter(row["state"] for row in rows)
        severities = Counter(
            alert.severity for firing in self._firing.values() for alert in firing.values()
        )
        times = [snapshot.at_ms for snapshot in self._snapshots.values()]
        return {
            "clusters": len(self._snapshots),
            "health": {health: healths[health] for health in HEALTHS},
            "unknown": sum(row["unknown_reason"] is not None for row in rows),
            "states": dict(sorted(states.items())),
            "alerts": {str(severity): severities[severity] for severity in Severity},
            "newest_at_ms": max(times, default=-1),
            "complete": self.is_complete,
            "error": self.error,
        }


def _is_over(alert: Alert, now_ms: int) -> bool:
    return alert.state is AlertState.RESOLVED and now_ms - alert.at_ms > RESOLVED_MS


def _without_times(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in document.items() if name not in ("at_ms", "newest_at_ms")
    }


__all__ = ["FLEET", "MAX_CHANGES", "MAX_RESOLVED", "RESOLVED_MS", "FleetModel"]
