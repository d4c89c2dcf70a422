"""Controllers, brokers and clients over a faulty ZooKeeper, driven by a seed.

The controllers are `ReferenceController` machines; a process may die between any two effects of
one step. The brokers are `LightReplicas`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import Any

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import (
    BrokerIdentity,
    broker_path,
    encode_broker,
)
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas, LogKey
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponded,
    BrokerResponse,
)
from featurewatch.reference.zookeeper.machines.topics.context import (
    ControllerContext,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.requests import (
    ControlledShutdownRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    NewTopic,
    ReassignRequest,
)
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    PartitionResult,
    RequestedIsr,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    ReassignmentEntry,
    TopicZnode,
    decode_topic,
    encode_reassignments,
    encode_topic,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Create, Delete
from tests.simulation.reference.document_auditor import DocumentAuditor
from tests.simulation.reference.node import MACHINES, Process
from tests.simulation.reference.session import Session
from tests.simulation.reference.topic_auditor import Acknowledged, TopicAuditor
from tests.simulation.reference.tree import History

CONTROLLERS = (101, 102)
BROKERS = (1, 2, 3, 4)
TOPICS = ("a", "b", "c")
AUDITORS: Mapping[str, type[TopicAuditor]] = {
    "released": TopicAuditor,
    "document": DocumentAuditor,
}
MAX_REST_STEPS = 40_000
STEPS = 600
_REFUSED = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST)


@dataclass
class BrokerSession:
    """A broker's registration; a dead broker's lasts until it expires."""

    session: int
    broker: LightReplicas | None


class TopicWorld:
    """One cluster; see `play`."""

    def __init__(self, seed: int, dialect: OperationsDialect = RELEASED_OPERATIONS) -> None:
        self.random = Random(seed)
        self.dialect = dialect
        self.history = History()
        self.auditor = AUDITORS[dialect.name](self.history, self._memory_of)
        self.now_ms = 1_000_000
        self.fault_rate = self.random.choice((0.003, 0.01, 0.03))
        self._numbers = count(1)
        self._values = count(1)
        self._sessions = count(1)
        self._ids = count(1)
        self._orphans: list[Session] = []
        self._late: list[tuple[int, BrokerRequest]] = []
        """Requests of controllers that have ended, still on their way to brokers."""
        self._replies: dict[int, tuple[Process, Callable[[Any], None], tuple[Any, ...]]] = {}
        self._logs: dict[int, dict[LogKey, list[int]]] = {broker_id: {} for broker_id in BROKERS}
        self.registered: dict[int, BrokerSession] = {}
        self.controllers: dict[int, Process | None] = {}
        for broker_id in BROKERS:
            self._start_broker(broker_id)
        for node_id in CONTROLLERS:
            self._start_controller(node_id)

    # -- processes ---------------------------------------------------------------------------------

    def _start_controller(self, node_id: int) -> None:
        settings = OperationsSettings(
            lambda: f"id-{next(self._ids)}", frozenset(CONTROLLERS), self.dialect
        )
        process = Process(node_id, RELEASED, {}, self._on_response, settings)
        process.on_sent = lambda broker_id, request: self.auditor.on_sent(
            process.epoch, broker_id, request
        )
        self.controllers[node_id] = process
        process.begin(Session(next(self._sessions), self.history))

    def _start_broker(self, broker_id: int) -> None:
        session = next(self._sessions)
        data = encode_broker(RELEASED, BrokerIdentity(broker_id), {}, 5)
        self.history.write(session, Create(broker_path(broker_id), data, ephemeral=True))
        epoch = self.history.tree[broker_path(broker_id)].stat.czxid
        broker = LightReplicas(
            broker_id,
            epoch,
            self._logs[broker_id],
            fences_fetches=self.dialect.fences_fetches,
        )
        self.registered[broker_id] = BrokerSession(session, broker)

    @property
    def live(self) -> dict[int, LightReplicas]:
        """The brokers that run."""
        return {
            broker_id: entry.broker
            for broker_id, entry in self.registered.items()
            if entry.broker is not None
        }

    @property
    def processes(self) -> list[Process]:
        """The controllers that run."""
        return [process for process in self.controllers.values() if process is not None]

    def _memory_of(self, controller_epoch: int) -> ControllerContext | None:
        found = (process for process in self.processes if process.epoch == controller_epoch)
        return next((process.memory for process in found), None)

    def _bury(self, process: Process) -> None:
        """A dead process's session expires later; nobody gets its responses."""
        self.controllers[process.node_id] = None
        self._keep_late(process)
        if process.session is not None and not process.session.expired:
            self._orphans.append(process.session)
        self._replies = {
            number: entry for number, entry in self._replies.items() if entry[0] is not process
        }

    def _keep_late(self, process: Process) -> None:
        """Requests in flight arrive although their controller is dead or deposed by then."""
        queues = process.channels.queues.items()
        self._late += [(broker_id, queue[0]) for broker_id, queue in queues if queue]

    # -- requests ----------------------------------------------------------------------------------

    def _request(
        self, request: Any, reply: Callable[[Any], None], subject: tuple[Any, ...] = ()
    ) -> None:
        """Sends a request to the controller, as far as anyone knows who that is.

        Until the response comes or the controller's process dies, ``subject`` is noted.
        """
        node = self.history.tree.get("/controller")
        owner = 0 if node is None else node.stat.owner
        processes = [process for process in self.processes if process.session_id == owner]
        if not processes or self.random.random() < 0.05:
            processes = self.processes
        if processes:
            process, number = self.random.choice(processes), next(self._numbers)
            self._replies[number] = (process, reply, subject)
            process.requests.append((number, request))

    def _on_response(self, number: int, response: Any) -> None:
        if number in self._replies:
            self._replies.pop(number)[1](response)

    # -- what can happen ---------------------------------------------------------------------------

    def play(self, steps: int) -> None:
        """Runs some steps, then ends all faults and checks everything."""
        for _ in range(steps):
            self._step()
        self._rest()

    def _step(self) -> None:
        self.now_ms += self.random.randint(0, 30)
        chance = self.random.random()
        if chance < self.fault_rate:
            self._fault()
        elif chance < self.fault_rate + 0.04:
            self._client()
        elif chance < 0.35:
            self._broker(self.random.choice([*self.live.values()] or [None]))
        else:
            self._work(self.random.choice(self.processes or [None]))
        if self._late and self.random.random() < 0.02:
            self._deliver_late(self.random.randrange(len(self._late)))
        if self._orphans and self.random.random() < 0.05:
            self._orphans.pop(0).expire()
        self._revive()
        self.auditor.check()

    def _revive(self) -> None:
        for node_id in CONTROLLERS:
            is_gone = broker_path(node_id) not in self.history.tree
            if self.controllers[node_id] is None and is_gone and self.random.random() < 0.1:
                self._start_controller(node_id)
        for broker_id, entry in self.registered.items():
            if entry.broker is None and self.random.random() < 0.02:
                self.history.close(entry.session)
                if self.random.random() < 0.5:
                    self._start_broker(broker_id)

    def _fault(self) -> None:
        chance = self.random.random()
        process = self.random.choice(self.processes) if self.processes else None
        if chance < 0.3 and self.live:
            self.registered[self.random.choice([*self.live])].broker = None
        elif chance < 0.4 and self.live:
            self._bounce(self.random.choice([*self.live]))
        elif process is None:
            return
        elif chance < 0.6:
            process.crash_after = self.random.randint(1, 12)
        elif chance < 0.65:
            self.history.write(0, Delete("/controller"))
        elif process.session is not None and process.session.connected:
            if chance < 0.85:
                process.session.disconnect(self.random, MACHINES)
            else:
                process.session.expire()

    def _bounce(self, broker_id: int) -> None:
        self.history.close(self.registered[broker_id].session)
        self._start_broker(broker_id)

    def _work(self, process: Process | None) -> None:
        """Lets one thing happen to a controller."""
        if process is None:
            return
        ready = self._ready(process)
        if ready:
            self.random.choice(ready)()
        if process.has_crashed:
            self._bury(process)

    def _ready(self, process: Process) -> list[Callable[[], None]]:
        session, live, ready = process.session, self.live, []
        if process.requests:
            ready.append(lambda: process.serve(self.now_ms))
        for broker_id, queue in process.channels.queues.items():
            if queue and broker_id in live:
                ready.append(partial(self._deliver, process, broker_id))
        if session is None or (not session.incoming and not session.connected):
            ready.append(lambda: self._reconnect(process))
        elif session.incoming:
            ready += [lambda: process.receive(self.now_ms)] * 3
        if session is not None and session.connected:
            if session.in_flight:
                ready += [session.serve] * 3
            if session.lag:
                ready.append(lambda: session.advance(self.random.randint(1, 3)))
        return ready

    def _deliver(self, process: Process, broker_id: int) -> None:
        """A broker receives the next request of its channel; the response may be lost."""
        queue, broker = process.channels.queues[broker_id], self.live[broker_id]
        request = queue[0]
        response = self._give(broker, request)
        if self.random.random() < 0.05:
            return  # the connection broke, and the request is sent again
        queue.popleft()
        event = BrokerResponded(broker_id, broker.epoch, request, response)
        process.on_broker_responded(event, self.now_ms)

    def _deliver_late(self, index: int) -> None:
        """A request arrives whose controller has ended; nobody waits for the response."""
        broker_id, request = self._late.pop(index)
        if broker_id in self.live:
            self._give(self.live[broker_id], request)

    def _give(self, broker: LightReplicas, request: BrokerRequest) -> BrokerResponse:
        before = broker.controller_epoch
        response = broker.receive(request)
        if not response.error:
            self.auditor.check()
            self.auditor.on_accepted(broker, request, before)
        return response

    def _reconnect(self, process: Process) -> None:
        session = process.session
        if session is None or session.expired:
            self._keep_late(process)
            process.on_session_lost(self.now_ms)
            process.begin(Session(next(self._sessions), self.history))
        else:
            session.reconnect(MACHINES)

    # -- brokers -----------------------------------------------------------------------------------

    def _broker(self, broker: LightReplicas | None) -> None:
        if broker is None:
            return
        for partition in self.random.sample([*broker.replicas], min(3, len(broker.replicas))):
            self._replicate(broker, partition)

    def _replicate(self, broker: LightReplicas, partition: TopicPartition) -> None:
        """A follower fetches; a leader writes, acknowledges and changes its ISR."""
        replica = broker.replicas[partition]
        if replica.state.leader != broker.broker_id:
            broker.fetch(partition, self.live.get(replica.state.leader))
            return
        if self.random.random() < 0.5:
            broker.write(partition, next(self._values))
        self._acknowledge(broker, partition)
        if self.random.random() < 0.3:
            self._request_isr(broker, partition)

    def _acknowledge(self, broker: LightReplicas, partition: TopicPartition) -> None:
        replica = broker.replicas[partition]
        epoch = replica.state.leader_epoch
        self.auditor.acknowledged[replica.log_key] += [
            Acknowledged(value, epoch) for value in broker.acknowledged(partition)
        ]

    def _request_isr(self, broker: LightReplicas, partition: TopicPartition) -> bool:
        asked = (broker.broker_id, broker.epoch, partition)
        if any(asked == entry[2] for entry in self._replies.values()):
            return True  # as in Kafka, one request at a time
        wanted = broker.wanted_isr(partition, {*self.live})
        if wanted is None:
            return False

        def on_response(response: Any) -> None:
            if isinstance(response, AlterPartitionResult):
                self._on_isr(broker, partition, wanted, response.partitions.get(partition))

        request = AlterPartitionRequest(broker.broker_id, broker.epoch, {partition: wanted})
        self._request(request, on_response, asked)
        return True

    def _on_isr(
        self,
        broker: LightReplicas,
        partition: TopicPartition,
        wanted: RequestedIsr,
        result: PartitionLeadership | PartitionResult | None,
    ) -> None:
        if self.live.get(broker.broker_id) is not broker:
            return
        if isinstance(result, PartitionLeadership):
            broker.on_isr_written(partition, result)
        elif result is not None and result.error in _REFUSED:
            broker.on_isr_refused(partition, wanted)

    # -- clients -----------------------------------------------------------------------------------

    def _client(self) -> None:
        topic, chance = self.random.choice(TOPICS), self.random.random()
        partitions = self._partitions(topic)
        if not partitions:
            self._create(topic)
        elif chance < 0.35:
            partition = self.random.choice(partitions)
            target = tuple(self.random.sample(BROKERS, self.random.randint(1, 3)))
            self._reassign(partition, target)
        elif chance < 0.5:
            self._request(ElectLeadersRequest(), _ignore)
        elif chance < 0.6:
            self._request(DeleteTopicsRequest((topic,)), _ignore)
        elif chance < 0.75 and self.live:
            broker = self.random.choice([*self.live.values()])
            self._request(ControlledShutdownRequest(broker.broker_id, broker.epoch), _ignore)
            self.registered[broker.broker_id].broker = None

    def _partitions(self, topic: str) -> list[TopicPartition]:
        node = self.history.tree.get(topic_path(topic))
        numbers = () if node is None else decode_topic(node.data).assignments
        return [TopicPartition(topic, number) for number in numbers]

    def _create(self, topic: str) -> None:
        """By the controller, or by a znode as a broker does it."""
        if self.random.random() < 0.5:
            self._request(CreateTopicsRequest((NewTopic(topic, 2, 2),)), _ignore)
            return
        nodes = (*BROKERS, CONTROLLERS[0])
        assignments = {
            number: ReplicaAssignment(tuple(self.random.sample(nodes, 3))) for number in range(2)
        }
        znode = TopicZnode(assignments, f"id-{next(self._ids)}")
        data = encode_topic(znode, self.dialect.assignment_schema)
        self.history.write(0, Create(topic_path(topic), data))

    def _reassign(self, partition: TopicPartition, target: tuple[int, ...]) -> None:
        """By a request or by the znode, one at a time.

        A reassignment that replaces another may lose the last copy, by Kafka's own rules.
        """
        node = self.history.tree[topic_path(partition.topic)]
        is_running = decode_topic(node.data).assignments[partition.number].is_being_reassigned
        is_requested = "/admin/reassign_partitions" in self.history.tree
        is_asked = any((partition,) == subject for _, _, subject in self._replies.values())
        if is_running or is_requested or is_asked:
            return
        if self.random.random() < 0.7:
            self._request(ReassignRequest({partition: target}), _ignore, (partition,))
        else:
            data = encode_reassignments([ReassignmentEntry(partition, target)])
            self.history.write(0, Create("/admin/reassign_partitions", data))

    # -- rest --------------------------------------------------------------------------------------

    def _rest(self) -> None:
        """Ends all faults: sessions expire, everyone runs, and all work is done."""
        for orphan in self._orphans:
            orphan.expire()
        self._orphans.clear()
        for process in self.processes:
            process.crash_after = None
        for broker_id, entry in [*self.registered.items()]:
            if entry.broker is None:
                self.history.close(entry.session)
                self._start_broker(broker_id)
        for node_id in CONTROLLERS:
            if self.controllers[node_id] is None:
                self._start_controller(node_id)
        self._settle()
        while self._late:
            self._deliver_late(0)
        # A deletion that a broker refused is tried again when a broker starts, by Kafka's own rule.
        for broker_id in BROKERS:
            if any(path.startswith("/admin/delete_topics/") for path in self.history.tree):
                self._bounce(broker_id)
                self._settle()
        self.auditor.check_at_rest(self.live)

    def _settle(self) -> None:
        """Does all work until every follower is in sync."""
        for _ in range(60):
            self._drain()
            if not self._catch_up():
                return

    def _drain(self) -> None:
        for _ in range(MAX_REST_STEPS):
            self.now_ms += 1
            busy = [
                (process, ready) for process in self.processes if (ready := self._ready(process))
            ]
            if not busy:
                return
            self.random.choice(self.random.choice(busy)[1])()
            self.auditor.check()
        raise AssertionError("the cluster does not come to rest")

    def _catch_up(self) -> bool:
        """All followers fetch, and leaders take them into the ISR; whether one was requested."""
        requested = False
        for broker in self.live.values():
            for partition, replica in broker.replicas.items():
                if replica.state.leader != broker.broker_id:
                    broker.fetch(partition, self.live.get(replica.state.leader))
        for broker in self.live.values():
            for partition in broker.led():
                self._acknowledge(broker, partition)
                requested |= self._request_isr(broker, partition)
        return requested


def _ignore(_: Any) -> None:
    pass


def run(
    seed: int, steps: int = STEPS, dialect: OperationsDialect = RELEASED_OPERATIONS
) -> TopicWorld:
    """Runs one history; a failure is raised with its seed."""
    try:
        world = TopicWorld(seed, dialect)
        world.play(steps)
    except BaseException as error:
        command = "python -m tests.simulation.reference --topics --seeds 1"
        error.add_note(f"seed {seed}: {command} --operations-dialect {dialect.name} --from {seed}")
        raise
    return world
