"""Deletes topics for ``topics delete``, after showing their partitions and size."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from featurewatch.admin.cluster.values import TopicDetails
from featurewatch.admin.errors import AdminError
from featurewatch.admin.topics.client import TopicAdmin
from featurewatch.admin.topics.reader import TopicMetadataReader
from featurewatch.admin.topics.values import ChangedTopic, text_of_id
from featurewatch.cli.commands.topics.common.changes import print_results
from featurewatch.cli.commands.topics.common.selection import check_matched, selected
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line


class MatchedTopics(NamedTuple):
    """Topics, and the bytes of their replicas; None if unknown, with the reason in ``error``."""

    topics: tuple[TopicDetails, ...]
    log_bytes: Mapping[str, int] | None = None
    error: str | None = None


async def delete_topics(
    target: AdminTarget, expression: str, *, if_exists: bool, dry_run: bool, yes: bool
) -> None:
    """Deletes the topics that match, or with ``dry_run`` shows them."""
    looks = dry_run or must_confirm(yes)
    async with target.connect(TopicMetadataReader) as client:
        overview = await client.overview()
        names = selected(overview.topics, expression)
        await check_matched(client, names, expression, target.compat, if_exists=if_exists)
        wanted = frozenset(names)
        matched = MatchedTopics(tuple(topic for topic in overview.topics if topic.name in wanted))
        if looks and names:
            matched = await _with_bytes(client, matched.topics)
    if dry_run:
        show_deletion(target, matched)
        return
    if not names:
        print_results(target, ())
        return
    if looks:
        confirm_deletion(matched)
    async with target.connect(TopicAdmin, changes=True) as admin:
        results = await _delete(admin, matched.topics, by_id=looks)
    print_results(target, results)


async def _with_bytes(
    client: TopicMetadataReader, topics: tuple[TopicDetails, ...]
) -> MatchedTopics:
    try:
        return MatchedTopics(topics, await client.log_bytes(topics))
    except AdminError as error:
        return MatchedTopics(topics, error=str(error))


async def _delete(
    admin: TopicAdmin, topics: Sequence[TopicDetails], *, by_id: bool
) -> tuple[ChangedTopic, ...]:
    """Deletes topics; with ``by_id`` only those shown, never new ones of the same names."""
    ids = {topic.topic_id: topic.name for topic in topics if topic.topic_id is not None}
    if not by_id or len(ids) < len(topics):
        return await admin.delete(topic.name for topic in topics)
    names = {text_of_id(topic_id): name for topic_id, name in ids.items()}
    results = await admin.delete_ids(ids)
    return tuple(replace(result, topic=names[result.topic]) for result in results)


def confirm_deletion(matched: MatchedTopics) -> None:
    """Asks at the terminal whether to delete the topics; raises `Exit` if not."""
    confirm(_preview(matched), f"Delete {_topics(len(matched.topics))}? [y/N] ")


def show_deletion(target: AdminTarget, matched: MatchedTopics) -> None:
    """Prints the topics that a dry run would delete."""
    if target.as_json:
        sizes = matched.log_bytes
        document: dict[str, Any] = {
            "status": "OK",
            "dry_run": True,
            "topics": [
                {
                    "topic": topic.name,
                    "partitions": len(topic.partitions),
                    "bytes": None if sizes is None else sizes.get(topic.name, 0),
                }
                for topic in matched.topics
            ],
        }
        print_json_text(json.dumps(document))
        return
    for line in _preview(matched):
        print_line(line)
    if matched.error is not None:
        print_error(f"the sizes are not known: {matched.error}")


def _preview(matched: MatchedTopics) -> Iterator[str]:
    for topic in matched.topics:
        count = len(topic.partitions)
        size = (
            "" if matched.log_bytes is None else f", {matched.log_bytes.get(topic.name, 0):,} bytes"
        )
        yield (
            f"{topic.name}: {count} partition{'' if count == 1 else 's'}{size}"
            f"{', a topic of Kafka itself' if topic.is_internal else ''}"
        )
    if matched.log_bytes is not None and len(matched.topics) > 1:
        yield f"in all: {sum(matched.log_bytes.values()):,} bytes in all replicas"


def _topics(count: int) -> str:
    return "this topic" if count == 1 else f"these {count} topics"
