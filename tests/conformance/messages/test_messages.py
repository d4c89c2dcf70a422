"""The messages between controllers and brokers against Kafka's own classes, in all versions.

Kafka reads the bytes that we write, gives the fields, and writes the same bytes again; and we read
what Kafka writes. Headers are compared too, because ControlledShutdown and the flexible versions
have different ones.
"""

import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import message_class
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaResponse,
    UpdateMetadataResponse,
)
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from featurewatch.reference.zookeeper.wire.frames import read_request, write_response
from featurewatch.reference.zookeeper.wire.messages import to_controller
from featurewatch.reference.zookeeper.wire.messages.to_brokers import (
    api_of,
    response_of,
    wire_requests,
)
from featurewatch.reference.zookeeper.wire.messages.topic_ids import topic_id_text
from featurewatch.stack.java.jars import Cache
from tests.conformance.feature_control.kafka import ControllerHarness, java_harness
from tests.plugins.nightly import case_count, case_seeds
from tests.reference.zookeeper.messages.controlled_shutdown import (
    controlled_shutdown_request,
    read_controlled_shutdown_response,
)
from tests.reference.zookeeper.messages.values import (
    Chance,
    Json,
    alter_partition_json,
    alter_result_json,
    json_of,
    random_alter_partition,
    random_alter_result,
    random_request,
    random_shutdown_result,
)

pytestmark = pytest.mark.stack

CASES = case_count(1_000)
"""Of each kind, each in all versions; some seconds in all."""

SOURCE = Path(__file__).with_name("java") / "Messages.java"
CLIENT = "the controller"


