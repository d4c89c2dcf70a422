"""The documents that the API serves, made from the contents of the topics. Pure.

Their fields have the names that they have on the topics; what is added follows from the same rules
as the worker's outputs. Times are milliseconds since the Unix epoch, -1 where not known.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from immutables import Map

from featurewatch.common.text import quoted
from featurewatch.controller.levels import finalized_name
from featurewatch.controller.software import newest_software, software_name
from featurewatch.monitor.readiness.upgrade_state import UpgradeState, upgrade_state_of_classes
from featurewatch.monitor.rules.upgrade import GHOST
from featurewatch.monitor.snapshot import notes_of_snapshot
from featurewatch.streams.outputs import Alert, CapabilityClass, Severity, Snapshot
from featurewatch.streams.types import METADATA_VERSION, NodeId
from featurewatch.tables.image.cluster import Authority
from featurewatch.tables.image.nodes import CapabilityKey, intern_capabilities

STALE_AFTER_MS: Final = 60_000
"""A worker publishes the state of a cluster every few seconds while its sources publish."""

HEALTHS: Final = ("critical", "unknown", "warning", "good")
"""Worst first. A cluster with a critical alert is critical, whether its state is known or not."""

_URGENT_STATES: Final = (UpgradeState.MIXED, UpgradeState.UNKNOWN, UpgradeState.READY)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster as it is known: its snapshot, the alerts that fire, its upgrade state's times.

    ``since_ms`` maps states to the time at which the cluster entered them.
    """

    snapshot: Snapshot
    firing: tuple[Alert, ...]
    since_ms: Mapping[str, int]
    now_ms: int


def unknown_reason(snapshot: Snapshot, now_ms: int, firing: Iterable[Alert] = ()) -> str | None:
    """Why the state of a cluster is unknown; None if it is known."""
    if now_ms - snapshot.at_ms > STALE_AFTER_MS:
        return "no worker has published its state for more than a minute"
    if not snapshot.ready:
        if any(alert.evidence.get("hides_state") is True for alert in firing):
            return "its log has a record that no known release has"
        return "its sources have not caught up"
    if snapshot.authority not in list(Authority):
        source = quoted(snapshot.authority)
        return f"its levels are from a source that this version does not know: {source}"
    return None


def summary(facts: ClusterFacts) -> dict[str, Any]:
    """A row of the list of clusters."""
    snapshot = facts.snapshot
    reason = unknown_reason(snapshot, facts.now_ms, facts.firing)
    state = upgrade_state(snapshot)
    severities = Counter(alert.severity for alert in facts.firing)
    living = _living(facts)
    releases = {name: nodes for name, nodes in _releases(living).items() if nodes}
    newest = _newest_release(living)
    return {
        "cluster": snapshot.cluster,
        "name": snapshot.name,
        "health": _health(reason, severities, snapshot.incompatible),
        "unknown_reason": reason,
        "state": str(state),
        "since_ms": facts.since_ms.get(state, -1),
        "at_ms": snapshot.at_ms,
        "authority": snapshot.authority,
        "epoch": snapshot.epoch,
        "revision": snapshot.revision,
        "digest": snapshot.digest,
        "levels": levels(snapshot),
        "releases": [
            {"release": name, "nodes": len(nodes)} for name, nodes in sorted(releases.items())
        ],
        "newest_release": newest,
        "nodes": len({node for nodes in releases.values() for node in nodes}),
        "nodes_on_newest": len(_only_on(releases, newest)),
        "incompatible": len({(item.role, item.node_id) for item in snapshot.incompatible}),
        "alerts": {str(severity): severities[severity] for severity in Severity},
        "sources": snapshot.sources,
        "leader_id": snapshot.leader_id,
        "migrating": snapshot.migration.in_progress,
    }


def cluster_document(facts: ClusterFacts) -> dict[str, Any]:
    """Everything of one cluster: the row, its classes of nodes, and the alerts that fire."""
    snapshot = facts.snapshot
    newest, ghosts = _newest_release(_living(facts)), _ghosts(facts)
    return {
        **summary(facts),
        "learned": notes_of_snapshot(snapshot),
        "leader_epoch": snapshot.leader_epoch,
        "provenance": snapshot.provenance,
        "controller": asdict(snapshot.controller),
        "migration": asdict(snapshot.migration),
        "classes": [_class_document(item, newest, snapshot, ghosts) for item in snapshot.classes],
        "incompatible_nodes": [asdict(item) for item in snapshot.incompatible],
        "firing": [asdict(alert) for alert in sorted(facts.firing, key=_alert_order)],
    }


