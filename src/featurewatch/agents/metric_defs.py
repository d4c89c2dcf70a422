"""The worker's metrics as data: one registry, from which the documentation follows."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class WorkerMetricDef:
    """A metric of the worker: its name, kind and labels, and what it means."""

    name: str
    kind: str
    labels: tuple[str, ...]
    about: str


_registry: list[WorkerMetricDef] = []


def _metric(kind: str, name: str, about: str, *labels: str) -> WorkerMetricDef:
    metric = WorkerMetricDef(name, kind, labels, about)
    _registry.append(metric)
    return metric


def _gauge(name: str, about: str, *labels: str) -> WorkerMetricDef:
    """A gauge of each cluster."""
    return _metric("gauge", name, about, "kafka_cluster", *labels)


EVENTS: Final = _metric(
    "counter", "featurewatch_worker_events_total", "messages processed", "topic"
)
EVENT_SECONDS: Final = _metric(
    "histogram",
    "featurewatch_worker_event_seconds",
    "time from receiving a message until its outputs are on the bus",
    "topic",
)
RESTARTS: Final = _metric(
    "counter", "featurewatch_worker_restarts_total", "times the worker restarted after a failure"
)
CHANGES: Final = _metric(
    "counter",
    "featurewatch_feature_changes_total",
    "changes of finalized levels published since the start",
    "kafka_cluster",
    "feature",
    "kind",
)
FINALIZED: Final = _gauge(
    "featurewatch_finalized_level",
    "finalized level; 0 if a feature that some node supports is not finalized",
    "feature",
)
FINALIZED_AT_ZERO: Final = _gauge(
    "featurewatch_finalized_at_zero",
    "1 for a feature that is finalized at level 0, as the early draft of KIP-584 allows",
    "feature",
)
EPOCH: Final = _gauge("featurewatch_feature_epoch", "epoch of the finalized features")
REVISION: Final = _gauge(
    "featurewatch_feature_revision", "number of commits, or znode versions, that changed a level"
)
NODES: Final = _gauge(
    "featurewatch_nodes",
    "registered nodes, including fenced ones; in ZooKeeper mode the live ones",
    "role",
)
MISSING: Final = _gauge(
    "featurewatch_migration_missing_brokers",
    "brokers in ZooKeeper that a migration to KRaft waits for; 0 if none is in progress",
)
FIRING: Final = _gauge(
    "featurewatch_alerts_firing",
    "alerts that are firing; 0 for each severity that a rule may have",
    "rule",
    "severity",
)
LAST_SEEN: Final = _gauge(
    "featurewatch_source_last_seen_timestamp_seconds",
    "when the source last reported, or fell silent, in seconds since the Unix epoch",
    "source",
)
READY: Final = _gauge("featurewatch_cluster_ready", "1 once the source has caught up")
SUPPORTED_MIN: Final = _gauge(
    "featurewatch_supported_min_level",
    "lowest level that all registered nodes of a role support; above the highest if none is shared",
    "role",
    "feature",
)
SUPPORTED_MAX: Final = _gauge(
    "featurewatch_supported_max_level",
    "highest level that all registered nodes of a role support",
    "role",
    "feature",
)
NODE_MIN: Final = _gauge(
    "featurewatch_node_min_level",
    "lowest level that a node advertises; only in clusters of up to 200 nodes",
    "role",
    "node",
    "feature",
)
NODE_MAX: Final = _gauge(
    "featurewatch_node_max_level",
    "highest level that a node advertises; only in clusters of up to 200 nodes",
    "role",
    "node",
    "feature",
)
RELEASES: Final = _gauge(
    "featurewatch_release_nodes",
    "registered nodes by the release that matches their ranges, or unknown",
    "role",
    "release",
)
STATE: Final = _gauge(
    "featurewatch_upgrade_state",
    "1 for the cluster's current state (unknown, mixed, ready, partly, finalized), else 0",
    "state",
)
STATE_SINCE: Final = _gauge(
    "featurewatch_upgrade_state_since_seconds",
    "when the cluster entered that state, in seconds since the Unix epoch",
)
QUORUM_VOTERS: Final = _gauge(
    "featurewatch_quorum_voters", "voters of the metadata quorum; absent if they are not known"
)
QUORUM_FETCHING: Final = _gauge(
    "featurewatch_quorum_fetching_voters", "voters that fetch; absent if that is not known"
)
QUORUM_MAY_FAIL: Final = _gauge(
    "featurewatch_quorum_may_fail",
    "voters that may fail before the quorum is lost; absent if that is not known",
)
QUORUM_MAX_LAG: Final = _gauge(
    "featurewatch_quorum_max_lag_records",
    "records that the slowest voter is behind, at most a minute old; absent if it is not known",
)
QUORUM_OBSERVERS: Final = _gauge(
    "featurewatch_quorum_observing_controllers",
    "registered controllers that follow the metadata log and do not vote",
)
UPGRADABLE: Final = _gauge(
    "featurewatch_upgrade_ready",
    "1 if every registered node supports the highest level that any supports, 0 if not, -1 unknown",
    "feature",
)
BLOCKERS: Final = _gauge(
    "featurewatch_upgrade_blockers",
    "registered nodes that do not support the highest level that any supports",
    "feature",
)
GHOSTS: Final = _gauge(
    "featurewatch_ghost_registrations",
    "registered nodes without a sign of life for longer than the limit",
    "role",
)
OMITTED_SERIES: Final = _metric(
    "gauge",
    "featurewatch_metrics_omitted_series",
    "gauges of clusters, features and nodes left out because there are too many",
)
OMITTED_CLUSTERS: Final = _metric(
    "gauge", "featurewatch_metrics_omitted_clusters", "clusters with gauges left out"
)
OMITTED_CHANGES: Final = _metric(
    "counter",
    "featurewatch_metrics_omitted_changes_total",
    "changes left out of featurewatch_feature_changes_total because it has too many series",
)

METRICS: Final = tuple(_registry)
"""Every metric of the worker, in the order of the documentation."""
