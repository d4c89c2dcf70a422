"""Deletes topics for ``topics delete``, after a look at what hangs on them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from featurewatch.admin.cluster.values import TopicDetails
from featurewatch.admin.errors import AdminError
from featurewatch.admin.topics.values import ChangedTopic
from featurewatch.cli.commands.topics.common.changes import print_results
from featurewatch.cli.commands.topics.common.selection import selected
from featurewatch.cli.commands.topics.common.target import TopicTarget
from featurewatch.cli.output.confirmation import confirm, must_confirm
from featurewatch.cli.output.terminal import print_error, print_json_text, print_line

if TYPE_CHECKING:
    from featurewatch.admin.topics.client import TopicAdmin
    from featurewatch.admin.topics.reader import TopicMetadataReader


class _Matched(NamedTuple):
    """Topics, and the bytes of their replicas; None: ``error`` is the reason for none."""

    topics: tuple[TopicDetails, ...]
    log_bytes: Mapping[str, int] | None = None
    error: str | None = None


def delete_topics(
    target: TopicTarget, expression: str, *, if_exists: bool, dry_run: bool, yes: bool
) -> None:
    """Deletes the topics that match, or with ``dry_run`` shows them."""
    looks = dry_run or must_confirm(yes)
    matched = target.read(
        lambda reader: _look(target, reader, expression, if_exists=if_exists, with_bytes=looks)
    )
    if dry_run:
        _show(target, matched)
        return
    if not matched.topics:
        print_results(target, ())
        return
    if looks:
        confirm(_preview(matched), f"Delete {_topics(len(matched.topics))}? [y/N] ")
    print_results(target, target.change(lambda admin: _delete(admin, matched.topics, by_id=looks)))


async def _look(
    target: TopicTarget,
    reader: "TopicMetadataReader",
    expression: str,
    *,
    if_exists: bool,
    with_bytes: bool,
) -> _Matched:
    overview = await reader.overview()
    names = selected(overview.topics, expression)
    await target.check_matched(reader, names, expression, if_exists=if_exists)
    wanted = frozenset(names)
    topics = tuple(topic for topic in overview.topics if topic.name in wanted)
    if not (with_bytes and topics):
        return _Matched(topics)
    try:
        return _Matched(topics, await reader.log_bytes(topics))
    except AdminError as error:
        return _Matched(topics, error=str(error))


async def _delete(
    admin: "TopicAdmin", topics: Sequence[TopicDetails], *, by_id: bool
) -> tuple[ChangedTopic, ...]:
    """With ``by_id`` the topics that were shown, and none that was created since by their names."""
    from dataclasses import replace

    from featurewatch.admin.topics.values import text_of_id

    ids = {text_of_id(topic.topic_id): topic for topic in topics if topic.topic_id is not None}
    if not by_id or len(ids) < len(topics):
        return await admin.delete(topic.name for topic in topics)
    results = await admin.delete_ids(
        topic.topic_id for topic in topics if topic.topic_id is not None
    )
    return tuple(replace(result, topic=ids[result.topic].name) for result in results)


def _show(target: TopicTarget, matched: _Matched) -> None:
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


def _preview(matched: _Matched) -> Iterator[str]:
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
