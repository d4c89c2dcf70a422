"""The part of the reference controller for topics: its requests, its watches and its timer.

`TopicController` performs the operations in the controller's own queue. This module pairs requests
with responses, so that each has exactly one, and starts the regular balance of leaders.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.protocol import Effect, SendResponse
from featurewatch.reference.zookeeper.machines.requests import TopicMessage
from featurewatch.reference.zookeeper.machines.task_queue import Task, TaskQueue
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerResponded,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
    deletion_errors,
)
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.operations.elections import (
    DEFAULT_IMBALANCE_PERCENT,
)
from featurewatch.reference.zookeeper.machines.topics.requests import (
    NOT_CONTROLLER,
    AlterConfigsRequest,
    ControlledShutdownRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    PartitionResults,
    ProducerIdsRequest,
    ReassignRequest,
    RunningReassignments,
    TopicConfigsRequest,
    TopicConfigsResult,
    TopicResponse,
    TopicResult,
    TopicResults,
)
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    PartitionResult,
)
from featurewatch.reference.zookeeper.machines.topics.topic_controller import (
    BrokerReader,
    TopicController,
)

FIRST_BALANCE_MS: Final = 5_000
"""The balance of leaders is first checked this long after an election, as in Kafka."""


@dataclass(frozen=True, slots=True)
class OperationsSettings:
    """The settings of a controller of partitions; the defaults are Kafka's.

    ``new_topic_id`` returns an unused topic id. Nodes in ``controller_ids`` are registered as
    brokers and host no replicas; the controller's own node is one of them anyway.
    ``balance_interval_ms`` is ``leader.imbalance.check.interval.seconds``; None switches the
    balance off (``auto.leader.rebalance.enable``).
    """

    new_topic_id: Callable[[], str]
    controller_ids: frozenset[int] = frozenset()
    dialect: OperationsDialect = RELEASED_OPERATIONS
    unclean_default: bool = False
    deletes_topics: bool = True
    balance_interval_ms: int | None = 300_000
    imbalance_percent: int = DEFAULT_IMBALANCE_PERCENT


class TopicOperations:
    """Runs a `TopicController` for a `ReferenceController`, whose queue and election it shares."""

    def __init__(
        self,
        broker_id: int,
        settings: OperationsSettings,
        tasks: TaskQueue,
        emit: Callable[[Effect], None],
        read_brokers: BrokerReader,
        on_deposed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._emit = emit
        self._requests: set[int] = set()
        self._balance_ms: int | None = None
        self._controller = TopicController(
            broker_id,
            settings.dialect,
            tasks,
            emit,
            read_brokers,
            settings.new_topic_id,
            on_deposed,
            controller_ids={broker_id} | settings.controller_ids,
            unclean_default=settings.unclean_default,
            deletes_topics=settings.deletes_topics,
        )
        self.on_watch = self._controller.on_watch
        self.on_reconnected = self._controller.on_reconnected
        self.brokers_changed = self._controller.brokers_changed

    @property
    def context(self) -> ControllerContext | None:
        """The controller's memory, to read; None until its start is complete."""
        return self._controller.context if self._controller.ready else None

    def elected(self, epoch: int, epoch_version: int, now_ms: int) -> None:
        """Starts the work of an elected controller."""
        self._controller.elected(epoch, epoch_version)
        if self._settings.balance_interval_ms is not None:
            self._balance_ms = now_ms + FIRST_BALANCE_MS

    def resign(self) -> None:
        """Ends the work, and responds to what is still open."""
        self._controller.resign()
        self._balance_ms = None
        for request_id in sorted(self._requests):
            self._respond(request_id, NOT_CONTROLLER)

    def on_tick(self, now_ms: int) -> None:
        """Starts the balance of leaders when it is due."""
        interval_ms = self._settings.balance_interval_ms
        if self._balance_ms is None or interval_ms is None or now_ms < self._balance_ms:
            return
        self._balance_ms = now_ms + interval_ms
        self._controller.balance(self._settings.imbalance_percent)

    def on_broker_responded(self, event: BrokerResponded) -> None:
        """Queues what follows from a response; one to an earlier epoch's request is ignored."""
        if event.request.controller_epoch != self._controller.context.epoch:
            return
        match event.request, event.response:
            case _, LeaderAndIsrResponse(errors=errors):
                self._controller.on_leader_and_isr_response(event.broker_id, errors)
            case StopReplicaRequest() as request, StopReplicaResponse() as response:
                errors = deletion_errors(request, response)
                if errors:
                    self._controller.on_stop_replica_response(event.broker_id, errors)
            case _:
                pass

    def on_request(self, request_id: int, request: TopicMessage) -> None:
        """Queues a request; its response is an effect, NOT_CONTROLLER if another one is elected."""
        self._requests.add(request_id)
        controller = self._controller
        reply = partial(self._respond, request_id)
        if not controller.active:
            reply(NOT_CONTROLLER)
            return
        match request:
            case ControlledShutdownRequest(broker_id, broker_epoch):
                controller.shut_down(broker_id, broker_epoch, reply)
            case AlterPartitionRequest():
                controller.alter_partitions(request, reply)
            case ProducerIdsRequest(broker_id):
                controller.perform(controller.producer_ids.allocate(broker_id), reply)
            case ElectLeadersRequest(partitions, unclean):
                controller.elect(partitions, _partitions(reply), unclean=unclean)
            case ReassignRequest():
                controller.reassign(request, _partitions(reply))
            case ListReassignmentsRequest(partitions):
                running = _running_reassignments(controller.context, partitions)
                controller.perform(running, lambda found: reply(RunningReassignments(found)))
            case TopicConfigsRequest(names):
                configs = controller.configs.read(names)
                controller.perform(configs, lambda found: reply(TopicConfigsResult(found)))
            case (
                CreateTopicsRequest()
                | CreatePartitionsRequest()
                | DeleteTopicsRequest()
                | AlterConfigsRequest()
            ):
                controller.perform(self._change(request), _topics(reply))
            case _:
                raise TypeError(f"{request!r} is no request about topics")

    def _change(
        self,
        request: CreateTopicsRequest
        | CreatePartitionsRequest
        | DeleteTopicsRequest
        | AlterConfigsRequest,
    ) -> Task[dict[str, TopicResult]]:
        """The operation of a request that has one result for each topic."""
        controller = self._controller
        match request:
            case CreateTopicsRequest(topics, dry_run):
                return controller.topics.create(topics, dry_run=dry_run)
            case CreatePartitionsRequest(topics, dry_run):
                return controller.partitions.create(topics, dry_run=dry_run)
            case DeleteTopicsRequest(names):
                return controller.topics.delete(names)
            case AlterConfigsRequest(changes, dry_run):
                return controller.configs.alter(changes, dry_run=dry_run)

    def _respond(self, request_id: int, response: TopicResponse) -> None:
        if request_id in self._requests:
            self._requests.discard(request_id)
            self._emit(SendResponse(request_id, response))


def _partitions(
    reply: Callable[[TopicResponse], None],
) -> Callable[[Mapping[TopicPartition, PartitionResult]], None]:
    return lambda results: reply(PartitionResults(results))


def _topics(
    reply: Callable[[TopicResponse], None],
) -> Callable[[Mapping[str, TopicResult]], None]:
    return lambda results: reply(TopicResults(results))


def _running_reassignments(
    context: ControllerContext, partitions: Sequence[TopicPartition] | None
) -> Task[dict[TopicPartition, ReplicaAssignment]]:
    """Reads memory alone; as a task it sees no operation half done."""
    yield ()
    chosen = context.reassigning if partitions is None else {*partitions}
    return {
        partition: context.assignment(partition)
        for partition in sorted(chosen & context.reassigning)
    }
