"""Turns the findings of rules into alerts that begin, change and end.

Only the subjects that an event touched are evaluated, so the cost follows what changed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from immutables import Map

from featurewatch.monitor.migration import in_progress
from featurewatch.monitor.readiness.state_timers import CLUSTER, affected_beyond_delta, take_due
from featurewatch.monitor.readiness.upgrade_state import UpgradeState
from featurewatch.monitor.rules import (
    RULES_BY_KIND,
    Finding,
    Rule,
    RuleContext,
    Subject,
    SubjectKind,
    needs_evaluation,
    node_grounds,
)
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.outputs import Alert, AlertState
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey
from featurewatch.tables.image.zookeeper import FEATURES_PATHS

FiringAlerts = Map[Subject, tuple[Alert, ...]]
"""The firing alerts, by subject."""


RESOLVED: Final = "Resolved"
"""The beginning of the summary of an alert whose condition ended."""


REPEAT_MS: Final = 60_000
"""An alert whose state and severity stay is published again after this at the earliest: its text
may change with each event."""

HeldSubjects = Map[Subject, int]
"""Subjects whose newest texts are not published yet, and when they are to be (Unix ms)."""


NO_HELD: Final[HeldSubjects] = Map()


class Cause(NamedTuple):
    """The event by which alerts begin or end: its id, and when its own cause happened.

    ``ending`` begins the summary of an alert that ends by it.
    """

    id: str
    at_ms: int
    ending: str = RESOLVED


AlertChanges = Mapping[Subject, tuple[Alert, ...]]
"""Alerts that began, changed or ended, by subject."""

_LOG: Final = Subject(SubjectKind.LOG, "")
_MIGRATION: Final = Subject(SubjectKind.MIGRATION, "")
_UPGRADE: Final = Subject(SubjectKind.UPGRADE, "")
_ALWAYS: Final = (SubjectKind.SOURCE, SubjectKind.RECORD, SubjectKind.LOG, SubjectKind.ZNODE)
"""Subjects that are evaluated before the source has caught up: they are not cluster state."""


def evaluate(
    before: ClusterImage,
    delta: ClusterDelta,
    firing: FiringAlerts,
    cause: Cause,
    context: RuleContext,
    due: Iterable[NodeKey] = (),
    partitions: Iterable[str] = (),
    held: HeldSubjects = NO_HELD,
) -> tuple[FiringAlerts, AlertChanges, HeldSubjects]:
    """The firing alerts after an event, the alerts that changed by it by subject, and ``held``.

    A subject that was held or is held now is among the changes, maybe without an alert.

    ``context`` is the cluster after the event; ``due`` are the nodes with a condition that has
    exceeded its limit, ``partitions`` the conditions and incidents of partitions to evaluate.
    Nodes, features and partitions are evaluated only while the authoritative source has caught up;
    when it catches up, all of them are evaluated. Where the cluster has another name, every alert
    changes.
    """
    after = context.image
    renamed = _renamed(before, after, firing, cause)
    firing = firing.update(renamed)
    subjects = dict.fromkeys(_touched_subjects(before, after, delta, firing))
    subjects |= dict.fromkeys(_overdue_subjects(before, delta, firing, context, due))
    subjects |= {Subject(SubjectKind.PARTITIONS, name): None for name in partitions}
    subjects |= {subject: None for subject, due_ms in held.items() if context.now_ms >= due_ms}
    if not subjects and not renamed:
        return firing, {}, held
    changes: dict[Subject, tuple[Alert, ...]] = {}
    for subject in subjects:
        if not after.ready and subject.kind not in _ALWAYS:
            continue
        old = firing.get(subject, ())
        found = list(_alerts(context, subject, old, cause))
        new = tuple(alert for alert, _ in found)
        due_ms = min((due_ms for _, due_ms in found if due_ms is not None), default=None)
        if new == old and due_ms == held.get(subject):
            continue
        still_firing = {alert.id for alert in new}
        began = (alert for alert in new if alert not in old)
        ended = (_resolved(alert, cause) for alert in old if alert.id not in still_firing)
        changes[subject] = (*began, *ended)
        if due_ms is not None:
            held = held.set(subject, due_ms)
        elif subject in held:
            held = held.delete(subject)
        firing = firing.set(subject, new) if new else firing.delete(subject)
    for subject, alerts in renamed.items():
        unchanged = tuple(alert for alert in alerts if alert in firing.get(subject, ()))
        if unchanged:
            changes[subject] = (*changes.get(subject, ()), *unchanged)
    # Some subjects come from sets, whose order must not reach the output.
    return firing, dict(sorted(changes.items(), key=lambda item: str(item[0]))), held


def _renamed(
    before: ClusterImage, after: ClusterImage, firing: FiringAlerts, cause: Cause
) -> dict[Subject, tuple[Alert, ...]]:
    """All alerts that fire, by subject, where the cluster has another name now; else none."""
    if before.sources.statuses is after.sources.statuses:
        return {}
    name = after.sources.cluster_name
    if name == before.sources.cluster_name:
        return {}
    return {
        subject: tuple(
            replace(alert, name=name, at_ms=max(alert.at_ms, cause.at_ms), cause=cause.id)
            for alert in alerts
        )
        for subject, alerts in firing.items()
    }


def resolve_all(firing: FiringAlerts, cause: Cause) -> AlertChanges:
    """The end of every alert of a cluster that is forgotten."""
    return {
        subject: tuple(_resolved(alert, cause) for alert in alerts)
        for subject, alerts in sorted(firing.items(), key=lambda item: str(item[0]))
    }


def _alerts(
    context: RuleContext, subject: Subject, old: tuple[Alert, ...], cause: Cause
) -> Iterator[tuple[Alert, int | None]]:
    """The alerts of one subject; an unchanged alert is returned as the same object.

    An alert is unchanged too if only its text changes within `REPEAT_MS`; the second value is then
    the time of its next publication (ms since the Unix epoch).

    Clocks of sources differ. An event may be older than the subject's newest alert; conditions are
    then evaluated at the time of that alert, so that none ends by a clock that runs behind.
    """
    by_id = {alert.id: alert for alert in old}
    latest_ms = max((max(alert.at_ms, alert.since_ms) for alert in old), default=context.now_ms)
    if latest_ms > context.now_ms:
        context = replace(context, now_ms=latest_ms)
    for rule, finding in _findings(context, subject):
        feature = finding.feature
        tail = f"/{feature}" if feature and subject.kind is not SubjectKind.FEATURE else ""
        alert_id = f"{context.image.cluster}/{rule.name}/{subject}{tail}"
        before = by_id.get(alert_id)
        at_ms = cause.at_ms if rule.timer is None else context.now_ms
        alert = Alert(
            id=alert_id,
            cluster=context.image.cluster,
            rule=rule.name,
            severity=finding.severity,
            state=AlertState.FIRING,
            subject={**subject.fields, **({"feature": feature} if feature else {})},
            summary=finding.summary,
            evidence=finding.evidence,
            since_ms=at_ms if before is None else before.since_ms,
            at_ms=at_ms,
            cause=cause.id,
            name=context.image.sources.cluster_name,
        )
        if before is None or before.severity is not alert.severity:
            yield alert, None
        elif (before.summary, before.evidence) == (alert.summary, alert.evidence):
            yield before, None
        elif context.now_ms - before.at_ms < REPEAT_MS:
            yield before, before.at_ms + REPEAT_MS
        else:
            yield alert, None


def _findings(context: RuleContext, subject: Subject) -> Iterator[tuple[Rule, Finding]]:
    for rule in RULES_BY_KIND[subject.kind]:
        yield from ((rule, finding) for finding in rule.find(context, subject))


def _resolved(alert: Alert, cause: Cause) -> Alert:
    """The end of an alert: its summary says so first, and then what was wrong."""
    return replace(
        alert,
        state=AlertState.RESOLVED,
        summary=f"{cause.ending}; it was: {alert.summary}",
        at_ms=cause.at_ms,
        cause=cause.id,
    )


def _touched_subjects(
    before: ClusterImage, after: ClusterImage, delta: ClusterDelta, firing: FiringAlerts
) -> Iterable[Subject]:
    """The subjects whose findings may have changed, without duplicates, in a fixed order."""
    subjects: dict[Subject, None] = {}
    if before.sources.statuses is not after.sources.statuses:
        subjects.update((subject, None) for subject in _changed_sources(before, after, firing))
    if before.sources.unreadable is not after.sources.unreadable:
        names = sorted({*before.sources.unreadable, *after.sources.unreadable})
        subjects.update((Subject(SubjectKind.RECORD, name), None) for name in names)
    if after.log.provenance.offset < after.log.max_offset or after.log.gap or _LOG in firing:
        subjects[_LOG] = None
    if before.zookeeper is not after.zookeeper:
        subjects.update(
            (Subject(SubjectKind.ZNODE, path), None) for path in _touched_paths(before, after)
        )
    if in_progress(after) or _MIGRATION in firing:
        subjects[_MIGRATION] = None
    if after.ready and not before.ready:
        subjects.update(_all_subjects(after, firing))
    elif after.ready:
        subjects.update(_subjects_of_delta(before, after, delta, firing))
    return subjects


def _changed_sources(
    before: ClusterImage, after: ClusterImage, firing: FiringAlerts
) -> Iterator[Subject]:
    """The sources whose report changed, and those that fail: that they do may become an alert.

    Most other heartbeats repeat the previous one.
    """
    for name in sorted({*before.sources.statuses, *after.sources.statuses}):
        old, new = before.sources.statuses.get(name), after.sources.statuses.get(name)
        if old is new:
            continue
        subject = Subject(SubjectKind.SOURCE, name)
        is_failing = name in after.sources.failing_since
        if _report(old) != _report(new) or is_failing or subject in firing:
            yield subject


def _report(status: SourceStatus | None) -> tuple[SourceState, str] | None:
    return None if status is None else (status.state, status.detail)


def _overdue_subjects(
    before: ClusterImage,
    delta: ClusterDelta,
    firing: FiringAlerts,
    context: RuleContext,
    due: Iterable[NodeKey],
) -> Iterator[Subject]:
    """The subjects with a condition that may have exceeded its limit, or has ended."""
    if not context.image.ready:
        return
    if not before.ready:  # nodes that were due earlier were not evaluated
        _, due = take_due(replace(context.times, due_ms=0), context.limits, context.now_ms)
    yield from (Subject(SubjectKind.NODE, key) for key in due)
    # Firing subjects of the delta itself are touched subjects already.
    for key in affected_beyond_delta(context.times, before, context.image, delta) if firing else ():
        subject = Subject(SubjectKind.NODE, key)
        if subject in firing:
            yield subject
    since = context.times.states.get(CLUSTER)
    is_unfinished = since is not None and since.state not in (
        UpgradeState.FINALIZED,
        UpgradeState.UNKNOWN,
    )
    is_overdue = since is not None and context.now_ms - since.at_ms >= context.limits.upgrade_ms
    if (is_unfinished and is_overdue) or _UPGRADE in firing:
        yield _UPGRADE


def _touched_paths(before: ClusterImage, after: ClusterImage) -> Iterable[str]:
    """The znodes whose findings may have changed: those with an issue, and the features znodes."""
    old, new = before.zookeeper.issues, after.zookeeper.issues
    with_issues = () if old is new else sorted({*old, *new})
    return (*FEATURES_PATHS, *with_issues)


def _all_subjects(image: ClusterImage, firing: FiringAlerts) -> Iterator[tuple[Subject, None]]:
    for key in image.nodes.classes:
        if needs_evaluation(key.capabilities, image.features.levels):
            yield from _member_subjects(image, key)
    for feature in sorted({*image.features.levels, *image.answers.disagreements}):
        yield Subject(SubjectKind.FEATURE, feature), None
    for subject in sorted(firing, key=str):
        yield subject, None


def _subjects_of_delta(
    before: ClusterImage, after: ClusterImage, delta: ClusterDelta, firing: FiringAlerts
) -> Iterator[tuple[Subject, None]]:
    levels, levels_before = after.features.levels, before.features.levels
    for key, node in delta.nodes.items():
        if node is not None and needs_evaluation(node.capabilities, levels):
            yield Subject(SubjectKind.NODE, key), None
        elif firing and (subject := Subject(SubjectKind.NODE, key)) in firing:
            yield subject, None
    if levels is not levels_before:
        for class_key in after.nodes.classes:
            capabilities = class_key.capabilities
            if node_grounds(capabilities, levels_before) != node_grounds(capabilities, levels):
                yield from _member_subjects(after, class_key)
    if levels is not levels_before or before.nodes.classes is not after.nodes.classes:
        for feature in sorted({*levels_before, *levels}):
            yield Subject(SubjectKind.FEATURE, feature), None
    if before.answers.disagreements is not after.answers.disagreements:
        for feature in sorted({*before.answers.disagreements, *after.answers.disagreements}):
            yield Subject(SubjectKind.FEATURE, feature), None


def _member_subjects(image: ClusterImage, key: CapabilityKey) -> Iterator[tuple[Subject, None]]:
    for node_id in sorted(image.nodes.classes[key]):
        yield Subject(SubjectKind.NODE, NodeKey(key.role, node_id)), None
