"""Makes the requests of reassignments from plain values and reads their results; no IO."""

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from featurewatch.admin.api_errors import ResponseError, api_error
from featurewatch.admin.cluster.values import numbers_by_topic
from featurewatch.admin.reassignments.types import Replicas
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.messages import log_dirs, reassignments

AlterRequest = reassignments.AlterReassignmentsRequestV0 | reassignments.AlterReassignmentsRequestV1
AlterResponse = (
    reassignments.AlterReassignmentsResponseV0 | reassignments.AlterReassignmentsResponseV1
)


_ALTER_LOG_DIRS = 34
_ALTER_REASSIGNMENTS = 45


class AlterResults(NamedTuple):
    """The response to AlterPartitionReassignments: one error for all, or one each (None: none)."""

    error: ResponseError | None
    partitions: Mapping[TopicPartition, ResponseError | None]


def alter_request(
    targets: Mapping[TopicPartition, Replicas | None],
    timeout_ms: int,
    *,
    allow_factor_change: bool = True,
) -> AlterRequest:
    """Starts reassignments, and cancels those without replicas (None).

    Version 1 is what can refuse another replication factor; Kafka has it from 4.1 on.
    """
    topics = tuple(
        reassignments.ReassignableTopic(
            topic,
            tuple(
                reassignments.ReassignablePartition(number, targets[TopicPartition(topic, number)])
                for number in numbers
            ),
        )
        for topic, numbers in numbers_by_topic(targets).items()
    )
    if allow_factor_change:
        return reassignments.AlterReassignmentsRequestV0(timeout_ms, topics)
    return reassignments.AlterReassignmentsRequestV1(timeout_ms, allow_factor_change, topics)


def read_alter(response: AlterResponse) -> AlterResults:
    """The errors of the response to `alter_request`."""
    results = {
        TopicPartition(topic.name, entry.partition_index): api_error(
            entry.error_code, entry.error_message, _ALTER_REASSIGNMENTS
        )
        for topic in response.responses
        for entry in topic.partitions
    }
    error = api_error(response.error_code, response.error_message, _ALTER_REASSIGNMENTS)
    return AlterResults(error, results)


def move_request(
    directories: Mapping[TopicPartition, str],
) -> log_dirs.AlterReplicaLogDirsRequestV2:
    """Moves replicas of a broker to other directories of its own."""
    by_directory: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for partition, directory in directories.items():
        by_directory[directory].append(partition)
    targets = (
        log_dirs.MoveTarget(
            directory,
            tuple(
                log_dirs.MovableTopic(topic, tuple(numbers))
                for topic, numbers in numbers_by_topic(partitions).items()
            ),
        )
        for directory, partitions in by_directory.items()
    )
    return log_dirs.AlterReplicaLogDirsRequestV2(tuple(targets))


def read_move(
    response: log_dirs.AlterReplicaLogDirsResponseV2,
) -> dict[TopicPartition, ResponseError | None]:
    """The errors of the response to `move_request`."""
    return {
        TopicPartition(topic.topic_name, entry.partition_index): api_error(
            entry.error_code, None, _ALTER_LOG_DIRS
        )
        for topic in response.results
        for entry in topic.partitions
    }
