"""Rules about the sources: silence is not health."""

from collections.abc import Iterable
from typing import Final

from controller.rules.rule import Finding, Rule, Subject
from streams.events import SourceState
from streams.outputs import Severity
from tables.image import ClusterImage

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
    Rule("source-stalled", "a source cannot read, or is not heard of any more", _stalled),
)
