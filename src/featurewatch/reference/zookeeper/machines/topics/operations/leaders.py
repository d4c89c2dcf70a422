"""Requests of brokers: a controlled shutdown, and the ISR that a leader wants.

Follows ``KafkaController.doControlledShutdown`` and ``processAlterPartition``.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.context import (
    PartitionLeadership,
    PartitionReplica,
)
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.operations.reassignment import Reassignments
from featurewatch.reference.zookeeper.machines.topics.partition_machine import SHUTDOWN_ELECTION
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    ControlledShutdownResult,
    PartitionResult,
    RequestedIsr,
)
from featurewatch.reference.zookeeper.machines.topics.state_store import StateFailure
from featurewatch.reference.zookeeper.machines.topics.znodes import ISR_CHANGES, decode_isr_changes
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Delete,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
)

UNKNOWN_BROKER_EPOCH: Final = -1
"""The epoch in requests of brokers that have none to send."""
_INELIGIBLE_VERSION: Final = 2
"""The version of AlterPartition from which on a dead member has its own error code."""


class BrokerRequests:
    """Handles the requests that only brokers send to the controller."""

    def __init__(self, parts: OperationParts, reassignments: Reassignments) -> None:
        self._parts = parts
        self._context = parts.context
        self._reassignments = reassignments

    # -- controlled shutdown -----------------------------------------------------------------------

    def shut_down(self, broker_id: int, broker_epoch: int) -> Task[ControlledShutdownResult]:
        """Moves leaders away from a broker, and stops its followers.

        The broker repeats its request until it leads nothing that could be moved.
        """
        context, parts = self._context, self._parts
        if broker_id not in context.brokers:
            return ControlledShutdownResult(ErrorCode.BROKER_NOT_AVAILABLE)
        if UNKNOWN_BROKER_EPOCH != broker_epoch < context.brokers[broker_id].epoch:
            return ControlledShutdownResult(ErrorCode.STALE_BROKER_EPOCH)
        context.shutting_down.add(broker_id)
        chosen = [
            replica.partition
            for replica in context.replicas_on([broker_id])
            if replica.partition in context.leaderships
            and not context.is_being_deleted(replica.partition)
            and (parts.dialect.moves_single or self._is_replicated(replica.partition))
        ]
        led = [part for part in chosen if context.leaderships[part].leader == broker_id]
        followed = [part for part in chosen if context.leaderships[part].leader != broker_id]
        yield from parts.partitions.move(led, PartitionState.ONLINE, SHUTDOWN_ELECTION)
        for partition in followed:
            parts.batch.add_stop_replica(broker_id, partition, deletes=False)
        parts.batch.send()
        replicas = [PartitionReplica(partition, broker_id) for partition in followed]
        yield from parts.replicas.move(replicas, ReplicaState.OFFLINE)
        remaining = (
            partition
            for partition, leadership in context.leaderships.items()
            if leadership.leader == broker_id and self._is_replicated(partition)
        )
        return ControlledShutdownResult(remaining=tuple(remaining))

    def _is_replicated(self, partition: TopicPartition) -> bool:
        return len(self._context.assignment(partition).replicas) > 1

    # -- ISR changes -------------------------------------------------------------------------------

    def alter_partitions(self, request: AlterPartitionRequest) -> Task[AlterPartitionResult]:
        """Writes the ISRs that a leader requests; the leader epoch stays.

        The caller sends the result before `complete_reassignments` runs.
        """
        context = self._context
        broker = context.brokers.get(request.broker_id)
        if broker is None or broker.epoch != request.broker_epoch:
            return AlterPartitionResult(ErrorCode.STALE_BROKER_EPOCH)
        results: dict[TopicPartition, PartitionLeadership | PartitionResult] = {}
        accepted = {}
        for partition, wanted in request.partitions.items():
            current = context.leaderships.get(partition)
            checked = self._check(request, partition, wanted, current)
            if isinstance(checked, ErrorCode):
                results[partition] = PartitionResult(checked)
            elif checked == current:
                results[partition] = checked
            else:
                accepted[partition] = checked
        updates = yield from self._parts.store.update(accepted)
        for partition, written in updates.finished.items():
            if isinstance(written, StateFailure):
                results[partition] = PartitionResult(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, written.reason
                )
            else:
                context.leaderships[partition] = results[partition] = written
        for partition in updates.overtaken:
            results[partition] = PartitionResult(ErrorCode.INVALID_UPDATE_VERSION)
        changed = [part for part in accepted if isinstance(results[part], PartitionLeadership)]
        if changed:
            self._parts.send_metadata(context.registered_brokers, changed)
        return AlterPartitionResult(partitions=results)

    def complete_reassignments(self, partitions: Iterable[TopicPartition]) -> Task[None]:
        """Completes reassignments that waited for the ISRs of these partitions."""
        yield from self._reassignments.complete(partitions)

    def _check(
        self,
        request: AlterPartitionRequest,
        partition: TopicPartition,
        wanted: RequestedIsr,
        current: PartitionLeadership | None,
    ) -> PartitionLeadership | ErrorCode:
        """The state to write, the current one if nothing changes, or the reason for neither."""
        if current is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if (
            wanted.partition_epoch > current.partition_epoch
            or wanted.leader_epoch > current.leader_epoch
        ):
            return ErrorCode.NOT_CONTROLLER
        if wanted.leader_epoch < current.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if request.broker_id != current.leader or len({*wanted.isr}) < max(1, len(wanted.isr)):
            # Kafka trusts its brokers in this: such a request would take the leadership away.
            return ErrorCode.INVALID_REQUEST
        if (wanted.isr, wanted.recovering) == (current.isr, current.recovering):
            return current
        if wanted.partition_epoch < current.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if wanted.recovering and (len(wanted.isr) > 1 or not current.recovering):
            return ErrorCode.INVALID_REQUEST
        if not all(self._context.is_online(member, partition) for member in wanted.isr):
            is_old = request.version < _INELIGIBLE_VERSION
            return ErrorCode.OPERATION_NOT_ATTEMPTED if is_old else ErrorCode.INELIGIBLE_REPLICA
        return replace(
            current,
            isr=wanted.isr,
            recovering=wanted.recovering,
            controller_epoch=self._context.epoch,
        )

    def on_isr_changes(self) -> Task[None]:
        """Reads the states that leaders before AlterPartition have written, and informs all."""
        result = yield from perform(GetChildren(ISR_CHANGES, watch=True))
        names = sorted(result.names) if isinstance(result, GetChildrenResult) else []
        if not names:
            return
        paths = [f"{ISR_CHANGES}/{name}" for name in names]
        contents = yield tuple(GetData(path) for path in paths)
        changed: set[TopicPartition] = set()
        for path, content in zip(paths, contents, strict=True):
            try:
                if isinstance(content, GetDataResult):
                    changed |= {*decode_isr_changes(content.data)}
            except ZnodeDecodeError as error:
                self._parts.log(f"cannot read {path}, which is removed: {error}")
        known = sorted(changed & self._context.assignments.keys())
        states = yield from self._parts.store.read(known)
        for partition, state in states.items():
            if isinstance(state, PartitionLeadership):
                self._context.leaderships[partition] = state
        self._parts.send_metadata(self._context.registered_brokers, known)
        yield from self._reassignments.complete(known)
        yield from self._parts.writer.write([Delete(path) for path in paths])
