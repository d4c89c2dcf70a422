"""The documentation's tables of metrics, and what a worker really shows, against the registries."""

import re
from pathlib import Path

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from featurewatch.agents import metrics as worker
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.controller.monitor import MonitorState, step
from featurewatch.streams import metrics as source
from featurewatch.streams.events import SourceState
from featurewatch.streams.metrics import SourceReport, exposition, registry_of
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.agents.events import CLUSTER, following, levels, registration

DOC = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(r"^\| `(\w+)` \| (\w+) \| ([\w, ]+) \| (.+) \|$", re.MULTILINE)


def test_the_tables_are_the_registries() -> None:
    """docs/metrics.md has each metric with its kind, labels and meaning, and no other."""
    wanted = [
        (metric.name, metric.kind, ", ".join(source.LABELS), metric.help)
        for metric in source.METRICS
    ]
    state = ("1 for the source's current state, else 0.",)
    wanted.append((source.SOURCE_STATE, "gauge", ", ".join((*source.LABELS, "state")), *state))
    wanted += [
        (metric.name, metric.kind, ", ".join(metric.labels), metric.about)
        for metric in worker.METRICS
    ]
    assert ROW.findall(DOC.read_text()) == wanted


def _shown(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Each family's kind and labels, by the name that a query uses."""
    found = {}
    for family in text_string_to_metric_families(text):
        if family.samples:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            labels = {label for sample in family.samples for label in sample.labels} - {"le"}
            found[name] = (family.type, frozenset(labels))
    return found


def test_a_worker_shows_every_metric_of_its_registry() -> None:
    """After a change and an alert each registered metric has series, with its labels."""
    meters = WorkerMetrics()
    state = MonitorState.of(CLUSTER)
    events = (registration(1, 1, (1, 19)), levels(2, {"metadata.version": 30}), following(2))
    for event in events:
        outcome = step(state, event)
        state = outcome.state
        meters.observe(METADATA_LOG, outcome, 0.001)
    meters.expose({CLUSTER: state})
    shown = _shown(generate_latest(meters.registry).decode())
    for metric in worker.METRICS:
        assert shown[metric.name] == (metric.kind, frozenset(metric.labels)), metric
    for name in shown.keys() - {metric.name for metric in worker.METRICS}:
        assert name.endswith("_created"), name


class _Source:
    def report(self) -> SourceReport:
        return SourceReport(ClusterId("c"), "kraft", SourceState.FOLLOWING)


def test_a_source_shows_every_metric_of_its_registry() -> None:
    """One source gives one series of each registered metric."""
    shown = _shown(exposition(registry_of(lambda: [_Source()])).decode())
    wanted = {metric.name: metric.kind for metric in source.METRICS}
    wanted[source.SOURCE_STATE] = "gauge"
    assert {name: kind for name, (kind, _) in shown.items()} == wanted
