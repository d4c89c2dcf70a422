"""Builders of metadata records and events, for tests."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from featurewatch.streams.events import (
    UNREADABLE,
    CommitKind,
    Disagreement,
    FeatureView,
    LogCommit,
    LogGap,
    NodeAnswer,
    NodeSilent,
    QuorumStatus,
    RecordJson,
    ReplicaState,
    ReplicaStatus,
    SnapshotChunk,
    SourceResync,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRanges,
)

CLUSTER = ClusterId("k3nkSGPhQsiT8EDDBw8qVg")
MV = FeatureName("metadata.version")
KV = FeatureName("kraft.version")
TV = FeatureName("transaction.version")
GV = FeatureName("group.version")

OLD = SupportedRanges({MV: (1, 21), KV: (0, 1)})
NEW = SupportedRanges({MV: (7, 30), KV: (0, 1), TV: (0, 2)})

Ranges = Mapping[Any, tuple[int, int]]


def _features(ranges: Ranges) -> list[dict[str, Any]]:
    return [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, (low, high) in ranges.items()
    ]


def record(kind: str, data: Mapping[str, Any], offset: int = 0) -> RecordJson:
    """A record of any type."""
    return {"offset": offset, "type": kind, "version": 0, "data": dict(data)}


def register(
    node_id: int, ranges: Ranges, *, fenced: bool = True, epoch: int = 1, migrating: bool = False
) -> RecordJson:
    """A broker registers; ``migrating``: it still runs with ZooKeeper (KIP-866)."""
    data = {
        "brokerId": node_id,
        "incarnationId": f"i{node_id}-{epoch}",
        "brokerEpoch": epoch,
        "features": _features(ranges),
        "fenced": fenced,
        "isMigratingZkBroker": migrating,
    }
    return record("REGISTER_BROKER_RECORD", data)


def register_controller(
    node_id: int, ranges: Ranges, *, migration_ready: bool = False
) -> RecordJson:
    """A controller registers; ``migration_ready``: migration is enabled on it (KIP-866)."""
    data = {
        "controllerId": node_id,
        "incarnationId": f"c{node_id}",
        "zkMigrationReady": migration_ready,
        "features": _features(ranges),
    }
    return record("REGISTER_CONTROLLER_RECORD", data)


def unregister(node_id: int) -> RecordJson:
    """A broker is unregistered."""
    return record("UNREGISTER_BROKER_RECORD", {"brokerId": node_id, "brokerEpoch": 1})


def unregister_controller(node_id: int) -> RecordJson:
    """A controller is unregistered (KIP-1312)."""
    return record("UNREGISTER_CONTROLLER_RECORD", {"controllerId": node_id})


def fence(node_id: int) -> RecordJson:
    """A broker is fenced, by the record type of releases before 3.3-IV2."""
    return record("FENCE_BROKER_RECORD", {"id": node_id, "epoch": 1})


def unfence(node_id: int) -> RecordJson:
    """A broker is unfenced, by the record type of releases before 3.3-IV2."""
    return record("UNFENCE_BROKER_RECORD", {"id": node_id, "epoch": 1})


def change(node_id: int, fenced: int = 0, shutdown: int = 0) -> RecordJson:
    """A broker's registration changes; ``fenced`` is 1 to fence, -1 to unfence."""
    data = {
        "brokerId": node_id,
        "brokerEpoch": 1,
        "fenced": fenced,
        "inControlledShutdown": shutdown,
    }
    return record("BROKER_REGISTRATION_CHANGE_RECORD", data)


def level(name: str, value: int) -> RecordJson:
    """A level is finalized."""
    return record("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": value})


def kraft_version(value: int) -> RecordJson:
    """The control record that determines kraft.version."""
    return record("KRAFT_VERSION", {"version": 0, "kRaftVersion": value})


def migration_state(state: int) -> RecordJson:
    """The state of a migration from ZooKeeper: 0 none, 1 pre-migration, 2 migration, 3
    post-migration."""
    return record("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": state})


def leader_change(leader_id: int, voters: Iterable[int]) -> RecordJson:
    """The first record of a leader epoch."""
    data = {"leaderId": leader_id, "voters": [{"voterId": voter} for voter in voters]}
    return record("LEADER_CHANGE", data)


def voters(members: Mapping[int, str]) -> RecordJson:
    """The voters of a dynamic quorum, by id with their directory ids (KIP-853)."""
    listed = [
        {
            "voterId": node_id,
            "voterDirectoryId": directory,
            "endpoints": [{"name": "CONTROLLER", "host": f"c{node_id}", "port": 9093}],
            "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
        }
        for node_id, directory in members.items()
    ]
    return record("KRAFT_VOTERS", {"version": 0, "voters": listed})


def unreadable(reason: str = "unknown type 99") -> RecordJson:
    """A record that the source could not read."""
    return record(UNREADABLE, {"reason": reason})


