"""One step of the monitor: an event in; changes, alerts and a snapshot out.

Every engine calls `step`, and so the same events give the same outputs whichever engine runs it.
"""

from dataclasses import dataclass, field
from typing import Self

from immutables import Map

from featurewatch.controller.alerts import AlertChanges, Cause, FiringAlerts, evaluate
from featurewatch.controller.readiness.state_timers import (
    DEFAULT_LIMITS,
    NO_TIMES,
    Limits,
    StateTimers,
    advance_timers,
    take_due,
)
from featurewatch.controller.rules import RuleContext
from featurewatch.controller.snapshot import provenance_fields, snapshot
from featurewatch.streams.events import Event, LogCommit, SnapshotChunk
from featurewatch.streams.outputs import Alert, ChangeKind, FeatureChange, Snapshot
from featurewatch.streams.types import ClusterId
from featurewatch.tables.fold.fold import fold, fold_unreadable
from featurewatch.tables.image.cluster import (
    NOTHING,
    SKIPPED,
    ClusterDelta,
    ClusterImage,
    MessagePosition,
)


@dataclass(frozen=True, slots=True)
class MonitorState:
    """What is known of a cluster, which alerts fire, and since when things are so."""

    image: ClusterImage
    firing: FiringAlerts = field(default_factory=Map)
    times: StateTimers = NO_TIMES

    @classmethod
    def of(cls, cluster: ClusterId) -> Self:
        """The state before the first event of a cluster."""
        return cls(ClusterImage(cluster))


@dataclass(frozen=True, slots=True)
class StepResult:
    """The state after an event, what the event changed in it, and what is to be said.

    ``snapshot`` is there iff the event raised the feature revision.
    """

    state: MonitorState
    delta: ClusterDelta
    changes: tuple[FeatureChange, ...] = ()
    alert_changes: AlertChanges = field(default_factory=dict)
    snapshot: Snapshot | None = None

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The alerts that began, changed or ended."""
        return tuple(alert for alerts in self.alert_changes.values() for alert in alerts)


def step(
    state: MonitorState,
    event: Event,
    delivery: MessagePosition | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> StepResult:
    """Takes in one event. Pure; an event that was taken in before says nothing.

    ``delivery`` is where it stood on the bus, if it came from there: what the bus gives again after
    a crash is told by it, whatever the event is. ``limits`` say what has lasted too long; the time
    is the events' own.
    """
    before = state.image
    if delivery is not None and before.has_applied(delivery):
        return StepResult(state, SKIPPED)
    after, delta = fold(before, event)
    if delta.skipped:
        return StepResult(
            state if after is before else MonitorState(after, state.firing, state.times), delta
        )
    if delivery is not None:
        after = after.mark_applied(delivery)
    at_ms = _time_ms(event)
    times = advance_timers(state.times, before, after, delta, at_ms, limits)
    times, due = take_due(times, limits, at_ms) if after.ready else (times, [])
    seen = RuleContext(after, times, limits, at_ms)
    firing, said = evaluate(before, delta, state.firing, Cause(event.id, at_ms), seen, due)
    raised = after.features.revision != before.features.revision
    return StepResult(
        state=MonitorState(after, firing, times),
        delta=delta,
        changes=_changes(after, delta, event),
        alert_changes=said,
        snapshot=snapshot(after, at_ms) if raised else None,
    )


def step_unreadable(
    state: MonitorState,
    place: str,
    reason: str,
    delivery: MessagePosition,
    limits: Limits = DEFAULT_LIMITS,
) -> StepResult:
    """Takes in that a message on a topic could not be read."""
    if state.image.has_applied(delivery):
        return StepResult(state, SKIPPED)
    at_ms = delivery.time_ms
    after = fold_unreadable(state.image, place, reason).mark_applied(delivery)
    seen = RuleContext(after, state.times, limits, at_ms)
    firing, said = evaluate(state.image, NOTHING, state.firing, Cause(place, at_ms), seen)
    return StepResult(MonitorState(after, firing, state.times), NOTHING, alert_changes=said)


def _time_ms(event: Event) -> int:
    """When an event's cause happened: Kafka's own time where there is one."""
    if isinstance(event, (LogCommit, SnapshotChunk)) and event.append_ms >= 0:
        return event.append_ms
    return event.seen_ms


def _changes(after: ClusterImage, delta: ClusterDelta, event: Event) -> tuple[FeatureChange, ...]:
    if not delta.levels:
        return ()
    features = after.features
    append_ms = event.append_ms if isinstance(event, (LogCommit, SnapshotChunk)) else -1
    return tuple(
        FeatureChange(
            cluster=after.cluster,
            feature=change.feature,
            before=change.before,
            after=change.after,
            kind=_kind(change.before, change.after),
            epoch=features.epoch,
            revision=features.revision,
            provenance=provenance_fields(features.provenance),
            from_snapshot=delta.from_snapshot,
            append_ms=append_ms,
            seen_ms=event.seen_ms,
        )
        for change in delta.levels
    )


def _kind(before: int, after: int) -> ChangeKind:
    if after == 0:
        return ChangeKind.REMOVED
    if before == 0:
        return ChangeKind.FINALIZED
    return ChangeKind.UPGRADED if after > before else ChangeKind.DOWNGRADED