def levels(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The finalized levels, metadata.version first, with their names for people."""
    names = sorted(snapshot.finalized, key=lambda name: (name != METADATA_VERSION, name))
    return [
        {
            "feature": name,
            "level": snapshot.finalized[name],
            "name": finalized_name(name, snapshot.finalized[name]),
        }
        for name in names
    ]


def upgrade_state(snapshot: Snapshot) -> UpgradeState:
    """The upgrade state of the whole cluster; unknown where the cluster is not ready, or where
    it is not known from which source its levels are."""
    # A newer worker may take levels from a source that this version does not know.
    if not snapshot.ready or snapshot.authority not in list(Authority):
        return UpgradeState.UNKNOWN
    classes = frozenset(
        CapabilityKey(item.role, intern_capabilities(item.ranges, complete=item.complete))
        for item in snapshot.classes
    )
    authority = Authority(snapshot.authority)
    return upgrade_state_of_classes(classes, Map(snapshot.finalized), authority).state


def urgency(document: Mapping[str, Any]) -> tuple[int, int, int, str]:
    """The key by which summaries are sorted: worst first, then the longest in that state."""
    state = document["state"]
    rank = _URGENT_STATES.index(state) if state in _URGENT_STATES else len(_URGENT_STATES)
    since_ms = document["since_ms"]
    known_ms = since_ms if since_ms >= 0 else document["at_ms"]
    return HEALTHS.index(document["health"]), rank, known_ms, document["cluster"]


def _health(reason: str | None, severities: Counter[Severity], bad: Collection[object]) -> str:
    if severities[Severity.CRITICAL]:
        return "critical"
    if reason is not None:
        return "unknown"
    return "warning" if severities[Severity.WARNING] or bad else "good"


def _alert_order(alert: Alert) -> tuple[str, int, str]:
    return alert.severity, alert.since_ms, alert.id


def _releases(classes: Iterable[CapabilityClass]) -> dict[str, set[NodeId]]:
    """The nodes by what they run; a combined node that runs one release counts once."""
    releases: dict[str, set[NodeId]] = {}
    for item in classes:
        capabilities = intern_capabilities(item.ranges, complete=item.complete)
        releases.setdefault(software_name(capabilities), set()).update(item.nodes)
    return releases


def _only_on(releases: Mapping[str, set[NodeId]], newest: str | None) -> set[NodeId]:
    """The nodes that run the newest release in all of their roles."""
    others = {node for name, nodes in releases.items() if name != newest for node in nodes}
    return releases.get(newest or "", set()) - others


def _newest_release(classes: Iterable[CapabilityClass]) -> str | None:
    """The newest release that some node runs, known or not; None if no node reports one."""
    newest = newest_software(
        intern_capabilities(item.ranges, complete=item.complete) for item in classes if item.nodes
    )
    return None if newest is None else software_name(newest)


def _ghosts(facts: ClusterFacts) -> set[tuple[object, object]]:
    """The role and id of each registration without a living node, by the firing alerts."""
    return {
        (alert.subject.get("role"), alert.subject.get("node"))
        for alert in facts.firing
        if alert.rule == GHOST
    }


def _living(facts: ClusterFacts) -> list[CapabilityClass]:
    """The classes of nodes without ghosts, which neither define the newest release nor are left
    to upgrade."""
    ghosts = _ghosts(facts)
    return [
        replace(
            item, nodes=tuple(node for node in item.nodes if (str(item.role), node) not in ghosts)
        )
        for item in facts.snapshot.classes
    ]


def _class_document(
    item: CapabilityClass,
    newest: str | None,
    snapshot: Snapshot,
    ghosts: Collection[tuple[object, object]],
) -> dict[str, Any]:
    software = software_name(intern_capabilities(item.ranges, complete=item.complete))
    members = set(item.nodes)
    excluded = {
        node.node_id
        for node in snapshot.incompatible
        if node.role is item.role and node.node_id in members
    }
    return {
        **asdict(item),
        "software": software,
        "is_newest": software == newest,
        "incompatible": sorted(excluded),
        "ghosts": [node for node in item.nodes if (str(item.role), node) in ghosts],
    }
