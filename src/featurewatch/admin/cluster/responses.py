"""Responses about a cluster as plain values; pure."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from featurewatch.admin.api_errors import ResponseError, api_error
from featurewatch.admin.cluster.values import (
    BrokerNode,
    BrokerReplica,
    ClusterMetadata,
    ClusterTopics,
    PartitionDetails,
    ReplicaDirectory,
    TopicDetails,
    TopicOverview,
)
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.streams.types import NodeId

if TYPE_CHECKING:
    from featurewatch.kafka.messages import (
        DescribeLogDirsResponseV4,
        DescribeTopicPartitionsResponseV0,
        ListPartitionReassignmentsResponseV0,
        MetadataResponseV12,
    )

    MetadataTopic = MetadataResponseV12.MetadataResponseTopic
    DescribedTopic = DescribeTopicPartitionsResponseV0.DescribeTopicPartitionsResponseTopic

_METADATA = 3


def cluster_of(response: "MetadataResponseV12") -> ClusterMetadata:
    """The brokers, by id, and the controller."""
    brokers = (
        BrokerNode(NodeId(broker.node_id), broker.host, broker.port, broker.rack)
        for broker in response.brokers
    )
    controller_id = NodeId(response.controller_id) if response.controller_id >= 0 else None
    return ClusterMetadata(response.cluster_id, controller_id, tuple(sorted(brokers)))


def node_ids(ids: Iterable[int]) -> tuple[NodeId, ...]:
    """Node ids of a response, in their order."""
    return tuple(map(NodeId, ids))


def metadata_topic(topic: "MetadataTopic") -> TopicDetails:
    """A topic of a Metadata response, which has no eligible leaders."""
    partitions = (
        PartitionDetails(
            partition.partition_index,
            leader_of(partition.leader_id),
            node_ids(partition.replica_nodes),
            node_ids(partition.isr_nodes),
        )
        for partition in topic.partitions
    )
    return topic_details(topic, partitions)


def topic_details(
    topic: "MetadataTopic | DescribedTopic", partitions: Iterable[PartitionDetails]
) -> TopicDetails:
    """A topic with its partitions in order."""
    error = api_error(topic.error_code, None, _METADATA)
    return TopicDetails(
        topic.name or "",
        topic.topic_id,
        topic.is_internal,
        tuple(sorted(partitions, key=_number)),
        *(error or ()),
    )


def leader_of(node_id: int) -> NodeId | None:
    """The leader of a partition, or None."""
    return NodeId(node_id) if node_id >= 0 else None


def cluster_topics(overview: TopicOverview) -> ClusterTopics:
    """Brokers, partitions and errors by what names them."""
    return ClusterTopics(
        {broker.node_id: broker for broker in overview.cluster.brokers},
        {
            TopicPartition(topic.name, partition.partition): partition
            for topic in overview.topics
            for partition in topic.partitions
        },
        {
            topic.name: ResponseError(topic.error, topic.text or "", topic.right)
            for topic in overview.topics
            if topic.error
        },
    )


def reassignments_of(
    response: "ListPartitionReassignmentsResponseV0",
) -> dict[TopicPartition, ReplicaAssignment]:
    """The partitions that are being reassigned."""
    return {
        TopicPartition(topic.name, partition.partition_index): ReplicaAssignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for topic in response.topics
        for partition in topic.partitions
    }


def replica_directories(
    response: "DescribeLogDirsResponseV4", broker_id: int
) -> Mapping[BrokerReplica, ReplicaDirectory]:
    """The replicas on a broker; directories with an error are left out, as Kafka's client does."""
    found: dict[BrokerReplica, ReplicaDirectory] = {}
    for directory in response.results:
        if directory.error_code:
            continue
        usable = directory.usable_bytes if directory.usable_bytes >= 0 else None
        for topic in directory.topics:
            for entry in topic.partitions:
                partition = TopicPartition(topic.name, entry.partition_index)
                replica = BrokerReplica(partition, broker_id)
                before = found.get(replica, ReplicaDirectory(None, None, 0, None))
                if entry.is_future_key:
                    found[replica] = before._replace(future=directory.log_dir)
                else:
                    found[replica] = ReplicaDirectory(
                        directory.log_dir, before.future, entry.partition_size, usable
                    )
    return found


def _number(partition: PartitionDetails) -> int:
    return partition.partition
