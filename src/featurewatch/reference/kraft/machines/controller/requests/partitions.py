"""Requests of brokers about the partitions that they lead or hold."""

from dataclasses import dataclass
from typing import NamedTuple


class BrokerState(NamedTuple):
    """A member of a new ISR and its epoch; -1 where the version has none."""

    broker_id: int
    broker_epoch: int = -1


@dataclass(frozen=True, slots=True)
class AlterPartitionData:
    """The new ISR of one partition; that of versions 0-2 (``NewIsr``) comes with epochs of -1."""

    partition_index: int
    leader_epoch: int
    new_isr_with_epochs: tuple[BrokerState, ...]
    partition_epoch: int
    leader_recovery_state: int = 0


class AlterPartitionTopic(NamedTuple):
    """The partitions of one topic."""

    topic_id: str
    partitions: tuple[AlterPartitionData, ...]


@dataclass(frozen=True, slots=True)
class AlterPartition:
    """A leader changes the ISR of partitions (``AlterPartitionRequest``, 56, versions 2-3)."""

    broker_id: int
    broker_epoch: int
    topics: tuple[AlterPartitionTopic, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    """The partition as it is now, or what is wrong."""

    partition_index: int
    error_code: int = 0
    leader_id: int = 0
    leader_epoch: int = 0
    isr: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    partition_epoch: int = 0


class AlterPartitionTopicResult(NamedTuple):
    """The results of one topic."""

    topic_id: str
    partitions: tuple[AlterPartitionResult, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse:
    """The answer to an `AlterPartition`."""

    error_code: int
    topics: tuple[AlterPartitionTopicResult, ...] = ()


class DirectoryPartition(NamedTuple):
    """A partition that a broker holds in a directory; in a response with its error."""

    partition_index: int
    error_code: int = 0


class DirectoryTopic(NamedTuple):
    """The partitions of one topic in a directory."""

    topic_id: str
    partitions: tuple[DirectoryPartition, ...]


class Directory(NamedTuple):
    """A log directory and what a broker holds in it."""

    id: str
    topics: tuple[DirectoryTopic, ...]


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirs:
    """A broker tells in which directories replicas are (``AssignReplicasToDirsRequest``, 73)."""

    broker_id: int
    broker_epoch: int
    directories: tuple[Directory, ...]


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirsResponse:
    """The answer to an `AssignReplicasToDirs`."""

    error_code: int
    directories: tuple[Directory, ...] = ()