def unknown_record(kind: str = "RECORD_TYPE_77-v0", *, hides_state: bool = True) -> RecordJson:
    """A record of a type and version that no known release has."""
    data = {"reason": f"{kind} is not known", "unknown": kind, "hidesState": hides_state}
    return record(UNREADABLE, data)


def commit(last: int, *records: RecordJson, epoch: int = 1, first: int | None = None) -> LogCommit:
    """A commit up to ``last``; it is appended and seen at ``last`` × 10 ms.

    Records without an offset get one within it.
    """
    first = max(0, last - len(records) + 1) if first is None else first
    records = tuple(
        record if record["offset"] else {**record, "offset": min(first + number, last)}
        for number, record in enumerate(records)
    )
    return LogCommit(
        cluster=CLUSTER,
        kind=CommitKind.BATCH,
        first_offset=first,
        last_offset=last,
        leader_epoch=epoch,
        append_ms=last * 10,
        records=records,
        skipped={},
        seen_ms=last * 10,
    )


def chunk(
    end: int, index: int, *records: RecordJson, last: bool = False, epoch: int = 1, seen_ms: int = 0
) -> SnapshotChunk:
    """A chunk of a snapshot."""
    seen_ms = seen_ms or end * 10
    return SnapshotChunk(CLUSTER, end, epoch, index, last, end * 10, records, {}, seen_ms)


def gap(first: int, last: int, *, reset: bool = False, seen_ms: int = 0) -> LogGap:
    """A range of the log that is lost, or a log that went backwards."""
    return LogGap(CLUSTER, first, last, "lost", reset, seen_ms or last * 10)


def status(
    state: SourceState,
    offset: int = 0,
    *,
    source: str = "kraft",
    behind: int = 0,
    seen_ms: int = 0,
) -> SourceStatus:
    """A source's status; ``behind`` is its lag below the high watermark, in offsets."""
    high = offset + 1 + behind
    detail = "it cannot read" if state is SourceState.STALLED else ""
    return SourceStatus(
        CLUSTER, source, state, offset, 1, high, 1, 1, detail, seen_ms or offset * 10
    )


def following(offset: int = 0, *, source: str = "kraft", seen_ms: int = 0) -> SourceStatus:
    """A source has caught up."""
    return status(SourceState.FOLLOWING, offset, source=source, seen_ms=seen_ms)


def catching_up(offset: int = 0, *, source: str = "kraft", seen_ms: int = 0) -> SourceStatus:
    """A source is catching up."""
    return status(SourceState.CATCHING_UP, offset, source=source, behind=9, seen_ms=seen_ms)


def answer(
    node_id: int,
    supported: Ranges,
    finalized: Mapping[str, int],
    epoch: int,
    seen_ms: int,
    *,
    role: Role = Role.BROKER,
    complete: bool = True,
) -> NodeAnswer:
    """A node's ApiVersions response."""
    return NodeAnswer(
        cluster=CLUSTER,
        role=role,
        node_id=NodeId(node_id),
        address=f"n{node_id}:9092",
        supported=SupportedRanges(supported),
        finalized={FeatureName(name): FeatureLevel(n) for name, n in finalized.items()},
        epoch=epoch,
        complete=complete,
        seen_ms=seen_ms,
    )


def silent(
    node_id: int, seen_ms: int, *, gone: bool = False, role: Role = Role.BROKER
) -> NodeSilent:
    """A node does not respond, or is no longer listed."""
    return NodeSilent(CLUSTER, role, NodeId(node_id), f"n{node_id}:9092", gone, "refused", seen_ms)


def disagreement(feature: str, views: int, seen_ms: int) -> Disagreement:
    """Nodes report different levels of a feature; with fewer than two views they agree."""
    nodes = tuple(FeatureView(FeatureLevel(i), (f"broker-{i}",)) for i in range(views))
    return Disagreement(CLUSTER, FeatureName(feature), nodes, seen_ms)


def replica(node_id: int, directory: str = "", state: str = "following") -> ReplicaStatus:
    """A replica of the quorum."""
    return ReplicaStatus(NodeId(node_id), directory, ReplicaState(state), -1, -1, ())


def quorum(
    voters: Iterable[ReplicaStatus],
    observers: Iterable[ReplicaStatus] = (),
    *,
    detail: str = "",
    seen_ms: int = 0,
) -> QuorumStatus:
    """The quorum as its first voter, the active controller, describes it."""
    replicas = tuple(voters)
    leader_id = replicas[0].node_id if replicas else -1
    return QuorumStatus(CLUSTER, leader_id, 1, replicas, tuple(observers), detail, seen_ms)


def resync(source: str = "kraft", *, finished: bool = False, seen_ms: int = 0) -> SourceResync:
    """A source begins to publish its whole state again, or has finished."""
    return SourceResync(CLUSTER, source, finished, "it was requested", seen_ms)


def in_cluster(name: str, event: LogCommit) -> LogCommit:
    """The same event for another cluster."""
    return replace(event, cluster=ClusterId(name))
