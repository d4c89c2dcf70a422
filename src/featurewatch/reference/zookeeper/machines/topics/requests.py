"""The requests of brokers and clients to the controller about topics, and their responses.

AlterPartition is in `results`; a shell converts all of them from and to the wire.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, TopicMessage
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    ControlledShutdownResult,
    PartitionResult,
)

MAX_NEW_PARTITIONS: Final = 10_000
"""More partitions in one request are refused, so that none occupies the controller for long."""
PRODUCER_IDS: Final = 1000
"""How many ids a block of producer ids has (``ProducerIdsBlock``)."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequest(TopicMessage):
    """A broker wants to stop; its epoch is -1 in version 0 of the request."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ProducerIdsRequest(TopicMessage):
    """A broker needs a block of producer ids (AllocateProducerIds)."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest(TopicMessage):
    """Elects the preferred replicas, or with ``unclean`` any live ones; None: of all partitions."""

    partitions: tuple[TopicPartition, ...] | None = None
    unclean: bool = False


@dataclass(frozen=True, slots=True)
class ReassignRequest(TopicMessage):
    """AlterPartitionReassignments: the target replicas; None cancels.

    With ``all_or_nothing`` no partition is reassigned if one is refused, with ``validate_only``
    none at all. Released requests have neither.
    """

    targets: Mapping[TopicPartition, tuple[int, ...] | None]
    all_or_nothing: bool = False
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ListReassignmentsRequest(TopicMessage):
    """ListPartitionReassignments; None: of all partitions."""

    partitions: tuple[TopicPartition, ...] | None = None


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create, by numbers or by ``assignments``; the numbers are -1 then."""

    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest(TopicMessage):
    """CreateTopics; with ``validate_only`` nothing is written."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """The desired number of partitions of a topic; ``replicas`` of the new ones, or None."""

    topic: str
    partition_count: int
    replicas: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequest(TopicMessage):
    """CreatePartitions; with ``validate_only`` nothing is written."""

    topics: tuple[NewPartitions, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest(TopicMessage):
    """DeleteTopics, by name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TopicConfigsRequest(TopicMessage):
    """Reads the topics' own configurations."""

    names: tuple[str, ...]


class ConfigOperation(IntEnum):
    """The operation of IncrementalAlterConfigs on a setting (``AlterConfigOp.OpType``)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """A change of one setting; ``operation`` is a `ConfigOperation`, or an invalid number."""

    name: str
    operation: int
    value: str | None


@dataclass(frozen=True, slots=True)
class AlterConfigsRequest(TopicMessage):
    """IncrementalAlterConfigs for topics; with ``validate_only`` nothing is written."""

    changes: Mapping[str, tuple[ConfigChange, ...]]
    validate_only: bool = False


TopicRequest = (
    ControlledShutdownRequest
    | AlterPartitionRequest
    | ProducerIdsRequest
    | ElectLeadersRequest
    | ReassignRequest
    | ListReassignmentsRequest
    | CreateTopicsRequest
    | CreatePartitionsRequest
    | DeleteTopicsRequest
    | TopicConfigsRequest
    | AlterConfigsRequest
)


# -- responses -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestFailed(TopicMessage):
    """The request as a whole has failed, and nothing of it was done."""

    error: ErrorCode
    message: str | None = None


@dataclass(frozen=True, slots=True)
class PartitionResults(TopicMessage):
    """The result of each partition of a reassignment or an election."""

    results: Mapping[TopicPartition, PartitionResult]


@dataclass(frozen=True, slots=True)
class RunningReassignments(TopicMessage):
    """The replicas of the partitions that are being reassigned."""

    assignments: Mapping[TopicPartition, ReplicaAssignment]


class TopicResult(NamedTuple):
    """The result of one topic; a created one has an id, and its assignments."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: str | None = None
    assignments: Mapping[int, tuple[int, ...]] = {}


TOO_MANY_PARTITIONS: Final = TopicResult(
    ErrorCode.POLICY_VIOLATION, "Unable to perform excessively large batch operation."
)
"""The result of topics that would exceed `MAX_NEW_PARTITIONS`; the text is that of KRaft."""


@dataclass(frozen=True, slots=True)
class TopicResults(TopicMessage):
    """The result of each topic of a request, in its order."""

    results: Mapping[str, TopicResult]


@dataclass(frozen=True, slots=True)
class ProducerIds(TopicMessage):
    """A block of `PRODUCER_IDS` ids from ``first`` on."""

    first: int


@dataclass(frozen=True, slots=True)
class TopicConfigsResult(TopicMessage):
    """The own configuration of each topic that exists; None if it cannot be read."""

    configs: Mapping[str, Mapping[str, str] | None]


TopicResponse = (
    RequestFailed
    | ControlledShutdownResult
    | AlterPartitionResult
    | PartitionResults
    | RunningReassignments
    | TopicResults
    | ProducerIds
    | TopicConfigsResult
)

NOT_CONTROLLER: Final = RequestFailed(
    ErrorCode.NOT_CONTROLLER, "This is not the correct controller for this cluster."
)
"""The response of every node but the controller."""
