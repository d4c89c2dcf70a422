"""The reference controller with topics: one election, one queue, each znode read once."""

from collections import Counter
from itertools import count

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.machines.controller.topics import OperationsSettings
from featurewatch.reference.machines.dialect import RELEASED
from featurewatch.reference.machines.encoding import BrokerIdentity, broker_path, encode_broker
from featurewatch.reference.machines.topics.broker_requests import UpdateMetadataRequest
from featurewatch.reference.machines.topics.requests import (
    NOT_CONTROLLER,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    ReassignRequest,
    RunningReassignments,
)
from featurewatch.reference.machines.topics.znodes import TopicZnode, encode_topic, topic_path
from featurewatch.reference.machines.zookeeper import Create, Delete, GetData, SetData
from tests.simulation.reference.node import Process
from tests.simulation.reference.session import Session
from tests.simulation.reference.tree import History

P0 = TopicPartition("t", 0)


class Rig:
    """One controller on node 101, and registered brokers that respond to nothing."""

    def __init__(self, balance_interval_ms: int | None = None) -> None:
        self.history = History()
        self.responses: dict[int, object] = {}
        self.now_ms = 0
        self.reads: Counter[str] = Counter()
        self._numbers = count(1)
        for broker_id in (1, 2, 3):
            self.register(broker_id, 9000 + broker_id)
        replicas = {0: ReplicaAssignment((1, 2))}
        data = encode_topic(TopicZnode(replicas, "id-t"), 3)
        self.history.write(0, Create(topic_path("t"), data))
        settings = OperationsSettings(
            lambda: "id", frozenset({101, 102}), balance_interval_ms=balance_interval_ms
        )
        self.process = Process(101, RELEASED, {}, self.responses.__setitem__, settings)
        self.process.begin(Session(77, self.history))
        self.settle()

    def register(self, broker_id: int, port: int) -> None:
        """Writes a broker's znode; another port moves the broker."""
        identity = BrokerIdentity(broker_id, {"PLAINTEXT": ("host", port, "PLAINTEXT")})
        data, path = encode_broker(RELEASED, identity, {}, 5), broker_path(broker_id)
        is_new = path not in self.history.tree
        self.history.write(
            broker_id, Create(path, data, ephemeral=True) if is_new else SetData(path, data, -1)
        )

    def settle(self) -> None:
        """Runs until nothing is in flight."""
        session = self.process.session
        assert session is not None
        while session.incoming or session.in_flight or session.lag or self.process.requests:
            if session.lag:
                session.advance(session.lag)
            elif session.incoming:
                self.process.receive(self.now_ms)
            elif session.in_flight:
                operation = session.in_flight[0][1].operation
                if isinstance(operation, GetData):
                    self.reads[operation.path] += 1
                session.serve()
            else:
                self.process.serve(self.now_ms)

    def request(self, request: object) -> object:
        """The response to a request."""
        number = next(self._numbers)
        self.process.requests.append((number, request))
        self.settle()
        return self.responses[number]

    def updates(self, broker_id: int) -> list[UpdateMetadataRequest]:
        """The UpdateMetadata requests that wait for a broker."""
        queue = self.process.channels.queues[broker_id]
        return [request for request in queue if isinstance(request, UpdateMetadataRequest)]


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
