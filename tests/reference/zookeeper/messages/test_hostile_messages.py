"""Bytes that are no message between a controller and a broker: one clear error, at bounded cost."""

import struct
import tracemalloc
from random import Random
from typing import Any

import pytest

from featurewatch.kafka.decode import DecodeError, read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class, versions_of
from featurewatch.reference.zookeeper.kip4.api import Kip4Api
from featurewatch.reference.zookeeper.kip4.controller_access import ControllerAccess
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER,
    TopicRequest,
    TopicResponse,
)
from featurewatch.reference.zookeeper.topic_api import TopicApi
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALTER_PARTITION,
    API_VERSIONS,
    CONTROLLED_SHUTDOWN,
    CREATE_TOPICS,
    DESCRIBE_CLUSTER,
    KIP4_KEYS,
    METADATA,
    OFFERED,
    UPDATE_FEATURES,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.cluster_responses import topic_metadata
from featurewatch.reference.zookeeper.wire.frames import (
    MalformedRequestError,
    read_request,
    write_response,
)
from featurewatch.reference.zookeeper.wire.messages import to_controller
from featurewatch.reference.zookeeper.wire.messages.to_brokers import wire_requests
from featurewatch.reference.zookeeper.wire.responses import ClusterView, metadata
from tests.reference.zookeeper.messages.controlled_shutdown import controlled_shutdown_request
from tests.reference.zookeeper.messages.values import (
    TOPICS,
    Chance,
    random_alter_partition,
    random_alter_result,
    random_request,
    random_shutdown_result,
)

APIS = (
    "LeaderAndIsr",
    "StopReplica",
    "UpdateMetadata",
    "ControlledShutdown",
    "AlterPartition",
    "AllocateProducerIds",
)
ALL = [
    (name, version)
    for api in APIS
    for name in (f"{api}Request", f"{api}Response")
    for version in range(versions_of(name)[0], versions_of(name)[1] + 1)
]
HUGE = (-1, -2, 2**31 - 1, -(2**31), 2**30, 2**15 - 1)


def some_message(name: str, version: int, seed: str) -> Any:
    """A message of a class, with arrays that are not empty where it has any."""
    if name in ("LeaderAndIsrRequest", "StopReplicaRequest", "UpdateMetadataRequest"):
        for attempt in range(1000):
            sent = random_request(f"{seed}/{attempt}")
            if type(sent).__name__ == name and 0 < len(sent.states) < 30:
                return wire_requests(sent, version)[0]
    chance = Chance(seed)
    topic_ids = dict.fromkeys(TOPICS, "A" * 21 + "Q")
    alter = next(
        request
        for attempt in range(1000)
        if 0
        < len((request := random_alter_partition(f"{seed}/{attempt}", version)).partitions)
        < 30
    )
    match name:
        case "AlterPartitionRequest":
            return to_controller.alter_partition_request(alter, topic_ids)
        case "AlterPartitionResponse":
            received = to_controller.ReceivedAlterPartition(alter)
            result = random_alter_result(seed, alter)
            return to_controller.alter_partition_response(received, result)
        case "ControlledShutdownRequest":
            return controlled_shutdown_request(1, 2, version)
        case "ControlledShutdownResponse":
            return to_controller.controlled_shutdown_response(version, random_shutdown_result(seed))
    return random_instance(message_class(name, version), chance)


def random_instance(kind: Any, chance: Chance) -> Any:
    """A message with a few items in each array."""
    values: dict[str, Any] = {}
    for field in kind.__fields__:
        name = field.name
        if field.struct is not None:
            values[name] = tuple(random_instance(field.struct, chance) for _ in range(3))
        elif name == "topic_name":
            values[name] = "t"
        elif name == "topic_id":
            values[name] = None
        else:
            values[name] = chance.choice([0, 1, 9])
    return kind(**values)


@pytest.mark.parametrize(("name", "version"), ALL)
def test_every_message_is_read_as_it_was_written(name: str, version: int) -> None:
    """Each class reads what it writes, to the last byte."""
    for seed in range(5):
        message = some_message(name, version, f"{name}/{seed}")
        data = write_entity(message)
        assert read_entity(type(message), data) == (message, len(data))


@pytest.mark.parametrize(("name", "version"), ALL)
def test_a_cut_message_is_refused(name: str, version: int) -> None:
    """Wherever the bytes end, no message comes out of them."""
    message = some_message(name, version, f"cut/{name}")
    data = write_entity(message)
    for end in {*range(min(len(data), 400)), len(data) - 1}:
        with pytest.raises(DecodeError):
            read_entity(type(message), data[:end])


