"""Settings of topics and brokers to the wire and back: throttles are set and read so; no IO."""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from importlib import import_module
from typing import Any, Final, NamedTuple

from featurewatch.admin.reassignments.messages import Message, api_error
from featurewatch.admin.reassignments.types import PartitionError
from featurewatch.admin.topics.values import ConfigSource

DESCRIBE_CONFIGS: Final = 32
ALTER_CONFIGS: Final = 44

_SET, _DELETE = 0, 1


class ResourceKind(IntEnum):
    """What a setting belongs to (``ConfigResource.Type``)."""

    TOPIC = 2
    BROKER = 4


class ConfigOwner(NamedTuple):
    """A topic or a broker (its id as text)."""

    kind: ResourceKind
    name: str


ConfigChanges = Mapping[ConfigOwner, Mapping[str, str | None]]
"""Values to set for each owner; None deletes the setting."""
OwnConfigs = Mapping[ConfigOwner, Mapping[str, str]]
"""Values that are set for the owners themselves: no defaults."""


def change_request(changes: ConfigChanges) -> Message:
    """IncrementalAlterConfigs, version 1."""
    schema = import_module("kio.schema.incremental_alter_configs.v1")
    form = import_module("kio.schema.incremental_alter_configs.v1.request")
    resources = tuple(
        form.AlterConfigsResource(
            resource_type=int(owner.kind),
            resource_name=owner.name,
            configs=tuple(
                form.AlterableConfig(
                    name=name, config_operation=_DELETE if value is None else _SET, value=value
                )
                for name, value in values.items()
            ),
        )
        for owner, values in changes.items()
    )
    request = schema.IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
    return request, schema.IncrementalAlterConfigsResponse


def read_change(response: Any) -> dict[ConfigOwner, PartitionError | None]:
    """The error of each owner."""
    return {
        ConfigOwner(ResourceKind(int(entry.resource_type)), str(entry.resource_name)): api_error(
            int(entry.error_code), entry.error_message
        )
        for entry in response.responses
    }


def describe_request(owners: Iterable[ConfigOwner], names: Iterable[str], version: int) -> Message:
    """DescribeConfigs for some settings of these owners."""
    schema = import_module(f"kio.schema.describe_configs.v{version}")
    form = import_module(f"kio.schema.describe_configs.v{version}.request")
    keys = tuple(names)
    resources = tuple(
        form.DescribeConfigsResource(
            resource_type=int(owner.kind), resource_name=owner.name, configuration_keys=keys
        )
        for owner in owners
    )
    return schema.DescribeConfigsRequest(resources=resources), schema.DescribeConfigsResponse


def read_describe(response: Any) -> dict[ConfigOwner, dict[str, str]]:
    """The values that are set for the owners themselves; owners with an error have none."""
    found = {}
    for result in response.results:
        kind = ResourceKind(int(result.resource_type))
        source = ConfigSource.TOPIC if kind is ResourceKind.TOPIC else ConfigSource.BROKER
        found[ConfigOwner(kind, str(result.resource_name))] = {
            str(entry.name): str(entry.value)
            for entry in result.configs
            if int(entry.config_source) == source and entry.value is not None
        }
    return found
