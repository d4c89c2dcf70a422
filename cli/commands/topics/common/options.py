"""The options of every command that manages topics.

Options that may be given once are lists here, since the tool has an error of its own for two.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Final

from featurewatch.cli.command_line import Option
from featurewatch.cli.commands.features.common.options import (
    Compat,
    Config,
    Json,
    Server,
    Timeout,
)
from featurewatch.cli.commands.topics.common.target import TopicTarget

Once = list[str] | None

CompatOption = Annotated[
    Compat | None,
    Option("--compat", help="The release whose kafka-topics is followed.", default="4.3"),
]
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


def with_topic_target(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the shared options to a command; its first argument is their `TopicTarget`."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
    shared = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in _SHARED.items()
    ]

    @functools.wraps(command)
    def wrapped(**values: Any) -> None:
        given = {name: values.pop(name) for name in _SHARED}
        target = TopicTarget(
            servers=given["bootstrap_server"] or "",
            command_config=given["command_config"],
            as_json=bool(given["as_json"]),
            compat=str(given["compat"] or Compat.V4_3),
            timeout_s=given["timeout"],
        )
        target.run_command(lambda: command(target, **values))

    parameters = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in own]
    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
        [*shared, *parameters]
    )
    return wrapped
