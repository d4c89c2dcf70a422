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


EVENTS: Final = WorkerMetricDef(
    "featurewatch_worker_events_total", "counter", ("topic",), "messages processed"
)
EVENT_SECONDS: Final = WorkerMetricDef(
    "featurewatch_worker_event_seconds",
    "histogram",
    ("topic",),
    "time from receiving a message until its outputs are on the bus",
)
RESTARTS: Final = WorkerMetricDef(
    "featurewatch_worker_restarts_total",
    "counter",
    (),
    "times the worker began anew after a failure",
)
CHANGES: Final = WorkerMetricDef(
    "featurewatch_feature_changes_total",
    "counter",
    ("kafka_cluster", "feature", "kind"),
    "changes of finalized levels published since the start",
)
FINALIZED: Final = WorkerMetricDef(
    "featurewatch_finalized_level",
    "gauge",
    ("kafka_cluster", "feature"),
    "finalized level; 0 if a feature that some node supports is not finalized",
)
FINALIZED_AT_ZERO: Final = WorkerMetricDef(
    "featurewatch_finalized_at_zero",
    "gauge",
    ("kafka_cluster", "feature"),
    "1 for a feature that is finalized at level 0, as the early draft of KIP-584 allows",
)
EPOCH: Final = WorkerMetricDef(
    "featurewatch_feature_epoch", "gauge", ("kafka_cluster",), "epoch of the finalized features"
)
REVISION: Final = WorkerMetricDef(
    "featurewatch_feature_revision",
    "gauge",
    ("kafka_cluster",),
    "number of commits, or znode versions, that changed a level",
)
NODES: Final = WorkerMetricDef(
    "featurewatch_nodes",
    "gauge",
    ("kafka_cluster", "role"),
    "registered nodes, including fenced ones; in ZooKeeper mode the live ones",
)
MISSING: Final = WorkerMetricDef(
    "featurewatch_migration_missing_brokers",
    "gauge",
    ("kafka_cluster",),
    "brokers in ZooKeeper that a migration to KRaft waits for; 0 if none is in progress",
)
FIRING: Final = WorkerMetricDef(
    "featurewatch_alerts_firing",
    "gauge",
    ("kafka_cluster", "rule", "severity"),
    "alerts that are firing; 0 for each severity that a rule may have",
)
LAST_SEEN: Final = WorkerMetricDef(
    "featurewatch_source_last_seen_timestamp_seconds",
    "gauge",
    ("kafka_cluster", "source"),
    "when the source last reported, or fell silent, in seconds since the Unix epoch",
)
READY: Final = WorkerMetricDef(
    "featurewatch_cluster_ready", "gauge", ("kafka_cluster",), "1 once the source has caught up"
)

SUPPORTED_MIN: Final = WorkerMetricDef(
    "featurewatch_supported_min_level",
    "gauge",
    ("kafka_cluster", "role", "feature"),
    "lowest level that all registered nodes of a role support; above the highest if there is none",
)
SUPPORTED_MAX: Final = WorkerMetricDef(
    "featurewatch_supported_max_level",
    "gauge",
    ("kafka_cluster", "role", "feature"),
    "highest level that all registered nodes of a role support",
)
NODE_MIN: Final = WorkerMetricDef(
    "featurewatch_node_min_level",
    "gauge",
    ("kafka_cluster", "role", "node", "feature"),
    "lowest level that a node advertises; only in clusters of up to 200 nodes",
)
NODE_MAX: Final = WorkerMetricDef(
    "featurewatch_node_max_level",
    "gauge",
    ("kafka_cluster", "role", "node", "feature"),
    "highest level that a node advertises; only in clusters of up to 200 nodes",
)
RELEASES: Final = WorkerMetricDef(
    "featurewatch_release_nodes",
    "gauge",
    ("kafka_cluster", "role", "release"),
    "registered nodes by the release that matches their ranges, or unknown",
)
STATE: Final = WorkerMetricDef(
    "featurewatch_upgrade_state",
    "gauge",
    ("kafka_cluster", "state"),
    "1 for the cluster's current state (unknown, mixed, ready, partly, finalized), else 0",
)
STATE_SINCE: Final = WorkerMetricDef(
    "featurewatch_upgrade_state_since_seconds",
    "gauge",
    ("kafka_cluster",),
    "when the cluster entered that state, in seconds since the Unix epoch",
)
UPGRADABLE: Final = WorkerMetricDef(
    "featurewatch_upgrade_ready",
    "gauge",
    ("kafka_cluster", "feature"),
    "1 if every registered node supports the highest level that any supports, 0 if not, -1 unknown",
)
BLOCKERS: Final = WorkerMetricDef(
    "featurewatch_upgrade_blockers",
    "gauge",
    ("kafka_cluster", "feature"),
    "registered nodes that do not support the highest level that any supports",
)
GHOSTS: Final = WorkerMetricDef(
    "featurewatch_ghost_registrations",
    "gauge",
    ("kafka_cluster", "role"),
    "registered nodes without a sign of life for longer than the limit",
)

OMITTED_SERIES: Final = WorkerMetricDef(
    "featurewatch_metrics_omitted_series",
    "gauge",
    (),
    "gauges of clusters, features and nodes left out because there are too many",
)
OMITTED_CLUSTERS: Final = WorkerMetricDef(
    "featurewatch_metrics_omitted_clusters", "gauge", (), "clusters with gauges left out"
)
OMITTED_CHANGES: Final = WorkerMetricDef(
    "featurewatch_metrics_omitted_changes_total",
    "counter",
    (),
    "changes left out of featurewatch_feature_changes_total because it has too many series",
)

METRICS: Final = (
    *(EVENTS, EVENT_SECONDS, RESTARTS, CHANGES),
    *(FINALIZED, FINALIZED_AT_ZERO, EPOCH, REVISION, NODES, MISSING, FIRING, LAST_SEEN, READY),
    *(SUPPORTED_MIN, SUPPORTED_MAX, NODE_MIN, NODE_MAX, RELEASES),
    *(STATE, STATE_SINCE, UPGRADABLE, BLOCKERS, GHOSTS),
    *(OMITTED_SERIES, OMITTED_CLUSTERS, OMITTED_CHANGES),
)
"""Every metric of the worker; the documentation's table is checked against it."""
