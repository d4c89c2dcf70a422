"""LeaderAndIsr, StopReplica and UpdateMetadata on the side of the broker that receives them."""

import struct
from dataclasses import replace

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.decode import read_entity, skip_tags
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from featurewatch.reference.zookeeper.wire.api_keys import OFFERED, REPLICA_KEYS, ApiDialect
from featurewatch.reference.zookeeper.wire.frames import read_request, write_response
from featurewatch.reference.zookeeper.wire.messages.from_controller import (
    broker_response,
    read_leader_and_isr,
    read_stop_replica,
)
from featurewatch.reference.zookeeper.wire.messages.to_brokers import (
    api_of,
    response_of,
    wire_requests,
)
from featurewatch.reference.zookeeper.wire.messages.topic_ids import by_topic
from tests.plugins.nightly import case_count
from tests.reference.zookeeper.messages.values import random_request

DIALECT = ApiDialect.CONTROLLER_AND_REPLICAS
CASES = case_count(300)


def received(request: BrokerRequest, version: int) -> BrokerRequest:
    """The request as a host of replicas reads it from the bytes of a controller."""
    (message,) = wire_requests(request, version)
    head = struct.pack(">hhih", message.__api_key__, version, 7, -1)
    tags = b"\0" if message.__flexible__ else b""
    body = read_request(head + tags + write_entity(message), DIALECT).body
    match request:
        case LeaderAndIsrRequest():
            return read_leader_and_isr(body)
        case StopReplicaRequest():
            return read_stop_replica(body)
        case UpdateMetadataRequest():
            assert isinstance(body, UpdateMetadataRequest)
            return body


def by_topics(request: BrokerRequest, version: int) -> BrokerRequest:
    """The part of a request that a version carries: states by topic, and no addresses."""
    if isinstance(request, UpdateMetadataRequest):
        return UpdateMetadataRequest(
            request.controller_id, request.controller_epoch, request.broker_epoch, (), ()
        )
    if isinstance(request, StopReplicaRequest):
        stops = by_topic(request.states, lambda state: state.partition).values()
        return replace(request, states=tuple(stop for listed in stops for stop in listed))
    grouped = by_topic(request.states, lambda state: state.partition)
    states = tuple(state for listed in grouped.values() for state in listed)
    leaders = tuple(leader for leader in request.leaders if leader in request.endpoints)
    ids = {topic: text for topic, text in request.topic_ids.items() if topic in grouped}
    if version < 6:  # the recovery state of leaders
        states = tuple(replace(state, recovering=False) for state in states)
    return LeaderAndIsrRequest(
        request.controller_id,
        request.controller_epoch,
        request.broker_epoch,
        states,
        leaders,
        ids,
    )


@pytest.mark.parametrize("seed", range(CASES))
def test_what_a_controller_writes_a_host_reads(seed: int) -> None:
    """Random requests, in each version that a host offers; the responses go back the same way."""
    request = random_request(f"replicas/{seed}")
    key = api_of(request).key
    oldest, newest = OFFERED[DIALECT][key]
    for version in range(oldest, newest + 1):
        read = received(request, version)
        assert read == by_topics(request, version)
        response = any_response(read, seed)
        message = broker_response(read, response, version)
        frame = write_response(5, message)
        kind = message_class(f"{api_of(request).name}Response", version)
        start = skip_tags(frame, 8) if kind.__flexible__ else 8
        decoded, end = read_entity(kind, frame, start)
        assert end == len(frame)
        assert response_of(read, version, [decoded]) == response


def any_response(request: BrokerRequest, seed: int) -> BrokerResponse:
    """A response with an error for every third partition."""
    error = (0, 77)[seed % 2]
    match request:
        case UpdateMetadataRequest():
            return UpdateMetadataResponse(error)
        case StopReplicaRequest(states=stops):
            return StopReplicaResponse(error, errors([stop.partition for stop in stops]))
        case LeaderAndIsrRequest(states=states, topic_ids=topic_ids):
            known = [state.partition for state in states if state.partition.topic in topic_ids]
            return LeaderAndIsrResponse(error, errors(known))


def errors(partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    """An error for every third partition, 0 for the others."""
    return {partition: 56 if index % 3 == 0 else 0 for index, partition in enumerate(partitions)}


def test_only_hosts_of_replicas_offer_the_requests_of_a_controller() -> None:
    """A controller without light replicas refuses them, as before."""
    assert OFFERED[DIALECT].keys() - OFFERED[ApiDialect.CONTROLLER].keys() == REPLICA_KEYS
