"""The reference controller with topics: one election, one queue, each znode read once."""

import pytest

from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import broker_path
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    ReassignRequest,
    RunningReassignments,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Delete, SetData
from featurewatch.streams.types import SupportedRange
from tests.reference.zookeeper.machines.controller_rig import P0, Rig
from tests.simulation.reference.node import Process
from tests.simulation.reference.session import Session


def test_a_broker_is_read_once_for_features_and_topics() -> None:
    """And both follow it: the live set, and the brokers that may lead."""
    rig = Rig()
    assert [rig.reads[broker_path(broker_id)] for broker_id in (1, 2, 3)] == [1, 1, 1]
    assert sorted(rig.process.controller.accepted) == [1, 2, 3, 101]
    context = rig.process.controller.partitions
    assert context is not None
    assert context.live_brokers == [1, 2, 3]
    assert context.leaderships[P0].leader == 1
    assert sorted(rig.process.channels.queues) == [1, 2, 3]
    assert rig.updates(3)[-1].brokers == (1, 2, 3, 101)
    rig.history.write(0, Delete(broker_path(1)))
    rig.settle()
    assert context.leaderships[P0].leader == 2
    assert sorted(rig.process.controller.accepted) == [2, 3, 101]


@pytest.mark.form("released")
def test_an_incompatible_broker_is_sent_nothing() -> None:
    """Neither levels nor partitions: it is no broker of the operations, and gets no replica's
    request, nor UpdateMetadata (F-68 as released)."""
    rig = Rig(supported={"alpha": SupportedRange(1, 3)})
    context = rig.process.controller.partitions
    assert context is not None
    assert context.live_brokers == [1, 2, 3]
    rig.history.write(0, Delete(broker_path(2)))
    rig.settle()
    rig.register(2, 9002, {"alpha": SupportedRange(1, 2)})
    rig.settle()
    assert sorted(rig.process.controller.accepted) == [1, 3, 101]
    assert context.live_brokers == [1, 3]
    assert 2 not in rig.process.channels.queues
    assert rig.updates(3)[-1].brokers == (1, 3, 101)
    rig.history.write(0, Delete(broker_path(2)))
    rig.register(2, 9002)
    rig.settle()
    assert rig.updates(2)


def test_all_learn_the_address_of_a_broker_that_moves() -> None:
    """Its partitions stay where they are."""
    rig = Rig()
    before = len(rig.updates(3))
    rig.register(2, 9999)
    rig.settle()
    (update,) = rig.updates(3)[before:]
    assert update.states == ()
    assert update.endpoints[2].port == 9999
    assert len(rig.process.channels.queues[2]) > 0


def test_a_deposed_controller_sends_nothing_and_serves_nobody() -> None:
    """It answers what is open and drops what waits; only what it sends once elected again goes."""
    rig = Rig()
    rig.history.write(0, SetData("/controller_epoch", b"9", -1))
    assert rig.request(ReassignRequest({P0: (2, 3)})) == NOT_CONTROLLER
    assert rig.process.controller.epoch == 10
    queues = rig.process.channels.queues.values()
    assert {request.controller_epoch for queue in queues for request in queue} == {10}


def test_a_standby_refuses_requests_about_topics() -> None:
    """So does a node that does not control topics."""
    rig = Rig()
    standby = Process(102, RELEASED, {}, rig.responses.__setitem__, None)
    standby.begin(Session(78, rig.history))
    rig.process, active = standby, rig.process
    rig.settle()
    rig.process.requests.append((500, ElectLeadersRequest()))
    rig.settle()
    assert rig.responses[500] == NOT_CONTROLLER
    rig.process = active
    running = rig.request(ListReassignmentsRequest())
    assert running == RunningReassignments({})


def test_leaders_are_balanced_when_it_is_time() -> None:
    """First five seconds after the election, then at each interval."""
    rig = Rig(balance_interval_ms=60_000)
    context = rig.process.controller.partitions
    assert context is not None
    rig.history.write(0, Delete(broker_path(1)))
    rig.settle()
    rig.register(1, 9001)
    rig.settle()
    assert context.leaderships[P0].leader == 2
    context.leaderships[P0] = context.leaderships[P0].__class__(
        2, (2, 1), context.leaderships[P0].leader_epoch, 1, context.leaderships[P0].partition_epoch
    )
    state = b'{"controller_epoch":1,"leader":2,"version":1,"leader_epoch":1,"isr":[2,1]}'
    rig.history.write(0, SetData("/brokers/topics/t/partitions/0/state", state, -1))
    rig.now_ms = 4_000
    rig.process.tick(rig.now_ms)
    rig.settle()
    assert context.leaderships[P0].leader == 2
    rig.now_ms = 6_000
    rig.process.tick(rig.now_ms)
    rig.settle()
    assert context.leaderships[P0].leader == 1
