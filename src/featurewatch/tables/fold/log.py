"""Applies the events of the topic ``featurewatch.metadata-log``."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from immutables import Map

from featurewatch.streams.events import (
    UNREADABLE,
    LogCommit,
    LogGap,
    RecordJson,
    SnapshotChunk,
    SourceResync,
)
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.tables.fold.records import REPLAYS, RecordReplay, UnregisteredBrokerError
from featurewatch.tables.image.cluster import (
    NOTHING,
    SKIPPED,
    Authority,
    ClusterDelta,
    ClusterImage,
)
from featurewatch.tables.image.features import level_changes
from featurewatch.tables.image.log import LogDelta, LogImage, Quorum, Resync
from featurewatch.tables.image.nodes import NodeChanges
from featurewatch.tables.image.provenance import NO_PROVENANCE, LogProvenance
from featurewatch.tables.image.sources import (
    MAX_UNKNOWN_KINDS,
    Unreadable,
    UnreadableRecords,
    count_unreadable,
    lost_topic,
)

Folded = tuple[ClusterImage, ClusterDelta]

_APPLIED_TYPES: Final = frozenset({*REPLAYS, UNREADABLE})
"""The record types that change the image, or its count of unreadable records."""


def fold_commit(image: ClusterImage, event: LogCommit) -> Folded:
    """Applies a committed batch or transaction, unless its last offset was applied before."""
    image = _under_log(image)
    resync = image.log.resync
    if resync is not None and resync.continues and not resync.reads_log:
        # Its source has restarted before the end of the snapshot, and begins again.
        image = image.start_resync()
        resync = image.log.resync
    if resync is not None and resync.reads_log:
        return _commit_to_resync(image, resync, event)
    if event.last_offset <= image.log.provenance.offset:
        return image, SKIPPED
    provenance = LogProvenance(event.last_offset, event.leader_epoch, event.append_ms)
    replay = RecordReplay(image.nodes, provenance, image.features.levels)
    unreadable = _replay_all(replay, event.records, image.sources.unreadable)
    features = image.features.with_changes(replay.levels, event.last_offset, provenance)
    nodes = image.nodes.with_changes(replay.nodes) if replay.nodes else image.nodes
    levels = level_changes(image.features, features)
    # Constructors, since `dataclasses.replace` takes three times as long.
    after = ClusterImage(
        image.cluster,
        image.authority,
        features,
        nodes,
        LogImage(
            provenance,
            max(image.log.max_offset, event.last_offset),
            _quorum(image.log.quorum, replay, event.leader_epoch),
            image.log.migration if replay.migration is None else replay.migration,
            image.log.gap,
            None,  # a resync from an unfinished snapshot is dropped: its source has restarted
        ),
        image.zookeeper,
        image.answers,
        image.sources.with_unreadable(unreadable),
        image.resyncs,
    )
    return after, ClusterDelta(nodes=replay.nodes, levels=levels)


def _commit_to_resync(image: ClusterImage, resync: Resync, event: LogCommit) -> Folded:
    """Applies a commit of the log that the source reads again; nothing of the cluster changes."""
    if event.last_offset <= resync.provenance.offset:
        return image, SKIPPED
    provenance = LogProvenance(event.last_offset, event.leader_epoch, event.append_ms)
    resync, nodes = _continue_resync(resync, event.records, provenance)
    after = replace(image, log=replace(image.log, resync=resync))
    return after, ClusterDelta(log=LogDelta(nodes))


def fold_chunk(image: ClusterImage, event: SnapshotChunk) -> Folded:
    """Applies one chunk of a snapshot; the last chunk ends the resync.

    If the source reads the log again from its beginning, the log after the snapshot belongs to the
    resync too. A snapshot that ends before the last applied offset changes nothing, and neither
    does a repeated chunk. A chunk that does not follow the previous one is counted as unreadable.
    """
    image = _under_log(image)
    resync = image.log.resync
    continues = resync is not None and (resync.continues or resync.reads_log)
    position = resync.provenance if resync is not None and continues else image.log.provenance
    is_next = resync is not None and _belongs(event, resync)
    if event.end_offset - 1 <= position.offset and not (continues and is_next):
        return image, SKIPPED
    if event.index == 0:
        image = image.start_resync(event.end_offset, event.leader_epoch, continues=continues)
        resync = image.log.resync
    if resync is None or not _belongs(event, resync) or event.index > resync.next_index:
        return _out_of_order(image, event), NOTHING
    if event.index < resync.next_index:
        return image, SKIPPED
    provenance = LogProvenance(event.end_offset - 1, event.leader_epoch, event.append_ms)
    resync, nodes = _continue_resync(resync, event.records, provenance)
    resync = replace(resync, next_index=event.index + 1)
    if event.last and resync.continues:
        resync = replace(resync, end_offset=-1, leader_epoch=-1)
    image = replace(image, log=replace(image.log, resync=resync))
    if event.last and not resync.continues:
        return end_resync(image)
    return image, ClusterDelta(log=LogDelta(nodes))


def fold_log_resync(image: ClusterImage, event: SourceResync) -> Folded:
    """Begins a resync from the beginning of the log; it ends when its source follows again."""
    if event.finished:
        return image, SKIPPED
    return _under_log(image).start_resync(), NOTHING


def fold_gap(image: ClusterImage, event: LogGap) -> Folded:
    """Applies that a range of the log is lost, or that the log itself went backwards.

    A range that a snapshot has covered since changes nothing.
    """
    image = _under_log(image)
    if event.reset:
        log = replace(image.log, gap=event.reason, provenance=NO_PROVENANCE)
        return replace(image, log=log).start_resync(), NOTHING
    resync = image.log.resync
    if resync is not None and resync.reads_log:
        if event.to_offset <= resync.provenance.offset:
            return image, SKIPPED
        resync = replace(resync, gap=event.reason)
        return replace(image, log=replace(image.log, resync=resync)), NOTHING
    if event.to_offset <= image.log.provenance.offset:
        return image, SKIPPED
    return replace(image, log=replace(image.log, gap=event.reason)), NOTHING


def end_resync(image: ClusterImage) -> Folded:
    """Replaces nodes and levels by those of the resync; the delta holds the real differences."""
    resync = image.log.resync
    if resync is None:
        return image, NOTHING
    levels = Map({name: level for name, level in resync.levels.items() if level > 0})
    provenance = resync.provenance
    features = image.features.with_snapshot(levels, provenance.offset, provenance)
    log = LogImage(
        provenance=provenance,
        max_offset=max(image.log.max_offset, provenance.offset),
        quorum=resync.quorum,
        migration=resync.migration,
        gap=resync.gap,
    )
    lost = {kind: it for kind, it in image.sources.unreadable.items() if lost_topic(kind)}
    sources = image.sources.with_unreadable(resync.unreadable.update(lost))
    after = replace(
        image,
        features=features,
        nodes=resync.nodes,
        log=log,
        sources=sources.without_lost(METADATA_LOG.short_name),
    )
    delta = ClusterDelta(
        nodes=resync.nodes.difference(image.nodes),
        levels=level_changes(image.features, features),
        from_snapshot=True,
    )
    return after, delta


def follow_log(image: ClusterImage, delta: ClusterDelta) -> Folded:
    """The log is followed at its end: what it had before it went backwards does not return."""
    log = image.log
    if log.resync is None and 0 <= log.provenance.offset < log.max_offset:
        image = replace(image, log=replace(log, max_offset=log.provenance.offset))
    return image, delta


def _under_log(image: ClusterImage) -> ClusterImage:
    """The image with the log as its authority.

    What ApiVersions or ZooKeeper provided stays until the log has been read to its end; the brokers
    of ZooKeeper stay in ``zookeeper`` from then on.
    """
    if image.authority is Authority.LOG:
        return image
    zookeeper = replace(image.zookeeper, nodes=image.brokers)
    after = replace(image, authority=Authority.LOG, zookeeper=zookeeper)
    return after if image.authority is Authority.NONE else after.start_resync()


def _continue_resync(
    resync: Resync, records: Sequence[RecordJson], provenance: LogProvenance
) -> tuple[Resync, NodeChanges]:
    replay = RecordReplay(resync.nodes, provenance, resync.levels)
    unreadable = _replay_all(replay, records, resync.unreadable)
    after = replace(
        resync,
        levels=resync.levels.update(replay.levels),
        nodes=resync.nodes.with_changes(replay.nodes),
        unreadable=unreadable,
        provenance=provenance,
        quorum=_quorum(resync.quorum, replay, provenance.leader_epoch),
        migration=resync.migration if replay.migration is None else replay.migration,
    )
    return after, replay.nodes


def _replay_all(
    replay: RecordReplay, records: Sequence[RecordJson], unreadable: Unreadable
) -> Unreadable:
    """Replays records; returns ``unreadable`` plus those that could not be read."""
    # Filter first: of a source that publishes all records, most do not affect the image.
    applied = [record for record in records if record["type"] in _APPLIED_TYPES]
    removals: Mapping[object, int] | None = None
    for index, record in enumerate(applied):
        if record["type"] == UNREADABLE:
            unreadable = _count_stand_in(unreadable, record)
            continue
        try:
            REPLAYS[record["type"]](replay, record["data"])
        except UnregisteredBrokerError as error:
            # Once for all records: a log may change unknown brokers any number of times.
            removals = _removals(applied) if removals is None else removals
            # Before a crash a later record may have unregistered the broker already.
            if removals.get(error.key.node_id, -1) <= index:
                unreadable = _count_record(unreadable, record, str(error))
        except (KeyError, TypeError, ValueError) as error:
            unreadable = _count_record(unreadable, record, f"{type(error).__name__}: {error}")
    return unreadable


def _removals(records: Sequence[RecordJson]) -> Mapping[object, int]:
    """The number of the last record that unregisters each broker, by the broker's id."""
    return {
        broker_id: index
        for index, record in enumerate(records)
        if record["type"] == "UNREGISTER_BROKER_RECORD"
        and type(broker_id := record["data"].get("brokerId")) is int
    }


