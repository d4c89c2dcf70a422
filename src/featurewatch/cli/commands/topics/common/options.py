"""The options of every command that manages topics.

Options that may be given once are lists here, since the tool has an error of its own for two.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

from featurewatch.cli.command_line import Option
from featurewatch.cli.commands.topics.common.target import TopicTarget
from featurewatch.cli.config.cluster_options import (
    Compat,
    CompatOption,
    Config,
    Json,
    Server,
    Timeout,
    shared_options,
)

Once = list[str] | None

Topic = Annotated[
    Once,
    Option(
        "--topic",
        metavar="NAME",
        help="The topic; but for create, a list of regular expressions that match whole names.",
    ),
]
Partitions = Annotated[
    Once, Option("--partitions", metavar="COUNT", help="How many partitions, in all.")
]
ReplicaAssignment = Annotated[
    Once,
    Option(
        "--replica-assignment",
        metavar="1:2,2:3",
        help="Broker ids of each partition's replicas, the preferred leader first.",
    ),
]
IfExists = Annotated[bool, Option("--if-exists", help="Do nothing if there is no such topic.")]
ExcludeInternal = Annotated[
    bool, Option("--exclude-internal", help="Leave out topics that Kafka itself writes.")
]

_SHARED: Final[dict[str, Any]] = {
    "bootstrap_server": Server,
    "command_config": Config,
    "as_json": Json,
    "compat": CompatOption,
    "timeout": Timeout,
}


def _run(given: dict[str, Any], command: Callable[[TopicTarget], None]) -> None:
    target = TopicTarget(
        servers=given["bootstrap_server"] or "",
        controllers="",
        command_config=given["command_config"],
        as_json=bool(given["as_json"]),
        compat=str(given["compat"] or Compat.V4_3),
        timeout_s=given["timeout"],
    )
    target.run_command(lambda: command(target))


with_topic_target = shared_options(_SHARED, _run)
"""Adds the shared options to a command; its first argument is their `TopicTarget`."""
