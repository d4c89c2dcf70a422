"""The partitions of a cluster from event to event, beside its image.

`track` follows the fold: what `tables.fold` applies to the image's log, or to the resync that goes
on, is applied here to the partitions of the same; when a resync ends, its partitions replace the
others. While a part of the log is missing, records are applied and nothing is concluded from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from immutables import Map

from featurewatch.controller.partitions.kraft_election import KraftElectionRules
from featurewatch.monitor.operations.conditions import due_conditions, touched_conditions
from featurewatch.monitor.operations.detection import CommitContext
from featurewatch.monitor.operations.records import (
    UnreadableRecord,
    apply_commit,
    apply_to_snapshot,
)
from featurewatch.monitor.operations.state import UNKNOWN_PARTITIONS, Incident, PartitionsState
from featurewatch.monitor.readiness.active_controller import active_controller
from featurewatch.monitor.readiness.state_timers import Limits
from featurewatch.streams.events import Event, LogCommit, SnapshotChunk
from featurewatch.streams.kraft.records.selection import PARTITION_RECORD_TYPES
from featurewatch.streams.outputs import Operation
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import FeatureName
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage
from featurewatch.tables.image.log import Resync
from featurewatch.tables.partitions.image import NO_PARTITIONS, PartitionsImage
from featurewatch.tables.partitions.rows import Touched

_ELR: Final = FeatureName("eligible.leader.replicas.version")
_MIGRATING: Final = (1, 2)
"""The states of a log into which ZooKeeper's partitions are copied (``ZkMigrationState``)."""

_NOTHING: Final = Touched()


@dataclass(frozen=True, slots=True)
class TrackResult:
    """The partitions after an event.

    ``touched`` and ``resync_touched`` are what changed in the image and in that of the resync.
    ``subjects`` are the conditions and kinds of incidents whose alerts may have changed.
    """

    state: PartitionsState
    touched: Touched = _NOTHING
    resync_touched: Touched = _NOTHING
    operations: tuple[Operation, ...] = ()
    subjects: tuple[str, ...] = ()
    unreadable: tuple[UnreadableRecord, ...] = ()


def track(
    state: PartitionsState | None,
    before: ClusterImage,
    after: ClusterImage,
    delta: ClusterDelta,
    event: Event,
    at_ms: int,
    limits: Limits,
) -> TrackResult:
    """Applies an event that changed ``before`` into ``after``, at ``at_ms``. Pure.

    The cost follows what the event changes, but for the end of a resync.
    """
    old = state or UNKNOWN_PARTITIONS
    result = _apply(old, before, after, delta, event, at_ms)
    return _with_subjects(old, result, before, after, at_ms, limits)


def _apply(
    state: PartitionsState,
    before: ClusterImage,
    after: ClusterImage,
    delta: ClusterDelta,
    event: Event,
    at_ms: int,
) -> TrackResult:
    resync = after.log.resync
    if delta.from_snapshot and before.log.resync is not resync:
        return _end_resync(_collect(state, before, after, event, at_ms).state)
    if delta.from_snapshot and isinstance(event, SnapshotChunk):  # of a single chunk
        return _end_resync(_collect(state, before, after, event, at_ms).state)
    if resync is not None:
        is_applied = resync is not before.log.resync
        return _collect(state, before, after, event, at_ms) if is_applied else TrackResult(state)
    if state.resync_serial >= 0:
        state = replace(state, resync=None, resync_serial=-1)
    if isinstance(event, LogCommit) and after.log.provenance is not before.log.provenance:
        return _apply_commit(state, before, after, event, at_ms)
    return TrackResult(state)


def _apply_commit(
    state: PartitionsState,
    before: ClusterImage,
    after: ClusterImage,
    event: LogCommit,
    at_ms: int,
) -> TrackResult:
    if not PARTITION_RECORD_TYPES.isdisjoint(event.skipped):
        return TrackResult(replace(state, image=None, missing=""))
    image = state.image
    if image is None and before.log.provenance.offset < 0 and event.first_offset == 0:
        image = NO_PARTITIONS
    if image is None:
        if any(record["type"] in PARTITION_RECORD_TYPES for record in event.records):
            reason = "its partitions are followed from now on"
            state = state if state.missing else replace(state, missing=reason)
        return TrackResult(state)
    if after.log.gap or before.sources.has_lost(METADATA_LOG.short_name):
        applied = apply_to_snapshot(image, event.records, at_ms)
        applied = replace(applied, unreadable=())  # they need what is missing
    else:
        context = CommitContext(event.cluster, event.leader_epoch, event.append_ms, event.seen_ms)
        applied = apply_commit(
            image,
            before.nodes,
            event.records,
            partial(election_rules, before),
            context,
            at_ms,
            migrates=after.log.migration in _MIGRATING,
        )
    if applied.image is state.image and not applied.operations:
        return TrackResult(state, unreadable=applied.unreadable)
    incidents = _with_incidents(state.incidents, applied.incidents, at_ms)
    after_state = replace(state, image=applied.image, incidents=incidents, missing="")
    return TrackResult(
        after_state, applied.touched, operations=applied.operations, unreadable=applied.unreadable
    )


