"""The documentation's tables of metrics, and a worker's exposition, match the registries."""

import re
from dataclasses import replace
from pathlib import Path

from immutables import Map
from prometheus_client.parser import text_string_to_metric_families

from featurewatch.agents import metrics as worker
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams import metrics as source
from featurewatch.streams.events import SourceState
from featurewatch.streams.metrics import SourceReport, exposition
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId, FeatureLevel, FeatureName
from tests.agents.events import CLUSTER, following, levels, quorum, registration

DOC = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([\w, ]*) \| (.+) \|$", re.MULTILINE)


def _families(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Each family's kind and labels, by the name that a query uses."""
    families = {}
    for family in text_string_to_metric_families(text):
        if family.samples:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            families[name] = (family.type, frozenset(labels))
    return families


def test_a_worker_exposes_every_metric_of_its_registry() -> None:
    """After a change, an alert, and a feature at level 0 each registered metric has series, with
    its labels."""
    metrics = WorkerMetrics()
    state = MonitorState.of(CLUSTER)
    changed = levels(2, {"metadata.version": 30})
    events = (registration(1, 1, (1, 19)), changed, following(2), quorum())
    for event in events:
        result = step(state, event)
        state = result.state
        metrics.observe(METADATA_LOG, result, 0.001)
    at_zero = replace(state.image.features, levels=Map({FeatureName("group"): FeatureLevel(0)}))
    level_zero = replace(state, image=replace(state.image, features=at_zero))
    metrics.expose({CLUSTER: state, ClusterId("early-draft"): level_zero})
    series = _families(metrics.scrape()().decode())
    missing = {metric.name for metric in worker.METRICS} - series.keys()
    assert not missing, (
        "metrics without a value: those of clusters get it in agents/cluster_series.py, the "
        "worker's own in agents/metrics.py; if this cluster has none, give it one above"
    )
    for metric in worker.METRICS:
        assert series[metric.name] == (metric.kind, frozenset(metric.labels)), metric
    assert series[source.BUILD_INFO] == ("gauge", frozenset(source.BUILD_INFO_LABELS))
    others = series.keys() - {metric.name for metric in worker.METRICS} - {source.BUILD_INFO}
    for name in others:
        assert name.endswith("_created"), name


def test_a_source_exposes_every_metric_of_its_registry() -> None:
    """One source gives one series of each registered metric."""
    report = SourceReport(ClusterId("c"), "kraft", SourceState.FOLLOWING)
    series = _families(exposition([report]).decode())
    expected = {metric.name: metric.kind for metric in source.METRICS}
    for name in (source.SOURCE_STATE, source.CLUSTER_INFO, source.BUILD_INFO):
        expected[name] = "gauge"
    assert {name: kind for name, (kind, _) in series.items()} == expected
