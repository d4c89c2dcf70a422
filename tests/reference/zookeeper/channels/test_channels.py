"""Channels to brokers: order, repetition, and brokers that misbehave, on real sockets."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.channels.channel import ChannelSettings
from featurewatch.reference.zookeeper.channels.channels import BrokerChannels
from featurewatch.reference.zookeeper.machines.encoding import Endpoint
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
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
from featurewatch.reference.zookeeper.machines.topics.context import ClusterBroker
from tests.processes import free_port
from tests.reference.zookeeper.channels.faulty_broker import (
    VERSIONS,
    Fault,
    FaultyBroker,
    babbles,
    boasts,
    closes,
    closes_in_the_middle,
    confuses,
    is_late,
    is_silent,
    miscounts,
    partitions_of,
)
from tests.waiting import until_async

EPOCH = 40
IDS = {"t": "A" * 21 + "Q"}
LOGGER = "featurewatch.reference.zookeeper"
SETTINGS = ChannelSettings(
    timeout_s=10.0, connect_timeout_s=10.0, first_backoff_s=0.01, max_backoff_s=0.05, max_states=100
)
IMPATIENT = replace(SETTINGS, timeout_s=1.0)
"""For brokers that do not respond; a machine under load may take a moment for the others."""


class Controller:
    """A controller's event loop that only collects."""

    def __init__(self, settings: ChannelSettings = SETTINGS) -> None:
        self.events: list[BrokerResponded] = []
        self.channels = BrokerChannels("controller 100", self.events.append, settings=settings)

    def live(self, *endpoints: Endpoint | None, epoch: int = EPOCH) -> None:
        """Sets the live brokers, 1 and so on."""
        brokers = {
            broker_id: ClusterBroker(epoch, endpoint)
            for broker_id, endpoint in enumerate(endpoints, 1)
        }
        self.channels.set_live(brokers)

    async def responses(self, count: int) -> list[BrokerResponded]:
        """Waits for this many events."""
        await until_async(lambda: len(self.events) >= count)
        return self.events


@pytest.fixture
async def controller() -> AsyncIterator[Controller]:
    """A controller whose channels are closed at the end, after which no task is left."""
    before = asyncio.all_tasks()
    one = Controller()
    yield one
    await one.channels.close()
    assert {task for task in asyncio.all_tasks() - before if "Broker" in repr(task)} == set()


@pytest.fixture
def broker() -> FaultyBroker:
    """A broker that responds to everything."""
    return FaultyBroker()


def leader_and_isr(number: int, epoch: int = EPOCH) -> LeaderAndIsrRequest:
    """A request for one partition."""
    state = LeaderAndIsrState(
        TopicPartition("t", number),
        3,
        1,
        0,
        (1, 2),
        0,
        (1, 2),
        (),
        (),
        is_new=True,
        recovering=False,
    )
    return LeaderAndIsrRequest(100, 3, epoch, (state,), (1,), IDS, {1: Endpoint("h", 1)})


def stop(*numbers: int, deletes: bool = True) -> StopReplicaRequest:
    """A request that stops partitions."""
    states = tuple(StopReplicaState(TopicPartition("t", number), 5, deletes) for number in numbers)
    return StopReplicaRequest(100, 3, EPOCH, states)


UPDATE = UpdateMetadataRequest(100, 3, EPOCH, (), (1,), {}, {1: Endpoint("h", 1)})


async def test_requests_go_out_in_order_and_one_at_a_time(
    controller: Controller, broker: FaultyBroker
) -> None:
    """The next request leaves when the broker has responded to the one before."""
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        requests: list[BrokerRequest] = [leader_and_isr(0), UPDATE, stop(0)]
        requests += map(leader_and_isr, range(1, 40))
        for request in requests:
            controller.channels.send(1, request)
        events = await controller.responses(len(requests))
        assert [event.request for event in events] == requests
        assert [event.response for event in events[:3]] == [
            LeaderAndIsrResponse(0, {TopicPartition("t", 0): 0}),
            UpdateMetadataResponse(),
            StopReplicaResponse(0, {TopicPartition("t", 0): 0}),
        ]
        assert {(event.broker_id, event.broker_epoch) for event in events} == {(1, EPOCH)}
        assert (len(broker.requests), broker.most_in_progress) == (len(requests), 1)
        assert (broker.connections, broker.clients) == (1, {"controller 100"})
        assert {request.broker_epoch for request in broker.requests} == {EPOCH}
        assert controller.channels.queued_states(1) == 0


