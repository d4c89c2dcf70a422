"""Rules about the metadata log: it must not go backwards, and no part of it may be missed."""

from collections.abc import Iterable
from typing import Final

from featurewatch.monitor.rules.rule import (
    BY_ACKNOWLEDGEMENT,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
)
from featurewatch.streams.outputs import Severity


def _regression(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    log = context.image.log
    if log.provenance.offset < log.max_offset:
        # The current offset is left out: it changes with every record that is read again, and each
        # change would be another alert.
        summary = (
            f"The metadata log went backwards: offset {log.max_offset} had been committed and is "
            "lost. Find out which controller restarted without its data before changing anything."
        )
        yield Finding(summary, Severity.CRITICAL, {"previous_max": log.max_offset})


def _gap(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    del subject
    reason = context.image.log.gap
    if reason:
        summary = f"Part of the metadata log was missed: {reason}."
        yield Finding(summary, Severity.WARNING, {"reason": reason})


LOG_RULES: Final = (
    Rule(
        "epoch-regression",
        "the metadata log went backwards, and the epoch with it",
        SubjectKind.LOG,
        _regression,
        severities=(Severity.CRITICAL,),
        ends="when the source follows the new log" + BY_ACKNOWLEDGEMENT,
        reads=("log.went_back",),
    ),
    Rule(
        "log-gap",
        "part of the metadata log was missed and has not been recovered yet",
        SubjectKind.LOG,
        _gap,
        ends="with the next snapshot, or when the log was read again to its end"
        + BY_ACKNOWLEDGEMENT,
        reads=("log.gap",),
    ),
)
