"""The sources' reports, and the metrics that follow from them: one registry, as data."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Final, Protocol

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST as CONTENT_TYPE

from featurewatch.common.tasks import failure_counts
from featurewatch.streams.events import SourceState


@dataclass(frozen=True, slots=True)
class SourceReport:
    """A source's state and counts. -1: unknown, or the source follows no log.

    ``name`` is what the configuration calls the cluster (empty: nothing).
    ``detail`` says why the source is not ``following`` and what to do; ``last_error`` is the newest
    error, which may be over.
    """

    cluster: str
    source: str
    state: SourceState
    offset: int = -1
    high_watermark: int = -1
    lag: int = -1
    records_read: int = 0
    records_skipped: int = 0
    published: int = 0
    dead_letters: int = 0
    restarts: int = 0
    name: str = ""
    last_error: str = ""
    detail: str = ""


class SourceReporter(Protocol):
    """A source, as metrics and health see it."""

    def report(self) -> SourceReport:
        """The source's state now; cheap, never waits."""
        ...


@dataclass(frozen=True, slots=True)
class MetricDef:
    """A metric of each source; ``kind`` is ``gauge`` or ``counter``.

    Counters have names that end in ``_total``. All have the labels `LABELS`.
    """

    name: str
    kind: str
    help: str
    value: Callable[[SourceReport], float]


LABELS: Final = ("kafka_cluster", "source")

SOURCE_STATE: Final = "featurewatch_source_state"
SOURCE_STATE_HELP: Final = "1 for the source's current state, else 0."

CLUSTER_INFO: Final = "featurewatch_cluster_info"
CLUSTER_INFO_LABELS: Final = ("kafka_cluster", "name")
CLUSTER_INFO_HELP: Final = "1; the name of a cluster in the configuration, or its id."

BUILD_INFO: Final = "featurewatch_build_info"
BUILD_INFO_LABELS: Final = ("process", "version")
BUILD_INFO_HELP: Final = "1; the version that runs, and whether it is watch, worker or notify."

TASK_FAILURES: Final = "featurewatch_task_failures_total"
TASK_FAILURES_LABELS: Final = ("task",)
TASK_FAILURES_HELP: Final = "Times a background task of the process failed and was started again."

OLD_RULES: Final = "featurewatch_web_config_failed"
OLD_RULES_HELP: Final = (
    "1 if the web configuration or the tokens have changed and cannot be used, so that older TLS "
    "and logins hold; else 0."
)

METRICS: Final = (
    MetricDef(
        "featurewatch_source_following",
        "gauge",
        "1 if the source has caught up with its cluster, else 0.",
        lambda report: float(report.state is SourceState.FOLLOWING),
    ),
    MetricDef(
        "featurewatch_source_offset",
        "gauge",
        "Last metadata log offset published or skipped (-1: none, or no log).",
        lambda report: report.offset,
    ),
    MetricDef(
        "featurewatch_source_high_watermark",
        "gauge",
        "Latest known high watermark of the cluster's metadata log (-1: unknown, or no log).",
        lambda report: report.high_watermark,
    ),
    MetricDef(
        "featurewatch_source_lag_records",
        "gauge",
        "Committed metadata records not yet read (-1: unknown, or no log).",
        lambda report: report.lag,
    ),
    MetricDef(
        "featurewatch_source_records_read_total",
        "counter",
        "Metadata records decoded, or node responses read.",
        lambda report: report.records_read,
    ),
    MetricDef(
        "featurewatch_source_records_skipped_total",
        "counter",
        "Metadata records skipped because their type is not needed.",
        lambda report: report.records_skipped,
    ),
    MetricDef(
        "featurewatch_source_published_total",
        "counter",
        "Events sent to the bus, without reports of the source's own state.",
        lambda report: report.published,
    ),
    MetricDef(
        "featurewatch_source_dead_letters_total",
        "counter",
        "Inputs that could not be read and were published as dead letters.",
        lambda report: report.dead_letters,
    ),
    MetricDef(
        "featurewatch_source_restarts_total",
        "counter",
        "Times the source was started again after a failure.",
        lambda report: report.restarts,
    ),
)
"""Every metric of a source, apart from its state, which has one series for each state."""


