"""The controller's side of LeaderAndIsr, StopReplica and UpdateMetadata: values to messages; pure.

A request may take two messages: before version 3, StopReplica deletes all of its partitions or
none. `kafka.encode` writes the messages, `kafka.decode` reads the responses.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, assert_never

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.messages import build_message, message_class, versions_of
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrState,
    MetadataState,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from featurewatch.reference.zookeeper.wire.messages.topic_ids import (
    by_topic,
    names_by_uuid,
    topic_uuid,
)

_UNKNOWN_SERVER_ERROR: Final = -1
_MIXED_DELETES_SINCE: Final = 3
_TOPICS_SINCE: Final = 5
"""The version of LeaderAndIsr whose response names topics by id."""
_RECOVERING: Final = 1


class BrokerApi(NamedTuple):
    """An API of brokers: its name and key, and the oldest and newest version that we have."""

    name: str
    key: int
    versions: tuple[int, int]


_APIS: Final[dict[type[BrokerRequest], BrokerApi]] = {
    LeaderAndIsrRequest: BrokerApi("LeaderAndIsr", 4, versions_of("LeaderAndIsrRequest")),
    StopReplicaRequest: BrokerApi("StopReplica", 5, versions_of("StopReplicaRequest")),
    UpdateMetadataRequest: BrokerApi("UpdateMetadata", 6, versions_of("UpdateMetadataRequest")),
}


def api_of(request: BrokerRequest) -> BrokerApi:
    """The API of a request."""
    return _APIS[type(request)]


def wire_requests(request: BrokerRequest, version: int) -> list[Any]:
    """The messages of a request in a version, to be sent one after the other."""
    match request:
        case LeaderAndIsrRequest():
            return [_leader_and_isr(request, version)]
        case UpdateMetadataRequest():
            return [_update_metadata(request, version)]
        case StopReplicaRequest():
            return [_stop_replica(part, version) for part in _uniform(request, version)]
        case _:
            assert_never(request)


def response_of(request: BrokerRequest, version: int, received: list[Any]) -> BrokerResponse:
    """The response, from the messages that were received for those of `wire_requests`.

    Topics of unknown ids are left out, as in Kafka.
    """
    error = next((message.error_code for message in received if message.error_code), 0)
    match request:
        case LeaderAndIsrRequest():
            names = names_by_uuid(request.topic_ids) if version >= _TOPICS_SINCE else {}
            errors = {
                TopicPartition(name, entry.partition_index): entry.error_code
                for message in received
                for name, entry in _leader_and_isr_errors(message, names, version)
            }
            return LeaderAndIsrResponse(error, errors)
        case StopReplicaRequest():
            errors = {
                TopicPartition(entry.topic_name, entry.partition_index): entry.error_code
                for message in received
                for entry in message.partition_errors
            }
            return StopReplicaResponse(error, errors)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error)
        case _:
            assert_never(request)


def failed_response(request: BrokerRequest) -> BrokerResponse:
    """The response to a request that cannot be sent: UNKNOWN_SERVER_ERROR as a whole."""
    match request:
        case LeaderAndIsrRequest():
            return LeaderAndIsrResponse(_UNKNOWN_SERVER_ERROR)
        case StopReplicaRequest():
            return StopReplicaResponse(_UNKNOWN_SERVER_ERROR)
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(_UNKNOWN_SERVER_ERROR)
        case _:
            assert_never(request)


def _states(
    kind: Any,
    request: LeaderAndIsrRequest | UpdateMetadataRequest,
    state_of: Callable[[Any, Any], Any],
) -> dict[str, Any]:
    """The field with the states of partitions: by topic, and one after another in old versions.

    ``state_of`` gives the message of a class for a state.
    """
    name = api_of(request).name
    item, topic_class = (
        getattr(kind, f"{name}PartitionState"),
        getattr(kind, f"{name}TopicState", None),
    )
    if topic_class is None:
        return {
            "ungrouped_partition_states": tuple(state_of(item, state) for state in request.states)
        }
    states_by_topic: dict[str, list[Any]] = by_topic(request.states, lambda state: state.partition)
    return {
        "topic_states": tuple(
            build_message(
                topic_class,
                topic_name=topic,
                topic_id=topic_uuid(request.topic_ids.get(topic)),
                partition_states=tuple(state_of(item, state) for state in states),
            )
            for topic, states in states_by_topic.items()
        )
    }


# -- LeaderAndIsr ----------------------------------------------------------------------------------


def _leader_and_isr(request: LeaderAndIsrRequest, version: int) -> Any:
    kind = message_class("LeaderAndIsrRequest", version)
    return build_message(
        kind,
        **_header(request),
        **_states(kind, request, _leader_and_isr_state),
        live_leaders=tuple(
            kind.LeaderAndIsrLiveLeader(
                broker_id=leader, host_name=endpoint.host, port=endpoint.port
            )
            for leader in request.leaders
            if (endpoint := request.endpoints.get(leader)) is not None
        ),
    )


def _leader_and_isr_state(kind: Any, state: LeaderAndIsrState) -> Any:
    return build_message(
        kind,
        topic_name=state.partition.topic,
        partition_index=state.partition.number,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        adding_replicas=state.adding,
        removing_replicas=state.removing,
        is_new=state.is_new,
        leader_recovery_state=_RECOVERING if state.recovering else 0,
    )


def _leader_and_isr_errors(
    message: Any, names: dict[Any, str], version: int
) -> list[tuple[str, Any]]:
    if version < _TOPICS_SINCE:
        return [(entry.topic_name, entry) for entry in message.partition_errors]
    return [
        (names[topic.topic_id], entry)
        for topic in message.topics
        if topic.topic_id in names
        for entry in topic.partition_errors
    ]


# -- UpdateMetadata --------------------------------------------------------------------------------


def _update_metadata(request: UpdateMetadataRequest, version: int) -> Any:
    kind = message_class("UpdateMetadataRequest", version)
    return build_message(
        kind,
        **_header(request),
        **_states(kind, request, _metadata_state),
        live_brokers=tuple(_live_brokers(kind, request)),
    )


def _metadata_state(kind: Any, state: MetadataState) -> Any:
    return build_message(
        kind,
        topic_name=state.partition.topic,
        partition_index=state.partition.number,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=state.isr,
        zk_version=state.partition_epoch,
        replicas=state.replicas,
        offline_replicas=state.offline,
    )


def _live_brokers(kind: Any, request: UpdateMetadataRequest) -> list[Any]:
    """The brokers with a known address."""
    endpoint_class = getattr(kind, "UpdateMetadataEndpoint", None)
    return [
        build_message(
            kind.UpdateMetadataBroker,
            id=broker_id,
            v0_host=endpoint.host,
            v0_port=endpoint.port,
            rack=endpoint.rack,
            endpoints=tuple(
                build_message(
                    endpoint_class,
                    port=listener.port,
                    host=listener.host,
                    listener=listener.name,
                    security_protocol=listener.protocol,
                )
                for listener in (endpoint.listeners if endpoint_class is not None else ())
            ),
        )
        for broker_id in request.brokers
        if (endpoint := request.endpoints.get(broker_id)) is not None
    ]


# -- StopReplica -----------------------------------------------------------------------------------


def _uniform(request: StopReplicaRequest, version: int) -> list[StopReplicaRequest]:
    """The request, or two where a version has one flag for all partitions: first the deletions."""
    if version >= _MIXED_DELETES_SINCE:
        return [request]
    parts = [
        tuple(state for state in request.states if state.deletes is deletes)
        for deletes in (True, False)
    ]
    header = (request.controller_id, request.controller_epoch, request.broker_epoch)
    return [StopReplicaRequest(*header, states) for states in parts if states] or [request]


def _stop_replica(request: StopReplicaRequest, version: int) -> Any:
    kind = message_class("StopReplicaRequest", version)
    values: dict[str, Any] = {}
    topics = by_topic(request.states, lambda state: state.partition)
    if hasattr(kind, "StopReplicaTopicState"):
        values["topic_states"] = tuple(
            kind.StopReplicaTopicState(
                topic_name=topic,
                partition_states=tuple(
                    kind.StopReplicaPartitionState(
                        partition_index=state.partition.number,
                        leader_epoch=state.leader_epoch,
                        delete_partition=state.deletes,
                    )
                    for state in states
                ),
            )
            for topic, states in topics.items()
        )
    elif hasattr(kind, "StopReplicaTopicV1"):
        values["topics"] = tuple(
            kind.StopReplicaTopicV1(
                name=topic, partition_indexes=tuple(state.partition.number for state in states)
            )
            for topic, states in topics.items()
        )
    else:
        values["ungrouped_partitions"] = tuple(
            kind.StopReplicaPartitionV0(
                topic_name=state.partition.topic, partition_index=state.partition.number
            )
            for state in request.states
        )
    deletes = bool(request.states) and request.states[0].deletes
    return build_message(kind, **_header(request), **values, delete_partitions=deletes)


def _header(request: BrokerRequest) -> dict[str, Any]:
    """The first fields of all three, those of the ones that KRaft controllers set included."""
    return {
        "controller_id": request.controller_id,
        "is_kraft_controller": False,
        "controller_epoch": request.controller_epoch,
        "broker_epoch": request.broker_epoch,
        "type": 0,
    }
