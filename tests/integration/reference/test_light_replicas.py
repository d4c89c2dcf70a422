"""Thousands of partitions on light replicas: our controllers, on a real ZooKeeper server."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.messages import MetadataRequestV12, MetadataResponseV12
from featurewatch.reference.zookeeper.__main__ import new_topic_id
from featurewatch.reference.zookeeper.cluster import ClusterSettings, ReferenceCluster
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.replicas.replica_brokers import ReplicaBrokers
from featurewatch.reference.zookeeper.node import NodeSettings
from tests.conformance.whole_controller.actions import (
    create_topic,
    delete_topic,
    elect,
    list_reassignments,
    reassign,
)
from tests.conformance.whole_controller.cluster import DrivenCluster
from tests.conftest import MakeEnsemble
from tests.reference.zookeeper.controllers import wait_controller
from tests.waiting import until_async

pytestmark = pytest.mark.stack

TOPIC = "light"
CONTROLLERS = 2
BROKERS = (3, 4, 5, 6, 7, 8)
PARTITIONS = 2_000
STEP_S = 120.0
LISTS = [
    [BROKERS[(number + index) % len(BROKERS)] for index in range(3)] for number in range(PARTITIONS)
]

Partitions = Mapping[int, MetadataResponseV12.MetadataResponsePartition]


class Client:
    """Requests to the controller that there is."""

    def __init__(self, cluster: ReferenceCluster) -> None:
        self._cluster = cluster

    async def request(self, message: Any) -> Any:
        """The controller's response."""
        node = await wait_controller(self._cluster, STEP_S)
        connection = await open_connection(Address.parse(node.address), timeout_s=STEP_S)
        try:
            return await connection.request(message, STEP_S)
        finally:
            await connection.close()

    async def perform(self, action: Callable[[DrivenCluster], Any]) -> Any:
        """Performs an action of the scripts that Kafka's controller and ours run."""
        return await action(cast("DrivenCluster", self))

    async def partitions(self) -> Partitions:
        """The partitions of the topic, as clients see them."""
        request = MetadataRequestV12(
            topics=None,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        topics = (await self.request(request)).topics
        found = [topic.partitions for topic in topics if topic.name == TOPIC]
        return {entry.partition_index: entry for entries in found for entry in entries}

    async def until(self, is_reached: Callable[[Partitions], bool]) -> Partitions:
        """Waits for a state of all partitions."""
        # Not `asyncio.timeout`: `wait_for` of Python 3.11, below it, may swallow a cancellation.
        end = time.monotonic() + STEP_S
        while not is_reached(partitions := await self.partitions()):
            assert time.monotonic() < end, [*partitions.items()][:10]
            await asyncio.sleep(0.1)
        return partitions


@asynccontextmanager
async def light_cluster(connect: str) -> AsyncIterator[ReferenceCluster]:
    """Two controllers and the light brokers, all registered."""
    operations = OperationsSettings(new_topic_id, balance_interval_ms=None)
    first = NodeSettings(connect, 1, session_timeout_s=30.0, operations=operations)
    settings = ClusterSettings(first, CONTROLLERS + len(BROKERS), full=CONTROLLERS)
    cluster = ReferenceCluster(settings)
    try:
        await cluster.start(STEP_S)
        yield cluster
    finally:
        await cluster.close()


def isr_is(*broker_ids: int, leads: int | None = None) -> Callable[[Partitions], bool]:
    """Whether each partition is led, and its ISR has its replicas on these brokers alone.

    A broker that ``leads`` stays in the ISR of what it leads.
    """

    def holds(entry: MetadataResponseV12.MetadataResponsePartition) -> bool:
        isr = {*entry.isr_nodes} - {leads if entry.leader_id == leads else None}
        in_sync = {*entry.replica_nodes} & {*broker_ids}
        return entry.leader_id in entry.isr_nodes and isr == in_sync

    return lambda partitions: len(partitions) == PARTITIONS and all(map(holds, partitions.values()))


def logs(replicas: ReplicaBrokers) -> set[tuple[int, int]]:
    """The brokers with a log, and the number of its partition."""
    return {
        (broker_id, number)
        for broker_id, broker in replicas.brokers.items()
        for _, number in broker.logs
    }


@pytest.mark.nightly
async def test_thousands_of_partitions_on_light_replicas(make_ensemble: MakeEnsemble) -> None:
    """They are created, fall behind and catch up by order; brokers die and return, partitions move,
    the controller ends and another takes over, and in the end the topic is deleted."""
    servers = await asyncio.to_thread(make_ensemble)
    async with light_cluster(f"{servers.connect_string}/light") as cluster:
        client = Client(cluster)
        assert cluster.replicas is not None
        replicas = cluster.replicas.brokers
        await client.perform(create_topic(TOPIC, *LISTS))
        created = await client.until(isr_is(*BROKERS))
        assert [created[number].leader_id for number in range(PARTITIONS)] == [
            listed[0] for listed in LISTS
        ]
        replicas.fall_behind(3)
        await client.until(isr_is(4, 5, 6, 7, 8, leads=3))
        replicas.catch_up(3)
        await client.until(isr_is(*BROKERS))
        cluster.end_brokers(4, 5)
        left = await client.until(isr_is(3, 6, 7, 8))
        assert {entry.leader_id for entry in left.values()} == {3, 6, 7, 8}
        cluster.start_brokers(4, 5)
        await client.until(isr_is(*BROKERS))
        first = await wait_controller(cluster)
        moved = {number: LISTS[number + 3] for number in range(0, 300, 6)}
        await client.perform(reassign(TOPIC, moved))
        await first.close()
        cluster.nodes.remove(first)
        assert await wait_controller(cluster, STEP_S) is not first
        ended = await client.until(
            lambda partitions: (
                isr_is(*BROKERS)(partitions)
                and all([*partitions[number].replica_nodes] == moved[number] for number in moved)
            )
        )
        assert (await client.perform(list_reassignments())).topics == ()
        assert all(ended[number].leader_id in moved[number] for number in moved)
        await client.perform(elect(TOPIC, *range(PARTITIONS)))
        preferred = await client.partitions()
        assert all(entry.leader_id == entry.replica_nodes[0] for entry in preferred.values())
        await client.perform(delete_topic(TOPIC))
        await client.until(lambda partitions: not partitions)
        # As under Kafka's controller, a replica that a reassignment took from a broker stays if the
        # controller ends after it has written the result and before StopReplica has gone out.
        strays = {(old, number) for number in moved for old in {*LISTS[number]} - {*moved[number]}}
        await until_async(lambda: logs(replicas) <= strays, STEP_S)
