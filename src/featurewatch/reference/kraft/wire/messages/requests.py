"""The requests of the machines from and to Kafka's messages; pure."""

from collections.abc import Mapping
from typing import Any, Final

from featurewatch.kafka.messages import build_message, message_class
from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    ANY_HIGH_WATERMARK,
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    DescribeQuorum,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    RaftRequest,
    RemoveVoter,
    UpdateVoter,
    Vote,
)
from featurewatch.reference.kraft.wire.messages.apis import VERSIONS
from featurewatch.reference.kraft.wire.messages.parts import listeners_of
from featurewatch.streams.types import OffsetAndEpoch, SupportedRange


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
                listeners=listeners_of(form.Listener, request.endpoints),
                kraft_version_feature=feature,
            )
        case Vote() | BeginQuorumEpoch() | EndQuorumEpoch() | Fetch() | FetchSnapshot():
            return _for_partition(form, key, request)
        case _:
            raise TypeError(f"no replica sends {name}")


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
        body["leader_endpoints"] = listeners_of(form.LeaderEndpoint, request.endpoints)
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
