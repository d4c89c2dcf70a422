"""What a node that controls topics serves, in every version that it offers, against Kafka's
classes.

Kafka writes a request by chance, the node reads it and responds, and Kafka reads the response.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, FeaturesResponse
from featurewatch.reference.zookeeper.machines.topics.context import (
    ClusterBroker,
    ControllerContext,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.requests import (
    AlterConfigsRequest,
    ControlledShutdownRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    PartitionResults,
    ProducerIds,
    ProducerIdsRequest,
    ReassignRequest,
    RequestElections,
    RequestFailed,
    RunningReassignments,
    TopicConfigsRequest,
    TopicConfigsResult,
    TopicRequest,
    TopicResponse,
    TopicResult,
    TopicResults,
)
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    ControlledShutdownResult,
    PartitionResult,
)
from featurewatch.reference.zookeeper.topic_api import TopicApi
from featurewatch.reference.zookeeper.wire import responses
from featurewatch.reference.zookeeper.wire.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    KIP4_KEYS,
    METADATA,
    OFFERED,
    UPDATE_FEATURES,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.cluster_responses import topic_metadata
from featurewatch.reference.zookeeper.wire.frames import WireRequest, read_request, write_response
from featurewatch.stack.java.jars import Cache
from tests.conformance.feature_control.kafka import ControllerHarness, java_harness
from tests.conformance.messages.schemas import IDS, random_content
from tests.plugins.nightly import case_seeds

pytestmark = pytest.mark.stack


SOURCE = Path(__file__).with_name("java") / "Messages.java"
SERVED = sorted(OFFERED[ApiDialect.CONTROLLER].keys() - {UPDATE_FEATURES, *KIP4_KEYS})
VIEW = responses.ClusterView("cluster", 100, {1: Endpoint("h", 1, "r"), 100: Endpoint("c", 2)})
Json = dict[str, Any]


@pytest.fixture(scope="module")
def kafka(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """The messages of Kafka 3.9.1."""
    directory = tmp_path_factory.mktemp("messages")
    with java_harness([SOURCE], "Messages", "3.9.1", stack_cache, directory) as harness:
        yield harness


def context() -> ControllerContext:
    """Two topics, one of them without a leader, and one that is being deleted."""
    memory = ControllerContext(100)
    memory.brokers.update({1: ClusterBroker(5, Endpoint("h", 1)), 2: ClusterBroker(6)})
    for topic, topic_id, leader in (("t", IDS[0], 1), ("u", IDS[1], -1), ("gone", IDS[2], 1)):
        memory.topics.add(topic)
        memory.set_topic_id(topic, topic_id)
        partition = TopicPartition(topic, 0)
        memory.assignments[partition] = ReplicaAssignment((1, 2))
        memory.leaderships[partition] = PartitionLeadership(leader, (1,), 3)
    memory.queued_deletions.add("gone")
    return memory


class Node:
    """A node whose controller gives results by chance."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self.context = context()
        self.asked: TopicRequest | None = None
        self.response: TopicResponse | None = None
        self._api = TopicApi(100, self._perform, lambda: self.context)

    async def serve(self, request: WireRequest) -> Any:
        """The response, as `ReferenceNode` makes it."""
        self.asked = self.response = None
        if request.key == API_VERSIONS:
            features = FeaturesResponse({"f": (0, 3), "g": (1, 1)}, {"f": 2}, 9)
            return responses.api_versions(request, ApiDialect.CONTROLLER, features)
        if request.key == METADATA:
            return responses.metadata(request, VIEW, topic_metadata(request, self.context))
        if request.key == DESCRIBE_CLUSTER:
            return responses.describe_cluster(request, VIEW)
        return await self._api.serve(request)

    async def _perform(self, request: TopicRequest) -> TopicResponse:
        self.asked = request
        if self._chance.random() < 0.2:
            self.response = RequestFailed(ErrorCode.NOT_CONTROLLER, "This is another one.")
        else:
            self.response = self._result(request)
        return self.response

    def _result(self, request: TopicRequest) -> TopicResponse:
        match request:
            case ControlledShutdownRequest():
                return ControlledShutdownResult(remaining=(TopicPartition("t", 0),))
            case AlterPartitionRequest(partitions=partitions):
                leadership = PartitionLeadership(1, (1, 2), 3, 4, 5)
                return AlterPartitionResult(partitions=dict.fromkeys(partitions, leadership))
            case ProducerIdsRequest():
                return ProducerIds(4_000)
            case CreateTopicsRequest(topics):
                return TopicResults({topic.name: self._topic_result() for topic in topics})
            case CreatePartitionsRequest(topics=changes):
                return TopicResults({change.topic: self._topic_result() for change in changes})
            case DeleteTopicsRequest(names):
                return TopicResults({name: self._topic_result() for name in names})
            case AlterConfigsRequest(changes=configs):
                return TopicResults({name: self._topic_result() for name in configs})
            case TopicConfigsRequest(names):
                return TopicConfigsResult({name: {"retention.ms": "1"} for name in names[:1]})
            case ElectLeadersRequest(partitions) | RequestElections(partitions):
                chosen = partitions or (TopicPartition("t", 0), TopicPartition("u", 0))
                return PartitionResults({partition: self._partition() for partition in chosen})
            case ReassignRequest(targets):
                return PartitionResults({partition: self._partition() for partition in targets})
            case ListReassignmentsRequest():
                running = ReplicaAssignment((1, 2, 3), (3,), (1,))
                return RunningReassignments({TopicPartition("t", 0): running})

    def _topic_result(self) -> TopicResult:
        if self._chance.random() < 0.5:
            return TopicResult(ErrorCode.INVALID_TOPIC_EXCEPTION, "It is not.")
        return TopicResult(topic_id=IDS[0], assignments={0: (1, 2), 1: (2, 1)})

    def _partition(self) -> PartitionResult:
        codes = [ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.INVALID_REQUEST]
        return PartitionResult(self._chance.choice(codes), "why")


