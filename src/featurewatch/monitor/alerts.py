"""Turns the findings of rules into alerts that begin, change and end.

Only the subjects that an event touched (`touched`) are evaluated, so the cost follows what changed.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

from immutables import Map

from featurewatch.controller.software import notes_of_learned
from featurewatch.kafka.releases import learned_notes
from featurewatch.monitor.alert_budget import NOTHING_SPENT, AlertBudget
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
)
from featurewatch.monitor.touched import every_subject, overdue_subjects, touched_subjects
from featurewatch.streams.outputs import Alert, AlertState
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage

FiringAlerts = Map[Subject, tuple[Alert, ...]]
"""The firing alerts, by subject."""


RESOLVED: Final = "Resolved"
"""The beginning of the summary of an alert whose condition ended."""

NOT_KNOWN: Final = "No longer known, because a record was read that no known release has"
"""The same where the log is not known to be complete (`Rule.needs_whole_log`)."""


REPEAT_MS: Final = 60_000
"""An alert whose state and severity stay is published again after this at the earliest: its text
may change with each event."""


class Held(NamedTuple):
    """The alerts of a subject whose newest texts wait to be published, and when the first may.

    ``due_ms`` is in milliseconds since the Unix epoch; ``ids`` are those of the alerts.
    """

    due_ms: int
    ids: tuple[str, ...]


HeldTexts = Map[Subject, Held]
"""The texts that are not published yet, by subject."""

NO_HELD: Final[HeldTexts] = Map()


class Cause(NamedTuple):
    """The event by which alerts begin or end: its id, and when its own cause happened.

    ``ending`` begins the summary of an alert that ends by it.
    """

    id: str
    at_ms: int
    ending: str = RESOLVED


AlertChanges = Mapping[Subject, tuple[Alert, ...]]
"""Alerts to publish, as they began, changed or ended, by subject: every subject of which something
changed, without an alert where its newest text is held."""

NO_ALERT_CHANGES: Final[AlertChanges] = MappingProxyType({})

_LEFT_OUT: Final = Subject(SubjectKind.ALERTS, "")
_BOUNDED: Final = (SubjectKind.FEATURE, SubjectKind.ZNODE, SubjectKind.NODE)
"""Subjects that a cluster may have any number of, in the order in which they are evaluated."""
_NEED_WHOLE_LOG: Final = frozenset(rule.name for rule in RULES if rule.needs_whole_log)
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
    held: HeldTexts = NO_HELD,
    budget: AlertBudget = NOTHING_SPENT,
) -> tuple[FiringAlerts, AlertChanges, HeldTexts, AlertBudget]:
    """The firing alerts after an event, what it changed of them, the held texts, and the budget.

    ``context`` is the cluster after the event; ``due`` are the nodes with a condition that has
    exceeded its limit, ``partitions`` the conditions and incidents of partitions to evaluate.
    Nodes, features and partitions are evaluated only while the authoritative source has caught up;
    when it catches up, all of them are evaluated. Where the cluster has another name, every alert
    changes. Of nodes, features and znodes at most `MAX_ALERTS` fire, and one that says that others
    are left out. As many begin, or change, as the ``budget`` permits.
    """
    after = context.image
    renamed = _renamed(before, after, firing, cause)
    if renamed:
        firing = firing.update(renamed)
    subjects = dict.fromkeys(touched_subjects(before, after, delta, firing))
    subjects |= dict.fromkeys(overdue_subjects(before, delta, firing, context, due))
    subjects |= {Subject(SubjectKind.PARTITIONS, name): None for name in partitions}
    waiting = [subject for subject, texts in held.items() if cause.at_ms >= texts.due_ms]
    if not (subjects or renamed or waiting or _LEFT_OUT in firing):
        return firing, {}, held, budget
    evaluation = _Evaluation(context, cause, firing, budget)
    evaluation.add(subjects)
    if after.ready and evaluation.has_room_again:
        evaluation.add_left_out(dict.fromkeys(every_subject(context, evaluation.firing)))
    evaluation.add_collecting()
    changes: dict[Subject, tuple[Alert, ...]] = {}
    # Some subjects come from sets, whose order must not reach the output.
    for subject in sorted({*evaluation.changed, *renamed, *waiting}, key=str):
        old, new = firing.get(subject, ()), evaluation.firing.get(subject, ())
        ended = _ended(after, old, new, cause)
        known = () if subject in renamed else old
        is_bounded = subject.kind in _BOUNDED
        room = budget.left(context.received_ms) if is_bounded else len(new)
        new, texts, published = _published(known, new, held.get(subject), cause, room)
        budget = budget.spend(len(published) if is_bounded else 0, context.received_ms)
        changes[subject] = (*published, *ended)
        if new or old:
            firing = firing.set(subject, new) if new else firing.delete(subject)
        if texts is not None:
            held = held.set(subject, texts)
        elif subject in held:
            held = held.delete(subject)
    return firing, changes, held, budget


class _Evaluation:
    """The evaluation of subjects at one event: what holds after it, and for which it changed.

    Of the kinds of subjects that a cluster may have any number of, at most `MAX_ALERTS` begin to
    fire. Whether others are left out is an alert, so it is remembered with the firing ones.
    """

    def __init__(
        self, context: RuleContext, cause: Cause, firing: FiringAlerts, budget: AlertBudget
    ) -> None:
        self.firing = firing
        self.changed: set[Subject] = set()
        self._context = context
        self._cause = cause
        self._leaves_out = _LEFT_OUT in firing
        self._may_begin = budget.left(context.received_ms)
        self._count: int | None = None

    @property
    def has_room_again(self) -> bool:
        """Whether alerts were left out, and there is room for some of them now."""
        has_budget = self._may_begin >= MAX_ALERTS - ROOM_AT
        return self._leaves_out and has_budget and self._bounded_count() <= ROOM_AT

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
            if self._room() > 0:
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
            self._context = self._context._replace(leaves_out=self._leaves_out)
            self._evaluate(_LEFT_OUT)

    def _room(self) -> int:
        """How many alerts of the kinds that are bounded may begin."""
        return min(MAX_ALERTS - self._bounded_count(), self._may_begin)

    def _bounded_count(self) -> int:
        """The firing alerts of the kinds that are bounded."""
        if self._count is None:
            items = self.firing.items()
            self._count = sum(len(alerts) for key, alerts in items if key.kind in _BOUNDED)
        return self._count

    def _without_excess(self, old: tuple[Alert, ...], new: tuple[Alert, ...]) -> tuple[Alert, ...]:
        """The alerts of a subject for which there is room; those that fire already stay."""
        room = self._room()
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
        if new != old and subject.kind in _BOUNDED:
            new = self._without_excess(old, new)
            ids = {alert.id for alert in old}
            self._may_begin -= sum(alert.id not in ids for alert in new)
        if new == old:
            return
        self.changed.add(subject)
        self.firing = self.firing.set(subject, new) if new else self.firing.delete(subject)
        if self._count is not None and subject.kind in _BOUNDED:
            self._count += len(new) - len(old)


def _published(
    old: tuple[Alert, ...], new: tuple[Alert, ...], held: Held | None, cause: Cause, room: int
) -> tuple[tuple[Alert, ...], Held | None, list[Alert]]:
    """The alerts of a subject as they fire, those whose texts are held, and those to publish.

    A firing alert has its newest text, and the time and cause of its newest message. It is
    published when it begins and when its severity changes, and where only its text changes,
    `REPEAT_MS` after the last message at the earliest. Of changes at most ``room`` are published,
    and the others wait as texts do; where an alert may not begin was decided before.
    """
    by_id = {alert.id: alert for alert in old}
    waiting = () if held is None else held.ids
    fired: list[Alert] = []
    published: list[Alert] = []
    due_ms: dict[str, int] = {}
    for alert in new:
        before = by_id.get(alert.id)
        has_room = len(published) < room
        if before is None or (before.severity is not alert.severity and has_room):
            fired.append(alert)
            published.append(alert)
        elif alert is before and alert.id not in waiting:
            fired.append(alert)
        elif cause.at_ms >= before.at_ms + REPEAT_MS and has_room:
            fired.append(replace(alert, at_ms=cause.at_ms, cause=cause.id))
            published.append(fired[-1])
        else:
            fired.append(replace(alert, at_ms=before.at_ms, cause=before.cause))
            due_ms[alert.id] = (before.at_ms if has_room else cause.at_ms) + REPEAT_MS
    still_held = Held(min(due_ms.values()), tuple(due_ms)) if due_ms else None
    return tuple(fired), still_held, published


def _ended(
    image: ClusterImage, old: tuple[Alert, ...], new: tuple[Alert, ...], cause: Cause
) -> Iterator[Alert]:
    still_firing = {alert.id for alert in new}
    for alert in old:
        if alert.id not in still_firing:
            is_unknown = image.incomplete and alert.rule in _NEED_WHOLE_LOG
            yield _resolved(alert, cause._replace(ending=NOT_KNOWN) if is_unknown else cause)


def _renamed(
    before: ClusterImage, after: ClusterImage, firing: FiringAlerts, cause: Cause
) -> dict[Subject, tuple[Alert, ...]]:
    """All alerts that fire, by subject, where the cluster has another name now; else none."""
    if not firing or before.sources.statuses is after.sources.statuses:
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


def with_held_published(
    firing: FiringAlerts, held: HeldTexts, cause: Cause
) -> dict[Subject, tuple[Alert, ...]]:
    """The alerts of the subjects with held texts, which are published now, by ``cause``."""
    return {
        subject: tuple(
            replace(alert, at_ms=max(alert.at_ms, cause.at_ms), cause=cause.id)
            if alert.id in texts.ids
            else alert
            for alert in firing.get(subject, ())
        )
        for subject, texts in held.items()
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
        context = context._replace(now_ms=latest_ms)
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


def _same(before: Alert, after: Alert) -> bool:
    return (before.summary, before.severity, before.evidence) == (
        after.summary,
        after.severity,
        after.evidence,
    )


def _findings(context: RuleContext, subject: Subject) -> Iterator[tuple[Rule, Finding]]:
    is_whole = not context.image.incomplete
    for rule in RULES_BY_KIND[subject.kind]:
        if rule.needs_whole_log and not is_whole:
            continue
        notes = _learned(context.image) if rule.needs_whole_log else ()
        yield from ((rule, _with_notes(finding, notes)) for finding in rule.find(context, subject))


def _learned(image: ClusterImage) -> tuple[str, ...]:
    """Where learned tables come from by which registrations and levels are judged."""
    if not learned_notes():
        return ()
    return notes_of_learned(
        (key.capabilities for key in image.nodes.classes), image.features.levels
    )


def _with_notes(finding: Finding, notes: tuple[str, ...]) -> Finding:
    if not notes:
        return finding
    return replace(
        finding,
        summary=f"{finding.summary} ({'; '.join(notes)})",
        evidence={**finding.evidence, "learned": [*notes]},
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
