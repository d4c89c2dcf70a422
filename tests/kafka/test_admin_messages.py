"""The messages of reassignments, elections and directories have the bytes that kio's have."""

import datetime
from typing import Any

import pytest
from kio.schema.alter_partition_reassignments import v0 as alter_v0
from kio.schema.alter_partition_reassignments import v1 as alter_v1
from kio.schema.alter_partition_reassignments.v1 import request as alter_form
from kio.schema.alter_partition_reassignments.v1 import response as altered_form
from kio.schema.alter_replica_log_dirs import v2 as move_v2
from kio.schema.alter_replica_log_dirs.v2 import request as move_form
from kio.schema.alter_replica_log_dirs.v2 import response as moved_form
from kio.schema.elect_leaders import v2 as elect_v2
from kio.schema.elect_leaders.v2 import request as elect_form
from kio.schema.elect_leaders.v2 import response as elected_form
from kio.schema.errors import ErrorCode
from kio.static.primitive import i32Timedelta

from featurewatch.admin.reassignments.requests import alter_request, move_request, read_alter
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.decode import read_entity
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import (
    AlterPartitionReassignmentsRequestV0,
    AlterPartitionReassignmentsRequestV1,
    AlterPartitionReassignmentsResponseV1,
    AlterReplicaLogDirsResponseV2,
    ElectLeadersRequestV2,
    ElectLeadersResponseV2,
)
from tests.kafka.kio_messages import written

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("ü", 7)
FIVE_SECONDS = i32Timedelta.parse(datetime.timedelta(seconds=5))


def kio(kind: Any, **fields: Any) -> Any:
    """A message of kio's."""
    return kind(**fields)


@pytest.mark.parametrize("version", [0, 1])
def test_requests_of_reassignments(version: int) -> None:
    """New replicas, and None to cancel; version 1 refuses another replication factor."""
    ours = alter_request({FIRST: (3, 1), SECOND: None}, 5000, allow_factor_change=not version)
    wanted_class = (AlterPartitionReassignmentsRequestV0, AlterPartitionReassignmentsRequestV1)[
        version
    ]
    assert isinstance(ours, wanted_class)
    topics = tuple(
        kio(
            alter_form.ReassignableTopic,
            name=name,
            partitions=(
                kio(alter_form.ReassignablePartition, partition_index=number, replicas=replicas),
            ),
        )
        for name, number, replicas in (("t", 0, (3, 1)), ("ü", 7, None))
    )
    schema: Any = (alter_v0, alter_v1)[version]
    option = {"allow_replication_factor_change": False} if version else {}
    theirs = kio(
        schema.AlterPartitionReassignmentsRequest, timeout=FIVE_SECONDS, topics=topics, **option
    )
    assert write_entity(ours) == written(theirs)


def test_results_of_reassignments() -> None:
    """An error of all, and errors of partitions with their texts."""
    entry = kio(
        altered_form.ReassignablePartitionResponse,
        partition_index=4,
        error_code=ErrorCode(39),
        error_message="wrong",
    )
    topic = kio(altered_form.ReassignableTopicResponse, name="t", partitions=(entry,))
    theirs = kio(
        alter_v1.AlterPartitionReassignmentsResponse,
        throttle_time=FIVE_SECONDS,
        allow_replication_factor_change=True,
        error_code=ErrorCode(31),
        error_message=None,
        responses=(topic,),
    )
    ours, _ = read_entity(AlterPartitionReassignmentsResponseV1, written(theirs))
    read = read_alter(ours)
    assert read.error == (31, "Cluster authorization failed.", "Alter on the cluster")
    assert read.partitions == {TopicPartition("t", 4): (39, "wrong", "")}


@pytest.mark.parametrize("names_partitions", [True, False])
def test_elections(names_partitions: bool) -> None:
    """Some partitions or all of them, and the results."""
    ours_topics = (
        (ElectLeadersRequestV2.TopicPartitions(topic="t", partitions=(0, 2)),)
        if names_partitions
        else None
    )
    theirs_topics = (
        (kio(elect_form.TopicPartitions, topic="t", partitions=(0, 2)),)
        if names_partitions
        else None
    )
    theirs = kio(
        elect_v2.ElectLeadersRequest,
        election_type=1,
        topic_partitions=theirs_topics,
        timeout=FIVE_SECONDS,
    )
    ours = ElectLeadersRequestV2(election_type=1, topic_partitions=ours_topics, timeout_ms=5000)
    assert write_entity(ours) == written(theirs)
    result = kio(
        elected_form.PartitionResult, partition_id=2, error_code=ErrorCode(84), error_message=None
    )
    topic = kio(elected_form.ReplicaElectionResult, topic="t", partition_result=(result,))
    answer = kio(
        elect_v2.ElectLeadersResponse,
        throttle_time=FIVE_SECONDS,
        error_code=ErrorCode(0),
        replica_election_results=(topic,),
    )
    read, _ = read_entity(ElectLeadersResponseV2, written(answer))
    (elected,) = read.replica_election_results
    assert (elected.topic, elected.partition_result[0].error_code) == ("t", 84)


def test_moves_between_directories() -> None:
    """Replicas by the directory that they move to, and the results."""
    target = kio(
        move_form.AlterReplicaLogDir,
        path="/a",
        topics=(
            kio(move_form.AlterReplicaLogDirTopic, name="t", partitions=(0,)),
            kio(move_form.AlterReplicaLogDirTopic, name="ü", partitions=(7,)),
        ),
    )
    theirs = kio(move_v2.AlterReplicaLogDirsRequest, dirs=(target,))
    assert write_entity(move_request({FIRST: "/a", SECOND: "/a"})) == written(theirs)
    entry = kio(
        moved_form.AlterReplicaLogDirPartitionResult, partition_index=7, error_code=ErrorCode(57)
    )
    topic = kio(moved_form.AlterReplicaLogDirTopicResult, topic_name="ü", partitions=(entry,))
    answer = kio(move_v2.AlterReplicaLogDirsResponse, throttle_time=FIVE_SECONDS, results=(topic,))
    read, _ = read_entity(AlterReplicaLogDirsResponseV2, written(answer))
    assert read.results[0].partitions[0].error_code == 57
