"""Drives the controller's operations over a ZooKeeper tree, and writes down what they do.

The journal has one line for each effect, in order: ``W`` a write of a znode, ``D`` a deletion, and
a request as ``S <broker> <what it says of each partition>``. Lists of brokers are ``1.2.3``.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import orjson

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.dialect import RELEASED
from featurewatch.reference.zookeeper.machines.encoding import (
    BROKER_IDS,
    CONTROLLER_EPOCH,
    BrokerIdentity,
    broker_path,
    decode_endpoint,
    encode_broker,
)
from featurewatch.reference.zookeeper.machines.protocol import (
    Effect,
    WatchKind,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.task_queue import Task, TaskQueue, perform
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    LeaderAndIsrRequest,
    LeaderAndIsrState,
    SendBrokerRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from featurewatch.reference.zookeeper.machines.topics.context import ClusterBroker
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.requests import ReassignRequest
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    ControlledShutdownResult,
    PartitionResult,
    RequestedIsr,
)
from featurewatch.reference.zookeeper.machines.topics.topic_controller import TopicController
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    TopicZnode,
    decode_state,
    decode_topic,
    encode_topic,
    state_path,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    ANY_VERSION,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    Multi,
    Operation,
    OperationDone,
    OperationResult,
    OutcomeUnknown,
    SetData,
)
from tests.simulation.reference.tree import History, read

P0 = TopicPartition("t", 0)
P1 = TopicPartition("t", 1)
WRITES = (Create, SetData, Delete, Multi)
OTHERS = 9
"""The session of everyone but the controller."""


class OperationsDriver:
    """A cluster: a tree, one controller, and brokers that only note what they are sent."""

    def __init__(
        self,
        brokers: Sequence[int] = (1, 2, 3),
        dialect: OperationsDialect = RELEASED_OPERATIONS,
        *,
        unclean: bool = False,
    ) -> None:
        self.dialect = dialect
        self.unclean = unclean
        self.history = History()
        self.journal: list[str] = []
        self.log_lines: list[str] = []
        self.requests: list[SendBrokerRequest] = []
        self.operations: list[Operation] = []
        self.deposed = 0
        self.fail_next: Callable[[Operation], OperationResult | None] = lambda _: None
        self._topic_ids = 0
        self._returned = 0
        self._watches: set[tuple[str, bool]] = set()
        for broker_id in brokers:
            data = self.broker_znode(broker_id)
            self.history.write(OTHERS, Create(broker_path(broker_id), data, ephemeral=True))
        self.history.write(OTHERS, Create(CONTROLLER_EPOCH, b"0"))
        self.elect()

    # -- the tree ----------------------------------------------------------------------------------

    def write(self, operation: Create | SetData | Delete) -> None:
        """A write of someone else; fires the watches."""
        self._apply(OTHERS, operation)

    def put(self, path: str, data: bytes) -> None:
        """Creates a znode or replaces its data."""
        exists = path in self.history.tree
        self.write(SetData(path, data, ANY_VERSION) if exists else Create(path, data))

    def state(self, partition: TopicPartition = P0) -> str:
        """A partition's state in ZooKeeper, as in the journal."""
        node = self.history.tree[state_path(partition)]
        return _state_text(partition, node.data, node.stat.version)

    def assignment(self, partition: TopicPartition = P0) -> ReplicaAssignment:
        """A partition's replicas in ZooKeeper."""
        data = self.history.tree[topic_path(partition.topic)].data
        return decode_topic(data).assignments[partition.number]

    def overtake(
        self, old: bytes, new: bytes, *, skip: int = 0, partition: TopicPartition = P0
    ) -> None:
        """A leader changes its state just before the controller's next write of it, once.

        ``skip`` writes of the controller are left alone before.
        """
        path = state_path(partition)
        skipped = [None] * skip

        def change(operation: Operation) -> None:
            if not isinstance(operation, Multi) or SetData not in map(type, operation.operations):
                return
            if path not in [getattr(part, "path", None) for part in operation.operations]:
                return
            if skipped:
                skipped.pop()
                return
            self.fail_next = lambda _: None
            self.write(SetData(path, self.history.tree[path].data.replace(old, new), ANY_VERSION))

        self.fail_next = change

    def _apply(self, session: int, operation: Operation) -> OperationResult:
        count = len(self.history.log)
        result = self.history.write(session, operation)
        if len(self.history.log) > count:
            for change in self.history.log[-1].changes:
                is_list = change.kind is WatchKind.CHILDREN
                if (change.path, is_list) in self._watches:
                    self._watches.discard((change.path, is_list))
                    if change.path == BROKER_IDS:
                        self.controller.brokers_changed()
                    self.controller.on_watch(change.path, change.kind)
        return result

    # -- the controller ----------------------------------------------------------------------------

    def elect(self) -> None:
        """Elects a new controller, which replaces the one before without its knowledge."""
        self._watches.clear()
        self.pending: deque[ZookeeperRequest] = deque()
        tasks = TaskQueue(self._emit)
        self.controller = TopicController(
            100,
            self.dialect,
            tasks,
            self._emit,
            self._read_brokers,
            self._new_topic_id,
            self._on_deposed,
            controller_ids=(100,),
            unclean_default=self.unclean,
        )
        self.tasks = tasks
        tasks.on_connected()
        node = self.history.tree[CONTROLLER_EPOCH]
        epoch = int(node.data) + 1
        self.history.write(7, SetData(CONTROLLER_EPOCH, str(epoch).encode(), node.stat.version))
        self.controller.elected(epoch, node.stat.version + 1)

    def fail_over(self) -> list[str]:
        """Elects a new controller and lets it start; returns what it does."""
        self.elect()
        return self.settle()

    def settle(self, until: Callable[[Operation], bool] = lambda _: False) -> list[str]:
        """Serves operations until none is left or one matches; returns what is new since."""
        while self.pending and not until(self.pending[0].operation):
            self.serve()
        begin, self._returned = self._returned, len(self.journal)
        return self.journal[begin:]

    def serve(self) -> None:
        """Serves one operation."""
        request = self.pending.popleft()
        operation = request.operation
        self.operations.append(operation)
        result = self.fail_next(operation)
        if result is None:
            result = self._perform(operation)
        if isinstance(operation, WRITES) and isinstance(result, OperationDone):
            self._note_write(operation)
        self.tasks.on_completed(request.token, result)
        if isinstance(result, OutcomeUnknown):
            self.tasks.retry()

    def _perform(self, operation: Operation) -> OperationResult:
        if isinstance(operation, WRITES):
            return self._apply(7, operation)
        result = read(self.history.tree, operation)
        if isinstance(operation, GetChildren) and operation.watch:
            self._watches.add((operation.path, True))
        elif isinstance(operation, Exists | GetData) and operation.watch:
            self._watches.add((operation.path, False))
        return result

    def _emit(self, effect: Effect | SendBrokerRequest) -> None:
        match effect:
            case ZookeeperRequest():
                self.pending.append(effect)
            case WriteLog(line):
                self.log_lines.append(line)
            case SendBrokerRequest(broker_id, request):
                self.requests.append(effect)
                self.journal += [f"S {broker_id} {text}" for text in _request_texts(request)]

    def _read_brokers(self) -> Task[dict[int, ClusterBroker] | None]:
        listed = yield from perform(GetChildren(BROKER_IDS, watch=True))
        assert isinstance(listed, GetChildrenResult)
        ids = sorted(map(int, listed.names))
        results = (yield tuple(GetData(broker_path(number)) for number in ids)) if ids else ()
        return {
            broker_id: ClusterBroker(content.stat.czxid, decode_endpoint(content.data))
            for broker_id, content in zip(ids, results, strict=True)
            if isinstance(content, GetDataResult)
        }

    def _on_deposed(self) -> None:
        self.deposed += 1
        self.controller.resign()

    def _new_topic_id(self) -> str:
        self._topic_ids += 1
        return f"id-{self._topic_ids}"

    # -- brokers and clients -----------------------------------------------------------------------

    def broker_znode(self, broker_id: int) -> bytes:
        """The content of a broker's znode."""
        return encode_broker(RELEASED, BrokerIdentity(broker_id), {}, 5)

    def start_broker(self, broker_id: int) -> list[str]:
        """Registers a broker; returns what follows."""
        self.write(Create(broker_path(broker_id), self.broker_znode(broker_id), ephemeral=True))
        return self.settle()

    def kill_broker(self, *broker_ids: int) -> list[str]:
        """Removes brokers' znodes; returns what follows."""
        for broker_id in broker_ids:
            self.write(Delete(broker_path(broker_id)))
        return self.settle()

    def create_topic(
        self, *replicas: Sequence[int], topic: str = "t", version: int | None = None
    ) -> list[str]:
        """Writes a topic's znode, as a broker does; returns what follows."""
        assignments = {
            number: ReplicaAssignment(tuple(listed)) for number, listed in enumerate(replicas)
        }
        schema = self.dialect.assignment_schema if version is None else version
        data = encode_topic(TopicZnode(assignments, "id" if schema > 2 else None), schema)
        self.put(topic_path(topic), data)
        return self.settle()

    def alter_isr(
        self,
        *isr: int,
        partition: TopicPartition = P0,
        leader: int | None = None,
        epochs: tuple[int, int] = (0, 0),
    ) -> AlterPartitionResult:
        """Sends the leader's AlterPartition, with epochs that differ by ``epochs``."""
        results: list[AlterPartitionResult] = []
        self.send_isr(partition, isr, results.append, leader, epochs)
        self.settle()
        (result,) = results
        return result

    def send_isr(
        self,
        partition: TopicPartition,
        isr: tuple[int, ...],
        reply: Callable[[AlterPartitionResult], None],
        leader: int | None = None,
        epochs: tuple[int, int] = (0, 0),
    ) -> None:
        """Sends AlterPartition without waiting for its result; see `alter_isr`."""
        leadership = self.controller.context.leaderships[partition]
        sender = leadership.leader if leader is None else leader
        requested = RequestedIsr(
            isr, leadership.leader_epoch + epochs[0], leadership.partition_epoch + epochs[1]
        )
        broker_epoch = self.history.tree[broker_path(sender)].stat.czxid
        request = AlterPartitionRequest(sender, broker_epoch, {partition: requested})
        self.controller.alter_partitions(request, reply)

    def run(self, operation: Task[Any]) -> list[str]:
        """Runs a task in the controller's queue; returns what it does."""
        self.tasks.add(operation)
        return self.settle()

    def reassign(
        self, *replicas: int, partition: TopicPartition = P0, cancels: bool = False
    ) -> tuple[PartitionResult, list[str]]:
        """Sends AlterPartitionReassignments; returns its result, and what is done."""
        results: list[Mapping[TopicPartition, PartitionResult]] = []
        request = ReassignRequest({partition: None if cancels else tuple(replicas)})
        self.controller.reassign(request, results.append)
        lines = self.settle()
        return results[0][partition], lines

    def elect_leaders(
        self, *partitions: TopicPartition, unclean: bool = False
    ) -> tuple[Mapping[TopicPartition, PartitionResult], list[str]]:
        """Sends ElectLeaders; returns the results, and what is done."""
        results: list[Mapping[TopicPartition, PartitionResult]] = []
        self.controller.elect(partitions, results.append, unclean=unclean)
        lines = self.settle()
        return results[0], lines

    def shut_down(
        self, broker_id: int, epoch: int = -1
    ) -> tuple[ControlledShutdownResult, list[str]]:
        """Sends a broker's ControlledShutdown; returns the result, and what is done."""
        results: list[ControlledShutdownResult] = []
        self.controller.shut_down(broker_id, epoch, results.append)
        lines = self.settle()
        return results[0], lines

    def stop_responses(self, error: int = 0, only: int | None = None) -> list[str]:
        """Responds to all StopReplica requests with deletion so far; returns what follows."""
        requests, self.requests = self.requests, []
        for broker_id, request in ((sent.broker_id, sent.request) for sent in requests):
            if isinstance(request, StopReplicaRequest) and only in (None, broker_id):
                errors = {state.partition: error for state in request.states if state.deletes}
                if errors:
                    self.controller.on_stop_replica_response(broker_id, errors)
        return self.settle()

    # -- the journal -------------------------------------------------------------------------------

    def _note_write(self, operation: Operation) -> None:
        parts = operation.operations if isinstance(operation, Multi) else (operation,)
        for part in parts:
            match part:
                case Create(path, data) if data == b"":
                    self.journal.append(f"W {path}")
                case Create(path, data) | SetData(path, data):
                    self.journal.append(f"W {self._content(path, data)}")
                case Delete(path):
                    self.journal.append(f"D {path}")
                case _:
                    pass

    def _content(self, path: str, data: bytes) -> str:
        if path.endswith("/state"):
            topic, _, number, _ = path.removeprefix("/brokers/topics/").split("/")
            node = self.history.tree[path]
            return _state_text(TopicPartition(topic, int(number)), data, node.stat.version)
        if path.startswith("/brokers/topics/"):
            assignments = decode_topic(data).assignments.items()
            texts = [f"{number}:{_assignment_text(value)}" for number, value in assignments]
            return f"{path} {' '.join(texts)}"
        return f"{path} {orjson.dumps(orjson.loads(data)).decode()}"


