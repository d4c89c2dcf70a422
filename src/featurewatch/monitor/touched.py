"""The subjects whose findings an event may have changed: only these are evaluated."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import compress
from operator import attrgetter, is_not
from typing import Final

from featurewatch.controller.software import is_unknown_release
from featurewatch.monitor.quorum.timers import has_overdue
from featurewatch.monitor.readiness.state_timers import CLUSTER, affected_beyond_delta, take_due
from featurewatch.monitor.readiness.upgrade_state import UpgradeState
from featurewatch.monitor.rules import (
    READS_BY_KIND,
    RuleContext,
    Subject,
    SubjectKind,
    needs_evaluation,
    node_preconditions,
)
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey
from featurewatch.tables.image.zookeeper import FEATURES_PATHS

Firing = Mapping[Subject, object]
"""The subjects with firing alerts."""

_PARTS: Final = sorted(frozenset().union(*READS_BY_KIND.values()))
_parts: Final = attrgetter(*_PARTS)
_UPGRADE: Final = Subject(SubjectKind.UPGRADE, "")
_RELEASE: Final = Subject(SubjectKind.RELEASE, "")
_QUORUM: Final = Subject(SubjectKind.QUORUM, "")


def touched_subjects(
    before: ClusterImage, after: ClusterImage, delta: ClusterDelta, firing: Firing
) -> Iterable[Subject]:
    """The subjects whose findings may have changed, without duplicates, in a fixed order."""
    subjects: dict[Subject, None] = {}
    if before.sources.statuses is not after.sources.statuses:
        subjects.update((subject, None) for subject in _changed_sources(before, after, firing))
    if before.sources.unreadable is not after.sources.unreadable:
        names = sorted({*before.sources.unreadable, *after.sources.unreadable})
        subjects.update((Subject(SubjectKind.RECORD, name), None) for name in names)
    if before.zookeeper is not after.zookeeper:
        subjects.update(
            (Subject(SubjectKind.ZNODE, path), None) for path in _touched_paths(before, after)
        )
    if after.ready:
        if _evaluates_again(before, after) or _is_learned(before, after, firing):
            subjects.update(_all_subjects(after, firing))
        elif delta.nodes or before.features is not after.features:
            subjects.update(_subjects_of_delta(before, after, delta, firing))
    for kind in _kinds_to_evaluate(before, after):
        subjects.update((subject, None) for subject in _subjects_of(kind, before, after))
    return subjects


def _is_learned(before: ClusterImage, after: ClusterImage, firing: Firing) -> bool:
    """Whether a release is known that was unknown: the worker started with a learned file.

    With heartbeats only: nothing of the cluster changed.
    """
    if _RELEASE not in firing or before.sources.statuses is after.sources.statuses:
        return False
    keys = (*after.nodes.classes, *after.answers.nodes.classes)
    return not any(is_unknown_release(key.capabilities) for key in keys)


def _evaluates_again(before: ClusterImage, after: ClusterImage) -> bool:
    """Whether all subjects must be evaluated: they could not be before, or cannot any more."""
    return not before.ready or bool(before.incomplete) is not bool(after.incomplete)


def _changed_sources(
    before: ClusterImage, after: ClusterImage, firing: Firing
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


def every_subject(context: RuleContext, firing: Firing) -> Iterator[Subject]:
    """Every subject that may have findings, those with a timer included."""
    yield from (subject for subject, _ in _all_subjects(context.image, firing))
    _, due = take_due(replace(context.times, due_ms=0), context.limits, context.now_ms)
    yield from (Subject(SubjectKind.NODE, key) for key in due)
    yield from (Subject(SubjectKind.ZNODE, path) for path in context.image.zookeeper.issues)


def overdue_subjects(
    before: ClusterImage,
    delta: ClusterDelta,
    firing: Firing,
    context: RuleContext,
    due: Iterable[NodeKey],
) -> Iterator[Subject]:
    """The subjects with a condition that may have exceeded its limit, or has ended."""
    if not context.image.ready:
        return
    if _evaluates_again(before, context.image):  # nodes that were due earlier were not evaluated
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
    quorum, limit_ms = context.times.quorum, context.limits.quorum_ms
    if _QUORUM in firing or (quorum and has_overdue(quorum, context.now_ms, limit_ms)):
        yield _QUORUM


def _touched_paths(before: ClusterImage, after: ClusterImage) -> Iterable[str]:
    """The znodes whose findings may have changed: those with an issue, and the features znodes."""
    old, new = before.zookeeper.issues, after.zookeeper.issues
    with_issues = () if old is new else sorted({*old, *new})
    return (*FEATURES_PATHS, *with_issues)


def _all_subjects(image: ClusterImage, firing: Firing) -> Iterator[tuple[Subject, None]]:
    for key in image.nodes.classes:
        if needs_evaluation(key.capabilities, image.features.levels):
            yield from _member_subjects(image, key)
    for kind in READS_BY_KIND:
        yield from ((subject, None) for subject in _subjects_of(kind, image, image))
    for subject in sorted(firing, key=str):
        yield subject, None


def _subjects_of_delta(
    before: ClusterImage, after: ClusterImage, delta: ClusterDelta, firing: Firing
) -> Iterator[tuple[Subject, None]]:
    levels, levels_before = after.features.levels, before.features.levels
    distinct = {node.capabilities for node in delta.nodes.values() if node is not None}
    evaluated = {item for item in distinct if needs_evaluation(item, levels)}
    if not (evaluated or firing) and levels is levels_before:
        return
    for key, node in delta.nodes.items():
        if node is not None and node.capabilities in evaluated:
            yield Subject(SubjectKind.NODE, key), None
        elif firing and (subject := Subject(SubjectKind.NODE, key)) in firing:
            yield subject, None
    if levels is not levels_before:
        for class_key in after.nodes.classes:
            capabilities = class_key.capabilities
            if node_preconditions(capabilities, levels_before) != node_preconditions(
                capabilities, levels
            ):
                yield from _member_subjects(after, class_key)


def _kinds_to_evaluate(before: ClusterImage, after: ClusterImage) -> Iterator[SubjectKind]:
    """The kinds of which some rule reads a part of the image that was replaced."""
    replaced = [*compress(_PARTS, map(is_not, _parts(before), _parts(after)))]
    if replaced:  # by few commits, and by no ordinary heartbeat
        yield from (kind for kind, reads in READS_BY_KIND.items() if not reads.isdisjoint(replaced))


def _subjects_of(kind: SubjectKind, before: ClusterImage, after: ClusterImage) -> Iterator[Subject]:
    """All subjects of a kind whose rules have `Rule.reads`."""
    if kind is not SubjectKind.FEATURE:
        yield Subject(kind, "")
        return
    names = {*before.features.levels, *after.features.levels}
    names |= {*before.answers.disagreements, *after.answers.disagreements}
    yield from (Subject(kind, name) for name in sorted(names))


def _member_subjects(image: ClusterImage, key: CapabilityKey) -> Iterator[tuple[Subject, None]]:
    for node_id in sorted(image.nodes.classes[key]):
        yield Subject(SubjectKind.NODE, NodeKey(key.role, node_id)), None
