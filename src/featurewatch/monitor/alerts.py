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
    MAX_ALERTS,
    ROOM_AT,
    RULES,
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

NOT_KNOWN: Final = "No longer known, because a record was read that no known release has"
"""The same where the log is not known to be complete (`Rule.needs_whole_log`)."""


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
_LEFT_OUT: Final = Subject(SubjectKind.ALERTS, "")
_BOUNDED: Final = (SubjectKind.FEATURE, SubjectKind.ZNODE, SubjectKind.NODE)
"""Subjects that a cluster may have any number of, in the order in which they are evaluated."""
_RELEASE: Final = Subject(SubjectKind.RELEASE, "")
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
) -> tuple[FiringAlerts, AlertChanges]:
    """The firing alerts after an event, and the alerts that changed by it, by subject.

    ``context`` is the cluster after the event; ``due`` are the nodes with a condition that has
    exceeded its limit, ``partitions`` the conditions and incidents of partitions to evaluate.
    Nodes, features and partitions are evaluated only while the authoritative source has caught up;
    when it catches up, all of them are evaluated. Where the cluster has another name, every alert
    changes. Of nodes, features and znodes at most `MAX_ALERTS` fire, and one that says that others
    are left out.
    """
    after = context.image
    renamed = _renamed(before, after, firing, cause)
    firing = firing.update(renamed)
    subjects = dict.fromkeys(_touched_subjects(before, after, delta, firing))
    subjects |= dict.fromkeys(_overdue_subjects(before, delta, firing, context, due))
    subjects |= {Subject(SubjectKind.PARTITIONS, name): None for name in partitions}
    if not subjects and not renamed:
        return firing, {}
    evaluation = _Evaluation(context, cause, firing)
    evaluation.add(subjects)
    if after.ready and evaluation.has_room_again:
        evaluation.add_left_out(dict.fromkeys(_every_subject(context, evaluation.firing)))
    evaluation.add_collecting()
    firing, changes = evaluation.firing, evaluation.changes
    for subject, alerts in renamed.items():
        unchanged = tuple(alert for alert in alerts if alert in firing.get(subject, ()))
        if unchanged:
            changes[subject] = (*changes.get(subject, ()), *unchanged)
    # Some subjects come from sets, whose order must not reach the output.
    return firing, dict(sorted(changes.items(), key=lambda item: str(item[0])))