def make_cluster(
    *replicas: tuple[int, ...],
    brokers: tuple[int, ...] = (1, 2, 3),
    dialect: OperationsDialect = RELEASED_OPERATIONS,
    unclean: bool = False,
) -> OperationsDriver:
    """Brokers and a topic with these partitions."""
    driver = OperationsDriver(brokers, dialect, unclean=unclean)
    driver.settle()
    driver.create_topic(*replicas)
    return driver


def lines_for(lines: Iterable[str], kind: str) -> list[str]:
    """The lines of one kind: LAI, UM, SR or W."""
    return [line for line in lines if f" {kind} " in line or line.startswith(f"{kind} ")]


def _ids(broker_ids: Iterable[int]) -> str:
    return ".".join(map(str, broker_ids)) or "none"


def _assignment_text(assignment: ReplicaAssignment) -> str:
    text = _ids(assignment.replicas)
    text += f"+{_ids(assignment.adding)}" if assignment.adding else ""
    return text + (f"-{_ids(assignment.removing)}" if assignment.removing else "")


def _replicas_text(state: LeaderAndIsrState) -> str:
    return _assignment_text(ReplicaAssignment(state.replicas, state.adding, state.removing))


def _state_text(partition: TopicPartition, data: bytes, version: int) -> str:
    state = decode_state(partition, data, version)
    recovering = " recovering" if state.recovering else ""
    return (
        f"{partition} leader={state.leader} isr={_ids(state.isr)} le={state.leader_epoch}"
        f" pe={version} ce={state.controller_epoch}{recovering}"
    )


def _request_texts(request: BrokerRequest) -> list[str]:
    match request:
        case LeaderAndIsrRequest(states=states):
            return [
                f"LAI {state.partition} leader={state.leader} isr={_ids(state.isr)}"
                f" le={state.leader_epoch}"
                f" ar={_replicas_text(state)}{' new' if state.is_new else ''}"
                for state in states
            ]
        case UpdateMetadataRequest(states=metadata):
            return [
                f"UM {state.partition} leader={state.leader} isr={_ids(state.isr)}"
                f" offline={_ids(state.offline)}"
                for state in metadata
            ] or ["UM none"]
        case StopReplicaRequest(states=stops):
            return [
                f"SR {state.partition} le={state.leader_epoch}{' delete' if state.deletes else ''}"
                for state in stops
            ]
