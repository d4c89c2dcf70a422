"""The requests for the settings of topics and the size of their logs, and their responses."""

from dataclasses import dataclass, field
from typing import ClassVar

from featurewatch.admin.topics.config_entries import ConfigEntries
from featurewatch.admin.topics.wire import (
    ALL_PARTITIONS,
    AdminRequest,
    FlexibleMessage,
)
from featurewatch.streams.net.limits import ResponseLimit
from featurewatch.streams.net.messages import layout


@dataclass(eq=False, repr=False)
class DescribeConfigsResultV4(FlexibleMessage):
    """All settings of a topic."""

    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    resource_type: int = field(metadata=layout("int8"))
    resource_name: str = field(metadata=layout("string"))
    configs: ConfigEntries


@dataclass(eq=False, repr=False)
class DescribeConfigsResponseV4(FlexibleMessage):
    """The settings of each topic."""

    __api_key__: ClassVar[int] = 32
    __version__: ClassVar[int] = 4
    throttle_time_ms: int = field(metadata=layout("int32"))
    results: tuple[DescribeConfigsResultV4, ...]


@dataclass(eq=False, repr=False)
class DescribeConfigsResource(FlexibleMessage):
    """A topic; no keys are all."""

    resource_type: int = field(metadata=layout("int8"))
    resource_name: str = field(metadata=layout("string"))
    configuration_keys: tuple[str, ...] | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class DescribeConfigsRequestV4(AdminRequest):
    """Asks a broker for settings (KIP-133)."""

    __api_key__: ClassVar[int] = 32
    __version__: ClassVar[int] = 4
    __response__: ClassVar[type[DescribeConfigsResponseV4]] = DescribeConfigsResponseV4
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool = field(metadata=layout("bool"), default=False)
    include_documentation: bool = field(metadata=layout("bool"), default=False)


@dataclass(eq=False, repr=False)
class AlterableConfigV1(FlexibleMessage):
    """A change of a setting; the operation is a number of `values.ConfigOperation`."""

    name: str = field(metadata=layout("string"))
    config_operation: int = field(metadata=layout("int8"))
    value: str | None = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class AlterConfigsResourceV1(FlexibleMessage):
    """The changes of one topic."""

    resource_type: int = field(metadata=layout("int8"))
    resource_name: str = field(metadata=layout("string"))
    configs: tuple[AlterableConfigV1, ...]


@dataclass(eq=False, repr=False)
class AlterConfigsResultV1(FlexibleMessage):
    """The result for one topic."""

    error_code: int = field(metadata=layout("int16"))
    error_message: str | None = field(metadata=layout("string"))
    resource_type: int = field(metadata=layout("int8"))
    resource_name: str = field(metadata=layout("string"))


@dataclass(eq=False, repr=False)
class IncrementalAlterConfigsResponseV1(FlexibleMessage):
    """A result for each topic."""

    __api_key__: ClassVar[int] = 44
    __version__: ClassVar[int] = 1
    throttle_time_ms: int = field(metadata=layout("int32"))
    responses: tuple[AlterConfigsResultV1, ...]


@dataclass(eq=False, repr=False)
class IncrementalAlterConfigsRequestV1(AdminRequest):
    """Changes settings one by one, or only validates that (KIP-339)."""

    __api_key__: ClassVar[int] = 44
    __version__: ClassVar[int] = 1
    __response__: ClassVar[type[IncrementalAlterConfigsResponseV1]] = (
        IncrementalAlterConfigsResponseV1
    )
    resources: tuple[AlterConfigsResourceV1, ...]
    validate_only: bool = field(metadata=layout("bool"))


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
