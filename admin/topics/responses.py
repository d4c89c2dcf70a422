"""Responses about topics as plain values; pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from featurewatch.admin.error_texts import error_text
from featurewatch.admin.topics.values import (
    BrokerNode,
    ChangedTopic,
    ClusterMetadata,
    PartitionDetails,
    TopicConfig,
    TopicDetails,
)
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.streams.types import NodeId

if TYPE_CHECKING:
    from featurewatch.admin.topics.change_messages import CreatedTopic
    from featurewatch.admin.topics.config_messages import (
        DescribeConfigsResponseV4,
        DescribeLogDirsResponseV4,
    )
    from featurewatch.admin.topics.metadata_messages import (
        DescribedTopic,
        MetadataResponseV12,
        MetadataTopicV12,
        ReassignmentsResponseV0,
    )

_UNKNOWN_COUNT = -1


def cluster_of(response: "MetadataResponseV12") -> ClusterMetadata:
    """The brokers, by id, and the controller."""
    brokers = (
        BrokerNode(NodeId(broker.node_id), broker.host, broker.port, broker.rack)
        for broker in response.brokers
    )
    controller_id = NodeId(response.controller_id) if response.controller_id >= 0 else None
    return ClusterMetadata(response.cluster_id, controller_id, tuple(sorted(brokers)))


def metadata_topic(topic: "MetadataTopicV12") -> TopicDetails:
    """A topic of a Metadata response, which has no eligible leaders."""
    partitions = (
        PartitionDetails(
            partition.partition_index,
            _leader(partition.leader_id),
            _nodes(partition.replica_nodes),
            _nodes(partition.isr_nodes),
        )
        for partition in topic.partitions
    )
    return _topic(topic, partitions)


def described_topic(topic: "DescribedTopic") -> TopicDetails:
    """A topic of a DescribeTopicPartitions response, or the part of it in one page."""
    partitions = (
        PartitionDetails(
            partition.partition_index,
            _leader(partition.leader_id),
            _nodes(partition.replica_nodes),
            _nodes(partition.isr_nodes),
            _nodes(partition.eligible_leader_replicas or ()),
            _nodes(partition.last_known_elr or ()),
        )
        for partition in topic.partitions
    )
    return _topic(topic, partitions)


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


def topic_configs(response: "DescribeConfigsResponseV4") -> Iterator[TopicConfig]:
    """The settings of each topic."""
    for result in response.results:
        error, text = _error(result.error_code, result.error_message)
        yield TopicConfig(result.resource_name, result.configs.values, error, text)


def reassignments_of(
    response: "ReassignmentsResponseV0",
) -> Mapping[TopicPartition, ReplicaAssignment]:
    """The partitions that are being reassigned."""
    return {
        TopicPartition(topic.name, partition.partition_index): ReplicaAssignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def log_bytes(response: "DescribeLogDirsResponseV4") -> Mapping[str, int]:
    """The bytes of each topic's logs on one broker."""
    sizes: dict[str, int] = {}
    for directory in response.results:
        for topic in directory.topics:
            size = sum(partition.partition_size for partition in topic.partitions)
            sizes[topic.name] = sizes.get(topic.name, 0) + size
    return sizes


def created_topic(topic: "CreatedTopic") -> ChangedTopic:
    """The result of a creation, with id and counts as far as they may be read (KIP-525)."""
    error, text = _error(topic.error_code, topic.error_message)
    return ChangedTopic(
        topic.name,
        error,
        text,
        topic.topic_id,
        _count(topic.num_partitions),
        _count(topic.replication_factor),
    )


def changed_topic(name: str, error_code: int, error_message: str | None) -> ChangedTopic:
    """The result of any other change."""
    return ChangedTopic(name, *_error(error_code, error_message))


def _topic(
    topic: "MetadataTopicV12 | DescribedTopic", partitions: Iterable[PartitionDetails]
) -> TopicDetails:
    error, text = _error(topic.error_code, None)
    return TopicDetails(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        tuple(sorted(partitions, key=lambda partition: partition.partition)),
        error,
        text,
    )


def _error(code: int, text: str | None) -> tuple[int, str | None]:
    return code, None if code == 0 else text or error_text(code)


def _leader(node_id: int) -> NodeId | None:
    return NodeId(node_id) if node_id >= 0 else None


def _nodes(ids: tuple[int, ...]) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def _count(count: int) -> int | None:
    return None if count == _UNKNOWN_COUNT else count
