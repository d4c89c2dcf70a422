"""Reads the gauges that a worker exposes."""

from prometheus_client.parser import text_string_to_metric_families

from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.types import ClusterId
from tests.simulation.records import CLUSTER

Labels = tuple[tuple[str, str], ...]


def values_of(state: MonitorState, node_series: int = 200) -> dict[str, dict[Labels, float]]:
    """Each metric's values, by their labels without the cluster."""
    metrics = WorkerMetrics(node_series)
    metrics.expose({ClusterId(CLUSTER): state})
    text = metrics.scrape()().decode()
    return {
        family.name.removeprefix("featurewatch_"): {
            tuple(
                sorted((k, v) for k, v in sample.labels.items() if k != "kafka_cluster")
            ): sample.value
            for sample in family.samples
        }
        for family in text_string_to_metric_families(text)
    }
