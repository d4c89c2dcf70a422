"""Gives each event to its operation: one queue, one operation at a time.

The node's election and its `TaskQueue` are those of the reference controller, so that features and
partitions have one controller, one epoch and one order of events. Responses of brokers and watches
only queue an operation; what it decides on is read when it runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.reference.zookeeper.machines.protocol import WatchKind, WriteLog
from featurewatch.reference.zookeeper.machines.task_queue import Task, TaskQueue, perform
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    SendBrokerRequest,
    SetLiveBrokers,
)
from featurewatch.reference.zookeeper.machines.topics.context import (
    ClusterBroker,
    ControllerContext,
)
from featurewatch.reference.zookeeper.machines.topics.dialect import OperationsDialect
from featurewatch.reference.zookeeper.machines.topics.operations.brokers import BrokerChanges
from featurewatch.reference.zookeeper.machines.topics.operations.creation import TopicCreation
from featurewatch.reference.zookeeper.machines.topics.operations.deletion import TopicDeletion
from featurewatch.reference.zookeeper.machines.topics.operations.elections import RequestedElections
from featurewatch.reference.zookeeper.machines.topics.operations.failover import Failover
from featurewatch.reference.zookeeper.machines.topics.operations.leaders import BrokerRequests
from featurewatch.reference.zookeeper.machines.topics.operations.new_partitions import (
    ClientPartitions,
)
from featurewatch.reference.zookeeper.machines.topics.operations.new_topics import ClientTopics
from featurewatch.reference.zookeeper.machines.topics.operations.parts import make_parts
from featurewatch.reference.zookeeper.machines.topics.operations.producer_ids import (
    ProducerIdBlocks,
)
from featurewatch.reference.zookeeper.machines.topics.operations.reassignment import Reassignments
from featurewatch.reference.zookeeper.machines.topics.operations.topic_configs import ClientConfigs
from featurewatch.reference.zookeeper.machines.topics.requests import ReassignRequest
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    ControlledShutdownResult,
    PartitionResult,
)
from featurewatch.reference.zookeeper.machines.topics.state_store import ControllerMovedError
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    DELETE_TOPICS,
    ISR_CHANGES,
    LOG_DIR_EVENTS,
    PREFERRED_ELECTION,
    REASSIGN_PARTITIONS,
    TOPICS,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Exists

_Result = TypeVar("_Result")
Reply = Callable[[_Result], None]
"""Receives the result of a request; it is not called if the controller is deposed meanwhile."""

BrokerReader = Callable[[], Task[Mapping[int, ClusterBroker] | None]]
"""Reads the live brokers; None if they cannot be read now."""

PartitionResults = Mapping[TopicPartition, PartitionResult]

_TASKS: Final = (REASSIGN_PARTITIONS, PREFERRED_ELECTION)
_TOPIC_PREFIX: Final = f"{TOPICS}/"


class TopicController:
    """The controller's part for topics, partitions and replicas.

    ``read_brokers`` reads the live brokers; those in ``controller_ids`` are registered as brokers
    and host no replicas. ``new_topic_id`` returns an unused topic id, ``on_deposed`` is called when
    a write shows that another controller was elected; the caller then calls `resign`.
    """

    def __init__(
        self,
        broker_id: int,
        dialect: OperationsDialect,
        tasks: TaskQueue,
        emit: Callable[[SendBrokerRequest | SetLiveBrokers | WriteLog], None],
        read_brokers: BrokerReader,
        new_topic_id: Callable[[], str],
        on_deposed: Callable[[], None],
        *,
        controller_ids: Iterable[int] = (),
        unclean_default: bool = False,
        deletes_topics: bool = True,
    ) -> None:
        self._tasks = tasks
        self._emit = emit
        self._read_live = read_brokers
        self._on_deposed = on_deposed
        self._parts = make_parts(broker_id, dialect, emit, unclean_default=unclean_default)
        self.context.controller_ids = frozenset(controller_ids)
        self._creation = TopicCreation(self._parts, new_topic_id)
        # The document has no operation that deletes a topic.
        deletes_topics = deletes_topics and dialect.deletes_by_states
        self._deletion = TopicDeletion(self._parts, is_enabled=deletes_topics)
        self._reassignments = Reassignments(self._parts, self._deletion)
        self._elections = RequestedElections(self._parts)
        self._brokers = BrokerChanges(self._parts, self._reassignments, self._deletion)
        self._requests = BrokerRequests(self._parts, self._reassignments)
        self._failover = Failover(
            self._parts,
            self._creation,
            self._deletion,
            self._reassignments,
            self._elections,
        )
        self.topics = ClientTopics(self._parts, self._creation, self._deletion, new_topic_id)
        self.partitions = ClientPartitions(self._parts, self._creation)
        self.configs = ClientConfigs(self._parts)
        self.producer_ids = ProducerIdBlocks(self._parts)
        self.active = False
        self.ready = False
        """Whether the start is complete, so that the context has the whole cluster."""

    @property
    def context(self) -> ControllerContext:
        """The controller's memory, to read."""
        return self._parts.context

    # -- election ----------------------------------------------------------------------------------

    def elected(self, epoch: int, epoch_version: int) -> None:
        """Starts as the controller of an epoch; ``epoch_version`` is that of its znode."""
        self.context.clear()
        self.context.epoch = epoch
        self._parts.writer.on_elected(epoch_version)
        self.active = True
        self._queue(self._start())

    def resign(self) -> None:
        """Forgets everything; nothing is written or sent from now on."""
        if self.active:
            self._emit(SetLiveBrokers({}))
        self.active = self.ready = False
        self._parts.batch.discard()
        self.context.clear()

    def _start(self) -> Task[None]:
        brokers = yield from self._read_brokers()
        self.context.brokers.update(brokers or {})
        yield from self._failover.run()
        self.ready = True

    # -- events ------------------------------------------------------------------------------------

    def brokers_changed(self) -> None:
        """Queues what follows from a change of the live brokers."""
        if self.active:
            self._queue(self._on_brokers_changed())

    def on_reconnected(self) -> None:
        """Reads and watches everything again, because the connection took the watches with it."""
        if not self.active:
            return
        for operation in (
            self._creation.read_again,
            self._deletion.on_requested,
            self._reassignments.on_requested,
            self._elections.on_requested,
            self._brokers.on_log_dir_events,
            self._requests.on_isr_changes,
        ):
            self._queue(operation())

    def on_watch(self, path: str, kind: WatchKind) -> bool:
        """Queues the operation of a watch that fired; False if the path is none of ours."""
        operation = self._operation_of(path)
        if path in _TASKS and kind is WatchKind.CHANGED:
            # As in Kafka, a task is taken up when its znode is created, not when it is changed:
            # the controller changes it itself.
            operation = partial(_watch, path)
        if operation is not None and self.active:
            self._queue(operation())
        return operation is not None

    def on_leader_and_isr_response(
        self, broker_id: int, errors: Mapping[TopicPartition, int]
    ) -> None:
        """Queues what follows from a broker's response to LeaderAndIsr."""
        self._queue(self._brokers.on_leader_and_isr_response(broker_id, errors))

    def on_stop_replica_response(
        self, broker_id: int, errors: Mapping[TopicPartition, int]
    ) -> None:
        """Queues what follows from a response to StopReplica: its partitions with ``deletes``.

        If the request as a whole has failed, each has its error.
        """
        self._queue(self._deletion.on_stop_replica_response(broker_id, errors))

    # -- requests ----------------------------------------------------------------------------------

    def shut_down(
        self, broker_id: int, broker_epoch: int, reply: Reply[ControlledShutdownResult]
    ) -> None:
        """A broker's ControlledShutdown."""
        self._queue(_replying(self._requests.shut_down(broker_id, broker_epoch), reply))

    def alter_partitions(
        self, request: AlterPartitionRequest, reply: Reply[AlterPartitionResult]
    ) -> None:
        """A leader's AlterPartition; reassignments that waited for it complete afterwards."""
        self._queue(_replying(self._requests.alter_partitions(request), reply))
        self._queue(self._requests.complete_reassignments(request.partitions))

    def elect(
        self,
        partitions: Sequence[TopicPartition] | None,
        reply: Reply[PartitionResults],
        *,
        unclean: bool = False,
    ) -> None:
        """A client's ElectLeaders; None means all partitions."""
        chosen = [*self.context.assignments] if partitions is None else partitions
        self._queue(_replying(self._elections.elect(chosen, unclean=unclean), reply))

    def request_elections(
        self, partitions: Sequence[TopicPartition] | None, reply: Reply[PartitionResults]
    ) -> None:
        """Elections that survive this controller, as KIP-4's draft requests them; None: all."""
        self._queue(_replying(self._elections.request(partitions), reply))

    def reassign(self, request: ReassignRequest, reply: Reply[PartitionResults]) -> None:
        """A client's AlterPartitionReassignments."""
        self._queue(_replying(self._reassignments.request(request), reply))

    def perform(self, operation: Task[_Result], reply: Reply[_Result]) -> None:
        """Queues the operation of a client's request, such as one of `topics`."""
        self._queue(_replying(operation, reply))

    def balance(self, imbalance_percent: int) -> None:
        """The regular check of the leaders' balance (``auto.leader.rebalance.enable``)."""
        self._queue(self._elections.balance(imbalance_percent))

    # -- running -----------------------------------------------------------------------------------

    def _operation_of(self, path: str) -> Callable[[], Task[None]] | None:
        fixed: Mapping[str, Callable[[], Task[None]]] = {
            TOPICS: self._creation.on_topics_changed,
            REASSIGN_PARTITIONS: self._reassignments.on_requested,
            PREFERRED_ELECTION: self._elections.on_requested,
            LOG_DIR_EVENTS: self._brokers.on_log_dir_events,
            ISR_CHANGES: self._requests.on_isr_changes,
        }
        if self._parts.dialect.deletes_by_states and path == DELETE_TOPICS:
            return self._deletion.on_requested
        topic = path.removeprefix(_TOPIC_PREFIX)
        if topic != path and "/" not in topic:
            return lambda: self._creation.on_topic_changed(topic)
        return fixed.get(path)

    def _queue(self, operation: Task[None]) -> None:
        self._tasks.add(self._guarded(operation, self.context.epoch))

    def _guarded(self, operation: Task[None], epoch: int) -> Task[None]:
        """Runs an operation unless the controller is deposed before or during it."""
        if not self.active or self.context.epoch != epoch:
            operation.close()
            return
        try:
            yield from operation
        except ControllerMovedError:
            self._parts.batch.discard()
            self._on_deposed()

    def _on_brokers_changed(self) -> Task[None]:
        brokers = yield from self._read_brokers()
        if brokers is not None:
            yield from self._brokers.on_brokers(brokers)

    def _read_brokers(self) -> Task[dict[int, ClusterBroker] | None]:
        """The live brokers that may have replicas; the channels follow them from here on."""
        live = yield from self._read_live()
        if live is None:
            return None
        hosts = {
            broker_id: broker
            for broker_id, broker in live.items()
            if broker_id not in self.context.controller_ids
        }
        own = live.get(self.context.broker_id)
        self.context.own_endpoint = None if own is None else own.endpoint
        self._emit(SetLiveBrokers(hosts))
        return hosts


def _watch(path: str) -> Task[None]:
    yield from perform(Exists(path, watch=True))


def _replying(operation: Task[_Result], reply: Reply[_Result]) -> Task[None]:
    reply((yield from operation))
