"""The requests about the log directories of a broker, and their responses."""

from dataclasses import dataclass, field
from typing import ClassVar

from featurewatch.kafka.limits import ResponseLimit
from featurewatch.kafka.messages.api_versions import layout
from featurewatch.kafka.messages.base import ALL_PARTITIONS, AdminRequest, FlexibleMessage


@dataclass(eq=False, repr=False)
class LogDirPartitionV4(FlexibleMessage):
    """A replica's log on a broker, with its size in bytes."""

    partition_index: int = field(metadata=layout("int32"))
    partition_size: int = field(metadata=layout("int64"))
    offset_lag: int = field(metadata=layout("int64"))
    is_future_key: bool = field(metadata=layout("bool"))


@dataclass(eq=False, repr=False)
class LogDirTopicV4(FlexibleMessage):
    """The replicas of a topic in a directory."""

    name: str = field(metadata=layout("string"))
    partitions: tuple[LogDirPartitionV4, ...]


@dataclass(eq=False, repr=False)
class LogDirV4(FlexibleMessage):
    """A log directory of a broker."""

    error_code: int = field(metadata=layout("int16"))
    log_dir: str = field(metadata=layout("string"))
    topics: tuple[LogDirTopicV4, ...]
    total_bytes: int = field(metadata=layout("int64"))
    usable_bytes: int = field(metadata=layout("int64"))


@dataclass(eq=False, repr=False)
class DescribeLogDirsResponseV4(FlexibleMessage):
    """A broker's log directories."""

    __api_key__: ClassVar[int] = 35
    __version__: ClassVar[int] = 4
    throttle_time_ms: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))
    results: tuple[LogDirV4, ...]


@dataclass(eq=False, repr=False)
class DescribeLogDirsTopic(FlexibleMessage):
    """Partitions of a topic."""

    topic: str = field(metadata=layout("string"))
    partitions: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class DescribeLogDirsRequestV4(AdminRequest):
    """Asks a broker for the size of its replicas (KIP-113, KIP-827)."""

    __api_key__: ClassVar[int] = 35
    __version__: ClassVar[int] = 4
    __response__: ClassVar[type[DescribeLogDirsResponseV4]] = DescribeLogDirsResponseV4
    __limit__: ClassVar[ResponseLimit] = ALL_PARTITIONS
    topics: tuple[DescribeLogDirsTopic, ...] | None


@dataclass(eq=False, repr=False)
class MovedPartition(FlexibleMessage):
    """The result for a replica."""

    partition_index: int = field(metadata=layout("int32"))
    error_code: int = field(metadata=layout("int16"))


@dataclass(eq=False, repr=False)
class MovedTopic(FlexibleMessage):
    """The results for the replicas of a topic."""

    topic_name: str = field(metadata=layout("string"))
    partitions: tuple[MovedPartition, ...]


@dataclass(eq=False, repr=False)
class AlterReplicaLogDirsResponseV2(FlexibleMessage):
    """A result for each replica."""

    __api_key__: ClassVar[int] = 34
    __version__: ClassVar[int] = 2
    throttle_time_ms: int = field(metadata=layout("int32"))
    results: tuple[MovedTopic, ...]


@dataclass(eq=False, repr=False)
class MovableTopic(FlexibleMessage):
    """Partitions of a topic."""

    name: str = field(metadata=layout("string"))
    partitions: tuple[int, ...] = field(metadata=layout("int32"))


@dataclass(eq=False, repr=False)
class MoveTarget(FlexibleMessage):
    """A directory, and the replicas that are to be there."""

    path: str = field(metadata=layout("string"))
    topics: tuple[MovableTopic, ...]


@dataclass(eq=False, repr=False)
class AlterReplicaLogDirsRequestV2(AdminRequest):
    """Moves replicas of a broker to other directories of its own (KIP-113)."""

    __api_key__: ClassVar[int] = 34
    __version__: ClassVar[int] = 2
    __response__: ClassVar[type[AlterReplicaLogDirsResponseV2]] = AlterReplicaLogDirsResponseV2
    dirs: tuple[MoveTarget, ...]
