"""ElectLeaders, key 43, to the wire and back; no IO."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from importlib import import_module
from typing import Any, Final, NamedTuple

from featurewatch.admin.reassignments.messages import (
    Message,
    api_error,
    milliseconds,
    numbers_by_topic,
)
from featurewatch.admin.reassignments.types import PartitionError
from featurewatch.controller.partitions.assignment import TopicPartition

ELECT_LEADERS: Final = 43


class ElectionType(IntEnum):
    """Who may be elected, with Kafka's numbers (``ElectionType``)."""

    PREFERRED = 0
    """The first replica, if it is in sync."""
    UNCLEAN = 1
    """Any running replica, where none is in sync: messages may be lost."""


class ElectionResults(NamedTuple):
    """The response: one error for all, or one for each partition (None: a leader was elected)."""

    error: PartitionError | None
    partitions: Mapping[TopicPartition, PartitionError | None]


def elect_request(
    kind: ElectionType,
    partitions: Iterable[TopicPartition] | None,
    version: int,
    timeout_s: float,
) -> Message:
    """Elects the leaders of these partitions, or (None) of all; version 1 or 2."""
    schema = import_module(f"kio.schema.elect_leaders.v{version}")
    form = import_module(f"kio.schema.elect_leaders.v{version}.request")
    topics = None
    if partitions is not None:
        topics = tuple(
            form.TopicPartitions(topic=topic, partitions=tuple(numbers))
            for topic, numbers in numbers_by_topic(partitions).items()
        )
    request = schema.ElectLeadersRequest(
        election_type=int(kind), topic_partitions=topics, timeout=milliseconds(timeout_s)
    )
    return request, schema.ElectLeadersResponse


def read_elections(response: Any) -> ElectionResults:
    """The results in the order of the response."""
    results = {
        TopicPartition(topic.topic, int(entry.partition_id)): api_error(
            int(entry.error_code), entry.error_message
        )
        for topic in response.replica_election_results
        for entry in topic.partition_result
    }
    return ElectionResults(api_error(int(response.error_code)), results)
