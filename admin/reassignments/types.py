"""What clients of reassignments and elections take and return; plain values."""

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.streams.net.address import Address

Replicas = tuple[int, ...]
"""Ids of brokers, the preferred leader first."""
Targets = Mapping[TopicPartition, Replicas]


class ReassignmentStatus(IntEnum):
    """The state of a requested reassignment, with the numbers of KIP-4 (result codes)."""

    FAILED = -1
    """None runs, and the replicas are not the requested ones."""
    IN_PROGRESS = 0
    COMPLETED = 1


class PartitionError(NamedTuple):
    """Kafka's error number, and its text for people."""

    code: int
    text: str


class RunningBroker(NamedTuple):
    """A running broker and its listener."""

    broker_id: int
    address: Address
    rack: str | None


class LivePartition(NamedTuple):
    """A partition as a broker knows it; ``leader`` is -1 where there is none."""

    leader: int
    replicas: Replicas
    isr: Replicas


class ClusterTopics(NamedTuple):
    """The running brokers by id, and the requested topics; ``errors`` has those without content."""

    brokers: Mapping[int, RunningBroker]
    partitions: Mapping[TopicPartition, LivePartition]
    errors: Mapping[str, PartitionError]


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


class ReassignmentProgress(NamedTuple):
    """How far a reassignment is: partitions done and in all, bytes that added replicas lack.

    ``bytes_left`` is None if some broker did not respond.
    """

    done: int
    total: int
    bytes_left: int | None
