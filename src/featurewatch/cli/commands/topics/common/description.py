"""Reads topics for ``topics describe`` and prints them, as the tool does or as a document."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from featurewatch.admin.cluster.configs import TopicConfig
from featurewatch.admin.cluster.values import TopicDetails, TopicOverview
from featurewatch.admin.errors import KafkaApiError
from featurewatch.admin.topics.reader import PAGE_PARTITIONS, TopicMetadataReader
from featurewatch.admin.topics.values import text_of_id, topic_id_of
from featurewatch.cli.commands.topics.common.selection import check_matched, selected
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.target import AdminTarget
from featurewatch.cli.kafka_tools.topics_describe import (
    PartitionFilter,
    Reassignments,
    in_order_of_tool,
    minimum_isr,
    replication_factor,
    topic_lines,
)
from featurewatch.cli.output.terminal import print_json_text, print_lines
from featurewatch.controller.partitions.assignment import TopicPartition

_NO_RIGHT: Final = 31


class DescribeRequest(NamedTuple):
    """The topics and partitions to show; an id takes precedence over a name."""

    topic_id: str | None
    expression: str | None
    page_partitions: int | None
    condition: PartitionFilter
    overridden_only: bool
    if_exists: bool
    exclude_internal: bool


class DescribedTopics(NamedTuple):
    """Topics with their settings, what is being reassigned, and the brokers of the cluster."""

    topics: tuple[TopicDetails, ...]
    configs: Mapping[str, TopicConfig]
    reassignments: Reassignments
    live: frozenset[int]


async def print_topics(target: AdminTarget, request: DescribeRequest) -> None:
    """Prints the topics; raises `KafkaToolError` and `AdminError`."""
    async with target.connect(TopicMetadataReader) as client:
        described = await _read(client, request, target.compat)
    print_described(target, described, request)


def print_described(
    target: AdminTarget, described: DescribedTopics, request: DescribeRequest
) -> None:
    """Prints the topics as the tool does, or as a document."""
    if target.as_json:
        documents = (_document(topic, described, request) for topic in described.topics)
        print_json_text(json.dumps({"topics": [item for item in documents if item is not None]}))
        return
    print_lines(_lines(described, request))


def _lines(described: DescribedTopics, request: DescribeRequest) -> Iterator[str]:
    for topic in in_order_of_tool(described.topics):
        yield from topic_lines(
            topic,
            described.configs[topic.name],
            described.reassignments,
            condition=request.condition,
            live=described.live,
            overridden_only=request.overridden_only,
        )


async def _read(
    client: TopicMetadataReader, request: DescribeRequest, release: str
) -> DescribedTopics:
    overview = await client.overview()
    topics = await _topics(client, overview, request, release)
    for topic in topics:
        if topic.error:
            raise KafkaToolError(topic.text, right=topic.right)
    try:
        reassignments = await client.reassignments() if topics else {}
    except KafkaApiError as error:
        if error.code != _NO_RIGHT:
            raise
        reassignments = {}
    return DescribedTopics(
        topics,
        await client.configs(topic.name for topic in topics),
        reassignments,
        frozenset(broker.node_id for broker in overview.cluster.brokers),
    )


async def _topics(
    client: TopicMetadataReader, overview: TopicOverview, request: DescribeRequest, release: str
) -> tuple[TopicDetails, ...]:
    topic_id = topic_id_of(request.topic_id) if request.topic_id is not None else None
    if topic_id is None:
        names = selected(
            overview.topics, request.expression, exclude_internal=request.exclude_internal
        )
        await check_matched(client, names, request.expression, release, if_exists=request.if_exists)
        return await client.describe(
            names, page_partitions=request.page_partitions or PAGE_PARTITIONS
        )
    if any(topic.topic_id == topic_id for topic in overview.topics):
        return await client.describe_ids([topic_id])
    if request.if_exists:
        return ()
    raise KafkaToolError(f"TopicId '{text_of_id(topic_id)}' does not exist as expected")


def _document(
    topic: TopicDetails, described: DescribedTopics, request: DescribeRequest
) -> dict[str, Any] | None:
    """A topic with the partitions that meet the condition, or None without any; also None if only
    topics that override settings are requested, and it overrides nothing."""
    config = described.configs[topic.name]
    if config.error:
        raise KafkaToolError(config.text, right=config.right)
    settings = config.non_default
    partitions: list[dict[str, Any]] = []
    min_isr = minimum_isr(config)
    for partition in topic.partitions:
        moved = described.reassignments.get(TopicPartition(topic.name, partition.partition))
        if not request.condition.selects(partition, moved, min_isr, described.live):
            continue
        partitions.append(
            {
                "partition": partition.partition,
                "leader": partition.leader,
                "replicas": partition.replicas,
                "isr": partition.isr,
                "adding": moved.adding if moved else (),
                "removing": moved.removing if moved else (),
                "eligible_leaders": partition.eligible_leaders,
                "last_known_leaders": partition.last_known_leaders,
            }
        )
    if (request.condition.is_set and not partitions) or (request.overridden_only and not settings):
        return None
    first = topic.partitions[0] if topic.partitions else None
    moved = described.reassignments.get(TopicPartition(topic.name, 0))
    return {
        "topic": topic.name,
        "topic_id": None if topic.topic_id is None else text_of_id(topic.topic_id),
        "is_internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": None if first is None else replication_factor(first, moved),
        "configs": settings,
        "partitions": partitions,
    }