class _Evaluation:
    """The evaluation of subjects at one event: what fires after it, and what changed.

    Of the kinds of subjects that a cluster may have any number of, at most `MAX_ALERTS` begin to
    fire. Whether others are left out is an alert, so it is remembered with the firing ones.
    """

    def __init__(self, context: RuleContext, cause: Cause, firing: FiringAlerts) -> None:
        self.firing = firing
        self.changes: dict[Subject, tuple[Alert, ...]] = {}
        self._context = context
        self._cause = cause
        self._leaves_out = _LEFT_OUT in firing
        self._count: int | None = None

    @property
    def has_room_again(self) -> bool:
        """Whether alerts were left out, and enough of those that fired have ended since."""
        return self._leaves_out and self._bounded_count() <= ROOM_AT

    def add(self, subjects: Iterable[Subject]) -> None:
        """Evaluates subjects: first those that fire already, whose ends make room for others."""
        is_ready = self._context.image.ready
        new: list[Subject] = []
        for subject in subjects:
            if (not is_ready and subject.kind not in _ALWAYS) or subject == _LEFT_OUT:
                continue
            if subject.kind in _BOUNDED and subject not in self.firing:
                new.append(subject)
            else:
                self._evaluate(subject)
        if not new:
            return
        # Of what is left out, the order decides: features say most, and sets have no order.
        new.sort(key=lambda subject: (_BOUNDED.index(subject.kind), subject.key))
        for subject in new:
            if self._bounded_count() < MAX_ALERTS:
                self._evaluate(subject)
            elif not self._leaves_out:
                self._leaves_out = any(True for _ in _findings(self._context, subject))

    def add_left_out(self, subjects: Iterable[Subject]) -> None:
        """Evaluates all subjects, after some were left out."""
        self._leaves_out = False
        self.add(subjects)

    def add_collecting(self) -> None:
        """Evaluates whether alerts are left out."""
        if self._leaves_out or _LEFT_OUT in self.firing:
            self._context = replace(self._context, leaves_out=self._leaves_out)
            self._evaluate(_LEFT_OUT)

    def _bounded_count(self) -> int:
        """The firing alerts of the kinds that are bounded."""
        if self._count is None:
            items = self.firing.items()
            self._count = sum(len(alerts) for key, alerts in items if key.kind in _BOUNDED)
        return self._count

    def _without_excess(self, old: tuple[Alert, ...], new: tuple[Alert, ...]) -> tuple[Alert, ...]:
        """The alerts of a subject for which there is room; those that fire already stay."""
        room = MAX_ALERTS - self._bounded_count()
        ids = {alert.id for alert in old}
        others = [alert.id for alert in new if alert.id not in ids]
        if len(others) <= room:
            return new
        self._leaves_out = True
        kept = ids.union(others[: max(room, 0)])
        return tuple(alert for alert in new if alert.id in kept)

    def _evaluate(self, subject: Subject) -> None:
        old = self.firing.get(subject, ())
        new = tuple(_alerts(self._context, subject, old, self._cause))
        if len(new) > len(old) and subject.kind in _BOUNDED:
            new = self._without_excess(old, new)
        if new == old:
            return
        still_firing = {alert.id for alert in new}
        began = (alert for alert in new if alert not in old)
        ended = (
            _resolved(alert, _cause_of_end(self._context.image, alert, self._cause))
            for alert in old
            if alert.id not in still_firing
        )
        self.changes[subject] = (*began, *ended)
        self.firing = self.firing.set(subject, new) if new else self.firing.delete(subject)
        if self._count is not None and subject.kind in _BOUNDED:
            self._count += len(new) - len(old)


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
) -> Iterator[Alert]:
    """The alerts of one subject; an unchanged alert is returned as the same object.

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
        yield before if before is not None and _same(before, alert) else alert


def _findings(context: RuleContext, subject: Subject) -> Iterator[tuple[Rule, Finding]]:
    is_whole = not context.image.incomplete
    for rule in RULES_BY_KIND[subject.kind]:
        if rule.needs_whole_log and not is_whole:
            continue
        yield from ((rule, finding) for finding in rule.find(context, subject))


def _cause_of_end(image: ClusterImage, alert: Alert, cause: Cause) -> Cause:
    is_unknown = image.incomplete and alert.rule in _NEED_WHOLE_LOG
    return cause._replace(ending=NOT_KNOWN) if is_unknown else cause


_NEED_WHOLE_LOG: Final = frozenset(rule.name for rule in RULES if rule.needs_whole_log)


def _same(before: Alert, after: Alert) -> bool:
    return (before.summary, before.severity, before.evidence) == (
        after.summary,
        after.severity,
        after.evidence,
    )


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
    if after.ready and _judges_again(before, after):
        subjects.update(_all_subjects(after, firing))
    elif after.ready:
        subjects.update(_subjects_of_delta(before, after, delta, firing))
    return subjects


def _judges_again(before: ClusterImage, after: ClusterImage) -> bool:
    """Whether all subjects must be evaluated: they could not be before, or cannot any more."""
    return not before.ready or bool(before.incomplete) is not bool(after.incomplete)


def _changed_sources(
    before: ClusterImage, after: ClusterImage, firing: FiringAlerts
) -> Iterator[Subject]:
    """The sources whose report changed; most heartbeats repeat the previous one."""
    for name in sorted({*before.sources.statuses, *after.sources.statuses}):
        old, new = before.sources.statuses.get(name), after.sources.statuses.get(name)
        if old is new:
            continue
        subject = Subject(SubjectKind.SOURCE, name)
        if _report(old) != _report(new) or subject in firing:
            yield subject


def _report(status: SourceStatus | None) -> tuple[SourceState, str] | None:
    return None if status is None else (status.state, status.detail)


def _every_subject(context: RuleContext, firing: FiringAlerts) -> Iterator[Subject]:
    """Every subject that may have findings, those with a timer included."""
    yield from (subject for subject, _ in _all_subjects(context.image, firing))
    _, due = take_due(replace(context.times, due_ms=0), context.limits, context.now_ms)
    yield from (Subject(SubjectKind.NODE, key) for key in due)
    yield from (Subject(SubjectKind.ZNODE, path) for path in context.image.zookeeper.issues)


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
    if _judges_again(before, context.image):  # nodes that were due earlier were not evaluated
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
    yield _RELEASE, None
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
    if (
        before.nodes.classes is not after.nodes.classes
        or before.answers.nodes.classes is not after.answers.nodes.classes
    ):
        yield _RELEASE, None
    if before.answers.disagreements is not after.answers.disagreements:
        for feature in sorted({*before.answers.disagreements, *after.answers.disagreements}):
            yield Subject(SubjectKind.FEATURE, feature), None


def _member_subjects(image: ClusterImage, key: CapabilityKey) -> Iterator[tuple[Subject, None]]:
    for node_id in sorted(image.nodes.classes[key]):
        yield Subject(SubjectKind.NODE, NodeKey(key.role, node_id)), None