class SourceMetrics:
    """A Prometheus collector over reports of one moment."""

    def __init__(self, reports: Collection[SourceReport]) -> None:
        self._reports = reports

    def collect(self) -> Iterator[Metric]:
        """One family for each metric, one series for each source."""
        for metric in METRICS:
            family = _family(metric)
            for report in self._reports:
                family.add_metric([report.cluster, report.source], metric.value(report))
            yield family
        states = GaugeMetricFamily(SOURCE_STATE, SOURCE_STATE_HELP, labels=(*LABELS, "state"))
        for report in self._reports:
            for state in SourceState:
                labels = [report.cluster, report.source, str(state)]
                states.add_metric(labels, float(report.state is state))
        yield states
        names = GaugeMetricFamily(CLUSTER_INFO, CLUSTER_INFO_HELP, labels=CLUSTER_INFO_LABELS)
        for cluster, name in sorted({(report.cluster, report.name) for report in self._reports}):
            names.add_metric([cluster, name or cluster], 1)
        yield names


class BuildInfo:
    """A collector of the version that a process runs; ``process`` is its kind."""

    def __init__(self, process: str) -> None:
        self._process = process

    def collect(self) -> Iterator[Metric]:
        """One series."""
        family = GaugeMetricFamily(BUILD_INFO, BUILD_INFO_HELP, labels=BUILD_INFO_LABELS)
        family.add_metric([self._process, own_version()], 1)
        yield family


@cache
def own_version() -> str:
    """The version of featurewatch that is installed; ``unknown`` where it is not."""
    try:
        return version("featurewatch")
    except PackageNotFoundError:
        return "unknown"


def _family(metric: MetricDef) -> GaugeMetricFamily | CounterMetricFamily:
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    return make(metric.name, metric.help, labels=LABELS)


def exposition(reports: Collection[SourceReport]) -> bytes:
    """The reports in Prometheus' text format, of the content type `CONTENT_TYPE`."""
    registry = CollectorRegistry()
    registry.register(SourceMetrics(reports))
    registry.register(BuildInfo("watch"))
    return generate_latest(registry)


def process_exposition(*, has_old_rules: bool) -> bytes:
    """The metrics that every process exposes beside its own, in the same format."""
    registry = CollectorRegistry()
    registry.register(_ProcessMetrics(has_old_rules))
    return generate_latest(registry)


class _ProcessMetrics:
    """A collector of the process' background tasks and of the rules of its port."""

    def __init__(self, has_old_rules: bool) -> None:
        self._has_old_rules = has_old_rules

    def collect(self) -> Iterator[Metric]:
        """One series for each task, and one for the rules."""
        tasks = CounterMetricFamily(TASK_FAILURES, TASK_FAILURES_HELP, labels=TASK_FAILURES_LABELS)
        for name, count in sorted(failure_counts().items()):
            tasks.add_metric([name], count)
        yield tasks
        yield GaugeMetricFamily(OLD_RULES, OLD_RULES_HELP, value=float(self._has_old_rules))


__all__ = [
    "BUILD_INFO",
    "BUILD_INFO_HELP",
    "BUILD_INFO_LABELS",
    "CLUSTER_INFO",
    "CLUSTER_INFO_HELP",
    "CLUSTER_INFO_LABELS",
    "CONTENT_TYPE",
    "LABELS",
    "METRICS",
    "OLD_RULES",
    "OLD_RULES_HELP",
    "SOURCE_STATE",
    "SOURCE_STATE_HELP",
    "TASK_FAILURES",
    "TASK_FAILURES_HELP",
    "TASK_FAILURES_LABELS",
    "BuildInfo",
    "MetricDef",
    "SourceMetrics",
    "SourceReport",
    "SourceReporter",
    "exposition",
    "own_version",
    "process_exposition",
]
