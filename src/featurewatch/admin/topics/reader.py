"""Lists and describes topics, their settings and their reassignments; changes nothing.

async with TopicMetadataReader(Bootstrap(parse_addresses("kafka-1:9092"))) as reader:
    overview = await reader.overview()
    details = await reader.describe(topic.name for topic in overview.topics)
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

from featurewatch.admin.api_errors import UNKNOWN_TOPIC
from featurewatch.admin.cluster.reader import ClusterReader, metadata_request
from featurewatch.admin.cluster.responses import metadata_topic
from featurewatch.admin.cluster.values import BrokerNode, BrokerReplica, TopicDetails
from featurewatch.admin.errors import KafkaApiError, UnreachableError
from featurewatch.admin.topics.responses import described_topic, joined_pages
from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka import messages

PAGE_PARTITIONS: Final = 2000
"""Partitions of one response, which is also the most that brokers give by default."""

_DESCRIBE_TOPIC_PARTITIONS: Final = 75


class TopicMetadataReader(ClusterReader):
    """Reads one cluster's topics; as `AdminSession`, whose exceptions every call raises."""

    async def list_topics(self) -> tuple[str, ...]:
        """The names of all topics, sorted; those in deletion are not marked (KIP-4)."""
        return tuple(topic.name for topic in (await self.overview()).topics)

    async def describe_topic(self, name: str) -> TopicDetails:
        """A topic by its name.

        Raises:
            KafkaApiError: The topic does not exist, or the client may not see it.
        """
        (topic,) = await self.describe([name])
        if topic.error:
            raise KafkaApiError(topic.error, topic.text, topic.right)
        return topic

    async def describe(
        self, names: Iterable[str], *, page_partitions: int = PAGE_PARTITIONS
    ) -> tuple[TopicDetails, ...]:
        """Topics by their names, each once, ordered by name; a missing topic has an error.

        Brokers in KRaft mode give the eligible leaders from 3.8 on (KIP-966).
        """
        wanted = sorted(set(names))
        if not wanted:
            return ()
        broker = await self.broker()
        if broker.version_of(_DESCRIBE_TOPIC_PARTITIONS, (0, 0)) is not None:
            topics = await self._paged(wanted, page_partitions)
        else:
            topics = iter((await self.overview(wanted)).topics)
        by_name = {topic.name: topic for topic in topics}
        return tuple(
            by_name.get(name)
            or TopicDetails(name, None, False, (), UNKNOWN_TOPIC, f"Topic {name} not found.")
            for name in wanted
        )

    async def describe_ids(self, ids: Iterable[UUID]) -> tuple[TopicDetails, ...]:
        """Topics by their ids, without eligible leaders; one that is unknown has no name."""
        response = await self.ask(metadata_request((topic_id, None) for topic_id in set(ids)))
        return tuple(sorted(map(metadata_topic, response.topics)))

    async def log_bytes(self, topics: Iterable[TopicDetails]) -> Mapping[str, int]:
        """The bytes of each topic's replicas on all running brokers.

        Raises:
            KafkaApiError: The login may not see that: it takes DESCRIBE on the cluster.
        """
        brokers: dict[int, BrokerNode] = {
            broker.node_id: broker for broker in (await self.cluster()).brokers
        }
        replicas = (
            BrokerReplica(TopicPartition(topic.name, partition.partition), node)
            for topic in topics
            for partition in topic.partitions
            for node in partition.replicas
            if node in brokers
        )
        sizes: dict[str, int] = {}
        for replica, directory in (await self.directories(replicas, brokers)).items():
            name = replica.partition.topic
            sizes[name] = sizes.get(name, 0) + directory.size
        return sizes

    async def _paged(self, names: list[str], page_partitions: int) -> Iterator[TopicDetails]:
        """Every page; each must begin behind the one before it."""
        parts: list[TopicDetails] = []
        start: tuple[str, int] = ("", 0)
        form = messages.DescribeTopicPartitionsRequestV0
        cursor: messages.DescribeTopicPartitionsRequestV0.Cursor | None = None
        while True:
            topics = (form.TopicRequest(name=name) for name in names if name >= start[0])
            request = form(
                topics=tuple(topics), response_partition_limit=page_partitions, cursor=cursor
            )
            response = await self.ask(request)
            parts.extend(map(described_topic, response.topics))
            if response.next_cursor is None:
                return joined_pages(parts)
            following = (response.next_cursor.topic_name, response.next_cursor.partition_index)
            if following <= start:
                raise UnreachableError("a broker sends pages of partitions without an end")
            start = following
            cursor = form.Cursor(topic_name=start[0], partition_index=start[1])