@pytest.fixture(scope="module")
def kafka(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """The messages of Kafka 3.9.1."""
    directory = tmp_path_factory.mktemp("messages")
    with java_harness([SOURCE], "Messages", "3.9.1", stack_cache, directory) as harness:
        yield harness


@pytest.fixture(scope="module")
def seeds() -> range:
    """The seeds of this run."""
    return case_seeds(1_000)


def read_by(
    kafka: ControllerHarness, key: int, version: int, data: bytes, *, request: bool
) -> Json:
    """What Kafka reads from the bytes of a frame; it must write the same bytes again."""
    question = {"key": key, "version": version, "request": request, "hex": data.hex()}
    (answer,) = kafka.responses([question])
    assert "error" not in answer, f"key {key}, version {version}: {answer}\n{data.hex()}"
    assert answer["left"] == 0
    assert answer["hex"] == data[answer["start"] :].hex()
    return answer


def written_by(
    kafka: ControllerHarness, key: int, version: int, content: Json, *, request: bool
) -> bytes:
    """The bytes of a message that Kafka writes, with its header."""
    question = {
        "key": key,
        "version": version,
        "request": request,
        "json": content,
        "correlation": 7,
        "client": CLIENT,
    }
    (answer,) = kafka.responses([question])
    assert "error" not in answer, f"key {key}, version {version}: {answer}\n{content}"
    return bytes.fromhex(answer["hex"])


def request_frame(message: Any, correlation_id: int) -> bytes:
    """The bytes of a request with its header, as `kafka.connection` sends it."""
    client = CLIENT.encode()
    kind: Any = type(message)
    head = struct.pack(">hhih", kind.__api_key__, kind.__version__, correlation_id, len(client))
    return head + client + (b"\0" if kind.__flexible__ else b"") + write_entity(message)


def test_kafka_reads_the_requests_of_the_controller(kafka: ControllerHarness, seeds: range) -> None:
    """LeaderAndIsr, UpdateMetadata and StopReplica have Kafka's bytes in every version."""
    count: Counter[tuple[str, int]] = Counter()
    for seed in seeds:
        request = random_request(f"request/{seed}")
        api = api_of(request)
        for version in range(api.versions[0], api.versions[1] + 1):
            for message in wire_requests(request, version):
                correlation_id = seed % 1000
                answer = read_by(
                    kafka, api.key, version, request_frame(message, correlation_id), request=True
                )
                deletes = getattr(message, "delete_partitions", None)
                assert answer["json"] == json_of(request, version, deletes=deletes), seed
                assert (answer["correlation"], answer["client"]) == (correlation_id, CLIENT)
                count[api.name, version] += 1
    assert len(count) == 8 + 5 + 9
    assert min(count.values()) > CASES // 6, count


def test_a_wrong_field_is_detected(kafka: ControllerHarness) -> None:
    """Bytes of another request have another JSON form, so the comparison can fail."""
    request = next(
        request
        for number in range(1000)
        if isinstance(request := random_request(f"wrong/{number}"), LeaderAndIsrRequest)
        and request.states
    )
    (message,) = wire_requests(request, 7)
    message.topic_states[0].partition_states[0].leader ^= 1
    answer = read_by(kafka, 4, 7, request_frame(message, 1), request=True)
    assert answer["json"] != json_of(request, 7)


def test_the_responses_of_brokers_are_read(kafka: ControllerHarness, seeds: range) -> None:
    """The errors that Kafka writes are those that are read, per partition and as a whole."""
    for seed in seeds[: CASES // 4]:
        chance = Chance(f"response/{seed}")
        request = random_request(f"request/{seed}")
        api, error = api_of(request), chance.choice([0, 0, 11, 77])
        errors = {
            partition: chance.choice([0, 3, 56, 103, -1])
            for partition in dict.fromkeys(chance.partitions())
        }
        for version in range(api.versions[0], api.versions[1] + 1):
            known = errors
            content: Json = {"errorCode": error}
            if api.name == "LeaderAndIsr" and version >= 5:
                assert isinstance(request, LeaderAndIsrRequest)
                known = {
                    partition: code
                    for partition, code in errors.items()
                    if partition.topic in request.topic_ids
                }
                content["topics"] = [
                    {"topicId": topic_id, "partitionErrors": entries(known, topic)}
                    for topic, topic_id in request.topic_ids.items()
                    if entries(known, topic)
                ]
            elif api.name != "UpdateMetadata":
                content["partitionErrors"] = [
                    {"topicName": topic, "partitionIndex": number, "errorCode": code}
                    for (topic, number), code in errors.items()
                ]
            data = written_by(kafka, api.key, version, content, request=False)
            kind = message_class(f"{api_of(request).name}Response", version)
            message, _ = read_entity(kind, data, 5 if kind.__flexible__ else 4)
            expected = {
                "LeaderAndIsr": LeaderAndIsrResponse(error, known),
                "StopReplica": StopReplicaResponse(error, errors),
                "UpdateMetadata": UpdateMetadataResponse(error),
            }
            assert response_of(request, version, [message]) == expected[api.name], (seed, version)


def entries(errors: dict[TopicPartition, int], topic: str) -> list[Json]:
    """The partitions of one topic, as Kafka's converter takes them."""
    return [
        {"partitionIndex": partition.number, "errorCode": code}
        for partition, code in errors.items()
        if partition.topic == topic
    ]


@pytest.mark.parametrize("version", range(4))
def test_alter_partition_goes_both_ways(
    kafka: ControllerHarness, seeds: range, version: int
) -> None:
    """A leader's request and the controller's response, each written by one side and read by the
    other."""
    for seed in seeds[: CASES // 4]:
        request = random_alter_partition(f"alter/{seed}", version)
        topic_ids = Chance(f"ids/{seed}").topic_ids()
        names = {topic_id: name for name, topic_id in topic_ids.items()}
        expected = alter_partition_json(request, topic_ids)
        ours = request_frame(to_controller.alter_partition_request(request, topic_ids), 7)
        assert read_by(kafka, 56, version, ours, request=True)["json"] == expected
        theirs = written_by(kafka, 56, version, expected, request=True)
        assert theirs == ours
        message = read_request(theirs, ApiDialect.CONTROLLER).body
        received = to_controller.read_alter_partition(message, version, names.get)
        known = {
            partition: requested
            for partition, requested in request.partitions.items()
            if version < 2 or partition.topic in topic_ids
        }
        assert received.request.partitions == known
        assert sum(map(len, received.unknown.values())) == len(request.partitions) - len(known)

        result = random_alter_result(f"result/{seed}", received.request)
        frame = write_response(7, to_controller.alter_partition_response(received, result))[4:]
        answer = read_by(kafka, 56, version, frame, request=False)
        answered = {topic["topicId"] for topic in answer["json"]["topics"] if version > 1}
        if not received.unknown:
            assert answer["json"] == alter_result_json(result, version, topic_ids)
        elif not result.error:
            unknown = {topic_id_text(topic_id) for topic_id in received.unknown}
            assert answered >= unknown
        response, _ = read_entity(message_class("AlterPartitionResponse", version), frame, 5)
        assert to_controller.read_alter_partition_response(response, request, topic_ids) == result


@pytest.mark.parametrize("version", range(4))
def test_controlled_shutdown_goes_both_ways(
    kafka: ControllerHarness, seeds: range, version: int
) -> None:
    """Version 0 has a header without a client id, version 3 a flexible one."""
    for seed in seeds[: CASES // 4]:
        chance = Chance(f"shutdown/{seed}")
        broker_id, epoch = chance.int32(), chance.int64()
        content = {"brokerId": broker_id} | ({"brokerEpoch": epoch} if version > 1 else {})
        data = written_by(kafka, 7, version, content, request=True)
        message = read_request(data, ApiDialect.CONTROLLER).body
        expected_epoch = epoch if version > 1 else -1
        assert (message.broker_id, to_controller.broker_epoch_of(message)) == (
            broker_id,
            expected_epoch,
        )
        ours = controlled_shutdown_request(broker_id, epoch, version)
        assert data.endswith(write_entity(ours))
        result = random_shutdown_result(f"left/{seed}")
        response = to_controller.controlled_shutdown_response(version, result)
        frame = write_response(7, response)[4:]
        answer = read_by(kafka, 7, version, frame, request=False)
        assert answer["json"] == {
            "errorCode": int(result.error),
            "remainingPartitions": [
                {"topicName": topic, "partitionIndex": number} for topic, number in result.remaining
            ],
        }
        start = 5 if version == 3 else 4
        read, _ = read_entity(type(response), frame, start)
        assert read_controlled_shutdown_response(read) == result


def test_producer_ids_go_both_ways(kafka: ControllerHarness) -> None:
    """AllocateProducerIds has one version."""
    data = written_by(kafka, 67, 0, {"brokerId": 3, "brokerEpoch": 9}, request=True)
    message = read_request(data, ApiDialect.CONTROLLER).body
    assert (message.broker_id, message.broker_epoch) == (3, 9)
    frame = write_response(7, to_controller.producer_ids_response(2000, 1000))[4:]
    assert read_by(kafka, 67, 0, frame, request=False)["json"] == {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "producerIdStart": 2000,
        "producerIdLen": 1000,
    }
