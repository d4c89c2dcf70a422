"""Requests to create, extend and delete topics."""

from dataclasses import dataclass
from typing import NamedTuple

from featurewatch.reference.kraft.machines.controller.requests.defaults import (
    DEFAULT_TIMEOUT_MS,
    NO_UUID,
)


class CreatableReplicaAssignment(NamedTuple):
    """The brokers of one partition, given by the client."""

    partition_index: int
    broker_ids: tuple[int, ...]


class CreatableTopicConfig(NamedTuple):
    """A setting of a new topic."""

    name: str
    value: str | None


@dataclass(frozen=True, slots=True)
class CreatableTopic:
    """A topic to create; counts are -1 for the default or with ``assignments``."""

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: tuple[CreatableReplicaAssignment, ...] = ()
    configs: tuple[CreatableTopicConfig, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopics:
    """Creates topics (``CreateTopicsRequest``, 19, versions 2-7)."""

    topics: tuple[CreatableTopic, ...]
    validate_only: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class CreatableTopicConfigs(NamedTuple):
    """A setting of a topic that was created; ``config_source`` is Kafka's number."""

    name: str
    value: str | None
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class CreatableTopicResult:
    """The result for one topic."""

    name: str
    topic_id: str = NO_UUID
    error_code: int = 0
    error_message: str | None = None
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: tuple[CreatableTopicConfigs, ...] | None = None


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse:
    """The answer to a `CreateTopics`."""

    topics: tuple[CreatableTopicResult, ...]


class DeleteTopicState(NamedTuple):
    """A topic to delete, by name or by id; names of versions 1-5 come as such, too."""

    name: str | None = None
    topic_id: str = NO_UUID


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Deletes topics (``DeleteTopicsRequest``, 20, versions 1-6)."""

    topics: tuple[DeleteTopicState, ...]
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class DeletableTopicResult(NamedTuple):
    """The result for one topic."""

    name: str | None
    topic_id: str = NO_UUID
    error_code: int = 0
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse:
    """The answer to a `DeleteTopics`."""

    responses: tuple[DeletableTopicResult, ...]


@dataclass(frozen=True, slots=True)
class CreatePartitionsTopic:
    """A topic to give more partitions; ``assignments`` has the brokers of each new one, or None."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitions:
    """Adds partitions to topics (``CreatePartitionsRequest``, 37, versions 0-3)."""

    topics: tuple[CreatePartitionsTopic, ...]
    validate_only: bool = False
    timeout_ms: int = DEFAULT_TIMEOUT_MS


class CreatePartitionsTopicResult(NamedTuple):
    """The result for one topic."""

    name: str
    error_code: int = 0
    error_message: str | None = None


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse:
    """The answer to a `CreatePartitions`."""

    results: tuple[CreatePartitionsTopicResult, ...]
