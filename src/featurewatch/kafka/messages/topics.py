"""The requests that create, delete and enlarge topics, and their responses."""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from featurewatch.kafka.messages.api_versions import layout
from featurewatch.kafka.messages.base import AdminRequest, FlexibleMessage
from featurewatch.kafka.messages.config_entries import SkippedConfigs


@dataclass(eq=False, repr=False)
class CreateTopicsAssignment(FlexibleMessage):
    """The replicas of a partition."""

    partition_index: int = field(metadata=layout("int32"))
    broker_ids: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class CreateTopicsConfig(FlexibleMessage):
    """A setting of a new topic."""

    name: str = field(metadata=layout("string"))
    value: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class CreateTopicsTopic(FlexibleMessage):
    """A new topic; counts of -1 are the cluster's defaults, or those of the assignment."""

    name: str = field(metadata=layout("string"))
    num_partitions: int = field(metadata=layout("int32"))
    replication_factor: int = field(metadata=layout("int16"))
    assignments: tuple[CreateTopicsAssignment, ...]
    configs: tuple[CreateTopicsConfig, ...]


@dataclass(eq=False, repr=False)
class CreatedTopic(FlexibleMessage):
    """The result for a topic (KIP-525)."""

    name: str = field(metadata=layout("string"))
    topic_id: UUID | None = field(metadata=layout("uuid"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    num_partitions: int = field(metadata=layout("int32"))
    replication_factor: int = field(metadata=layout("int16"))
    configs: SkippedConfigs


@dataclass(eq=False, repr=False)
class CreateTopicsResponseV7(FlexibleMessage):
    """A result for each topic."""

    __api_key__: ClassVar[int] = 19
    __version__: ClassVar[int] = 7
    throttle_time_ms: int = field(metadata=layout("int32"))
    topics: tuple[CreatedTopic, ...]


@dataclass(eq=False, repr=False)
class CreateTopicsRequestV7(AdminRequest):
    """Creates topics, or only validates that."""

    __api_key__: ClassVar[int] = 19
    __version__: ClassVar[int] = 7
    __response__: ClassVar[type[CreateTopicsResponseV7]] = CreateTopicsResponseV7
    topics: tuple[CreateTopicsTopic, ...]
    timeout_ms: int = field(metadata=layout("int32"))
    validate_only: bool = field(metadata=layout("bool"))


@dataclass(eq=False, repr=False)
class DeleteTopicsTopic(FlexibleMessage):
    """A topic by its name, or by its id without a name."""

    name: str | None = field(metadata=layout("string"))
    topic_id: UUID | None = field(metadata=layout("uuid"))


@dataclass(eq=False, repr=False)
class DeletedTopic(FlexibleMessage):
    """The result for a topic."""

    name: str | None = field(metadata=layout("string"))
    topic_id: UUID | None = field(metadata=layout("uuid"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class DeleteTopicsResponseV6(FlexibleMessage):
    """A result for each topic, in no order."""

    __api_key__: ClassVar[int] = 20
    __version__: ClassVar[int] = 6
    throttle_time_ms: int = field(metadata=layout("int32"))
    responses: tuple[DeletedTopic, ...]


@dataclass(eq=False, repr=False)
class DeleteTopicsRequestV6(AdminRequest):
    """Deletes topics (KIP-516)."""

    __api_key__: ClassVar[int] = 20
    __version__: ClassVar[int] = 6
    __response__: ClassVar[type[DeleteTopicsResponseV6]] = DeleteTopicsResponseV6
    topics: tuple[DeleteTopicsTopic, ...]
    timeout_ms: int = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class CreatePartitionsAssignment(FlexibleMessage):
    """The replicas of a new partition."""

    broker_ids: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class CreatePartitionsTopic(FlexibleMessage):
    """A topic, and how many partitions it shall have in all."""

    name: str = field(metadata=layout("string"))
    count: int = field(metadata=layout("int32"))
    assignments: tuple[CreatePartitionsAssignment, ...] | None


@dataclass(eq=False, repr=False)
class CreatePartitionsResult(FlexibleMessage):
    """The result for a topic."""

    name: str = field(metadata=layout("string"))
    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class CreatePartitionsResponseV3(FlexibleMessage):
    """A result for each topic."""

    __api_key__: ClassVar[int] = 37
    __version__: ClassVar[int] = 3
    throttle_time_ms: int = field(metadata=layout("int32"))
    results: tuple[CreatePartitionsResult, ...]


@dataclass(eq=False, repr=False)
class CreatePartitionsRequestV3(AdminRequest):
    """Adds partitions to topics, or only validates that (KIP-195)."""

    __api_key__: ClassVar[int] = 37
    __version__: ClassVar[int] = 3
    __response__: ClassVar[type[CreatePartitionsResponseV3]] = CreatePartitionsResponseV3
    topics: tuple[CreatePartitionsTopic, ...]
    timeout_ms: int = field(metadata=layout("int32"))
    validate_only: bool = field(metadata=layout("bool"))
