"""Reads what every client needs of a cluster: its nodes, its topics, and running reassignments.

`ClusterReader` is the session that clients of topics, reassignments and elections are.
"""

from collections.abc import Iterable, Mapping
from typing import Final
from uuid import UUID

from featurewatch.admin.cluster import configs
from featurewatch.admin.cluster.configs import ConfigOwner, OwnConfigs, TopicConfig
from featurewatch.admin.cluster.responses import (
    cluster_of,
    cluster_topics,
    metadata_topic,
    reassignments_of,
    replica_directories,
)
from featurewatch.admin.cluster.values import (
    BrokerNode,
    BrokerReplica,
    ClusterMetadata,
    ClusterTopics,
    ReplicaDirectory,
    TopicOverview,
    numbers_by_topic,
)
from featurewatch.admin.errors import UnreachableError, check_response
from featurewatch.admin.session import AdminSession
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.kafka import messages
from featurewatch.streams.types import SupportedRanges

_DESCRIBE_LOG_DIRS: Final = 35
_LIST_REASSIGNMENTS: Final = 46
_CONFIGS_AT_ONCE: Final = 250
"""Topics per request; each topic has some thirty settings."""


class ClusterReader(AdminSession):
    """Reads one cluster and changes nothing; as `AdminSession`, whose exceptions calls raise."""

    async def cluster(self) -> ClusterMetadata:
        """The brokers and the controller of the cluster (KIP-4: ClusterMetadata)."""
        return cluster_of(await self.ask(metadata_request(())))

    async def overview(self, names: Iterable[str] | None = None) -> TopicOverview:
        """The cluster, and topics by their names or (None) all, without eligible leaders."""
        wanted = None if names is None else [(None, name) for name in dict.fromkeys(names)]
        response = await self.ask(metadata_request(wanted))
        topics = map(metadata_topic, response.topics)
        return TopicOverview(
            cluster_of(response), tuple(sorted(topics, key=lambda topic: topic.name))
        )

    async def topics(self, names: Iterable[str] | None) -> ClusterTopics:
        """The running brokers, and the partitions of these topics (None: all), by what names
        them."""
        return cluster_topics(await self.overview(names))

    async def reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, ReplicaAssignment]:
        """The reassignments that run now, of these partitions or (None) of all.

        The controller is asked, as by Kafka's client, and no other broker first: one in ZooKeeper
        mode with migration enabled forwards the request to a controller in ZooKeeper mode, which
        closes the connection, and answers nobody until the request times out.

        Raises:
            KafkaApiError: The login may not see that: it takes DESCRIBE on the cluster.
        """
        form = messages.ListPartitionReassignmentsRequestV0
        wanted = None
        if partitions is not None:
            wanted = tuple(
                form.ListPartitionReassignmentsTopics(name=topic, partition_indexes=tuple(numbers))
                for topic, numbers in numbers_by_topic(partitions).items()
            )
        request = form(timeout_ms=int(self._request_timeout_s * 1000), topics=wanted)
        response = await self.perform(lambda _: request, changes=False)
        check_response(response, _LIST_REASSIGNMENTS)
        return reassignments_of(response)

    async def configs(self, names: Iterable[str]) -> Mapping[str, TopicConfig]:
        """All settings of each topic, or an error."""
        found: dict[str, TopicConfig] = {}
        wanted = sorted(set(names))
        requests = [
            configs.describe_request(
                map(ConfigOwner.topic, wanted[start : start + _CONFIGS_AT_ONCE])
            )
            for start in range(0, len(wanted), _CONFIGS_AT_ONCE)
        ]
        for response in await self.ask_all(requests):
            found |= {config.topic: config for config in configs.topic_configs(response)}
        return found

    async def own_configs(
        self,
        topics: Iterable[str],
        topic_settings: Iterable[str],
        brokers: Mapping[int, BrokerNode],
        broker_settings: Iterable[str],
    ) -> OwnConfigs:
        """The values of some settings, as far as these topics and brokers set them."""
        found: dict[ConfigOwner, Mapping[str, str]] = {}
        for broker_id, node in brokers.items():
            request = configs.describe_request(
                [ConfigOwner.broker(broker_id)], tuple(broker_settings)
            )
            found |= configs.own_configs(await self.exchange_with(node.address, request))
        if owners := [ConfigOwner.topic(name) for name in topics]:
            request = configs.describe_request(owners, tuple(topic_settings))
            found |= configs.own_configs(await self.ask(request))
        return found

    async def directories(
        self, replicas: Iterable[BrokerReplica], brokers: Mapping[int, BrokerNode]
    ) -> dict[BrokerReplica, ReplicaDirectory]:
        """The directories and sizes of these replicas; replicas that no broker has are left out.

        Raises:
            UnreachableError: A broker that has one of them does not respond.
            KafkaApiError: The login may not see that: it takes DESCRIBE on the cluster.
        """
        form = messages.DescribeLogDirsRequestV4
        by_broker: dict[int, list[TopicPartition]] = {}
        for replica in replicas:
            by_broker.setdefault(replica.broker_id, []).append(replica.partition)
        found: dict[BrokerReplica, ReplicaDirectory] = {}
        for broker_id, partitions in by_broker.items():
            topics = (
                form.DescribableLogDirTopic(topic=topic, partitions=tuple(numbers))
                for topic, numbers in numbers_by_topic(partitions).items()
            )
            response = await self.exchange_with(
                running(broker_id, brokers).address,
                form(topics=tuple(topics)),
            )
            check_response(response, _DESCRIBE_LOG_DIRS)
            found |= replica_directories(response, broker_id)
        return found

    async def supported_features(self) -> SupportedRanges:
        """The feature levels that the first node supports, which imply its release."""
        from featurewatch.admin.features.metadata import read_metadata

        connection = await self._connections.any_node()
        response = connection.last_api_versions
        if response is None:
            response = await connection.request_api_versions(self._request_timeout_s)
        return read_metadata(response, connection.address).supported


def metadata_request(
    topics: Iterable[tuple[UUID | None, str | None]] | None,
) -> "messages.MetadataRequestV12":
    """Asks for the brokers, and for topics by id or by name; None is all topics (KIP-516)."""
    form = messages.MetadataRequestV12
    wanted = None
    if topics is not None:
        wanted = tuple(form.MetadataRequestTopic(topic_id=one, name=name) for one, name in topics)
    return form(
        topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )


def running(broker_id: int, brokers: Mapping[int, BrokerNode]) -> BrokerNode:
    """A broker by its id; raises `UnreachableError` if it is not running."""
    if broker_id not in brokers:
        raise UnreachableError(f"broker {broker_id} is not running")
    return brokers[broker_id]
