"""The operations of a rehearsal, and what a controller answers to one, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.rehearsal.partitions.state import RehearsedPartitions


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """A topic is created with this number of partitions and of replicas for each."""

    name: str
    partition_count: int
    replication_factor: int


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """An election by request: of the preferred leader, or ``is_unclean`` of any live replica.

    ``topics`` limits it; empty: all partitions.
    """

    is_unclean: bool
    topics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReassignPartitions:
    """New replicas of partitions, the preferred leader first."""

    targets: Mapping[TopicPartition, tuple[int, ...]]


Operation = CreateTopic | ElectLeaders | ReassignPartitions
"""An operation by request."""


class PartitionRefusal(NamedTuple):
    """Kafka's error for a partition or, without one, for the whole request."""

    partition: TopicPartition | None
    error: str
    text: str


@dataclass(frozen=True, slots=True)
class OperationResult:
    """The partitions after an operation.

    ``unclean`` are partitions that got a leader from outside the ISR, ``unfinished`` reassignments
    that have not ended, with the reason, ``notes`` further information.
    """

    after: RehearsedPartitions
    refusals: tuple[PartitionRefusal, ...] = ()
    unclean: frozenset[TopicPartition] = frozenset()
    unfinished: Mapping[TopicPartition, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
