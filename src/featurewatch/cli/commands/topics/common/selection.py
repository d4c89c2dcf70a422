"""Which topics of a cluster a command is for."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from featurewatch.cli.kafka_tools.topics import is_internal, matching

if TYPE_CHECKING:
    from featurewatch.admin.cluster.values import TopicDetails


def selected(
    topics: "Iterable[TopicDetails]", expression: str | None, *, exclude_internal: bool = False
) -> list[str]:
    """The names that the expression matches, sorted; raises `TopicToolError` for a wrong one."""
    names = (
        topic.name
        for topic in topics
        if not (exclude_internal and (topic.is_internal or is_internal(topic.name)))
    )
    return matching(names, expression)
