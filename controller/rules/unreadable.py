"""Rules about what could not be read."""

from collections.abc import Iterable
from typing import Final

from controller.rules.rule import Finding, Rule, Subject, coarse_count
from streams.outputs import Severity
from tables.image import ClusterImage


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
