"""Makes the requests that change topics from plain values; pure, raises `RequestError`."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from featurewatch.admin.errors import RequestError
from featurewatch.admin.topics.values import PartitionIncrease, TopicSpec
from featurewatch.kafka import messages

_DEFAULT_COUNT: Final = -1
_MAX_INT32: Final = 2**31 - 1
_MAX_INT16: Final = 2**15 - 1


def create(
    topics: Sequence[TopicSpec], timeout_ms: int, validate_only: bool
) -> "messages.CreateTopicsRequestV7":
    """Topics by counts or by assignments."""
    return messages.CreateTopicsRequestV7(
        topics=tuple(map(_new_topic, topics)), timeout_ms=timeout_ms, validate_only=validate_only
    )


def delete(names: Sequence[str], timeout_ms: int) -> "messages.DeleteTopicsRequestV6":
    """Topics by their names."""
    form = messages.DeleteTopicsRequestV6
    topics = (form.DeleteTopicState(name=_check_name(name), topic_id=None) for name in names)
    return form(topics=tuple(topics), timeout_ms=timeout_ms)


def delete_ids(ids: Sequence[UUID], timeout_ms: int) -> "messages.DeleteTopicsRequestV6":
    """Topics by their ids."""
    form = messages.DeleteTopicsRequestV6
    topics = (form.DeleteTopicState(name=None, topic_id=topic_id) for topic_id in ids)
    return form(topics=tuple(topics), timeout_ms=timeout_ms)


def add_partitions(
    increases: Sequence[PartitionIncrease], timeout_ms: int, validate_only: bool
) -> "messages.CreatePartitionsRequestV3":
    """Topics with their new counts."""
    form = messages.CreatePartitionsRequestV3
    topics = (
        form.CreatePartitionsTopic(
            name=_check_name(increase.topic),
            count=_fitting(increase.count, _MAX_INT32, "partitions"),
            assignments=None
            if increase.assignment is None
            else tuple(
                form.CreatePartitionsAssignment(broker_ids=_broker_ids(replicas))
                for replicas in increase.assignment
            ),
        )
        for increase in increases
    )
    return form(topics=tuple(topics), timeout_ms=timeout_ms, validate_only=validate_only)


def _new_topic(topic: TopicSpec) -> "messages.CreateTopicsRequestV7.CreatableTopic":
    form = messages.CreateTopicsRequestV7
    assignments = (
        form.CreatableReplicaAssignment(partition_index=number, broker_ids=_broker_ids(replicas))
        for number, replicas in enumerate(topic.assignment or ())
    )
    configs = (
        form.CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()
    )
    return form.CreatableTopic(
        name=_check_name(topic.name),
        num_partitions=_fitting(topic.partitions, _MAX_INT32, "partitions"),
        replication_factor=_fitting(topic.replication_factor, _MAX_INT16, "replicas"),
        assignments=tuple(assignments),
        configs=tuple(configs),
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
