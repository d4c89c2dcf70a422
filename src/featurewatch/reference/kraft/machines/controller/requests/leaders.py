"""Requests to elect leaders and to reassign partitions."""

from dataclasses import dataclass
from typing import NamedTuple

from featurewatch.reference.kraft.machines.controller.requests.defaults import DEFAULT_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class ElectLeadersTopic:
    """The partitions of a topic that need an election."""

    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ElectLeaders:
    """Elects leaders (``ElectLeadersRequest``, 43, versions 0-2).

    ``election_type`` is 0 for the preferred leader, 1 for an unclean election; without
    ``topic_partitions`` (None) all partitions are meant.
    """

    topic_partitions: tuple[ElectLeadersTopic, ...] | None
    election_type: int = 0
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class PartitionResult(NamedTuple):
    """The result of the election of one partition."""

    partition_id: int
    error_code: int = 0
    error_message: str | None = None


class ReplicaElectionResult(NamedTuple):
    """The results of one topic."""

    topic: str
    partition_result: tuple[PartitionResult, ...]


@dataclass(frozen=True, slots=True)
class ElectLeadersResponse:
    """The answer to an `ElectLeaders`."""

    error_code: int
    replica_election_results: tuple[ReplicaElectionResult, ...] = ()


class ReassignablePartition(NamedTuple):
    """The replicas that a partition should have; None cancels its reassignment."""

    partition_index: int
    replicas: tuple[int, ...] | None


class ReassignableTopic(NamedTuple):
    """The partitions of one topic."""

    name: str
    partitions: tuple[ReassignablePartition, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignments:
    """Begins or cancels reassignments (``AlterPartitionReassignmentsRequest``, 45)."""

    topics: tuple[ReassignableTopic, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    allow_replication_factor_change: bool = True


class ReassignablePartitionResponse(NamedTuple):
    """The result for one partition."""

    partition_index: int
    error_code: int = 0
    error_message: str | None = None


class ReassignableTopicResponse(NamedTuple):
    """The results of one topic."""

    name: str
    partitions: tuple[ReassignablePartitionResponse, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsResponse:
    """The answer to an `AlterPartitionReassignments`."""

    error_code: int
    error_message: str | None = None
    responses: tuple[ReassignableTopicResponse, ...] = ()
    allow_replication_factor_change: bool = True


class ListedTopic(NamedTuple):
    """The partitions of a topic whose reassignments are listed."""

    name: str
    partition_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignments:
    """Lists reassignments (``ListPartitionReassignmentsRequest``, 46); None: of all topics."""

    topics: tuple[ListedTopic, ...] | None
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class OngoingPartitionReassignment(NamedTuple):
    """A partition that is being reassigned."""

    partition_index: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


class OngoingTopicReassignment(NamedTuple):
    """The partitions of one topic."""

    name: str
    partitions: tuple[OngoingPartitionReassignment, ...]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignmentsResponse:
    """The answer to a `ListPartitionReassignments`."""

    error_code: int
    error_message: str | None = None
    topics: tuple[OngoingTopicReassignment, ...] = ()
