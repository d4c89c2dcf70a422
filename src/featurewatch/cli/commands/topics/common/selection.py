"""Selects the topics of a cluster that a command is for."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from featurewatch.cli.kafka_tools.errors import KafkaUsageError
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.kafka_tools.topics import is_internal, matching, missing_topic

if TYPE_CHECKING:
    from featurewatch.admin.cluster.values import TopicDetails
    from featurewatch.admin.topics.reader import TopicMetadataReader

_NAME: Final = re.compile(r"[\w.-]{1,249}", re.ASCII)
"""A topic's name, which as an expression may stand for others, too."""


def check_server(target: AdminTarget) -> None:
    """Raises `KafkaUsageError` without an address, which the tool checks first."""
    if not target.servers:
        raise KafkaUsageError("--bootstrap-server must be specified")
    target.addresses()


def selected(
    topics: "Iterable[TopicDetails]", expression: str | None, *, exclude_internal: bool = False
) -> list[str]:
    """The names that the expression matches, sorted; raises `KafkaToolError` for a wrong one."""
    names = (
        topic.name
        for topic in topics
        if not (exclude_internal and (topic.is_internal or is_internal(topic.name)))
    )
    return matching(names, expression)


async def check_matched(
    client: "TopicMetadataReader",
    names: list[str],
    expression: str | None,
    release: str,
    *,
    if_exists: bool,
) -> None:
    """Raises `KafkaToolError` if an expression matches no topic.

    Brokers leave out a topic that the login may not see; requested by its name, it is refused.
    """
    if not expression or names or if_exists:
        return
    found = await client.topics([expression]) if _NAME.fullmatch(expression) else None
    error = found.errors.get(expression) if found else None
    raise missing_topic(expression, release, error.right if error else "")
