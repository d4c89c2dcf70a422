"""Makes the requests of reassignments from plain values and reads their results; no IO."""

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from featurewatch.admin.api_errors import ResponseError, api_error
from featurewatch.admin.cluster.values import numbers_by_topic
from featurewatch.admin.reassignments.types import Replicas
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka import messages
from featurewatch.kafka.messages import Request, message_class

if TYPE_CHECKING:
    AlterResponse = (
        messages.AlterPartitionReassignmentsResponseV0
        | messages.AlterPartitionReassignmentsResponseV1
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
) -> "Request[AlterResponse]":
    """Starts reassignments, and cancels those without replicas (None).

    Version 1 is what can refuse another replication factor; Kafka has it from 4.1 on.
    """
    form = message_class("AlterPartitionReassignmentsRequest", 0 if allow_factor_change else 1)
    topics = (
        form.ReassignableTopic(
            name=topic,
            partitions=tuple(
                form.ReassignablePartition(
                    partition_index=number, replicas=targets[TopicPartition(topic, number)]
                )
                for number in numbers
            ),
        )
        for topic, numbers in numbers_by_topic(targets).items()
    )
    option = {} if allow_factor_change else {"allow_replication_factor_change": False}
    request: Request[AlterResponse] = form(timeout_ms=timeout_ms, topics=tuple(topics), **option)
    return request


def read_alter(response: "AlterResponse") -> AlterResults:
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
) -> "messages.AlterReplicaLogDirsRequestV2":
    """Moves replicas of a broker to other directories of the same broker."""
    form = messages.AlterReplicaLogDirsRequestV2
    by_directory: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for partition, directory in directories.items():
        by_directory[directory].append(partition)
    targets = (
        form.AlterReplicaLogDir(
            path=directory,
            topics=tuple(
                form.AlterReplicaLogDirTopic(name=topic, partitions=tuple(numbers))
                for topic, numbers in numbers_by_topic(partitions).items()
            ),
        )
        for directory, partitions in by_directory.items()
    )
    return form(dirs=tuple(targets))


def read_move(
    response: "messages.AlterReplicaLogDirsResponseV2",
) -> dict[TopicPartition, ResponseError | None]:
    """The errors of the response to `move_request`."""
    return {
        TopicPartition(topic.topic_name, entry.partition_index): api_error(
            entry.error_code, None, _ALTER_LOG_DIRS
        )
        for topic in response.results
        for entry in topic.partitions
    }
