"""Brokers, topics, replicas and their directories; plain values."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from featurewatch.admin.api_errors import ResponseError
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.address import Address
from featurewatch.streams.types import NodeId


class BrokerNode(NamedTuple):
    """A running broker and its listener."""

    node_id: NodeId
    host: str
    port: int
    rack: str | None

    @property
    def address(self) -> Address:
        """The address on which it listens."""
        return Address.of_peer(self.host, self.port)


class ClusterMetadata(NamedTuple):
    """The brokers of a cluster, ordered by id, and its controller.

    In KRaft mode ``controller_id`` is a broker that forwards to the active controller. It is None
    while the cluster has no controller: ask again.
    """

    cluster_id: str | None
    controller_id: NodeId | None
    brokers: tuple[BrokerNode, ...]


class PartitionDetails(NamedTuple):
    """A partition; no leader is None. The two last are None where the broker has no such fields
    (KIP-966)."""

    partition: int
    leader: NodeId | None
    replicas: tuple[NodeId, ...]
    isr: tuple[NodeId, ...]
    eligible_leaders: tuple[NodeId, ...] | None = None
    last_known_leaders: tuple[NodeId, ...] | None = None


class TopicDetails(NamedTuple):
    """A topic with its partitions, ordered by number, or Kafka's error for it.

    ``right`` is what the login lacks.
    """

    name: str
    topic_id: UUID | None
    is_internal: bool
    partitions: tuple[PartitionDetails, ...] = ()
    error: int = 0
    text: str | None = None
    right: str = ""


class TopicOverview(NamedTuple):
    """A cluster, and topics of it that may be seen, ordered by name."""

    cluster: ClusterMetadata
    topics: tuple[TopicDetails, ...]


class ClusterTopics(NamedTuple):
    """The running brokers by id, and the requested topics; ``errors`` has those without content."""

    brokers: Mapping[int, BrokerNode]
    partitions: Mapping[TopicPartition, PartitionDetails]
    errors: Mapping[str, ResponseError]


class BrokerReplica(NamedTuple):
    """One replica of a partition."""

    partition: TopicPartition
    broker_id: int

    def __str__(self) -> str:
        return f"{self.partition}-{self.broker_id}"


class ReplicaDirectory(NamedTuple):
    """Where a replica is on its broker: ``future`` is the directory that it moves to, if any.

    Sizes are in bytes; ``usable`` is the space left on the volume, None where it is not known.
    """

    current: str | None
    future: str | None
    size: int
    usable: int | None


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions of each topic."""
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for partition in partitions:
        numbers[partition.topic].append(partition.number)
    return numbers
