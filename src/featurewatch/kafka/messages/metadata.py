"""The requests that list and describe topics, and their responses (Kafka's message schemas)."""

from dataclasses import dataclass, field
from typing import ClassVar
from uuid import UUID

from featurewatch.kafka.limits import ResponseLimit
from featurewatch.kafka.messages.api_versions import layout
from featurewatch.kafka.messages.base import ALL_PARTITIONS, AdminRequest, FlexibleMessage


@dataclass(eq=False, repr=False)
class MetadataBrokerV12(FlexibleMessage):
    """A broker and its listener."""

    node_id: int = field(metadata=layout("int32"))
    host: str = field(metadata=layout("string"))
    port: int = field(metadata=layout("int32"))
    rack: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class MetadataPartitionV12(FlexibleMessage):
    """A partition; a leader of -1 is none."""

    error_code: int = field(metadata=layout("int16"))
    partition_index: int = field(metadata=layout("int32"))
    leader_id: int = field(metadata=layout("int32"))
    leader_epoch: int = field(metadata=layout("int32"))
    replica_nodes: tuple[int, ...] = field(metadata=layout("int32"))
    isr_nodes: tuple[int, ...] = field(metadata=layout("int32"))
    offline_replicas: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class MetadataTopicV12(FlexibleMessage):
    """A topic as the broker has it; without a name if it was requested by an unknown id."""

    error_code: int = field(metadata=layout("int16"))
    name: str | None = field(metadata=layout("string"))
    topic_id: UUID | None = field(metadata=layout("uuid"))
    is_internal: bool = field(metadata=layout("bool"))
    partitions: tuple[MetadataPartitionV12, ...]
    topic_authorized_operations: int = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class MetadataResponseV12(FlexibleMessage):
    """Brokers, the controller's id (-1 for none) and the topics."""

    __api_key__: ClassVar[int] = 3
    __version__: ClassVar[int] = 12
    throttle_time_ms: int = field(metadata=layout("int32"))
    brokers: tuple[MetadataBrokerV12, ...]
    cluster_id: str | None = field(metadata=layout("string"))
    controller_id: int = field(metadata=layout("int32"))
    topics: tuple[MetadataTopicV12, ...]


@dataclass(eq=False, repr=False)
class MetadataRequestTopicV12(FlexibleMessage):
    """A topic by its id, or by its name with the id None."""

    topic_id: UUID | None = field(metadata=layout("uuid"))
    name: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class MetadataRequestV12(AdminRequest):
    """Asks for the brokers, and for topics: None is all, and none for an empty list (KIP-516)."""

    __api_key__: ClassVar[int] = 3
    __version__: ClassVar[int] = 12
    __response__: ClassVar[type[MetadataResponseV12]] = MetadataResponseV12
    __limit__: ClassVar[ResponseLimit] = ALL_PARTITIONS
    topics: tuple[MetadataRequestTopicV12, ...] | None
    allow_auto_topic_creation: bool = field(metadata=layout("bool"), default=False)
    include_topic_authorized_operations: bool = field(metadata=layout("bool"), default=False)


@dataclass(eq=False, repr=False)
class PartitionsCursor(FlexibleMessage):
    """Where the next page begins."""

    topic_name: str = field(metadata=layout("string"))
    partition_index: int = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class DescribedPartition(FlexibleMessage):
    """A partition with its eligible leader replicas (KIP-966)."""

    error_code: int = field(metadata=layout("int16"))
    partition_index: int = field(metadata=layout("int32"))
    leader_id: int = field(metadata=layout("int32"))
    leader_epoch: int = field(metadata=layout("int32"))
    replica_nodes: tuple[int, ...] = field(metadata=layout("int32"))
    isr_nodes: tuple[int, ...] = field(metadata=layout("int32"))
    eligible_leader_replicas: tuple[int, ...] | None = field(metadata=layout("int32"))
    last_known_elr: tuple[int, ...] | None = field(metadata=layout("int32"))
    offline_replicas: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class DescribedTopic(FlexibleMessage):
    """A topic, or a part of its partitions."""

    error_code: int = field(metadata=layout("int16"))
    name: str | None = field(metadata=layout("string"))
    topic_id: UUID | None = field(metadata=layout("uuid"))
    is_internal: bool = field(metadata=layout("bool"))
    partitions: tuple[DescribedPartition, ...]
    topic_authorized_operations: int = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class DescribeTopicPartitionsResponseV0(FlexibleMessage):
    """A page of partitions; ``next_cursor`` is None on the last."""

    __api_key__: ClassVar[int] = 75
    __version__: ClassVar[int] = 0
    throttle_time_ms: int = field(metadata=layout("int32"))
    topics: tuple[DescribedTopic, ...]
    next_cursor: PartitionsCursor | None


@dataclass(eq=False, repr=False)
class DescribeTopicPartitionsTopic(FlexibleMessage):
    """A topic by its name."""

    name: str = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class DescribeTopicPartitionsRequestV0(AdminRequest):
    """Asks for partitions of topics, page by page; brokers in KRaft mode have it from 3.8 on."""

    __api_key__: ClassVar[int] = 75
    __version__: ClassVar[int] = 0
    __response__: ClassVar[type[DescribeTopicPartitionsResponseV0]] = (
        DescribeTopicPartitionsResponseV0
    )
    topics: tuple[DescribeTopicPartitionsTopic, ...]
    response_partition_limit: int = field(metadata=layout("int32"))
    cursor: PartitionsCursor | None
