"""What the commands share that send the requests of KIP-4's draft: its options and its topics."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click
from click.core import ParameterSource

from featurewatch.cli.errors import UsageError

if TYPE_CHECKING:
    from featurewatch.admin.cluster.configs import TopicConfig
    from featurewatch.admin.cluster.values import TopicDetails
    from featurewatch.admin.kip4.client import DraftAdminClient
    from featurewatch.kafka.messages import DescribeTopicResponseV0

    Topic = DescribeTopicResponseV0.TopicDescription

_CLUSTER: Final = frozenset({"bootstrap_server", "command_config", "as_json", "dialect"})
"""The parameters that say which cluster, and how."""
NO_REQUEST: Final = "KIP-4's draft has no request for this command: leave out --dialect kip-4"


def check_place(*parameters: str) -> None:
    """Raises `UsageError` for an option of the current command that is given and has no place in
    the draft; those of ``parameters`` have one."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = str(parameter.name)
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if is_given and name not in _CLUSTER.union(parameters):
            raise UsageError(
                f"{parameter.opts[0]} has no place in KIP-4's draft: leave it out, or leave out "
                "--dialect kip-4"
            )


async def describe_topics(client: "DraftAdminClient", names: Iterable[str]) -> "list[Topic]":
    """The topics by their names, each by a request, without those that do not exist."""
    from featurewatch.admin.kip4.client import DraftApiError

    found = []
    for name in dict.fromkeys(names):
        try:
            found.append(await client.describe_topic(name))
        except DraftApiError:
            if name in await client.list_topics():
                raise
    return found


def topic_details(topic: "Topic") -> "TopicDetails":
    """A topic as the commands show those of released Kafka; the draft has no topic ids."""
    from featurewatch.admin.cluster.values import PartitionDetails, TopicDetails
    from featurewatch.cli.kafka_tools.topics import is_internal
    from featurewatch.streams.types import NodeId

    partitions = (
        PartitionDetails(
            item.partition_id,
            None if item.leader is None else NodeId(item.leader),
            tuple(map(NodeId, item.replicas)),
            tuple(map(NodeId, item.isr)),
        )
        for item in topic.partitions
    )
    return TopicDetails(topic.topic_name, None, is_internal(topic.topic_name), tuple(partitions))


def topic_config(topic: "Topic") -> "TopicConfig":
    """Its settings: the draft has only those that are the topic's own."""
    from featurewatch.admin.cluster.configs import TopicConfig
    from featurewatch.kafka.messages.config_entries import ConfigSource, ConfigValue

    values = (
        ConfigValue(entry.key, entry.value, ConfigSource.TOPIC) for entry in topic.config.configs
    )
    return TopicConfig(topic.topic_name, tuple(values))
