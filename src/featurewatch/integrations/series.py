"""The series that processes of featurewatch expose, from the registries: names and labels.

What is generated for other systems is checked against it, so no rule and no panel can name a
metric or a label that does not exist.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from featurewatch.agents.metric_defs import METRICS as WORKER_METRICS
from featurewatch.integrations.notify.metrics import METRICS as NOTIFY_METRICS
from featurewatch.streams import metrics as sources

_SUFFIXES: Final = {"histogram": ("_bucket", "_sum", "_count")}
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_METRIC: Final = re.compile(r"\b(featurewatch_\w+)(?:\{([^}]*)\})?")

TARGET_LABELS: Final = ("instance", "pod", "container", "endpoint")
"""Labels of the scraped process. After a restart another process may follow a cluster, and the
alert must stay the same."""

SCRAPE_LABELS: Final = frozenset({*TARGET_LABELS, "job", "namespace", "le"})
"""Labels that Prometheus adds, or a histogram has."""


class SeriesDef(NamedTuple):
    """The labels of a series, and what it means."""

    labels: tuple[str, ...]
    about: str


def _series() -> Iterator[tuple[str, SeriesDef]]:
    yield sources.BUILD_INFO, SeriesDef(sources.BUILD_INFO_LABELS, sources.BUILD_INFO_HELP)
    failures = SeriesDef(sources.TASK_FAILURES_LABELS, sources.TASK_FAILURES_HELP)
    yield sources.TASK_FAILURES, failures
    yield sources.OLD_RULES, SeriesDef((), sources.OLD_RULES_HELP)
    yield sources.CLUSTER_INFO, SeriesDef(sources.CLUSTER_INFO_LABELS, sources.CLUSTER_INFO_HELP)
    state = SeriesDef((*sources.LABELS, "state"), "1 for the source's current state, else 0.")
    yield sources.SOURCE_STATE, state
    for source_metric in sources.METRICS:
        yield source_metric.name, SeriesDef(sources.LABELS, source_metric.help)
    for metric in (*WORKER_METRICS, *NOTIFY_METRICS):
        for suffix in _SUFFIXES.get(metric.kind, ("",)):
            yield metric.name + suffix, SeriesDef(metric.labels, metric.about)


SERIES: Final[Mapping[str, SeriesDef]] = dict(_series())
"""Each series by its name."""


def names_in(expression: str) -> list[str]:
    """The metrics of featurewatch that a PromQL expression names, each once."""
    text = _STRING.sub('""', expression)
    return list(dict.fromkeys(match.group(1) for match in _METRIC.finditer(text)))


def meanings(expression: str) -> Iterable[str]:
    """The meaning of the metrics in an expression, one sentence each."""
    for name in names_in(expression):
        about = SERIES[name].about.rstrip(".")
        yield f"{about[0].upper()}{about[1:]}."


def without_target(aggregation: str, expression: str) -> str:
    """An aggregation over the processes that may expose a series, one after the other."""
    return f"{aggregation} without ({', '.join(TARGET_LABELS)}) ({expression})"
