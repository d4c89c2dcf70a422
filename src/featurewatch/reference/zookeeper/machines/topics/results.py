"""The requests of brokers and clients to the controller about partitions, and their results."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, TopicMessage
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership


class PartitionResult(NamedTuple):
    """The result for one partition: no error, or a code and perhaps a text."""

    error: ErrorCode
    message: str | None = None


NO_ERROR: Final = PartitionResult(ErrorCode.NONE)


@dataclass(frozen=True, slots=True)
class RequestedIsr:
    """The ISR that a leader requests, and the state that it is based on."""

    isr: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    recovering: bool = False


@dataclass(frozen=True, slots=True)
class AlterPartitionRequest(TopicMessage):
    """A leader's request for other ISRs (AlterPartition, in ``version``)."""

    broker_id: int
    broker_epoch: int
    partitions: Mapping[TopicPartition, RequestedIsr]
    version: int = 3


@dataclass(frozen=True, slots=True)
class AlterPartitionResult(TopicMessage):
    """The response: an error for all, or for each partition its new state or an error."""

    error: ErrorCode = ErrorCode.NONE
    partitions: Mapping[TopicPartition, PartitionLeadership | PartitionResult] = field(
        default_factory=dict
    )


@dataclass(frozen=True, slots=True)
class ControlledShutdownResult(TopicMessage):
    """The response to a broker that wants to stop: the partitions that it still leads."""

    error: ErrorCode = ErrorCode.NONE
    remaining: tuple[TopicPartition, ...] = ()
