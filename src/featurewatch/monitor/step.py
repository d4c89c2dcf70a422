"""One step of the monitor: from an event to changes, alerts and a snapshot.

Every engine calls `step`, so the same events have the same outputs in each of them.
"""

from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self, TypeGuard

from immutables import Map

from featurewatch.monitor.alert_budget import NOTHING_SPENT, AlertBudget
from featurewatch.monitor.alerts import (
    NO_ALERT_CHANGES,
    NO_HELD,
    RESOLVED,
    AlertChanges,
    Cause,
    FiringAlerts,
    HeldTexts,
    evaluate,
    resolve_all,
)
from featurewatch.monitor.operations.records import UnreadableRecord
from featurewatch.monitor.operations.state import PartitionsState
from featurewatch.monitor.operations.tracker import TrackResult, track
from featurewatch.monitor.quorum.timers import acknowledged
from featurewatch.monitor.readiness.state_timers import (
    DEFAULT_LIMITS,
    NO_TIMES,
    Limits,
    StateTimers,
    advance_timers,
    take_due,
)
from featurewatch.monitor.rules import RuleContext
from featurewatch.monitor.snapshot import provenance_fields, snapshot
from featurewatch.streams.codec.outputs import Output
from featurewatch.streams.events import Acknowledgement, Event, LogCommit, SnapshotChunk
from featurewatch.streams.outputs import Alert, FeatureChange, Snapshot
from featurewatch.streams.types import ClusterId
from featurewatch.tables.fold.fold import (
    fold,
    fold_ahead,
    fold_lost,
    fold_lost_outputs,
    fold_unreadable,
)
from featurewatch.tables.image.cluster import NOTHING, SKIPPED, ClusterDelta, ClusterImage
from featurewatch.tables.image.sources import MessagePosition, count_unreadable

MAX_AHEAD_MS: Final = 30_000
"""How far the time of an event may lie ahead of the time at which the bus received its message:
the clocks of machines differ a little, and the shortest limit of a rule is a minute."""

_NEVER_MS: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class MonitorState:
    """The image of a cluster, its firing alerts, and the start times of states and conditions.

    ``partitions`` is None where operations are not followed. ``held`` are the texts of
    alerts that wait, as one was published within the last minute; ``budget`` is what the cluster
    may still publish of alerts.
    """

    image: ClusterImage
    firing: FiringAlerts = field(default_factory=Map)
    times: StateTimers = NO_TIMES
    partitions: PartitionsState | None = None
    held: HeldTexts = NO_HELD
    budget: AlertBudget = field(default=NOTHING_SPENT, compare=False)

    @classmethod
    def of(cls, cluster: ClusterId) -> Self:
        """The state before the first event of a cluster."""
        return cls(ClusterImage(cluster))


