"""The worker's metrics: its work is counted, the clusters' states are read at each scrape.

The number of series has a limit, whatever clusters, features and nodes the topics name: what is
over it is left out, and counted.
"""

from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from featurewatch.agents.cluster_series import (
    SeriesGroup,
    cluster_group,
    feature_groups,
    node_group,
    quiet_group,
)
from featurewatch.agents.metric_defs import (
    CHANGES,
    EVENT_SECONDS,
    EVENTS,
    METRICS,
    OMITTED_CHANGES,
    OMITTED_CLUSTERS,
    OMITTED_SERIES,
    RESTARTS,
    WorkerMetricDef,
)
from featurewatch.monitor.step import MonitorState, StepResult
from featurewatch.streams.metrics import BuildInfo
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import ClusterId

CLUSTER_SERIES: Final = 5_000
"""At most so many gauges of one cluster: 200 nodes of any release have 3,000."""
CLUSTER_CHANGE_SERIES: Final = 200
"""Maximum number of series of one cluster that count changes."""
_CHANGES_SHARE: Final = 10
"""One in this many of all series may count changes."""

_ChangeCounts = Mapping[ClusterId, Mapping[tuple[str, str], int]]
"""The number of changes by cluster, then by feature and kind."""

__all__ = ["METRICS", "WorkerMetricDef", "WorkerMetrics"]


class WorkerMetrics:
    """Counts the worker's messages and exposes the states of its clusters.

    In a cluster of more than ``node_series`` nodes, single nodes have no series: ten thousand nodes
    would have a hundred thousand. All clusters together have at most ``max_series``.
    """

    def __init__(self, node_series: int = 200, max_series: int = 20_000) -> None:
        self._node_series = node_series
        self._max_series = max_series
        self._states: Mapping[ClusterId, MonitorState] = {}
        self._changes: dict[ClusterId, Counts[tuple[str, str]]] = {}
        self._change_series = 0
        self._omitted_changes = 0
        self._registry = CollectorRegistry()
        self._registry.register(BuildInfo("worker"))
        self._events = Counter(EVENTS.name, EVENTS.about, EVENTS.labels, registry=self._registry)
        self._restarts = Counter(RESTARTS.name, RESTARTS.about, registry=self._registry)
        self._seconds = Histogram(
            EVENT_SECONDS.name,
            EVENT_SECONDS.about,
            EVENT_SECONDS.labels,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0),
            registry=self._registry,
        )

    def observe(self, topic: Topic, result: StepResult, seconds: float) -> None:
        """Counts one processed message, its duration in seconds and its level changes."""
        self._events.labels(topic.short_name).inc()
        self._seconds.labels(topic.short_name).observe(seconds)
        for change in result.changes:
            self._count_change(change.cluster, (change.feature, str(change.kind)))
        if result.state.image.forgotten:
            counts = self._changes.pop(result.state.image.cluster, Counts())
            self._change_series -= len(counts)

    def _count_change(self, cluster: ClusterId, labels: tuple[str, str]) -> None:
        counts = self._changes.get(cluster, Counts())
        if labels not in counts:
            is_full = self._change_series >= self._max_series // _CHANGES_SHARE
            if is_full or len(counts) >= CLUSTER_CHANGE_SERIES:
                self._omitted_changes += 1
                return
            self._change_series += 1
        counts[labels] += 1
        self._changes[cluster] = counts

    def count_restart(self) -> None:
        """Counts a restart of the worker after a failure."""
        self._restarts.inc()

    def expose(self, states: Mapping[ClusterId, MonitorState]) -> None:
        """Exposes the gauges of these states, which are read at each scrape."""
        self._states = states

    def scrape(self) -> Callable[[], bytes]:
        """A function that renders the metrics of this moment as Prometheus' text, in any thread."""
        frozen = CollectorRegistry()
        changes = {cluster: Counts(counts) for cluster, counts in self._changes.items()}
        frozen.register(_Changes(changes, self._omitted_changes))
        max_series = self._max_series - self._change_series
        frozen.register(_States(dict(self._states), self._node_series, max_series))
        return lambda: generate_latest(self._registry) + generate_latest(frozen)


class _Changes(Collector):
    def __init__(self, changes: _ChangeCounts, omitted: int) -> None:
        self._changes = changes
        self._omitted = omitted

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(CHANGES.name, CHANGES.about, labels=CHANGES.labels)
        for cluster, counts in self._changes.items():
            for labels, count in counts.items():
                family.add_metric((cluster, *labels), count)
        yield family
        yield CounterMetricFamily(OMITTED_CHANGES.name, OMITTED_CHANGES.about, value=self._omitted)


class _States(Collector):
    """The gauges of some states: those of whole clusters first, then of features, then zeros of
    rules, then of nodes.

    So the nodes' series are the first to be left out, and the zeros the next. Clusters with a
    source precede those that are only named by messages that nobody can read.
    """

    def __init__(
        self, states: Mapping[ClusterId, MonitorState], node_series: int, max_series: int
    ) -> None:
        self._states = states
        self._node_series = node_series
        self._max_series = max_series

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        families = {
            metric: GaugeMetricFamily(metric.name, metric.about, labels=metric.labels)
            for metric in METRICS
            if metric.kind == "gauge" and metric.labels
        }
        known = (item for item in self._states.items() if not item[1].image.forgotten)
        clusters = sorted(known, key=_precedence)
        exposed: Counts[ClusterId] = Counts()
        omitted: Counts[ClusterId] = Counts()
        left = self._max_series
        for groups_of in (cluster_group, feature_groups, quiet_group, self._node_group):
            for cluster, state in clusters:
                for group in groups_of(state):
                    if omitted[cluster] or group.size > min(
                        left, CLUSTER_SERIES - exposed[cluster]
                    ):
                        omitted[cluster] += group.size
                        continue
                    exposed[cluster] += group.size
                    left -= group.size
                    for metric, labels, value in group.values:
                        families[metric].add_metric((cluster, *labels), value)
        omitted = +omitted
        yield from families.values()
        yield GaugeMetricFamily(
            OMITTED_SERIES.name, OMITTED_SERIES.about, value=sum(omitted.values())
        )
        yield GaugeMetricFamily(OMITTED_CLUSTERS.name, OMITTED_CLUSTERS.about, value=len(omitted))

    def _node_group(self, state: MonitorState) -> Iterator[SeriesGroup]:
        return node_group(state) if len(state.image.nodes) <= self._node_series else iter(())


def _precedence(item: tuple[ClusterId, MonitorState]) -> tuple[bool, ClusterId]:
    cluster, state = item
    return not state.image.sources.statuses, cluster
