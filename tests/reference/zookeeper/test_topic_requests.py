"""Released Kafka's requests about topics, served by the reference controller, as bytes.

kio writes the requests and reads the responses, by Kafka's own schemas.
"""

import ast
import asyncio
import uuid
from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from kio.schema.errors import ErrorCode as Code
from kio.serial import entity_reader

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper import topic_api
from featurewatch.reference.zookeeper.machines.encoding import broker_path
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER,
    ReassignRequest,
    TopicRequest,
    TopicResponse,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Delete
from featurewatch.reference.zookeeper.topic_api import TopicApi
from featurewatch.reference.zookeeper.wire import responses
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from featurewatch.reference.zookeeper.wire.cluster_responses import topic_metadata
from featurewatch.reference.zookeeper.wire.frames import read_request, write_response
from tests.reference.zookeeper.kip4.kip4_rig import NODE_ID, VIEW, Kip4Rig
from tests.reference.zookeeper.machines.controller_rig import P0
from tests.reference.zookeeper.request_bytes import request_bytes

pytestmark = pytest.mark.form("released")

MINUTE = timedelta(minutes=1)
CREATE_TOPICS: Any = import_module("kio.schema.create_topics.v7.request")
DELETE_TOPICS: Any = import_module("kio.schema.delete_topics.v6.request")
DESCRIBE_CLUSTER: Any = import_module("kio.schema.describe_cluster.v1.request")
ELECT_LEADERS: Any = import_module("kio.schema.elect_leaders.v2.request")
LIST_REASSIGNMENTS: Any = import_module("kio.schema.list_partition_reassignments.v0.request")
METADATA: Any = import_module("kio.schema.metadata.v12.request")
P1 = TopicPartition("t", 1)


def response_of(request: Any) -> Any:
    """The class of the response to a class of requests."""
    module = import_module(request.__module__.replace(".request", ".response"))
    return getattr(module, request.__name__.replace("Request", "Response"))


class Served(Kip4Rig):
    """The controller with the topic t, asked in bytes."""

    def ask(self, request: Any) -> Any:
        """The response to kio's request, read by kio to its last byte."""
        received = read_request(request_bytes(request), ApiDialect.CONTROLLER)
        frame = write_response(received.correlation_id, asyncio.run(self._serve(received)))
        response = response_of(type(request))
        header_end = 8 + response.__flexible__
        read, size = entity_reader(response)(frame[header_end:], 0)
        assert header_end + size == len(frame)
        return read

    async def _serve(self, received: Any) -> Any:
        if received.key == METADATA.MetadataRequest.__api_key__:
            return responses.metadata(received, VIEW, topic_metadata(received, self.context))
        if received.key == DESCRIBE_CLUSTER.DescribeClusterRequest.__api_key__:
            return responses.describe_cluster(received, VIEW)
        return await TopicApi(NODE_ID, self.perform, self.context_or_none).serve(received)


class Standby(Served):
    """A node that is not the controller."""

    async def perform(self, _: TopicRequest) -> TopicResponse:
        """Its error for all."""
        return NOT_CONTROLLER


def creation(*names: str, count: int = 1, config: str | None = None) -> Any:
    """A CreateTopics request."""
    return CREATE_TOPICS.CreateTopicsRequest(
        topics=tuple(
            CREATE_TOPICS.CreatableTopic(
                name=name,
                num_partitions=count,
                replication_factor=1,
                assignments=(),
                configs=(CREATE_TOPICS.CreatableTopicConfig(name=config, value="1"),)
                if config
                else (),
            )
            for name in names
        ),
        timeout=MINUTE,
    )


def deletion(*topics: str | uuid.UUID) -> Any:
    """A DeleteTopics request for names and ids."""
    return DELETE_TOPICS.DeleteTopicsRequest(
        topics=tuple(
            DELETE_TOPICS.DeleteTopicState(
                name=topic if isinstance(topic, str) else None,
                topic_id=topic if isinstance(topic, uuid.UUID) else None,
            )
            for topic in topics
        ),
        timeout=MINUTE,
    )


def codes(items: Any) -> list[Code]:
    """The error of each item."""
    return [item.error_code for item in items]


def names_of(kind: Any) -> set[str]:
    """The fields of a message."""
    return {field.name for field in fields(kind)}


