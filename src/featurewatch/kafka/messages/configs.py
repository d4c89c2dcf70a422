"""The requests for the settings of topics and the size of their logs, and their responses."""

from dataclasses import dataclass, field
from typing import ClassVar

from featurewatch.kafka.messages.api_versions import layout
from featurewatch.kafka.messages.base import AdminRequest, FlexibleMessage
from featurewatch.kafka.messages.config_entries import ConfigEntries


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