@pytest.mark.parametrize("key", SERVED)
def test_kafka_reads_what_the_node_responds(kafka: ControllerHarness, key: int) -> None:
    """Requests of every offered version are read, and responses have the layout of the version."""
    oldest, newest = OFFERED[ApiDialect.CONTROLLER][key]
    for version in range(oldest, newest + 1):
        for seed in case_seeds(40):
            chance = Random(f"{key}/{version}/{seed}")
            content = random_content(key, version, chance)
            asked = {"key": key, "version": version, "request": True, "json": content}
            (written,) = kafka.responses([{**asked, "correlation": 7, "client": "c"}])
            assert "error" not in written, (seed, content, written)
            request = read_request(bytes.fromhex(written["hex"]), ApiDialect.CONTROLLER)
            assert (request.key, request.version, request.correlation_id) == (key, version, 7)
            node = Node(chance)
            response = asyncio.run(node.serve(request))
            frame = write_response(7, response)[4:]
            (read,) = kafka.responses(
                [{"key": key, "version": version, "request": False, "hex": frame.hex()}]
            )
            assert "error" not in read, (seed, version, content, read)
            assert (read["left"], read["correlation"]) == (0, 7), (seed, version)
            assert read["hex"] == frame[read["start"] :].hex(), (seed, version)
            check(key, version, content, node, read["json"])


def check(key: int, version: int, content: Json, node: Node, response: Json) -> None:
    """The request has the values that Kafka wrote, the response those of the result."""
    asked = node.asked
    match asked:
        case CreateTopicsRequest(topics, validate_only):
            wanted = [
                (topic["name"], topic["numPartitions"], topic["replicationFactor"])
                for topic in content["topics"]
            ]
            assert [topic[:3] for topic in map(astuple, topics)] == wanted
            assert validate_only == content["validateOnly"]
            assert {entry["name"] for entry in response["topics"]} == {name for name, *_ in wanted}
        case DeleteTopicsRequest():
            deleted = content["topics"] if "topics" in content else content["topicNames"]
            assert len(response["responses"]) == len(deleted)
        case CreatePartitionsRequest(changes, _):
            assert [(change.topic, change.partition_count) for change in changes] == [
                (topic["name"], topic["count"]) for topic in content["topics"]
            ]
        case ElectLeadersRequest(partitions, unclean):
            named = content["topicPartitions"]
            assert unclean == (content.get("electionType", 0) == 1)
            assert (partitions is None) == (named is None)
        case ReassignRequest(targets):
            assert targets == {
                TopicPartition(topic["name"], entry["partitionIndex"]): None
                if entry["replicas"] is None
                else tuple(entry["replicas"])
                for topic in content["topics"]
                for entry in topic["partitions"]
            }
        case ListReassignmentsRequest(partitions):
            assert (partitions is None) == (content["topics"] is None)
        case ControlledShutdownRequest(broker_id, epoch):
            assert (broker_id, epoch) == (content["brokerId"], content.get("brokerEpoch", -1))
        case None if key == METADATA:
            check_metadata(version, content, response)
        case _:
            pass
    if isinstance(node.response, RequestFailed):
        codes = {*error_codes(response)}
        if isinstance(asked, ElectLeadersRequest):
            codes -= {0}  # of the response as a whole: only the named partitions have the error
        assert not codes or codes & {41, 14, 5, 100}, (content, response)


def astuple(topic: Any) -> tuple[Any, ...]:
    """A new topic's first fields."""
    return topic.name, topic.partition_count, topic.replication_factor


def error_codes(value: Any) -> Iterator[int]:
    """All error codes in a response."""
    if isinstance(value, dict):
        yield from (value[name] for name in ("errorCode",) if name in value)
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            yield from error_codes(part)


def check_metadata(version: int, content: Json, response: Json) -> None:
    """All topics, or the requested ones; those that are being deleted are unknown."""
    topics = content["topics"]
    named = {topic["name"]: topic for topic in response["topics"]}
    if topics is None or (version == 0 and not topics):
        assert named.keys() == {"t", "u"}
    else:
        assert len(response["topics"]) == len(topics)
        if version < 12 and any(topic["name"] is None for topic in topics):
            assert {topic["errorCode"] for topic in response["topics"]} == {42}
    if "u" in named and named["u"]["errorCode"] == 0:
        (partition,) = named["u"]["partitions"]
        assert (partition["errorCode"], partition["leaderId"]) == (5, -1)
    if "t" in named and named["t"]["errorCode"] == 0:
        (partition,) = named["t"]["partitions"]
        assert (partition["leaderId"], partition["replicaNodes"]) == (1, [1, 2])
        if version >= 5:
            assert partition["offlineReplicas"] == []