async def test_a_broker_whose_port_opens_late_gets_everything(
    controller: Controller, broker: FaultyBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """A broker's znode is there before it listens, so requests are repeated until it does."""
    port = free_port()
    controller.live(Endpoint("127.0.0.1", port))
    controller.channels.send(1, UPDATE)
    controller.channels.send(1, leader_and_isr(7))
    with caplog.at_level(logging.WARNING, LOGGER):  # after several attempts
        await until_async(lambda: "UpdateMetadata did not reach broker 1" in caplog.text)
    assert controller.events == []
    async with broker.listening(port):
        events = await controller.responses(2)
    assert [event.request for event in events] == [UPDATE, leader_and_isr(7)]
    assert len(broker.requests) == 2


@pytest.mark.parametrize(
    "fault",
    [closes, closes_in_the_middle, confuses, babbles, boasts, miscounts, is_late, is_silent],
)
async def test_a_request_is_repeated_after_a_fault(
    controller: Controller, broker: FaultyBroker, fault: Fault
) -> None:
    """Whatever a broker does to a connection, the same request follows on another one."""
    controller.channels = BrokerChannels("hasty", controller.events.append, settings=IMPATIENT)
    broker.faults.extend([fault, fault])
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        controller.channels.send(1, leader_and_isr(0))
        controller.channels.send(1, stop(0))
        events = await controller.responses(2)
        assert [event.request for event in events] == [leader_and_isr(0), stop(0)]
        assert events[0].response == LeaderAndIsrResponse(0, {TopicPartition("t", 0): 0})
        assert (len(broker.requests), broker.connections) == (4, 3)
        assert broker.requests[0] == broker.requests[1] == broker.requests[2]


async def test_a_broker_that_left_gets_nothing_more(
    controller: Controller, broker: FaultyBroker
) -> None:
    """Neither what is queued nor what is in flight is sent again; no event follows."""
    broker.permitted.clear()
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        for number in range(5):
            controller.channels.send(1, leader_and_isr(number))
        await until_async(lambda: bool(broker.requests))
        controller.live()
        controller.channels.send(1, leader_and_isr(9))
        await controller.channels.close()
        broker.permitted.set()
        assert controller.channels.queued_states(1) == 0
        assert (len(broker.requests), controller.events) == (1, [])


async def test_a_broker_that_bounced_is_another_one(
    controller: Controller, broker: FaultyBroker
) -> None:
    """Requests that were queued for the previous epoch are dropped, and so are late ones of it."""
    broker.permitted.clear()
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        controller.channels.send(1, leader_and_isr(0))
        controller.channels.send(1, leader_and_isr(1))
        await until_async(lambda: bool(broker.requests))
        controller.live(endpoint, epoch=EPOCH + 1)
        controller.channels.send(1, leader_and_isr(2))
        controller.channels.send(1, leader_and_isr(3, EPOCH + 1))
        broker.permitted.set()
        (event,) = await controller.responses(1)
        assert (event.broker_epoch, event.request) == (EPOCH + 1, leader_and_isr(3, EPOCH + 1))
        assert [request.broker_epoch for request in broker.requests] == [EPOCH, EPOCH + 1]


async def test_requests_follow_a_broker_to_another_address(
    controller: Controller, broker: FaultyBroker
) -> None:
    """The znode of a session may be written again; the queue stays."""
    silent = FaultyBroker()
    silent.permitted.clear()
    async with silent.listening() as before, broker.listening() as after:
        controller.live(before)
        controller.channels.send(1, leader_and_isr(0))
        controller.channels.send(1, leader_and_isr(1))
        await until_async(lambda: bool(silent.requests))
        controller.live(after)
        events = await controller.responses(2)
        assert [event.request for event in events] == [leader_and_isr(0), leader_and_isr(1)]
        assert len(broker.requests) == 2


async def test_a_broker_without_an_address_waits_for_one(
    controller: Controller, broker: FaultyBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """A znode without a plaintext address is named once; the requests stay queued."""
    controller.live(None)
    for _ in range(5):
        controller.channels.send(1, UPDATE)
        await until_async(lambda: "UpdateMetadata to broker 1 waits" in caplog.text)
    assert len(caplog.records) == 1
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        events = await controller.responses(5)
        assert {id(event.request) for event in events} == {id(UPDATE)}


async def test_a_silent_broker_delays_no_other(
    controller: Controller, broker: FaultyBroker
) -> None:
    """Each broker has its own channel."""
    silent = FaultyBroker()
    silent.permitted.clear()
    async with silent.listening() as first, broker.listening() as second:
        controller.live(first, second)
        for broker_id in (1, 2):
            for number in range(10):
                controller.channels.send(broker_id, leader_and_isr(number))
        events = await controller.responses(10)
        assert {event.broker_id for event in events} == {2}


@pytest.mark.parametrize("newest", [0, 1, 3, 4, 5, 7, 30])
async def test_the_newest_common_version_is_used(controller: Controller, newest: int) -> None:
    """ApiVersions of the broker decides, and an older version leaves out what it has not."""
    broker = FaultyBroker(dict.fromkeys(VERSIONS, (0, newest)))
    broker.partition_error = 56
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        partitions = [TopicPartition("t", number) for number in (1, 2)]
        mixed = replace(stop(1), states=(*stop(1).states, *stop(2, deletes=False).states))
        for request in (leader_and_isr(1), mixed, UPDATE):
            controller.channels.send(1, request)
        events = await controller.responses(3)
        assert events[0].response == LeaderAndIsrResponse(0, {partitions[0]: 56})
        assert events[1].response == StopReplicaResponse(0, dict.fromkeys(partitions, 56))
    versions: dict[int, set[int]] = {}
    for request in broker.requests:
        versions.setdefault(request.__api_key__, set()).add(request.__version__)
    assert versions == {key: {min(newest, high)} for key, (_, high) in VERSIONS.items()}
    # Before version 3, StopReplica deletes all or none.
    assert len(broker.requests) == (4 if newest < 3 else 3)


async def test_a_broker_without_a_common_version_is_named(
    controller: Controller, caplog: pytest.LogCaptureFixture
) -> None:
    """It is no broker in ZooKeeper mode; the request waits until it is, or leaves."""
    broker = FaultyBroker({5: (0, 4), 6: (6, 99)})
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        with caplog.at_level(logging.INFO, LOGGER):
            controller.channels.send(1, leader_and_isr(0))
            await until_async(lambda: broker.connections > 5)
        assert broker.requests == []
        warning = next(
            line for line in caplog.messages if "is it a broker in ZooKeeper mode" in line
        )
        assert "broker 1" in warning
        assert "LeaderAndIsr of versions 0 to 7" in warning
        assert len(caplog.messages) <= 2  # one line at first, one when it lasts
        broker.versions[4] = (0, 2)
        (event,) = await controller.responses(1)
        assert event.request == leader_and_isr(0)


async def test_a_request_that_cannot_be_written_is_answered(
    controller: Controller, broker: FaultyBroker, caplog: pytest.LogCaptureFixture
) -> None:
    """An impossible value is one error line and an event; the next request goes out."""
    impossible = replace(leader_and_isr(0), controller_epoch=1 << 40)
    async with broker.listening() as endpoint:
        controller.live(endpoint)
        controller.channels.send(1, impossible)
        controller.channels.send(1, UPDATE)
        events = await controller.responses(2)
    assert [event.response for event in events] == [
        LeaderAndIsrResponse(-1),
        UpdateMetadataResponse(0),
    ]
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert "LeaderAndIsr to broker 1 cannot be written" in caplog.text


async def test_the_queue_of_a_dead_broker_is_bounded(broker: FaultyBroker) -> None:
    """Changes without end while a broker does not listen cost what its partitions cost."""
    controller, port = Controller(), free_port()
    controller.live(Endpoint("127.0.0.1", port))
    most = 0
    for turn in range(5_000):
        request: Any = leader_and_isr(turn % 50) if turn % 3 else stop(turn % 50)
        controller.channels.send(1, request)
        controller.channels.send(1, UPDATE)
        most = max(most, controller.channels.queued_states(1))
    assert most <= 2 * (50 + 50 + 1) + 1
    async with broker.listening(port):
        await until_async(lambda: controller.channels.queued_states(1) == 0)
        await controller.channels.close()
    assert len(broker.requests) < 300
    assert {number for request in broker.requests for _, number in partitions_of(request)} == {
        *range(50)
    }


async def test_a_deposed_controller_sends_nothing(
    controller: Controller, broker: FaultyBroker
) -> None:
    """No live brokers: every channel ends, and may be opened again later."""
    async with broker.listening() as endpoint:
        controller.live(endpoint, endpoint, endpoint)
        controller.channels.set_live({})
        for broker_id in (1, 2, 3):
            controller.channels.send(broker_id, UPDATE)
        controller.live(endpoint)
        controller.channels.send(1, leader_and_isr(5))
        (event,) = await controller.responses(1)
        assert (event.request, len(broker.requests)) == (leader_and_isr(5), 1)


async def test_closing_ends_at_any_moment(broker: FaultyBroker) -> None:
    """A channel that is ended while it connects, waits or disconnects leaves nothing behind."""
    async with broker.listening() as endpoint, asyncio.timeout(30):
        for turns in range(150):
            broker.faults.extend([closes, babbles, closes_in_the_middle])
            controller = Controller(replace(SETTINGS, first_backoff_s=0.0))
            controller.live(endpoint)
            controller.channels.send(1, leader_and_isr(0))
            for _ in range(turns):
                await asyncio.sleep(0)
            await controller.channels.close()