def metadata(topics: Any) -> Any:
    """A Metadata request; None for all topics."""
    return METADATA.MetadataRequest(topics=topics, include_topic_authorized_operations=False)


def listed(rig: Served, *names: str) -> Any:
    """The topics of a Metadata response; all, if none is named."""
    topic = METADATA.MetadataRequestTopic
    topics = tuple(topic(topic_id=None, name=name) for name in names) or None
    return rig.ask(metadata(topics)).topics


def test_a_node_that_is_not_the_controller_answers_41() -> None:
    """NOT_CONTROLLER, for each topic or for all; Kafka's 22 is another error (A-01 as released)."""
    created = Standby().ask(creation("a", "b"))
    assert codes(created.topics) == [Code.not_controller] * 2
    assert Code(41) is Code.not_controller
    assert Standby().ask(list_reassignments_request()).error_code is Code.not_controller
    assert Code(22) is Code.illegal_generation


def test_each_failure_has_its_own_code() -> None:
    """None of them is 21, which is another error, and each has its cause (A-02 as released,
    A-03 as released)."""
    rig = Served()
    failed = rig.ask(creation("new", config="no.such")).topics
    failed += rig.ask(creation("a b", "t")).topics + rig.ask(creation("none", count=0)).topics
    assert codes(failed) == [
        Code.invalid_config,
        Code.invalid_topic_exception,
        Code.topic_already_exists,
        Code.invalid_partitions,
    ]
    assert all(topic.error_message for topic in failed)
    assert Code(21) is Code.invalid_required_acks


def test_metadata_and_describe_cluster_name_the_controllers_id() -> None:
    """Keys 3 and 60, which have fields; the controller is an id among the brokers that are listed,
    each with its address (A-04 as released, A-05 as released)."""
    rig = Served()
    found = rig.ask(metadata(()))
    described = rig.ask(
        DESCRIBE_CLUSTER.DescribeClusterRequest(include_cluster_authorized_operations=False)
    )
    keys = [type(found).__api_key__, type(described).__api_key__]
    assert keys == [3, 60]
    for response in (found, described):
        assert response.controller_id == NODE_ID
        brokers = {broker.port for broker in response.brokers}
        assert brokers == {endpoint.port for endpoint in VIEW.brokers.values()}
    assert names_of(METADATA.MetadataRequest) > {"topics"}


def test_every_topic_of_a_request_has_a_result() -> None:
    """One that fails keeps no other from being created (A-11 as released)."""
    rig = Served()
    created = rig.ask(creation("a", "t", "b"))
    assert [(topic.name, topic.error_code) for topic in created.topics] == [
        ("a", Code.none),
        ("t", Code.topic_already_exists),
        ("b", Code.none),
    ]
    assert "error_code" not in names_of(response_of(CREATE_TOPICS.CreateTopicsRequest))
    assert {"a", "b"} <= rig.context.topics


def test_topics_are_deleted_by_name_or_id_in_one_request() -> None:
    """Key 20 has a list of them; each has a result (A-15 as released)."""
    rig = Served()
    rig.ask(creation("named", "other"))
    topic_id = uuid.UUID(int=7)
    rig.context.set_topic_id("other", "AAAAAAAAAAAAAAAAAAAABw")
    deleted = rig.ask(deletion("named", topic_id, uuid.UUID(int=8), "never"))
    assert DELETE_TOPICS.DeleteTopicsRequest.__api_key__ == 20
    assert codes(deleted.responses) == [
        Code.none,
        Code.none,
        Code.unknown_topic_id,
        Code.unknown_topic_or_partition,
    ]
    assert {"named", "other"} <= rig.context.queued_deletions | rig.context.topics
    assert {topic.name for topic in listed(rig)} == {"t"}


def test_all_topics_are_listed_by_metadata_without_topics() -> None:
    """Null names all, an empty list none; a topic that is being deleted has no mark
    (A-20 as released, A-21 as released)."""
    rig = Served()
    rig.ask(creation("gone"))
    assert {topic.name for topic in listed(rig)} == {"gone", "t"}
    assert rig.ask(metadata(())).topics == ()
    rig.ask(deletion("gone"))
    assert "gone" in rig.context.queued_deletions
    assert {topic.name for topic in listed(rig)} == {"t"}
    assert names_of(type(listed(rig)[0])) == {
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    }


