"""The worker's metrics: what it did is counted, what it knows is read at the scrape."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from controller.migration import under_way
from controller.monitor import MonitorState, Outcome
from streams.topics import Topic
from streams.types import KRAFT_VERSION, METADATA_VERSION, ClusterId, FeatureName, Role


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of the worker: its name, kind and labels, and what it means."""

    name: str
    kind: str
    labels: tuple[str, ...]
    about: str


EVENTS: Final = Metric(
    "featurewatch_worker_events_total", "counter", ("topic",), "messages taken in"
)
EVENT_SECONDS: Final = Metric(
    "featurewatch_worker_event_seconds",
    "histogram",
    ("topic",),
    "time from taking in a message to its outputs being on the bus",
)
CHANGES: Final = Metric(
    "featurewatch_feature_changes_total",
    "counter",
    ("cluster", "feature", "kind"),
    "changes of finalized levels said since the start",
)
FINALIZED: Final = Metric(
    "featurewatch_finalized_level",
    "gauge",
    ("cluster", "feature"),
    "finalized level; 0 where a feature that some node supports is not finalized",
)
EPOCH: Final = Metric(
    "featurewatch_feature_epoch", "gauge", ("cluster",), "epoch of the finalized features"
)
REVISION: Final = Metric(
    "featurewatch_feature_revision",
    "gauge",
    ("cluster",),
    "commits, or versions of the znode, that changed a level",
)
NODES: Final = Metric(
    "featurewatch_nodes",
    "gauge",
    ("cluster", "role"),
    "registered nodes, the fenced ones included; in ZooKeeper mode the live ones",
)
MISSING: Final = Metric(
    "featurewatch_migration_missing_brokers",
    "gauge",
    ("cluster",),
    "brokers in ZooKeeper that a migration to KRaft waits for; 0 where none is under way",
)
FIRING: Final = Metric(
    "featurewatch_alerts_firing", "gauge", ("cluster", "rule"), "alerts that fire now"
)
READY: Final = Metric(
    "featurewatch_cluster_ready", "gauge", ("cluster",), "1 once the source has caught up"
)

METRICS: Final = (
    *(EVENTS, EVENT_SECONDS, CHANGES),
    *(FINALIZED, EPOCH, REVISION, NODES, MISSING, FIRING, READY),
)
"""Every metric of the worker; the documentation's table is checked against it."""


class Meters:
    """Counts what the worker does, and shows what it knows."""

    def __init__(self) -> None:
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

    def took(self, topic: Topic, outcome: Outcome, seconds: float) -> None:
        """One message was taken in, in so many seconds."""
        self._events.labels(topic.short_name).inc()
        self._seconds.labels(topic.short_name).observe(seconds)
        for change in outcome.changes:
            self._changes.labels(change.cluster, change.feature, str(change.kind)).inc()

    def show(self, states: Mapping[ClusterId, MonitorState]) -> None:
        """Shows these states, as they will be at each scrape."""
        self.registry.register(_States(states))


class _States(Collector):
    def __init__(self, states: Mapping[ClusterId, MonitorState]) -> None:
        self._states = states

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families = {
            metric: GaugeMetricFamily(metric.name, metric.about, labels=metric.labels)
            for metric in METRICS
            if metric.kind == "gauge"
        }
        for cluster, state in self._states.items():
            for metric, labels, value in _values(state):
                families[metric].add_metric((cluster, *labels), value)
        yield from families.values()


def _values(state: MonitorState) -> Iterator[tuple[Metric, tuple[str, ...], float]]:
    image = state.image
    known: set[FeatureName] = {METADATA_VERSION, KRAFT_VERSION, *image.features.levels}
    counts = dict.fromkeys(Role, 0)
    for key, members in image.nodes.classes.items():
        known.update(key.capabilities.ranges)
        counts[key.role] += len(members)
    for feature in sorted(known):
        yield FINALIZED, (feature,), image.features.levels.get(feature, 0)
    yield EPOCH, (), image.features.epoch
    yield REVISION, (), image.features.revision
    yield READY, (), float(image.ready)
    for role, count in counts.items():
        yield NODES, (role,), count
    yield MISSING, (), len(image.unregistered) if under_way(image) else 0
    rules: dict[str, int] = {}
    for alerts in state.firing.values():
        for alert in alerts:
            rules[alert.rule] = rules.get(alert.rule, 0) + 1
    for rule, count in sorted(rules.items()):
        yield FIRING, (rule,), count
