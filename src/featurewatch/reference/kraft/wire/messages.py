"""Translates the requests and answers of the machines from and to Kafka's messages; pure.

The messages are those of `kafka.messages`; a field that a version lacks is left out, or has the
value that the machines take for unknown.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from featurewatch.kafka.messages import build_message, message_class
from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    ANY_HIGH_WATERMARK,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NO_LEADER,
    NOT_LEADER_OR_FOLLOWER,
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    DescribeQuorum,
    DescribeQuorumAnswer,
    EndQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    LeaderView,
    RaftAnswer,
    RaftRequest,
    RemoveVoter,
    ReplicaState,
    UpdateVoter,
    VersionsAnswer,
    Vote,
    VoteAnswer,
    VoterAnswer,
    is_top_level,
)
from featurewatch.streams.types import KRAFT_VERSION, OffsetAndEpoch, SupportedRange

FETCH: Final = 1
API_VERSIONS: Final = 18
VERSIONS: Final[Mapping[type, tuple[str, int, tuple[int, int]]]] = MappingProxyType(
    {
        Fetch: ("Fetch", 1, (13, 18)),
        Vote: ("Vote", 52, (0, 2)),
        BeginQuorumEpoch: ("BeginQuorumEpoch", 53, (0, 1)),
        EndQuorumEpoch: ("EndQuorumEpoch", 54, (0, 1)),
        DescribeQuorum: ("DescribeQuorum", 55, (0, 2)),
        FetchSnapshot: ("FetchSnapshot", 59, (0, 1)),
        AddVoter: ("AddRaftVoter", 80, (0, 1)),
        RemoveVoter: ("RemoveRaftVoter", 81, (0, 0)),
        UpdateVoter: ("UpdateRaftVoter", 82, (0, 0)),
        AskVersions: ("ApiVersions", API_VERSIONS, (3, 4)),
    }
)
"""The API of each request: its name, its key, and the versions that are written and read."""
_NAMES: Final = {key: name for name, key, _ in VERSIONS.values()}


class InvalidRequestError(ValueError):
    """A request for another partition than that of the metadata log, or for several."""


def request_of(key: int, body: Any) -> RaftRequest:
    """The request in a message.

    Raises:
        InvalidRequestError: if it is not for the metadata log alone.
    """
    read = _REQUESTS[key]
    found: RaftRequest = read(body) if key in (80, 81, 82) else read(body, _partition(body))
    return found


def _partition(body: Any) -> Any:
    topics = body.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        raise InvalidRequestError("it is not for exactly one partition")
    topic, partition = topics[0], topics[0].partitions[0]
    if hasattr(topic, "topic_id"):
        is_metadata = topic.topic_id == METADATA_TOPIC_ID
    else:
        name = topic.topic_name if hasattr(topic, "topic_name") else topic.name
        is_metadata = name == METADATA_TOPIC
    index = getattr(partition, "partition_index", getattr(partition, "partition", None))
    if not is_metadata or index != 0:
        raise InvalidRequestError(f"it is not for {METADATA_TOPIC}-0")
    return partition


def _endpoints(listeners: Any) -> tuple[Endpoint, ...]:
    return tuple(Endpoint(one.name, one.host, one.port) for one in listeners)


def _read_vote(body: Any, one: Any) -> Vote:
    directory = getattr(one, "voter_directory_id", None)
    return Vote(
        body.cluster_id,
        ReplicaKey(getattr(body, "voter_id", -1), directory),
        one.replica_epoch,
        ReplicaKey(one.replica_id, getattr(one, "replica_directory_id", None)),
        one.last_offset_epoch,
        one.last_offset,
        getattr(one, "pre_vote", False),
    )


def _read_begin(body: Any, one: Any) -> BeginQuorumEpoch:
    return BeginQuorumEpoch(
        body.cluster_id,
        ReplicaKey(getattr(body, "voter_id", -1), getattr(one, "voter_directory_id", None)),
        one.leader_id,
        one.leader_epoch,
        _endpoints(getattr(body, "leader_endpoints", ())),
    )


def _read_end(body: Any, one: Any) -> EndQuorumEpoch:
    if hasattr(one, "preferred_candidates"):
        successors = tuple(
            ReplicaKey(each.candidate_id, each.candidate_directory_id)
            for each in one.preferred_candidates
        )
    else:
        successors = tuple(ReplicaKey(each) for each in one.preferred_successors)
    return EndQuorumEpoch(
        body.cluster_id,
        one.leader_id,
        one.leader_epoch,
        successors,
        _endpoints(getattr(body, "leader_endpoints", ())),
    )


def _read_fetch(body: Any, one: Any) -> Fetch:
    state = getattr(body, "replica_state", None)
    return Fetch(
        body.cluster_id,
        ReplicaKey(
            body.replica_id if state is None else state.replica_id,
            getattr(one, "replica_directory_id", None),
        ),
        one.current_leader_epoch,
        one.fetch_offset,
        one.last_fetched_epoch,
        getattr(one, "high_watermark", ANY_HIGH_WATERMARK),
        body.max_wait_ms,
        body.max_bytes,
    )


def _read_fetch_snapshot(body: Any, one: Any) -> FetchSnapshot:
    return FetchSnapshot(
        body.cluster_id,
        ReplicaKey(body.replica_id, getattr(one, "replica_directory_id", None)),
        one.current_leader_epoch,
        OffsetAndEpoch(one.snapshot_id.end_offset, one.snapshot_id.epoch),
        one.position,
        body.max_bytes,
    )


def _read_add(body: Any) -> AddVoter:
    return AddVoter(
        body.cluster_id,
        ReplicaKey(body.voter_id, body.voter_directory_id),
        _endpoints(body.listeners),
        body.timeout_ms,
        getattr(body, "ack_when_committed", True),
    )


def _read_remove(body: Any) -> RemoveVoter:
    return RemoveVoter(body.cluster_id, ReplicaKey(body.voter_id, body.voter_directory_id))


def _read_update(body: Any) -> UpdateVoter:
    feature = body.kraft_version_feature
    return UpdateVoter(
        body.cluster_id,
        body.current_leader_epoch,
        ReplicaKey(body.voter_id, body.voter_directory_id),
        _endpoints(body.listeners),
        SupportedRange(feature.min_supported_version, feature.max_supported_version),
    )


_REQUESTS: Final[Mapping[int, Any]] = {
    1: _read_fetch,
    52: _read_vote,
    53: _read_begin,
    54: _read_end,
    55: lambda _body, _one: DescribeQuorum(),
    59: _read_fetch_snapshot,
    80: _read_add,
    81: _read_remove,
    82: _read_update,
}


# -- requests that are sent ------------------------------------------------------------------------


def request_message(request: RaftRequest, version: int) -> Any:
    """The message of a request in a version."""
    name, key, _ = VERSIONS[type(request)]
    form = message_class(f"{name}Request", version)
    match request:
        case AskVersions():
            return form(client_software_name="featurewatch", client_software_version="reference")
        case UpdateVoter():
            feature = form.KRaftVersionFeature(
                min_supported_version=request.kraft_versions.minimum,
                max_supported_version=request.kraft_versions.maximum,
            )
            return form(
                cluster_id=request.cluster_id,
                current_leader_epoch=request.epoch,
                voter_id=request.voter.id,
                voter_directory_id=request.voter.directory,
                listeners=_listeners(form.Listener, request.endpoints),
                kraft_version_feature=feature,
            )
        case Vote() | BeginQuorumEpoch() | EndQuorumEpoch() | Fetch() | FetchSnapshot():
            return _for_partition(form, key, request)
        case _:
            raise TypeError(f"no replica sends {name}")


def _listeners(form: Any, endpoints: tuple[Endpoint, ...]) -> tuple[Any, ...]:
    return tuple(form(name=one.name, host=one.host, port=one.port) for one in endpoints)


def _for_partition(
    form: Any,
    key: int,
    request: Vote | BeginQuorumEpoch | EndQuorumEpoch | Fetch | FetchSnapshot,
) -> Any:
    body: dict[str, Any] = {"cluster_id": request.cluster_id}
    values: dict[str, Any]
    match request:
        case Vote():
            body["voter_id"] = request.voter.id
            values = {
                "replica_epoch": request.epoch,
                "replica_id": request.candidate.id,
                "replica_directory_id": request.candidate.directory,
                "voter_directory_id": request.voter.directory,
                "last_offset_epoch": request.last_epoch,
                "last_offset": request.end_offset,
                "pre_vote": request.is_pre_vote,
            }
        case BeginQuorumEpoch():
            body["voter_id"] = request.voter.id
            values = {
                "voter_directory_id": request.voter.directory,
                "leader_id": request.leader_id,
                "leader_epoch": request.epoch,
            }
        case EndQuorumEpoch():
            values = {
                "leader_id": request.leader_id,
                "leader_epoch": request.epoch,
                "preferred_successors": tuple(one.id for one in request.successors),
            }
            if hasattr(form, "ReplicaInfo"):
                values["preferred_candidates"] = tuple(
                    form.ReplicaInfo(candidate_id=one.id, candidate_directory_id=one.directory)
                    for one in request.successors
                )
        case Fetch():
            body |= {
                "replica_id": request.replica.id,
                "max_wait_ms": request.max_wait_ms,
                "min_bytes": 0,
                "max_bytes": request.max_bytes,
                "forgotten_topics_data": (),
            }
            if hasattr(form, "ReplicaState"):
                body["replica_state"] = form.ReplicaState(replica_id=request.replica.id)
            values = {
                "partition": 0,
                "current_leader_epoch": request.epoch,
                "fetch_offset": request.offset,
                "last_fetched_epoch": request.last_epoch,
                "partition_max_bytes": request.max_bytes,
                "replica_directory_id": request.replica.directory,
                "high_watermark": request.high_watermark,
            }
        case FetchSnapshot():
            body |= {"replica_id": request.replica.id, "max_bytes": request.max_bytes}
            values = {
                "partition": 0,
                "current_leader_epoch": request.epoch,
                "snapshot_id": form.SnapshotId(
                    end_offset=request.snapshot.offset, epoch=request.snapshot.epoch
                ),
                "position": request.position,
                "replica_directory_id": request.replica.directory,
            }
    if isinstance(request, BeginQuorumEpoch | EndQuorumEpoch) and hasattr(form, "LeaderEndpoint"):
        body["leader_endpoints"] = _listeners(form.LeaderEndpoint, request.endpoints)
    names = {1: ("FetchTopic", "FetchPartition"), 59: ("TopicSnapshot", "PartitionSnapshot")}
    topic_name, partition_name = names.get(key, ("TopicData", "PartitionData"))
    partition = build_message(getattr(form, partition_name), partition_index=0, **values)
    topic = build_message(
        getattr(form, topic_name),
        topic_name=METADATA_TOPIC,
        name=METADATA_TOPIC,
        topic_id=METADATA_TOPIC_ID,
        partitions=(partition,),
    )
    return build_message(form, topics=(topic,), **body)


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
    form = message_class(f"{_NAMES[key]}Response", version)
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
            form.Node(node_id=node_id, listeners=_listeners(form.Listener, endpoints))
            for node_id, endpoints in answer.endpoints
        )
    return build_message(form, **values)


def error_message(key: int, version: int, error: int) -> Any:
    """A response that has an error and nothing else."""
    form = message_class(f"{_NAMES[key]}Response", version)
    empty = dict.fromkeys(("topics", "responses", "nodes"), ())
    return build_message(form, throttle_time_ms=0, error_code=error, error_message=None, **empty)