def test_a_topic_is_described_by_metadata_of_its_name() -> None:
    """Its partitions, and no settings; an unknown one has a code and none (A-16 as released,
    A-17 as released)."""
    rig = Served()
    known, unknown = listed(rig, "t", "never")
    assert (known.error_code, len(known.partitions)) == (Code.none, 1)
    assert (unknown.error_code, unknown.partitions) == (Code.unknown_topic_or_partition, ())
    assert not {name for name in names_of(type(known)) if "config" in name}


def test_a_partition_without_a_leader_has_the_leader_minus_1() -> None:
    """With the error LEADER_NOT_AVAILABLE; the field is never absent (A-19 as released)."""
    rig = Served()
    (partition,) = listed(rig, "t")[0].partitions
    assert partition.leader_id == 1
    rig.alter_isr(P0, 1)
    rig.history.write(0, Delete(broker_path(1)))
    rig.settle()
    (partition,) = listed(rig, "t")[0].partitions
    assert (partition.leader_id, partition.error_code) == (-1, Code.leader_not_available)
    assert {*partition.isr_nodes} <= {*partition.replica_nodes}


def list_reassignments_request(*partitions: int) -> Any:
    """Of these partitions of t, or of all."""
    topic = LIST_REASSIGNMENTS.ListPartitionReassignmentsTopics
    return LIST_REASSIGNMENTS.ListPartitionReassignmentsRequest(
        timeout=MINUTE,
        topics=(topic(name="t", partition_indexes=partitions),) if partitions else None,
    )


def test_only_what_runs_is_in_the_list_of_reassignments() -> None:
    """Key 46; what is completed or unknown is left out, and no result has a number
    (A-26 as released, A-27 as released, A-28 as released)."""
    rig = Served()
    assert LIST_REASSIGNMENTS.ListPartitionReassignmentsRequest.__api_key__ == 46
    assert rig.ask(list_reassignments_request(0, 9)).topics == ()
    rig.request(ReassignRequest({P0: (2, 3)}))
    (topic,) = rig.ask(list_reassignments_request(0, 9)).topics
    (running,) = topic.partitions
    assert (running.partition_index, running.adding_replicas, running.removing_replicas) == (
        0,
        (3,),
        (1,),
    )
    assert names_of(type(running)) == {
        "partition_index",
        "replicas",
        "adding_replicas",
        "removing_replicas",
    }
    rig.alter_isr(P0, 1, 2, 3)
    assert rig.ask(list_reassignments_request(0, 9)).topics == ()


def election(*partitions: int) -> Any:
    """A preferred election of these partitions of t, or of all."""
    topic = ELECT_LEADERS.TopicPartitions
    return ELECT_LEADERS.ElectLeadersRequest(
        election_type=0,
        topic_partitions=(topic(topic="t", partitions=partitions),) if partitions else None,
        timeout=MINUTE,
    )


@pytest.mark.parametrize("is_named", [False, True])
def test_an_election_is_answered_when_the_leaders_are_elected(is_named: bool) -> None:
    """Key 43 with the partitions or null for all, and a timeout; each that was elected, or could
    not be, has a result (A-29 as released, A-30 as released, A-39 as released).

    Of all, those whose preferred replica leads already have none.
    """
    rig = Served()
    rig.ask(creation("other"))
    rig.request(ReassignRequest({P0: (2, 1)}))
    assert rig.context.leaderships[P0].leader == 1
    elected = rig.ask(election(0, 9) if is_named else election())
    assert rig.context.leaderships[P0].leader == 2
    assert type(elected).__api_key__ == 43
    results = {
        entry.partition_id: entry.error_code
        for topic in elected.replica_election_results
        for entry in topic.partition_result
    }
    expected = {0: Code.none}
    assert results == expected | ({9: Code.unknown_topic_or_partition} if is_named else {})


def test_other_classes_than_the_documents_serve_released_requests() -> None:
    """They have other names than KIP-4's helpers, and import no command (A-32 as released)."""
    parts = [Path(str(topic_api.__file__))]
    parts += Path(str(topic_api.__file__)).parent.glob("machines/topics/**/*.py")
    assert len(parts) > 10
    for part in parts:
        for node in ast.walk(ast.parse(part.read_text())):
            if isinstance(node, ast.ClassDef):
                assert not node.name.endswith("CommandHelper")
            if isinstance(node, ast.ImportFrom):
                assert not str(node.module).startswith(("featurewatch.cli", "featurewatch.admin"))
