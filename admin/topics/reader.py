"""Lists and describes topics, their settings and their reassignments; changes nothing.

async with TopicMetadataReader(Bootstrap(parse_addresses("kafka-1:9092"))) as reader:
    overview = await reader.overview()
    details = await reader.describe(topic.name for topic in overview.topics)
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from featurewatch.admin.errors import KafkaApiError, UnreachableError
from featurewatch.admin.topics import metadata_messages as messages
from featurewatch.admin.topics.responses import (
    cluster_of,
    described_topic,
    joined_pages,
    log_bytes,
    metadata_topic,
    reassignments_of,
    topic_configs,
)
from featurewatch.admin.topics.session import AdminSession
from featurewatch.admin.topics.values import ClusterMetadata, TopicConfig, TopicDetails
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.streams.net.address import Address

PAGE_PARTITIONS: Final = 2000
"""Partitions of one response, which is also the most that brokers give by default."""

UNKNOWN_TOPIC: Final = 3
_TOPIC: Final = 2
_DESCRIBE_TOPIC_PARTITIONS: Final = 75
_CONFIGS_AT_ONCE: Final = 500
"""Each topic has some thirty settings."""

_ITEM = TypeVar("_ITEM")


class TopicOverview(NamedTuple):
    """A cluster and all its topics that may be seen, ordered by name."""

    cluster: ClusterMetadata
    topics: tuple[TopicDetails, ...]


class TopicMetadataReader(AdminSession):
    """Reads one cluster's topics; as `AdminSession`, whose exceptions every call raises."""

    async def cluster(self) -> ClusterMetadata:
        """The brokers and the controller of the cluster (KIP-4: ClusterMetadata)."""
        return cluster_of(await self.ask(messages.MetadataRequestV12(())))

    async def overview(self) -> TopicOverview:
        """The cluster and all its topics, without eligible leaders."""
        response = await self.ask(messages.MetadataRequestV12(None))
        topics = map(metadata_topic, response.topics)
        return TopicOverview(
            cluster_of(response), tuple(sorted(topics, key=lambda topic: topic.name))
        )

    async def list_topics(self) -> tuple[str, ...]:
        """The names of all topics, sorted; those in deletion are not told apart (KIP-4)."""
        return tuple(topic.name for topic in (await self.overview()).topics)

    async def describe_topic(self, name: str) -> TopicDetails:
        """A topic by its name.

        Raises:
            KafkaApiError: There is none, or it may not be seen.
        """
        (topic,) = await self.describe([name])
        if topic.error:
            raise KafkaApiError(topic.error, topic.text)
        return topic

    async def describe(
        self, names: Iterable[str], *, page_partitions: int = PAGE_PARTITIONS
    ) -> tuple[TopicDetails, ...]:
        """Topics by their names, each once, ordered by name; with an error where there is none.

        Brokers in KRaft mode give the eligible leaders from 3.8 on (KIP-966).
        """
        wanted = sorted(set(names))
        if not wanted:
            return ()
        broker = await self.broker()
        if broker.version_of(_DESCRIBE_TOPIC_PARTITIONS, (0, 0)) is not None:
            topics = await self._paged(wanted, page_partitions)
        else:
            requested = (messages.MetadataRequestTopicV12(None, name) for name in wanted)
            response = await self.ask(messages.MetadataRequestV12(tuple(requested)))
            topics = map(metadata_topic, response.topics)
        by_name = {topic.name: topic for topic in topics}
        return tuple(
            by_name.get(name)
            or TopicDetails(name, None, False, (), UNKNOWN_TOPIC, f"Topic {name} not found.")
            for name in wanted
        )

    async def describe_ids(self, ids: Iterable[UUID]) -> tuple[TopicDetails, ...]:
        """Topics by their ids, without eligible leaders; one that is unknown has no name."""
        requested = (messages.MetadataRequestTopicV12(topic_id, None) for topic_id in set(ids))
        response = await self.ask(messages.MetadataRequestV12(tuple(requested)))
        return tuple(sorted(map(metadata_topic, response.topics)))

    async def configs(self, names: Iterable[str]) -> Mapping[str, TopicConfig]:
        """All settings of each topic, or an error."""
        from featurewatch.admin.topics.config_messages import (
            DescribeConfigsRequestV4,
            DescribeConfigsResource,
        )

        configs: dict[str, TopicConfig] = {}
        for chunk in _chunks(sorted(set(names)), _CONFIGS_AT_ONCE):
            resources = (DescribeConfigsResource(_TOPIC, name, None) for name in chunk)
            response = await self.ask(DescribeConfigsRequestV4(tuple(resources)))
            configs |= {config.topic: config for config in topic_configs(response)}
        return configs

    async def reassignments(self) -> Mapping[TopicPartition, ReplicaAssignment]:
        """Every partition that is being reassigned.

        Raises:
            KafkaApiError: The login may not see that: it takes DESCRIBE on the cluster.
        """
        timeout_ms = int(self._timeout_s * 1000)
        response = await self.ask_controller(messages.ReassignmentsRequestV0(timeout_ms, None))
        if response.error_code:
            raise KafkaApiError(response.error_code, response.error_message)
        return reassignments_of(response)

    async def log_bytes(self, topics: Iterable[TopicDetails]) -> Mapping[str, int]:
        """The bytes of each topic's replicas on all brokers that respond.

        Raises:
            KafkaApiError: The login may not see that: it takes DESCRIBE on the cluster.
        """
        from featurewatch.admin.topics.config_messages import (
            DescribeLogDirsRequestV4,
            DescribeLogDirsTopic,
        )

        topics = tuple(topics)
        request = DescribeLogDirsRequestV4(
            tuple(
                DescribeLogDirsTopic(
                    topic.name, tuple(partition.partition for partition in topic.partitions)
                )
                for topic in topics
            )
        )
        hosting = {node for topic in topics for item in topic.partitions for node in item.replicas}
        sizes: dict[str, int] = {}
        for broker in (await self.cluster()).brokers:
            if broker.node_id not in hosting:
                continue
            connection = await self._reach.connection(Address.of_peer(broker.host, broker.port))
            response = await self.exchange_with(connection, request)
            if response.error_code:
                raise KafkaApiError(response.error_code)
            for name, size in log_bytes(response).items():
                sizes[name] = sizes.get(name, 0) + size
        return sizes

    async def _paged(self, names: list[str], page_partitions: int) -> Iterator[TopicDetails]:
        """Every page; each must begin behind the one before it."""
        parts: list[TopicDetails] = []
        start: tuple[str, int] = ("", 0)
        cursor: messages.PartitionsCursor | None = None
        while True:
            topics = tuple(
                messages.DescribeTopicPartitionsTopic(name) for name in names if name >= start[0]
            )
            request = messages.DescribeTopicPartitionsRequestV0(topics, page_partitions, cursor)
            response = await self.ask(request)
            parts.extend(map(described_topic, response.topics))
            cursor = response.next_cursor
            if cursor is None:
                return joined_pages(parts)
            if (cursor.topic_name, cursor.partition_index) <= start:
                raise UnreachableError("a broker sends pages of partitions without an end")
            start = (cursor.topic_name, cursor.partition_index)


def _chunks(items: Sequence[_ITEM], size: int) -> Iterator[Sequence[_ITEM]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
