"""The answers of the machines from and to Kafka's messages; pure."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.kafka.messages import build_message, message_class
from featurewatch.reference.kraft.machines.replicas import Endpoint
from featurewatch.reference.kraft.machines.requests import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NO_LEADER,
    NOT_LEADER_OR_FOLLOWER,
    DescribeQuorumAnswer,
    EpochAnswer,
    FetchAnswer,
    FetchSnapshotAnswer,
    LeaderView,
    RaftAnswer,
    ReplicaState,
    VersionsAnswer,
    VoteAnswer,
    VoterAnswer,
    is_top_level,
)
from featurewatch.reference.kraft.wire.messages.apis import API_VERSIONS, FETCH, NAMES
from featurewatch.reference.kraft.wire.messages.parts import listeners_of
from featurewatch.streams.types import KRAFT_VERSION, OffsetAndEpoch, SupportedRange

# -- answers that are received ---------------------------------------------------------------------


def answer_of(key: int, body: Any) -> RaftAnswer | None:
    """The answer in a message; None if it has no partition, and no error that explains it."""
    if key == API_VERSIONS:
        ranges = {one.name: one for one in body.supported_features}
        found = ranges.get(KRAFT_VERSION)
        supported = SupportedRange(found.min_version, found.max_version) if found else None
        return VersionsAnswer(body.error_code, supported or SupportedRange(0, 0))
    if key == 82:
        leader = body.current_leader
        address = (Endpoint("", leader.host, leader.port),) if leader.host else ()
        view = LeaderView(leader.leader_id, leader.leader_epoch, address)
        return VoterAnswer(body.error_code, None, view)
    topics = body.responses if key == 1 else body.topics
    if body.error_code or not topics or not topics[0].partitions:
        return _ERRORS[key](body.error_code) if is_top_level(body.error_code) else None
    one = topics[0].partitions[0]
    leader = getattr(one, "current_leader", one)
    endpoints = tuple(
        Endpoint("", each.host, each.port)
        for each in getattr(body, "node_endpoints", ())
        if each.node_id == leader.leader_id
    )
    view = LeaderView(leader.leader_id, leader.leader_epoch, endpoints)
    if key == 52:
        return VoteAnswer(one.error_code, view, one.vote_granted)
    if key == 1:
        return _read_fetched(one, view)
    if key == 59:
        at = OffsetAndEpoch(one.snapshot_id.end_offset, one.snapshot_id.epoch)
        data = one.unaligned_records or b""
        return FetchSnapshotAnswer(one.error_code, view, at, one.size, one.position, data)
    return EpochAnswer(one.error_code, view)


def _read_fetched(one: Any, view: LeaderView) -> FetchAnswer:
    diverging, snapshot = one.diverging_epoch, one.snapshot_id
    has_diverged = diverging.end_offset >= 0 and diverging.epoch >= 0
    has_snapshot = snapshot.end_offset >= 0 and snapshot.epoch >= 0
    return FetchAnswer(
        one.error_code,
        view,
        one.high_watermark,
        one.log_start_offset,
        OffsetAndEpoch(diverging.end_offset, diverging.epoch) if has_diverged else None,
        OffsetAndEpoch(snapshot.end_offset, snapshot.epoch) if has_snapshot else None,
        one.records or b"",
    )


_ERRORS: Final[Mapping[int, Any]] = {
    1: FetchAnswer,
    52: VoteAnswer,
    53: EpochAnswer,
    54: EpochAnswer,
    59: FetchSnapshotAnswer,
}


# -- answers that are sent -------------------------------------------------------------------------


def answer_message(key: int, version: int, answer: RaftAnswer) -> Any:
    """The message of an answer, in the version of the request."""
    form = message_class(f"{NAMES[key]}Response", version)
    match answer:
        case VoterAnswer():
            return _voter_message(form, key, answer)
        case DescribeQuorumAnswer():
            return _described(form, answer)
        case VersionsAnswer():
            raise TypeError("the listener answers ApiVersions")
        case _ if is_top_level(answer.error):
            return error_message(key, version, answer.error)
    view = answer.view
    values: dict[str, Any] = {
        "partition_index": 0,
        "index": 0,
        "error_code": answer.error,
        "leader_id": view.leader_id,
        "leader_epoch": view.epoch,
    }
    if hasattr(form, "LeaderIdAndEpoch"):
        values["current_leader"] = form.LeaderIdAndEpoch(
            leader_id=view.leader_id, leader_epoch=view.epoch
        )
    match answer:
        case VoteAnswer():
            values["vote_granted"] = answer.is_granted
        case FetchAnswer():
            values |= _fetched(form, answer)
        case FetchSnapshotAnswer():
            values |= {
                "snapshot_id": form.SnapshotId(
                    end_offset=answer.snapshot.offset, epoch=answer.snapshot.epoch
                ),
                "size": answer.size,
                "position": answer.position,
                "unaligned_records": answer.data,
            }
        case _:
            pass
    names = {
        1: ("FetchableTopicResponse", "PartitionData"),
        59: ("TopicSnapshot", "PartitionSnapshot"),
    }
    topic_name, partition_name = names.get(key, ("TopicData", "PartitionData"))
    partition = build_message(getattr(form, partition_name), **values)
    topic = build_message(
        getattr(form, topic_name),
        topic_name=METADATA_TOPIC,
        name=METADATA_TOPIC,
        topic_id=METADATA_TOPIC_ID,
        partitions=(partition,),
    )
    body = {"throttle_time_ms": 0, "error_code": 0, "topics": (topic,), "responses": (topic,)}
    # Only KIP-853 has replicas look there, with version 17 of Fetch, though the field is older.
    has_endpoints = hasattr(form, "NodeEndpoint") and (key, version) != (FETCH, 16)
    if has_endpoints and view.leader_id != NO_LEADER:
        body["node_endpoints"] = tuple(
            form.NodeEndpoint(node_id=view.leader_id, host=one.host, port=one.port)
            for one in view.endpoints[:1]
        )
    return build_message(form, **body)


def _fetched(form: Any, answer: FetchAnswer) -> dict[str, Any]:
    values: dict[str, Any] = {
        "high_watermark": answer.high_watermark,
        "log_start_offset": answer.log_start,
        "aborted_transactions": None,
        "records": answer.records,
    }
    if answer.diverging is not None:
        values["diverging_epoch"] = form.EpochEndOffset(
            epoch=answer.diverging.epoch, end_offset=answer.diverging.offset
        )
    if answer.snapshot is not None:
        values["snapshot_id"] = form.SnapshotId(
            epoch=answer.snapshot.epoch, end_offset=answer.snapshot.offset
        )
    return values


def _voter_message(form: Any, key: int, answer: VoterAnswer) -> Any:
    values: dict[str, Any] = {
        "throttle_time_ms": 0,
        "error_code": answer.error,
        "error_message": answer.message,
    }
    if key == 82:
        host, port = "", 0
        if answer.view.leader_id != NO_LEADER and answer.view.endpoints:
            _, host, port = answer.view.endpoints[0]
        values["current_leader"] = form.CurrentLeader(
            leader_id=answer.view.leader_id,
            leader_epoch=answer.view.epoch,
            host=host,
            port=port,
        )
    return build_message(form, **values)


def _described(form: Any, answer: DescribeQuorumAnswer) -> Any:
    def rows(states: tuple[ReplicaState, ...]) -> tuple[Any, ...]:
        return tuple(
            build_message(
                form.ReplicaState,
                replica_id=one.key.id,
                replica_directory_id=one.key.directory,
                log_end_offset=one.end_offset,
                last_fetch_timestamp=one.fetched_ms,
                last_caught_up_timestamp=one.caught_up_ms,
            )
            for one in states
        )

    is_leader = answer.error != NOT_LEADER_OR_FOLLOWER
    partition = build_message(
        form.PartitionData,
        partition_index=0,
        error_code=answer.error,
        error_message=None,
        leader_id=answer.view.leader_id if is_leader else 0,
        leader_epoch=answer.view.epoch if is_leader else 0,
        high_watermark=answer.high_watermark if is_leader else 0,
        current_voters=rows(answer.voters),
        observers=rows(answer.observers),
    )
    topic = form.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    values: dict[str, Any] = {"error_code": 0, "error_message": None, "topics": (topic,)}
    if hasattr(form, "Node"):
        values["nodes"] = tuple(
            form.Node(node_id=node_id, listeners=listeners_of(form.Listener, endpoints))
            for node_id, endpoints in answer.endpoints
        )
    return build_message(form, **values)


def error_message(key: int, version: int, error: int) -> Any:
    """A response that has an error and nothing else."""
    form = message_class(f"{NAMES[key]}Response", version)
    empty = dict.fromkeys(("topics", "responses", "nodes"), ())
    return build_message(form, throttle_time_ms=0, error_code=error, error_message=None, **empty)
