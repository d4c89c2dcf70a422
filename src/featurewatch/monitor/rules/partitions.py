"""Rules about partitions and their changes, where operations are followed.

An alert is about a condition or a kind of change in the whole cluster, however many partitions have
it: a cluster has at most one for each condition and one for each invariant.
"""

from collections.abc import Callable, Iterable
from typing import Final

from featurewatch.common.text import shortened
from featurewatch.controller.partitions.kraft_invariants import PartitionInvariant
from featurewatch.controller.partitions.release_rules import CompletionRule
from featurewatch.monitor.operations.conditions import EXACT, coarse, limits_of, overdue
from featurewatch.monitor.operations.state import UNCLEAN, Incident
from featurewatch.monitor.operations.tracker import election_rules
from featurewatch.monitor.rules.rule import (
    AFTER_AN_HOUR,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    format_duration,
)
from featurewatch.streams.outputs import Severity
from featurewatch.tables.partitions.image import Condition

_NAMED: Final = 5
_MAX_NAME: Final = 260


def _lasting(
    condition: Condition, severity: Severity, text: str
) -> Callable[[RuleContext, Subject], Iterable[Finding]]:
    """A rule's findings about a condition; ``text`` follows the partitions in the summary."""

    def find(context: RuleContext, subject: Subject) -> Iterable[Finding]:
        partitions = context.partitions
        if subject.key != condition or partitions is None or partitions.image is None:
            return
        image = partitions.image
        keys = overdue(image, condition, context.now_ms, context.limits)
        if not keys:
            return
        names = sorted(image.name_of(key) for key in keys)
        is_few = len(keys) <= EXACT
        count = len(keys) if is_few else coarse(len(keys))
        evidence = {"partitions": count, "names": names if is_few else []}
        shown = [shortened(name, _MAX_NAME) for name in names[:_NAMED]]
        listed = f" ({', '.join(shown)}{', …' if count > _NAMED else ''})" if is_few else ""
        noun = "partition" if count == 1 else "partitions"
        number = str(count) if is_few else f"At least {count}"
        limit = format_duration(limits_of(context.limits)[condition])
        yield Finding(f"{number} {noun}{listed} {text.format(limit)}", severity, evidence)

    return find


def _stale(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    """Reassignments that the controller's release never completes."""
    rules = election_rules(context.image)
    if rules is not None and rules.completion is not CompletionRule.ALL:
        yield from _find_stale(context, subject)


_find_stale = _lasting(
    Condition.STALE,
    Severity.WARNING,
    "have a reassignment that cannot complete: a replaced one left a replica that is both added "
    "and removed, and the controller's release waits for it forever. Cancel it with "
    "kafka-reassign-partitions --cancel, then start the intended one.",
)


def _unclean(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    incident = _incident(context, subject)
    if incident is None or subject.key != UNCLEAN:
        return
    count = coarse(incident.times)
    summary = (
        f"{_times(count)}, a replica outside the ISR was elected leader, first for "
        f"{_name(incident)} at offset {incident.offset}: acknowledged writes may be lost. Find out "
        "why no member of the ISR was alive."
    )
    yield Finding(summary, Severity.CRITICAL, _evidence(incident, count))


def _illegal(context: RuleContext, subject: Subject) -> Iterable[Finding]:
    incident = _incident(context, subject)
    if incident is None or subject.key == UNCLEAN:
        return
    rule = PartitionInvariant[str(subject.key)]
    count = coarse(incident.times)
    rules = election_rules(context.image)
    release = f"Kafka {'.'.join(map(str, rules.release))}" if rules else "its release"
    summary = (
        f"{_times(count)}, a partition change broke a rule that every controller of {release} "
        f"follows, first for {_name(incident)} at offset {incident.offset}: {rule}. Keep the "
        "metadata log, and look for a faulty controller or one with other software."
    )
    evidence = {**_evidence(incident, count), "rule": str(rule)}
    yield Finding(summary, Severity.CRITICAL, evidence)


def _incident(context: RuleContext, subject: Subject) -> Incident | None:
    if context.partitions is None:
        return None
    return context.partitions.incidents.get(str(subject.key))


def _times(count: int) -> str:
    return "Once" if count == 1 else f"At least {count} times"


def _name(incident: Incident) -> str:
    return shortened(incident.partition, _MAX_NAME)


def _evidence(incident: Incident, count: int) -> dict[str, object]:
    return {
        "count": count,
        "partition": incident.partition,
        "offset": incident.offset,
        "before": incident.before,
        "after": incident.after,
        "record": incident.record,
    }


PARTITION_RULES: Final = (
    Rule(
        "partition-without-leader",
        "partitions have no leader: they can be neither written nor read",
        SubjectKind.PARTITIONS,
        _lasting(
            Condition.LEADERLESS,
            Severity.CRITICAL,
            "without a leader can be neither written nor read: start the brokers of their ISR.",
        ),
        severities=(Severity.CRITICAL,),
    ),
    Rule(
        "partition-below-min-isr",
        "partitions have been below their minimum ISR for too long",
        SubjectKind.PARTITIONS,
        _lasting(
            Condition.BELOW_MIN_ISR,
            Severity.WARNING,
            "below the minimum ISR for {0}: writes with acks=all are refused. Start the missing "
            "brokers, or find out why their replicas do not catch up.",
        ),
    ),
    Rule(
        "preferred-leader-lost",
        "partitions have been without their preferred leader for too long",
        SubjectKind.PARTITIONS,
        _lasting(
            Condition.NOT_PREFERRED,
            Severity.WARNING,
            "not led by the preferred leader for {0}: the load is uneven. Run "
            "kafka-leader-election --election-type PREFERRED, or enable "
            "auto.leader.rebalance.enable.",
        ),
    ),
    Rule(
        "reassignment-cannot-complete",
        "a reassignment adds and removes the same replica, and its release never completes that",
        SubjectKind.PARTITIONS,
        _stale,
    ),
    Rule(
        "unclean-leader-election",
        "a replica outside the ISR was elected leader",
        SubjectKind.PARTITIONS,
        _unclean,
        severities=(Severity.CRITICAL,),
        ends=AFTER_AN_HOUR,
    ),
    Rule(
        "illegal-partition-change",
        "a partition changed in a way that no controller of the release would change it",
        SubjectKind.PARTITIONS,
        _illegal,
        severities=(Severity.CRITICAL,),
        ends=AFTER_AN_HOUR,
    ),
)