def _count_stand_in(unreadable: Unreadable, record: RecordJson) -> Unreadable:
    """Counts a record that its source could not read: by type and version if it knows neither."""
    data = record["data"]
    reason = str(data.get("reason", "no reason is given"))
    kind = str(data.get("unknown", UNREADABLE))
    if kind not in unreadable and len(unreadable) >= MAX_UNKNOWN_KINDS:
        kind = UNREADABLE
    location = f"offset {record['offset']}"
    hides_state = data.get("hidesState") is True
    return count_unreadable(unreadable, kind, location, reason, hides_state=hides_state)


def _count_record(unreadable: Unreadable, record: RecordJson, reason: str) -> Unreadable:
    return count_unreadable(unreadable, record["type"], f"offset {record['offset']}", reason)


def _belongs(event: SnapshotChunk, resync: Resync) -> bool:
    return (event.end_offset, event.leader_epoch) == (resync.end_offset, resync.leader_epoch)


def _out_of_order(image: ClusterImage, event: SnapshotChunk) -> ClusterImage:
    reason = f"chunk {event.index} of snapshot {event.end_offset} does not follow the one before"
    first = UnreadableRecords(1, f"snapshot {event.end_offset}", reason)
    unreadable = image.sources.unreadable.set("SNAPSHOT", first)
    return image.with_unreadable(unreadable)


def _quorum(before: Quorum, replay: RecordReplay, leader_epoch: int) -> Quorum:
    is_named = (replay.leader_id, replay.voters, replay.members) != (None, None, None)
    if not is_named and leader_epoch == before.leader_epoch:
        return before
    leader_id = before.leader_id if replay.leader_id is None else replay.leader_id
    voters = before.voters if replay.voters is None else replay.voters
    members = before.members if replay.members is None else replay.members
    if [member.node_id for member in members] != [*voters]:
        members = ()  # static voters, or a record with the new ones is missing
    after = Quorum(leader_id, leader_epoch, voters, members)
    return before if after == before else after
