"""The requests for the settings of topics and the size of their logs, and their responses."""

from dataclasses import dataclass
from typing import ClassVar

from featurewatch.admin.topics.wire import (
    ALL_PARTITIONS,
    AdminRequest,
    FlexibleMessage,
    boolean,
    i8,
    i16,
    i32,
    i64,
    string,
)
from featurewatch.streams.net.limits import ResponseLimit


@dataclass(eq=False, repr=False)
class ConfigSynonymV4(FlexibleMessage):
    """Another value of a setting; none is requested here."""

    name: str = string()
    value: str | None = string()
    source: int = i8()


@dataclass(eq=False, repr=False)
class ConfigEntryV4(FlexibleMessage):
    """A setting and where its value is from."""

    name: str = string()
    value: str | None = string()
    read_only: bool = boolean()
    config_source: int = i8()
    is_sensitive: bool = boolean()
    synonyms: tuple[ConfigSynonymV4, ...]
    config_type: int = i8()
    documentation: str | None = string()


@dataclass(eq=False, repr=False)
class DescribeConfigsResultV4(FlexibleMessage):
    """All settings of a topic."""

    error_code: int = i16()
    error_message: str | None = string()
    resource_type: int = i8()
    resource_name: str = string()
    configs: tuple[ConfigEntryV4, ...]


@dataclass(eq=False, repr=False)
class DescribeConfigsResponseV4(FlexibleMessage):
    """The settings of each topic."""

    __api_key__: ClassVar[int] = 32
    __version__: ClassVar[int] = 4
    throttle_time_ms: int = i32()
    results: tuple[DescribeConfigsResultV4, ...]


@dataclass(eq=False, repr=False)
class DescribeConfigsResource(FlexibleMessage):
    """A topic; no keys are all."""

    resource_type: int = i8()
    resource_name: str = string()
    configuration_keys: tuple[str, ...] | None = string()


@dataclass(eq=False, repr=False)
class DescribeConfigsRequestV4(AdminRequest):
    """Asks a broker for settings (KIP-133)."""

    __api_key__: ClassVar[int] = 32
    __version__: ClassVar[int] = 4
    __response__: ClassVar[type[DescribeConfigsResponseV4]] = DescribeConfigsResponseV4
    resources: tuple[DescribeConfigsResource, ...]
    include_synonyms: bool = boolean(False)
    include_documentation: bool = boolean(False)


@dataclass(eq=False, repr=False)
class AlterableConfigV1(FlexibleMessage):
    """A change of a setting; the operation is a number of `values.ConfigOperation`."""

    name: str = string()
    config_operation: int = i8()
    value: str | None = string()


@dataclass(eq=False, repr=False)
class AlterConfigsResourceV1(FlexibleMessage):
    """The changes of one topic."""

    resource_type: int = i8()
    resource_name: str = string()
    configs: tuple[AlterableConfigV1, ...]


@dataclass(eq=False, repr=False)
class AlterConfigsResultV1(FlexibleMessage):
    """The result for one topic."""

    error_code: int = i16()
    error_message: str | None = string()
    resource_type: int = i8()
    resource_name: str = string()


@dataclass(eq=False, repr=False)
class IncrementalAlterConfigsResponseV1(FlexibleMessage):
    """A result for each topic."""

    __api_key__: ClassVar[int] = 44
    __version__: ClassVar[int] = 1
    throttle_time_ms: int = i32()
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
    validate_only: bool = boolean()


@dataclass(eq=False, repr=False)
class LogDirPartitionV4(FlexibleMessage):
    """A replica's log on a broker, with its size in bytes."""

    partition_index: int = i32()
    partition_size: int = i64()
    offset_lag: int = i64()
    is_future_key: bool = boolean()


@dataclass(eq=False, repr=False)
class LogDirTopicV4(FlexibleMessage):
    """The replicas of a topic in a directory."""

    name: str = string()
    partitions: tuple[LogDirPartitionV4, ...]


@dataclass(eq=False, repr=False)
class LogDirV4(FlexibleMessage):
    """A log directory of a broker."""

    error_code: int = i16()
    log_dir: str = string()
    topics: tuple[LogDirTopicV4, ...]
    total_bytes: int = i64()
    usable_bytes: int = i64()


@dataclass(eq=False, repr=False)
class DescribeLogDirsResponseV4(FlexibleMessage):
    """A broker's log directories."""

    __api_key__: ClassVar[int] = 35
    __version__: ClassVar[int] = 4
    throttle_time_ms: int = i32()
    error_code: int = i16()
    results: tuple[LogDirV4, ...]


@dataclass(eq=False, repr=False)
class DescribeLogDirsTopic(FlexibleMessage):
    """Partitions of a topic."""

    topic: str = string()
    partitions: tuple[int, ...] = i32()


@dataclass(eq=False, repr=False)
class DescribeLogDirsRequestV4(AdminRequest):
    """Asks a broker for the size of its replicas (KIP-113, KIP-827)."""

    __api_key__: ClassVar[int] = 35
    __version__: ClassVar[int] = 4
    __response__: ClassVar[type[DescribeLogDirsResponseV4]] = DescribeLogDirsResponseV4
    __limit__: ClassVar[ResponseLimit] = ALL_PARTITIONS
    topics: tuple[DescribeLogDirsTopic, ...] | None