class StepResult(NamedTuple):
    """The state after an event, what the event changed, and the outputs to publish.

    ``snapshot`` is set iff the event raised the feature revision. ``tracked`` is what the event
    changed of the partitions (None: nothing, or operations are not followed).
    """

    state: MonitorState
    delta: ClusterDelta
    cause: Cause
    changes: tuple[FeatureChange, ...] = ()
    alert_changes: AlertChanges = NO_ALERT_CHANGES
    snapshot: Snapshot | None = None
    tracked: TrackResult | None = None

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """The alerts that began, changed or ended."""
        return tuple(alert for alerts in self.alert_changes.values() for alert in alerts)

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Everything to publish, in order."""
        outputs: list[Output] = [*self.changes, *self.alerts]
        if self.snapshot is not None:
            outputs.append(self.snapshot)
        if self.tracked is not None:
            outputs.extend(self.tracked.operations)
        return tuple(outputs)


def step(
    state: MonitorState,
    event: Event,
    position: MessagePosition | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> StepResult:
    """Applies one event. Pure. An event that was already applied produces no output.

    ``position`` is the position of the event's message on the bus, if it came from there; it
    identifies messages that the bus delivers again after a crash. ``limits`` are the durations
    after which conditions become alerts, measured in event time. An event's time is at most
    `MAX_AHEAD_MS` after that of its message: a clock that is ahead moves no timer of the cluster,
    and every reader of the topic comes to the same time.
    """
    before, claimed_ms = state.image, _time_ms(event)
    received_ms = before.sources.received_ms(position) or claimed_ms
    is_ahead = claimed_ms - received_ms > MAX_AHEAD_MS
    at_ms = received_ms if is_ahead else claimed_ms
    cause = Cause(event.id, at_ms, _ending(event))
    if position is not None and before.sources.has_applied(position):
        return StepResult(state, SKIPPED, cause)
    after, delta = fold(before, event)
    if delta.skipped:
        skipped = state if after is before else replace(state, image=after)
        return StepResult(skipped, delta, cause)
    if position is not None:
        after = after.with_sources(after.sources.mark_applied(position))
    if is_ahead and not after.forgotten:
        after = fold_ahead(after, event.id, _ahead_reason(event, claimed_ms - received_ms))
    after = _at_time(after, received_ms, limits)
    if after.forgotten:
        ended = resolve_all(state.firing, cause)
        return StepResult(MonitorState(after), delta, cause, alert_changes=ended)
    tracked, partitions = None, None
    subjects: tuple[str, ...] = ()
    if limits.operations:
        tracked = track(state.partitions, before, after, delta, event, at_ms, limits)
        partitions, subjects = tracked.state, tracked.subjects
        after = _with_unreadable(after, tracked.unreadable)
    times = advance_timers(state.times, before, after, delta, at_ms, limits)
    if isinstance(event, Acknowledgement):
        rule = event.alert.removeprefix(f"{after.cluster}/").partition("/")[0]
        times = replace(times, quorum=acknowledged(times.quorum, rule))
    times, due = take_due(times, limits, at_ms) if after.ready else (times, [])
    context = RuleContext(after, times, limits, at_ms, received_ms, partitions)
    firing, alert_changes, held, budget = evaluate(
        before, delta, state.firing, cause, context, due, subjects, state.held, state.budget
    )
    raised = after.features.revision != before.features.revision
    return StepResult(
        state=MonitorState(after, firing, times, partitions, held, budget),
        delta=delta,
        cause=cause,
        changes=_changes(after, delta, event),
        alert_changes=alert_changes,
        snapshot=snapshot(after, at_ms) if raised else None,
        tracked=tracked,
    )


def step_unreadable(
    state: MonitorState,
    place: str,
    reason: str,
    position: MessagePosition,
    limits: Limits = DEFAULT_LIMITS,
) -> StepResult:
    """Counts an unreadable message at ``place``, its position as text. Pure, as `step` is."""
    cause = Cause(place, position.time_ms)
    if state.image.sources.has_applied(position):
        return StepResult(state, SKIPPED, cause)
    after = fold_unreadable(state.image, place, reason)
    after = after.with_sources(after.sources.mark_applied(position))
    return _step_to(state, after, cause, after.sources.received_ms(position), limits)


def step_lost(
    state: MonitorState, topic: str, reason: str, cause: Cause, limits: Limits = DEFAULT_LIMITS
) -> StepResult:
    """Counts messages of the cluster that the bus lost before they were read. Pure.

    ``topic`` is the input topic's short name, ``reason`` says which ones, and ``cause`` names the
    message that came in their place. The worker alone notices such a loss: what the lake has
    ingested is not lost.
    """
    after = fold_lost(state.image, topic, cause.id, reason)
    return _step_to(state, after, cause, cause.at_ms, limits)


def step_lost_outputs(
    state: MonitorState, topic: str, reason: str, cause: Cause, limits: Limits = DEFAULT_LIMITS
) -> StepResult:
    """Counts that the bus lost what was published on an output topic. Pure.

    The arguments are `step_lost`'s.
    """
    after = fold_lost_outputs(state.image, topic, cause.id, reason)
    return _step_to(state, after, cause, cause.at_ms, limits)


def _step_to(
    state: MonitorState, after: ClusterImage, cause: Cause, received_ms: int, limits: Limits
) -> StepResult:
    """The step to an image that differs only in what is unreadable or lost."""
    after = _at_time(after, received_ms, limits)
    context = RuleContext(after, state.times, limits, cause.at_ms, received_ms, state.partitions)
    firing, alert_changes, held, budget = evaluate(
        state.image,
        NOTHING,
        state.firing,
        cause,
        context,
        held=state.held,
        budget=state.budget,
    )
    after_state = replace(state, image=after, firing=firing, held=held, budget=budget)
    return StepResult(after_state, NOTHING, cause, alert_changes=alert_changes)


def _with_unreadable(image: ClusterImage, records: tuple[UnreadableRecord, ...]) -> ClusterImage:
    """The image with unreadable records of topics and partitions counted, in the resync if any."""
    resync = image.log.resync
    unreadable = image.sources.unreadable if resync is None else resync.unreadable
    for record in records:
        place = f"offset {record.offset}"
        unreadable = count_unreadable(unreadable, record.kind, place, record.reason)
    if not records:
        return image
    if resync is None:
        return image.with_unreadable(unreadable)
    resync = replace(resync, unreadable=unreadable)
    return replace(image, log=replace(image.log, resync=resync))


def _at_time(image: ClusterImage, received_ms: int, limits: Limits) -> ClusterImage:
    """The image after a message of this time on the bus; what is quiet for long enough ends.

    While the log is read again, what could not be read is still to be replaced.
    """
    quiet_ms = limits.quiet_ms if image.log.resync is None else _NEVER_MS
    return image.with_sources(image.sources.at_time(received_ms, quiet_ms))


def _ahead_reason(event: Event, ahead_ms: int) -> str:
    clock = "the controller's" if _has_append_time(event) else "the source's"
    return f"by {clock} clock it happened {ahead_ms // 1000} s after the bus received it"


def _ending(event: Event) -> str:
    """How the alerts that end by an event begin their summary."""
    if isinstance(event, Acknowledgement):
        return f"Acknowledged by {event.by} ({event.reason})"
    return RESOLVED


def _has_append_time(event: Event) -> TypeGuard[LogCommit | SnapshotChunk]:
    return isinstance(event, (LogCommit, SnapshotChunk)) and event.append_ms >= 0


def _time_ms(event: Event) -> int:
    """The time of an event's cause (ms since the Unix epoch): Kafka's append time if it has one."""
    return event.append_ms if _has_append_time(event) else event.seen_ms


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
            kind=change.kind,
            epoch=features.epoch,
            revision=features.revision,
            provenance=provenance_fields(features.provenance),
            from_snapshot=delta.from_snapshot,
            append_ms=append_ms,
            seen_ms=event.seen_ms,
        )
        for change in delta.levels
    )
