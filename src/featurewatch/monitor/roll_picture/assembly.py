"""Makes a picture of a roll from the history of a cluster. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from featurewatch.controller.downgrade_path import downgrade_path
from featurewatch.controller.kraft.releases import releases
from featurewatch.monitor.readiness.report import release_levels
from featurewatch.monitor.roll_picture.model import (
    NO_SOFTWARE,
    AlertMark,
    Band,
    Condition,
    LevelChange,
    NextLevel,
    NodeState,
    NoReturn,
    Period,
    RollPicture,
    Software,
    Span,
)
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeKey,
)

Levels = Mapping[FeatureName, FeatureLevel]
AWAY = NodeState(Condition.AWAY, NO_SOFTWARE)


def roll_picture(
    cluster: str,
    period: Period,
    known: Iterable[Period],
    spans: Mapping[NodeKey, Iterable[Span]],
    *,
    levels: Levels,
    changes: Iterable[LevelChange] = (),
    alerts: Iterable[AlertMark] = (),
    running: Iterable[Software] = (),
    notes: Sequence[str] = (),
) -> RollPicture:
    """The picture of a cluster in a period.

    ``known`` are the periods in which the registrations of all nodes are known, and ``spans`` those
    of each node, both in order; a node without a span is not registered. ``levels`` are finalized
    now, ``changes`` are those that led there, and ``running`` is what nodes run now.
    """
    begin, end = period
    shown = tuple(_clipped(known, period))
    all_changes = sorted(changes, key=attrgetter("revision", "feature"))
    return RollPicture(
        cluster,
        begin,
        end,
        shown,
        tuple(
            band
            for key in sorted(spans, key=lambda key: (key.role, key.node_id))
            if (band := _band(key, spans[key], shown, period)).spans
        ),
        levels=tuple(change for change in all_changes if begin <= change.at_ms <= end),
        no_return=tuple(
            item for item in points_of_no_return(all_changes, levels) if begin <= item.at_ms <= end
        ),
        next_level=next_level(levels, running),
        alerts=tuple(
            alert
            for alert in sorted(alerts, key=attrgetter("begin_ms", "id"))
            if alert.begin_ms <= end and (alert.end_ms is None or alert.end_ms >= begin)
        ),
        notes=tuple(notes),
    )


def points_of_no_return(changes: Sequence[LevelChange], levels: Levels) -> Iterator[NoReturn]:
    """The changes from which there is no way back without loss, or from which none is known.

    ``changes`` are in the order of their revisions, and led to ``levels``. The first levels of a
    cluster have none before them to which it could go back.
    """
    found = []
    after: Levels = levels
    for revision, group in groupby(reversed(changes), key=attrgetter("revision")):
        members = [*group]
        # Of the features that changed, the change itself says it: older ones may be forgotten.
        after = _with_levels(after, {change.feature: change.after for change in members})
        before = _with_levels(after, {change.feature: change.before for change in members})
        raised = {
            change.feature
            for change in members
            if change.before is not None and (change.after or 0) > change.before
        }
        path = downgrade_path(before, after) if raised & {METADATA_VERSION, KRAFT_VERSION} else None
        # No release is lost by a higher kraft.version, but it can never be lowered itself.
        if path is not None and not (path.lossless and KRAFT_VERSION not in raised):
            at_ms = max(change.at_ms for change in members)
            is_known = path.lossless is not None or KRAFT_VERSION in raised
            found.append(NoReturn(at_ms, revision, is_known, path.reason))
        after = before
    return reversed(found)


def _with_levels(levels: Levels, others: Mapping[str, int | None]) -> Levels:
    merged: dict[str, int | None] = {
        **{str(name): level for name, level in levels.items()},
        **others,
    }
    return {
        FeatureName(feature): FeatureLevel(level)
        for feature, level in merged.items()
        if level is not None
    }


def next_level(levels: Levels, running: Iterable[Software]) -> NextLevel | None:
    """What the newest running software would finalize above these levels, if it is known."""
    newest = max(running, default=NO_SOFTWARE)
    release = releases().get(newest.name)
    if release is None or METADATA_VERSION not in levels:
        return None
    target = release_levels(release)
    if target[METADATA_VERSION] <= levels[METADATA_VERSION]:
        return None
    path = downgrade_path(levels, {**levels, **target})
    if path is None:
        return None
    return NextLevel(target[METADATA_VERSION], newest.name, path.lossless, path.reason)


def _band(key: NodeKey, spans: Iterable[Span], known: Sequence[Period], period: Period) -> Band:
    """A node's spans within a period: equal neighbours are joined, and where it has none it is
    away, unless nothing is known at that time."""
    found: list[Span] = []
    at_ms = period.begin_ms
    for span in _clipped(spans, period):
        if span.begin_ms > at_ms:
            _add(found, Span(at_ms, span.begin_ms, AWAY))
        _add(found, span)
        at_ms = max(at_ms, span.end_ms)
    if not found:
        return Band(key.role, key.node_id, ())
    if at_ms < period.end_ms:
        _add(found, Span(at_ms, period.end_ms, AWAY))
    visible = [span for span in found if span.state is not AWAY or _is_known(known, span)]
    return Band(key.role, key.node_id, tuple(visible))


def _add(found: list[Span], span: Span) -> None:
    last = found[-1] if found else None
    if last is not None and last.state == span.state and last.end_ms >= span.begin_ms:
        found[-1] = Span(last.begin_ms, max(last.end_ms, span.end_ms), span.state)
    else:
        found.append(span)


def _is_known(known: Sequence[Period], span: Span) -> bool:
    """Whether something is known within a span."""
    return any(begin < span.end_ms and end > span.begin_ms for begin, end in known)


def _clipped(items: Iterable[Any], period: Period) -> Iterator[Any]:
    """Spans or periods as far as they are in a period; those outside are left out."""
    begin, end = period
    for item in items:
        if item.begin_ms >= begin and item.end_ms <= end:
            yield item
        elif item.begin_ms < end and item.end_ms > begin:
            yield item._replace(begin_ms=max(item.begin_ms, begin), end_ms=min(item.end_ms, end))