def _collect(
    state: PartitionsState,
    before: ClusterImage,
    after: ClusterImage,
    event: Event,
    at_ms: int,
) -> TrackResult:
    """Applies an event to the partitions that a resync collects."""
    resync = after.log.resync or before.log.resync
    is_first = isinstance(event, SnapshotChunk) and event.index == 0
    is_single = is_first and after.log.resync is None
    serial = _serial(resync, after, is_single=is_single)
    if serial != state.resync_serial:
        state = replace(state, resync=NO_PARTITIONS, resync_serial=serial)
    image = state.resync
    if image is None or not isinstance(event, LogCommit | SnapshotChunk):
        return TrackResult(state)
    if not PARTITION_RECORD_TYPES.isdisjoint(event.skipped):
        return TrackResult(replace(state, resync=None))
    last_offset = event.end_offset - 1 if isinstance(event, SnapshotChunk) else None
    applied = apply_to_snapshot(image, event.records, at_ms, last_offset)
    return TrackResult(
        replace(state, resync=applied.image),
        resync_touched=applied.touched,
        unreadable=applied.unreadable,
    )


def _serial(resync: Resync | None, after: ClusterImage, *, is_single: bool) -> int:
    return after.resyncs if resync is None or is_single else resync.serial


def _end_resync(state: PartitionsState) -> TrackResult:
    """The partitions of a resync that ended replace the others; nobody saw the differences happen.

    A reassignment that is unchanged keeps the time at which it began.
    """
    collected, old = state.resync, state.image
    if collected is None:
        after = replace(state, image=None, resync=None, resync_serial=-1, missing="")
        return TrackResult(after)
    if old is not None:
        partitions = collected.partitions.mutate()
        for key, partition in collected.partitions.items():
            former = old.partitions.get(key)
            if former is not None and former.since != partition.since and former.since:
                began = dict(former.since)
                since = tuple((name, began.get(name, at_ms)) for name, at_ms in partition.since)
                partitions[key] = partition._replace(since=since)
        collected = PartitionsImage.of(collected.topics, partitions.finish(), collected.min_isrs)
    after = replace(state, image=collected, resync=None, resync_serial=-1, missing="")
    return TrackResult(after, touched=_differences(old or NO_PARTITIONS, collected))


def _differences(before: PartitionsImage, after: PartitionsImage) -> Touched:
    topics = [it for it in after.topics if before.topics.get(it) != after.topics[it]]
    topics += [it for it in before.topics if it not in after.topics]
    old, new = before.partitions, after.partitions
    partitions = [key for key, partition in new.items() if old.get(key) != partition]
    partitions += [key for key in old if key not in new]
    settings = before.min_isrs, after.min_isrs
    min_isrs = {*settings[0].items()} ^ {*settings[1].items()}
    return Touched(topics, partitions, dict.fromkeys(resource for resource, _ in min_isrs))


def election_rules(image: ClusterImage) -> KraftElectionRules | None:
    """The rules of the active controller's release; None where it is not known."""
    release = active_controller(image).release
    if release is None:
        return None
    major, minor = release.name.split(".")[:2]
    is_elr = image.features.levels.get(_ELR, 0) > 0
    return KraftElectionRules((int(major), int(minor)), elr=is_elr)


def _with_incidents(
    incidents: Map[str, Incident], new: Mapping[str, Incident], at_ms: int
) -> Map[str, Incident]:
    for kind, incident in new.items():
        first = incidents.get(kind, incident)
        times = incident.times + (0 if first is incident else first.times)
        incidents = incidents.set(kind, first._replace(times=times, last_ms=at_ms))
    return incidents


def _with_subjects(
    old: PartitionsState,
    result: TrackResult,
    before: ClusterImage,
    after: ClusterImage,
    at_ms: int,
    limits: Limits,
) -> TrackResult:
    """The result with what its alerts need: incidents that end, conditions that last too long."""
    state, incidents = result.state, result.state.incidents
    for kind, incident in incidents.items():
        if at_ms - incident.last_ms >= limits.quiet_ms:
            incidents = incidents.delete(kind)
    if incidents is not state.incidents:
        state = replace(state, incidents=incidents)
    subjects: dict[str, None] = {}
    if incidents is not old.incidents:
        subjects |= dict.fromkeys(sorted({*incidents, *old.incidents}))
    becomes_ready = after.ready and not before.ready
    if becomes_ready:
        subjects |= dict.fromkeys(sorted(incidents))
    subjects |= dict.fromkeys(touched_conditions(old.image, state.image, everything=becomes_ready))
    state, overdue = due_conditions(old, state, at_ms, limits)
    subjects |= dict.fromkeys(overdue)
    return replace(result, state=state, subjects=tuple(subjects))
