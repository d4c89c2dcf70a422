"""Responses about topics as plain values; pure."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from featurewatch.admin.api_errors import api_error
from featurewatch.admin.cluster.responses import leader_of, node_ids, topic_details
from featurewatch.admin.cluster.values import PartitionDetails, TopicDetails
from featurewatch.admin.topics.values import ChangedTopic

if TYPE_CHECKING:
    from featurewatch.admin.cluster.responses import DescribedTopic
    from featurewatch.kafka.messages import CreateTopicsResponseV7

_CREATE_TOPICS = 19
_UNKNOWN_COUNT = -1


def described_topic(topic: "DescribedTopic") -> TopicDetails:
    """A topic of a DescribeTopicPartitions response, or the part of it in one page."""
    partitions = (
        PartitionDetails(
            partition.partition_index,
            leader_of(partition.leader_id),
            node_ids(partition.replica_nodes),
            node_ids(partition.isr_nodes),
            node_ids(partition.eligible_leader_replicas or ()),
            node_ids(partition.last_known_elr or ()),
        )
        for partition in topic.partitions
    )
    return topic_details(topic, partitions)


def joined_pages(parts: Iterable[TopicDetails]) -> Iterator[TopicDetails]:
    """Topics whose partitions came in one page or more; the parts of a topic follow one another."""
    whole: TopicDetails | None = None
    for part in parts:
        if whole is not None and whole.name == part.name:
            whole = part._replace(partitions=whole.partitions + part.partitions)
            continue
        if whole is not None:
            yield whole
        whole = part
    if whole is not None:
        yield whole


def created_topic(topic: "CreateTopicsResponseV7.CreatableTopicResult") -> ChangedTopic:
    """The result of a creation, with id and counts as far as they may be read (KIP-525)."""
    result = changed_topic(topic.name, topic.error_code, topic.error_message, _CREATE_TOPICS)
    return ChangedTopic(
        result.topic,
        result.error,
        result.text,
        topic.topic_id,
        _count(topic.num_partitions),
        _count(topic.replication_factor),
        result.right,
    )


def changed_topic(
    name: str, error_code: int, error_message: str | None, api_key: int
) -> ChangedTopic:
    """The result of any other change, by a request of this key."""
    error = api_error(error_code, error_message, api_key)
    if error is None:
        return ChangedTopic(name)
    return ChangedTopic(name, error.code, error.text, right=error.right)


def _count(count: int) -> int | None:
    return None if count == _UNKNOWN_COUNT else count
