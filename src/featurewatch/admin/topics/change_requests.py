"""Makes the requests that change topics from plain values; pure, raises `RequestError`."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from featurewatch.admin.errors import RequestError
from featurewatch.admin.topics.values import PartitionIncrease, TopicSpec
from featurewatch.kafka.messages import topics as messages

_DEFAULT_COUNT: Final = -1
_MAX_INT32: Final = 2**31 - 1
_MAX_INT16: Final = 2**15 - 1


def create(
    topics: Sequence[TopicSpec], timeout_ms: int, validate_only: bool
) -> messages.CreateTopicsRequestV7:
    """Topics by counts or by assignments."""
    return messages.CreateTopicsRequestV7(tuple(map(_new_topic, topics)), timeout_ms, validate_only)


def delete(names: Sequence[str], timeout_ms: int) -> messages.DeleteTopicsRequestV6:
    """Topics by their names."""
    for name in names:
        _check_name(name)
    topics = (messages.DeleteTopicsTopic(name, None) for name in names)
    return messages.DeleteTopicsRequestV6(tuple(topics), timeout_ms)


def delete_ids(ids: Sequence[UUID], timeout_ms: int) -> messages.DeleteTopicsRequestV6:
    """Topics by their ids."""
    topics = (messages.DeleteTopicsTopic(None, topic_id) for topic_id in ids)
    return messages.DeleteTopicsRequestV6(tuple(topics), timeout_ms)


def add_partitions(
    increases: Sequence[PartitionIncrease], timeout_ms: int, validate_only: bool
) -> messages.CreatePartitionsRequestV3:
    """Topics with their new counts."""
    topics = (
        messages.CreatePartitionsTopic(
            _check_name(increase.topic),
            _fitting(increase.count, _MAX_INT32, "partitions"),
            None
            if increase.assignment is None
            else tuple(
                messages.CreatePartitionsAssignment(_broker_ids(replicas))
                for replicas in increase.assignment
            ),
        )
        for increase in increases
    )
    return messages.CreatePartitionsRequestV3(tuple(topics), timeout_ms, validate_only)


def _new_topic(topic: TopicSpec) -> messages.CreateTopicsTopic:
    assignments = (
        messages.CreateTopicsAssignment(number, _broker_ids(replicas))
        for number, replicas in enumerate(topic.assignment or ())
    )
    return messages.CreateTopicsTopic(
        _check_name(topic.name),
        _fitting(topic.partitions, _MAX_INT32, "partitions"),
        _fitting(topic.replication_factor, _MAX_INT16, "replicas"),
        tuple(assignments),
        tuple(messages.CreateTopicsConfig(*setting) for setting in topic.configs.items()),
    )


def _check_name(name: str) -> str:
    """The name, if a request can have it (``KafkaAdminClient.topicNameIsUnrepresentable``)."""
    if not name:
        raise RequestError(f"The given topic name '{name}' cannot be represented in a request.")
    return name


def _fitting(count: int | None, highest: int, name: str) -> int:
    if count is None:
        return _DEFAULT_COUNT
    if not -highest <= count <= highest:
        raise RequestError(f"{count} {name} do not fit into a request: {highest} are the most")
    return count


def _broker_ids(replicas: Sequence[int]) -> tuple[int, ...]:
    return tuple(_fitting(node_id, _MAX_INT32, "as a broker id") for node_id in replicas)
