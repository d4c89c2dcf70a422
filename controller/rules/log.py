"""Rules about the metadata log itself: it may not go backwards, and nothing in it may be missed."""

from collections.abc import Iterable
from typing import Final

from featurewatch.controller.rules.rule import Finding, Rule, Subject
from featurewatch.streams.outputs import Severity
from featurewatch.tables.image.cluster import ClusterImage


def _regression(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    del subject
    if image.log.offset < image.log_high:
        # Where the log stands now is left out: it moves with every record that is read again, and
        # each of them would be another alert.
        summary = (
            f"The metadata log went backwards: offset {image.log_high} had been committed and is "
            "gone. Find out which controller came back without its data before anything is changed."
        )
        yield Finding(summary, Severity.CRITICAL, {"was": image.log_high})


def _gap(image: ClusterImage, subject: Subject) -> Iterable[Finding]:
    del subject
    if image.gap:
        summary = f"A part of the metadata log was missed: {image.gap}."
        yield Finding(summary, Severity.WARNING, {"reason": image.gap})


LOG_RULES: Final = (
    Rule("epoch-regression", "the metadata log went backwards, and the epoch with it", _regression),
    Rule("log-gap", "a part of the metadata log was missed and not yet recovered", _gap),
)
