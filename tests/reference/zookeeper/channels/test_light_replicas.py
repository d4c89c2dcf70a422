"""Light replicas on real sockets, between a controller's channels and its listener."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.encode import write_entity
from featurewatch.reference.zookeeper.channels.channels import BrokerChannels
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.requests import ErrorCode, FeaturesResponse
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerResponded,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaState,
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from featurewatch.reference.zookeeper.machines.topics.context import (
    ClusterBroker,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionResult,
    PartitionResult,
)
from featurewatch.reference.zookeeper.replica_host import ReplicaHost
from featurewatch.reference.zookeeper.wire import responses
from featurewatch.reference.zookeeper.wire.api_keys import (
    ALTER_PARTITION,
    API_VERSIONS,
    REPLICA_KEYS,
    ApiDialect,
)
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.messages.to_brokers import wire_requests
from featurewatch.reference.zookeeper.wire.messages.to_controller import (
    alter_partition_response,
    read_alter_partition,
)
from featurewatch.reference.zookeeper.wire.server import MAX_REQUEST_BYTES, WireServer
from tests.waiting import until_async

TOPIC_ID = "A" * 21 + "Q"
BROKERS = (11, 12, 13)
DIALECT = ApiDialect.CONTROLLER_AND_REPLICAS


class Node:
    """A listener of three light brokers that is also their controller's; it writes all ISRs."""

    def __init__(self) -> None:
        self.host = ReplicaHost(lambda: self.controller)
        self.controller: Endpoint | None = None
        self.error = ErrorCode.NONE
        self.written: dict[TopicPartition, tuple[int, ...]] = {}
        self.refused = 0
        self.server = WireServer(DIALECT, self._serve)
        self.events: list[BrokerResponded] = []
        self.channels = BrokerChannels("controller 1", self.events.append)

    async def start(self) -> None:
        """Opens the port and registers the brokers; nobody knows a controller yet."""
        await self.server.start()
        self.host.start()
        endpoint = Endpoint(self.server.host, self.server.port)
        self.channels.set_live(
            {broker_id: ClusterBroker(100 + broker_id, endpoint) for broker_id in BROKERS}
        )

    def register(self, *broker_ids: int) -> None:
        """The results of registrations arrive."""
        for broker_id in broker_ids:
            self.host.brokers.start(broker_id, 100 + broker_id)

    async def close(self) -> None:
        """Ends all tasks."""
        await self.channels.close()
        await self.host.close()
        await self.server.close()

    async def _serve(self, request: WireRequest) -> Any:
        if request.key == API_VERSIONS:
            return responses.api_versions(request, DIALECT, FeaturesResponse({}, {}, -1))
        if request.key in REPLICA_KEYS:
            return self.host.serve(request)
        assert request.key == ALTER_PARTITION
        received = read_alter_partition(request.body, request.version, {TOPIC_ID: "t"}.get)
        results: dict[TopicPartition, PartitionLeadership | PartitionResult] = {}
        for partition, wanted in received.request.partitions.items():
            if self.error is not ErrorCode.NONE:
                self.refused += 1
                results[partition] = PartitionResult(self.error)
                continue
            self.written[partition] = wanted.isr
            results[partition] = PartitionLeadership(
                received.request.broker_id,
                wanted.isr,
                wanted.leader_epoch,
                partition_epoch=wanted.partition_epoch + 1,
            )
        return alter_partition_response(received, AlterPartitionResult(partitions=results))


@asynccontextmanager
async def running_node() -> AsyncIterator[Node]:
    """A node until the end of the block."""
    node = Node()
    await node.start()
    try:
        yield node
    finally:
        await node.close()


def partition(number: int) -> TopicPartition:
    """A partition of the topic."""
    return TopicPartition("t", number)


def leader_and_isr(broker_id: int, count: int = 1) -> LeaderAndIsrRequest:
    """All partitions are led by the first broker, and all brokers are in sync."""
    states = tuple(
        LeaderAndIsrState(
            partition(number), 1, 11, 0, BROKERS, 0, BROKERS, (), (), is_new=True, recovering=False
        )
        for number in range(count)
    )
    return LeaderAndIsrRequest(1, 1, 100 + broker_id, states, (11,), {"t": TOPIC_ID})


async def test_brokers_of_one_listener_are_distinguished_by_their_epochs() -> None:
    """A request for a broker whose registration is not known yet is sent again until it is."""
    async with running_node() as node:
        node.register(11, 12)
        for broker_id in BROKERS:
            node.channels.send(broker_id, leader_and_isr(broker_id))
            metadata = UpdateMetadataRequest(1, 1, 100 + broker_id, (), BROKERS)
            node.channels.send(broker_id, metadata)
        await until_async(lambda: len(node.events) == 4)
        assert {event.broker_id for event in node.events} == {11, 12}
        node.register(13)
        await until_async(lambda: len(node.events) == 6)
        for event in node.events:
            is_states = isinstance(event.request, LeaderAndIsrRequest)
            led = LeaderAndIsrResponse(0, {partition(0): 0})
            assert event.response == (led if is_states else UpdateMetadataResponse())
        stops = (StopReplicaState(partition(0), 0, deletes=True),)
        node.channels.send(13, StopReplicaRequest(1, 1, 113, stops))
        await until_async(lambda: len(node.events) == 7)
        assert node.events[-1].response == StopReplicaResponse(0, {partition(0): 0})
        assert node.host.brokers.brokers[13].replicas == {}


async def test_leaders_request_isrs_of_the_controller_that_there_is() -> None:
    """They wait for one, try again where it refuses, and find the next one at another address."""
    async with running_node() as node, running_node() as other:
        node.register(*BROKERS)
        for broker_id in BROKERS:
            node.channels.send(broker_id, leader_and_isr(broker_id))
        await until_async(lambda: len(node.events) == 3)
        node.host.brokers.fall_behind(13)
        node.controller = Endpoint("127.0.0.1", node.server.port)
        await until_async(lambda: node.written == {partition(0): (11, 12)})
        node.error = ErrorCode.INELIGIBLE_REPLICA
        node.host.brokers.catch_up(13)
        await until_async(lambda: node.refused > 1)
        node.controller = Endpoint("127.0.0.1", other.server.port)
        await until_async(lambda: other.written == {partition(0): BROKERS})


async def test_thousands_of_partitions_in_one_request() -> None:
    """A controller announces all partitions of a broker at once, in more than a megabyte."""
    count = 21_000
    request = leader_and_isr(11, count)
    (message,) = wire_requests(request, 7)
    assert len(write_entity(message)) > MAX_REQUEST_BYTES
    async with running_node() as node:
        node.register(*BROKERS)
        node.channels.send(11, request)
        await until_async(lambda: len(node.events) == 1, 120.0)
        (event,) = node.events
        assert isinstance(event.response, LeaderAndIsrResponse)
        assert len(event.response.errors) == count
