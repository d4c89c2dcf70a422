"""The worker's metrics: its work is counted, the clusters' states are read at each scrape."""

from collections import Counter as Counts
from collections.abc import Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from featurewatch.agents.metric_defs import (
    BLOCKERS,
    CHANGES,
    EPOCH,
    EVENT_SECONDS,
    EVENTS,
    FINALIZED,
    FIRING,
    GHOSTS,
    METRICS,
    MISSING,
    NODE_MAX,
    NODE_MIN,
    NODES,
    READY,
    RELEASES,
    REVISION,
    STATE,
    STATE_SINCE,
    SUPPORTED_MAX,
    SUPPORTED_MIN,
    UPGRADABLE,
    WorkerMetricDef,
)
from featurewatch.controller.migration import in_progress
from featurewatch.controller.monitor import MonitorState, StepResult
from featurewatch.controller.readiness.state_timers import CLUSTER
from featurewatch.controller.readiness.upgrade_state import UpgradeState, upgrade_state_of
from featurewatch.controller.rules.upgrade import GHOST
from featurewatch.controller.software import release_of_capabilities
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import KRAFT_VERSION, METADATA_VERSION, ClusterId, Role
from featurewatch.tables.image.cluster import ClusterImage

Value = tuple[WorkerMetricDef, tuple[str, ...], float]
"""A metric, its labels but for the cluster, and its value."""

__all__ = ["METRICS", "WorkerMetricDef", "WorkerMetrics"]


class WorkerMetrics:
    """Counts the worker's messages and exposes the states of its clusters.

    In a cluster of more than ``node_series`` nodes, single nodes have no series of their own: ten
    thousand nodes would have a hundred thousand series.
    """

    def __init__(self, node_series: int = 200) -> None:
        self._node_series = node_series
        self.registry = CollectorRegistry()
        self._events = Counter(EVENTS.name, EVENTS.about, EVENTS.labels, registry=self.registry)
        self._seconds = Histogram(
            EVENT_SECONDS.name,
            EVENT_SECONDS.about,
            EVENT_SECONDS.labels,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=self.registry,
        )
        self._changes = Counter(CHANGES.name, CHANGES.about, CHANGES.labels, registry=self.registry)

    def observe(self, topic: Topic, result: StepResult, seconds: float) -> None:
        """Counts one processed message, its duration in seconds and its level changes."""
        self._events.labels(topic.short_name).inc()
        self._seconds.labels(topic.short_name).observe(seconds)
        for change in result.changes:
            self._changes.labels(change.cluster, change.feature, str(change.kind)).inc()

    def expose(self, states: Mapping[ClusterId, MonitorState]) -> None:
        """Registers the gauges of these states, which are read at each scrape."""
        self.registry.register(_States(states, self._node_series))


class _States(Collector):
    def __init__(self, states: Mapping[ClusterId, MonitorState], node_series: int) -> None:
        self._states = states
        self._node_series = node_series

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families = {
            metric: GaugeMetricFamily(metric.name, metric.about, labels=metric.labels)
            for metric in METRICS
            if metric.kind == "gauge"
        }
        for cluster, state in self._states.items():
            values = [*_of_cluster(state), *_of_features(state), *_of_upgrade(state)]
            if len(state.image.nodes) <= self._node_series:
                values += _of_nodes(state.image)
            for metric, labels, value in values:
                families[metric].add_metric((cluster, *labels), value)
        yield from families.values()


def _of_cluster(state: MonitorState) -> Iterator[Value]:
    image = state.image
    counts = dict.fromkeys(Role, 0)
    releases: Counts[tuple[Role, str]] = Counts()
    for key, members in image.nodes.classes.items():
        counts[key.role] += len(members)
        release = release_of_capabilities(key.capabilities)
        releases[key.role, release.name if release else "unknown"] += len(members)
    yield EPOCH, (), image.features.epoch
    yield REVISION, (), image.features.revision
    yield READY, (), float(image.ready)
    for role, count in counts.items():
        yield NODES, (role,), count
    for (role, name), count in sorted(releases.items()):
        yield RELEASES, (role, name), count
    yield MISSING, (), len(image.zookeeper.unregistered) if in_progress(image) else 0
    alerts = [alert for firing in state.firing.values() for alert in firing]
    for rule, count in sorted(Counts(alert.rule for alert in alerts).items()):
        yield FIRING, (rule,), count
    ghosts = Counts(alert.subject["role"] for alert in alerts if alert.rule == GHOST)
    for role in Role:
        yield GHOSTS, (role,), ghosts[role]


def _of_features(state: MonitorState) -> Iterator[Value]:
    """Levels by feature, and the range that all nodes of a role support.

    The cost follows the number of capability classes, not of nodes.
    """
    image = state.image
    features = {METADATA_VERSION, KRAFT_VERSION, *upgrade_state_of(image).features}
    for feature in sorted(features):
        yield FINALIZED, (feature,), image.features.levels.get(feature, 0)
    for role in Role:
        role_ranges = [key.capabilities.ranges for key in image.nodes.classes if key.role is role]
        for feature in sorted({name for ranges in role_ranges for name in ranges}):
            supported = [ranges.of(feature) for ranges in role_ranges]
            yield SUPPORTED_MIN, (role, feature), max(bounds.minimum for bounds in supported)
            yield SUPPORTED_MAX, (role, feature), min(bounds.maximum for bounds in supported)


def _of_upgrade(state: MonitorState) -> Iterator[Value]:
    image = state.image
    upgrade = upgrade_state_of(image)
    current = upgrade.state if image.ready else UpgradeState.UNKNOWN
    for upgrade_state in UpgradeState:
        yield STATE, (upgrade_state,), float(upgrade_state is current)
    since = state.times.states.get(CLUSTER)
    if since is not None:
        yield STATE_SINCE, (), since.at_ms / 1000
    for feature, status in upgrade.features.items():
        is_unknown = status.state is UpgradeState.UNKNOWN or not image.ready
        blocker_count = sum(
            len(members)
            for key, members in image.nodes.classes.items()
            if key.capabilities.ranges.of(feature).maximum < status.supported_by_any
        )
        yield (
            UPGRADABLE,
            (feature,),
            -1 if is_unknown else float(status.state is not UpgradeState.MIXED),
        )
        yield BLOCKERS, (feature,), blocker_count


def _of_nodes(image: ClusterImage) -> Iterator[Value]:
    for key, members in image.nodes.classes.items():
        for feature, (low, high) in sorted(key.capabilities.ranges.items()):
            for node_id in members:
                yield NODE_MIN, (key.role, str(node_id), feature), low
                yield NODE_MAX, (key.role, str(node_id), feature), high
