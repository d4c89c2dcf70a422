"""The registry of the metrics of notifications."""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from featurewatch.agents.metric_defs import WorkerMetricDef
from featurewatch.streams.metrics import BuildInfo

SENT: Final = WorkerMetricDef(
    "featurewatch_notify_sent_total", "counter", ("target",), "requests that a target accepted"
)
FAILURES: Final = WorkerMetricDef(
    "featurewatch_notify_failures_total",
    "counter",
    ("target",),
    "requests that a target did not accept, or not in time",
)
DROPPED: Final = WorkerMetricDef(
    "featurewatch_notify_dropped_total",
    "counter",
    ("target",),
    "alert messages that a webhook did not get: refused, or not delivered for a day",
)
FAILING: Final = WorkerMetricDef(
    "featurewatch_notify_failing",
    "gauge",
    ("target",),
    "1 if the last request to the target failed, else 0",
)
STOPPED: Final = WorkerMetricDef(
    "featurewatch_notify_stopped",
    "gauge",
    ("target",),
    "1 if the webhook answered 410 and gets nothing more until a restart, else 0",
)
METRICS: Final = (SENT, FAILURES, DROPPED, FAILING, STOPPED)
"""Every metric of notifications."""


class NotifyMetrics:
    """Counts requests by target: the address of an Alertmanager, or the name of a webhook."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(BuildInfo("notify"))
        self._counters = {
            metric: Counter(metric.name, metric.about, metric.labels, registry=self._registry)
            for metric in METRICS
            if metric.kind == "counter"
        }
        self._gauges = {
            metric: Gauge(metric.name, metric.about, metric.labels, registry=self._registry)
            for metric in METRICS
            if metric.kind == "gauge"
        }
        self.errors: dict[str, str] = {}
        """Why the last request to a target failed, by target; only those that fail."""

    def add_target(self, target: str) -> None:
        """Exposes a target's series, as zeros."""
        for family in (*self._counters.values(), *self._gauges.values()):
            family.labels(target)

    def accepted(self, target: str) -> None:
        """Counts a request that was accepted."""
        self._counters[SENT].labels(target).inc()
        self._gauges[FAILING].labels(target).set(0)
        self.errors.pop(target, None)

    def failed(self, target: str, reason: str) -> bool:
        """Counts a request that was not; true if the reason is a new one."""
        self._counters[FAILURES].labels(target).inc()
        self._gauges[FAILING].labels(target).set(1)
        is_new = self.errors.get(target) != reason
        self.errors[target] = reason
        return is_new

    def dropped(self, target: str) -> None:
        """Counts a message that is dropped."""
        self._counters[DROPPED].labels(target).inc()

    def stopped(self, target: str) -> None:
        """Notes that a webhook wants no more messages."""
        self._gauges[STOPPED].labels(target).set(1)

    def render(self) -> bytes:
        """The metrics as Prometheus' text."""
        return generate_latest(self._registry)
