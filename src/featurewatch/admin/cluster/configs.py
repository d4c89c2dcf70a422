"""Settings of topics and brokers and their changes; no IO (KIP-133, KIP-339)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from featurewatch.admin.api_errors import ResponseError, api_error
from featurewatch.kafka import messages
from featurewatch.kafka.messages.config_entries import ConfigSource, ConfigValue

_DESCRIBE_CONFIGS = 32
_ALTER_CONFIGS = 44


class ResourceKind(IntEnum):
    """The kind of resource that a setting belongs to (``ConfigResource.Type``)."""

    TOPIC = 2
    BROKER = 4


class ConfigOwner(NamedTuple):
    """A topic or a broker (its id as text)."""

    kind: ResourceKind
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigOwner":
        """The settings of a topic."""
        return cls(ResourceKind.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int) -> "ConfigOwner":
        """The settings of a broker."""
        return cls(ResourceKind.BROKER, str(broker_id))


class ConfigOp(IntEnum):
    """A change of a setting (``AlterConfigOp.OpType``); append and subtract apply to lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class SettingChange(NamedTuple):
    """A change of one setting; with DELETE it returns to its default."""

    name: str
    value: str | None
    operation: ConfigOp = ConfigOp.SET

    @classmethod
    def delete(cls, name: str) -> "SettingChange":
        """Returns a setting to its default."""
        return cls(name, None, ConfigOp.DELETE)


class TopicConfig(NamedTuple):
    """All settings of a topic in the order of the response, or Kafka's error for it.

    ``right`` is what the login lacks.
    """

    topic: str
    values: tuple[ConfigValue, ...] = ()
    error: int = 0
    text: str | None = None
    right: str = ""

    @property
    def non_default(self) -> Mapping[str, str | None]:
        """The settings that are not Kafka's own defaults, whether topic or broker has them."""
        default = ConfigSource.DEFAULT.value
        return {value.name: value.value for value in self.values if value.source != default}


OwnConfigs = Mapping[ConfigOwner, Mapping[str, str]]
"""Values that are set for the owners themselves, without defaults."""


def alter_request(
    changes: Iterable[tuple[ConfigOwner, Sequence[SettingChange]]], *, validate_only: bool = False
) -> "messages.IncrementalAlterConfigsRequestV1":
    """Changes settings of topics or of one broker, or only validates the change."""
    form = messages.IncrementalAlterConfigsRequestV1
    resources = (
        form.AlterConfigsResource(
            resource_type=int(owner.kind),
            resource_name=owner.name,
            configs=tuple(
                form.AlterableConfig(
                    name=change.name, config_operation=int(change.operation), value=change.value
                )
                for change in settings
            ),
        )
        for owner, settings in changes
    )
    return form(resources=tuple(resources), validate_only=validate_only)


def altered(
    response: "messages.IncrementalAlterConfigsResponseV1",
) -> Iterator[tuple[ConfigOwner, ResponseError | None]]:
    """The error of each owner."""
    for item in response.responses:
        owner = ConfigOwner(ResourceKind(item.resource_type), item.resource_name)
        yield owner, api_error(item.error_code, item.error_message, _ALTER_CONFIGS)


def describe_request(
    owners: Iterable[ConfigOwner], names: Sequence[str] | None = None
) -> "messages.DescribeConfigsRequestV4":
    """Reads settings of topics, or of one broker: those of these names, or (None) all."""
    form = messages.DescribeConfigsRequestV4
    keys = None if names is None else tuple(names)
    resources = (
        form.DescribeConfigsResource(
            resource_type=int(owner.kind), resource_name=owner.name, configuration_keys=keys
        )
        for owner in owners
    )
    return form(resources=tuple(resources), include_documentation=False)


def topic_configs(response: "messages.DescribeConfigsResponseV4") -> Iterator[TopicConfig]:
    """The settings of each topic."""
    for result in response.results:
        error = api_error(result.error_code, result.error_message, _DESCRIBE_CONFIGS)
        yield TopicConfig(result.resource_name, result.configs, *(error or ()))


def own_configs(response: "messages.DescribeConfigsResponseV4") -> OwnConfigs:
    """The values that are set for the owners themselves; owners with an error have none."""
    found = {}
    for result in response.results:
        kind = ResourceKind(result.resource_type)
        source = ConfigSource.TOPIC if kind is ResourceKind.TOPIC else ConfigSource.BROKER
        found[ConfigOwner(kind, result.resource_name)] = {
            entry.name: entry.value
            for entry in result.configs
            if entry.source == source and entry.value is not None
        }
    return found