@pytest.mark.parametrize(("name", "version"), ALL)
def test_impossible_counts_cost_nothing(name: str, version: int) -> None:
    """Counts and bytes of every kind at every place: an error or a message, never more memory than
    the bytes can fill."""
    chance = Random(f"huge/{name}/{version}")
    message = some_message(name, version, f"huge/{name}")
    data = write_entity(message)
    kind = type(message)
    tracemalloc.start()
    for _ in range(100):
        at = chance.randrange(len(data))
        patch = chance.choice(
            [
                struct.pack(">i", chance.choice(HUGE)),
                struct.pack(">h", chance.choice([-1, -2, 2**15 - 1])),
                b"\xff\xff\xff\xff\x07",
                b"\xff" * 11,
                chance.randbytes(4),
                b"",
            ]
        )
        broken = data[:at] + patch + data[at + chance.choice([0, len(patch)]) :]
        try:
            read, end = read_entity(kind, broken)
        except DecodeError as error:
            assert "\n" not in str(error)
        else:
            assert end <= len(broken)
            assert isinstance(read, kind)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize("key", [CONTROLLED_SHUTDOWN, ALTER_PARTITION])
def test_any_frame_is_a_request_or_one_line(key: int) -> None:
    """Random frames for a listener, headers included: readable ones convert without a fault."""
    chance = Random(f"frame/{key}")
    read_count = 0
    for _ in range(3_000):
        version = chance.randrange(-1, 5)
        head = struct.pack(">hhih", key, version, 7, chance.choice([-1, 0, 2, 300]))
        body = chance.choice(
            [chance.randbytes(chance.randrange(80)), bytes(chance.randrange(80)), b"\2\1" * 20]
        )
        try:
            request = read_request(head + body, ApiDialect.CONTROLLER)
        except MalformedRequestError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 200
            continue
        read_count += 1
        if key == ALTER_PARTITION:
            received = to_controller.read_alter_partition(
                request.body, request.version, lambda _: None
            )
            assert received.request.version == request.version
        else:
            to_controller.broker_epoch_of(request.body)
    assert read_count > 50


def test_a_topic_may_come_twice() -> None:
    """Of a partition that a leader names twice the last state counts; unknown topics are kept."""
    kind = message_class("AlterPartitionRequest", 3)
    entries = tuple(
        kind.PartitionData(
            partition_index=0,
            leader_epoch=epoch,
            new_isr_with_epochs=(),
            leader_recovery_state=0,
            partition_epoch=0,
        )
        for epoch in (1, 2)
    )
    topic = kind.TopicData(topic_id=None, partitions=entries)
    message = kind(broker_id=1, broker_epoch=2, topics=(topic, topic))
    known = to_controller.read_alter_partition(message, 3, lambda _: "t")
    assert [wanted.leader_epoch for wanted in known.request.partitions.values()] == [2]
    unknown = to_controller.read_alter_partition(message, 3, lambda _: None)
    assert [*unknown.unknown.values()] == [(0, 0, 0, 0)]
    assert unknown.request.partitions == {}


@pytest.mark.parametrize("key", sorted(OFFERED[ApiDialect.CONTROLLER]))
async def test_a_node_survives_any_request(key: int) -> None:
    """Bytes by chance in every version: what can be read is answered by a node that is not the
    controller, and its answer can be written."""
    api = TopicApi(100, not_the_controller, lambda: None)
    kip4 = Kip4Api(ControllerAccess(100, not_the_controller, lambda: None), ClusterView)
    oldest, newest = OFFERED[ApiDialect.CONTROLLER][key]
    chance = Random(f"any/{key}")
    read_count = 0
    for _ in range(1_500):
        version = chance.randint(oldest, newest)
        head = struct.pack(">hhih", key, version, 7, -1) + b"\0"
        pieces = [
            b"\0",
            b"\1",
            b"\2",
            b"\2t",
            b"\0\1t",
            b"\0\0\0\1",
            bytes(16),
            chance.randbytes(3),
        ]
        body = b"".join(chance.choices(pieces, k=chance.randrange(30))) + bytes(30)
        try:
            request = read_request(head + body, ApiDialect.CONTROLLER)
        except MalformedRequestError as error:
            assert "\n" not in str(error)
            continue
        read_count += 1
        if key == METADATA:
            response = metadata(request, ClusterView(), topic_metadata(request, None))
        elif key in (API_VERSIONS, DESCRIBE_CLUSTER, UPDATE_FEATURES):
            continue  # not of this interface
        elif key in KIP4_KEYS:
            response = await kip4.serve(request)
        else:
            response = await api.serve(request)
        assert write_response(7, response)
    assert read_count > 20


async def not_the_controller(_: TopicRequest) -> TopicResponse:
    """The response of every node but the controller."""
    return NOT_CONTROLLER


@pytest.mark.parametrize("key", [ALTER_PARTITION, CREATE_TOPICS])
def test_a_request_of_tiny_items_is_refused_before_it_is_read(key: int) -> None:
    """Bytes that fit, with more items than a controller's loop has time for."""
    version, before = (0, bytes(12)) if key == ALTER_PARTITION else (5, b"")
    count = (1 << 20) - 100
    size = b"".join(bytes([(count + 1 >> shift & 0x7F) | 0x80]) for shift in (0, 7)) + bytes(
        [count + 1 >> 14]
    )
    head = struct.pack(">hhih", key, version, 7, -1) + b"\0"
    with pytest.raises(MalformedRequestError, match="more items follow"):
        read_request(head + before + size + b"\1" * count, ApiDialect.CONTROLLER)
