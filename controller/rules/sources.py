"""Rules about the sources: silence is not health."""

from collections.abc import Iterable
from typing import Final

from featurewatch.controller.rules.rule import Finding, Rule, Subject, coarse_count
from featurewatch.streams.events import SourceState
from featurewatch.streams.outputs import Severity
from featurewatch.tables.image.cluster import ClusterImage

_BAD = (SourceState.STALLED, SourceState.SILENT)


def _stalled(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    status = image.sources.get(str(subject.key))
    if status is not None and status.state in _BAD:
        summary = f"The source {status.source} is {status.state}: {status.detail}"
        if status.state is SourceState.SILENT:
            summary += " If it was taken out of the configuration: featurewatch retire."
        # Where it stands is left out: it may move all the same, and each move would be an alert.
        yield Finding(summary, Severity.CRITICAL, {"state": str(status.state)})


SOURCE_RULES: Final = (
    Rule("source-stalled", "a source cannot read its cluster, or has stopped reporting", _stalled),
)


def _unreadable(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    found = image.unreadable.get(str(subject.key))
    if found is not None:
        count = coarse_count(found.count)
        times = "once" if count == 1 else f"at least {count} times"
        summary = (
            f"{subject.key} could not be read, {times}, first at {found.place}: {found.reason}. "
            "What is shown of the cluster may be incomplete; its bytes are in the dead letters."
        )
        evidence = {"count": count, "place": found.place, "reason": found.reason}
        yield Finding(summary, Severity.WARNING, evidence)


RECORD_RULES: Final = (
    Rule("unreadable", "a record, a snapshot or a message could not be read", _unreadable),
)
