"""Changes the states of replicas, and takes failed ones out of the ISR.

Follows ``ZkReplicaStateMachine``: the replicas of one call are handled broker by broker, in the
order of the broker ids, and the requests of the call leave together at its end. In the
document's form a broker's StopReplica leaves before its replicas are taken out of the ISRs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace

from featurewatch.controller.partitions.assignment import TopicPartition, without
from featurewatch.controller.partitions.states import ReplicaState, invalid_transition
from featurewatch.reference.zookeeper.machines.protocol import WriteLog
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.context import (
    NO_LEADER,
    ControllerContext,
    PartitionLeadership,
    PartitionReplica,
)
from featurewatch.reference.zookeeper.machines.topics.dialect import OperationsDialect
from featurewatch.reference.zookeeper.machines.topics.request_batch import RequestBatch
from featurewatch.reference.zookeeper.machines.topics.state_store import (
    MISSING,
    PartitionStateStore,
    StateFailure,
)


class ReplicaMachine:
    """The states of all replicas; see `OperationsDialect` for the two forms."""

    def __init__(
        self,
        context: ControllerContext,
        dialect: OperationsDialect,
        store: PartitionStateStore,
        batch: RequestBatch,
        emit: Callable[[WriteLog], None],
    ) -> None:
        self._context = context
        self._dialect = dialect
        self._store = store
        self._batch = batch
        self._emit = emit

    def move(self, replicas: Iterable[PartitionReplica], target: ReplicaState) -> Task[None]:
        """Moves replicas to a state; what fails is logged and keeps its state.

        Raises:
            ControllerMovedError: if another controller was elected; no request leaves then.
        """
        by_broker: defaultdict[int, list[PartitionReplica]] = defaultdict(list)
        for replica in dict.fromkeys(replicas):
            if self._is_valid(replica, target):
                by_broker[replica.broker_id].append(replica)
        for broker_id, group in sorted(by_broker.items()):
            if target is ReplicaState.OFFLINE:
                yield from self._stop(broker_id, group)
            else:
                for replica in group:
                    self._move_one(replica, target)
        self._batch.send()

    def restore_states(self) -> None:
        """Derives the states from the life of the brokers, when a controller is elected."""
        dead = (
            ReplicaState.DELETION_INELIGIBLE
            if self._dialect.deletes_by_states
            else ReplicaState.OFFLINE
        )
        context = self._context
        for replica in context.replicas_of(context.assignments):
            is_online = context.is_online(replica.broker_id, replica.partition)
            context.replica_states[replica] = ReplicaState.ONLINE if is_online else dead

    def _is_valid(self, replica: PartitionReplica, target: ReplicaState) -> bool:
        state = self._context.replica_state(replica)
        self._context.replica_states[replica] = state
        reason = invalid_transition(f"Replica {replica}", self._dialect.replicas, state, target)
        if reason is not None:
            self._emit(WriteLog(reason, warning=True))
        return reason is None

    def _move_one(self, replica: PartitionReplica, target: ReplicaState) -> None:
        """Moves one valid replica to any state but offline."""
        context, (partition, broker_id) = self._context, replica
        state = context.replica_states[replica]
        leadership = context.leaderships.get(partition)
        match target:
            case ReplicaState.NEW:
                if leadership is not None and leadership.leader == broker_id:
                    self._refuse_new(replica)
                    return
                if leadership is not None:
                    self._batch.add_leader_and_isr([broker_id], partition, is_new=True)
            case ReplicaState.ONLINE if state is ReplicaState.NEW:
                self._assign(replica)
            case ReplicaState.ONLINE:
                if leadership is not None:
                    self._batch.add_leader_and_isr([broker_id], partition, is_new=False)
            case ReplicaState.DELETION_STARTED:
                self._batch.add_stop_replica(broker_id, partition, deletes=True)
            case ReplicaState.NON_EXISTENT:
                if not self._dialect.deletes_by_states:
                    self._batch.add_stop_replica(broker_id, partition, deletes=True)
                self._remove(replica)
                return
            case _:
                pass
        context.replica_states[replica] = target

    def _refuse_new(self, replica: PartitionReplica) -> None:
        self._emit(
            WriteLog(
                f"Replica {replica.broker_id} for partition {replica.partition} cannot be moved to"
                " NewReplica state as it is being requested to become leader",
                warning=True,
            )
        )

    def _assign(self, replica: PartitionReplica) -> None:
        """Adds a started replica to the assignment in memory, if it is missing there."""
        partition, broker_id = replica
        assignment = self._context.assignment(partition)
        if broker_id in assignment.replicas:
            return
        self._emit(
            WriteLog(
                f"Adding replica ({broker_id}) that is not part of the assignment of {partition}",
                warning=True,
            )
        )
        replicas = (*assignment.replicas, broker_id)
        self._context.assignments[partition] = replace(assignment, replicas=replicas)

    def _remove(self, replica: PartitionReplica) -> None:
        """Takes a deleted replica out of the assignment in memory."""
        partition, broker_id = replica
        if partition in self._context.assignments:
            remaining = self._context.assignments[partition].remove(broker_id)
            self._context.assignments[partition] = remaining
        del self._context.replica_states[replica]

    # -- going offline -----------------------------------------------------------------------------

    def _stop(self, broker_id: int, replicas: Iterable[PartitionReplica]) -> Task[None]:
        """Stops replicas of one broker, and takes them out of the ISRs."""
        context, stopped, led = self._context, [*replicas], []
        for replica in stopped:
            self._batch.add_stop_replica(broker_id, replica.partition, deletes=False)
        if self._dialect.stops_first:
            self._batch.send()
        for replica in stopped:
            partition = replica.partition
            if partition in context.leaderships:
                led.append(partition)
            else:
                self._batch.add_update_metadata(context.brokers, [partition])
                context.replica_states[replica] = ReplicaState.OFFLINE
        shrunk = yield from self._leave_isrs(broker_id, led)
        for partition, leadership in shrunk.items():
            context.leaderships[partition] = leadership
            context.replica_states[PartitionReplica(partition, broker_id)] = ReplicaState.OFFLINE
            if not context.is_being_deleted(partition):
                receivers = without(context.assignment(partition).replicas, [broker_id])
                if self._dialect.informs_leader_only:
                    receivers = (leadership.leader,)
                self._batch.add_leader_and_isr(receivers, partition, is_new=False)

    def _leave_isrs(
        self, broker_id: int, partitions: Iterable[TopicPartition]
    ) -> Task[dict[TopicPartition, PartitionLeadership]]:
        """Takes a broker out of ISRs; returns the states as they are then.

        A state that another has changed meanwhile is read and decided again.
        """
        result: dict[TopicPartition, PartitionLeadership] = {}
        remaining = [*partitions]
        while remaining:
            states = yield from self._store.read(remaining)
            leaderships = {}
            for partition, state in states.items():
                if isinstance(state, StateFailure):
                    self._log_failure(broker_id, partition, state)
                elif broker_id in state.isr:
                    leaderships[partition] = self._shrunk(state, broker_id)
                else:
                    # As in Kafka, it is sent with the epoch of this controller, though not written.
                    result[partition] = replace(state, controller_epoch=self._context.epoch)
            updates = yield from self._store.update(leaderships)
            for partition, written in updates.finished.items():
                if isinstance(written, StateFailure):
                    self._log_failure(broker_id, partition, written)
                else:
                    result[partition] = written
            remaining = updates.overtaken
        return result

    def _shrunk(self, state: PartitionLeadership, broker_id: int) -> PartitionLeadership:
        leader = NO_LEADER if state.leader == broker_id else state.leader
        isr = without(state.isr, [broker_id])
        if not isr and self._dialect.keeps_sole_member:
            isr = state.isr
        return state.changed(leader, isr, self._context.epoch, recovering=state.recovering)

    def _log_failure(
        self, broker_id: int, partition: TopicPartition, failure: StateFailure
    ) -> None:
        if failure is MISSING and self._context.is_being_deleted(partition):
            return
        self._emit(
            WriteLog(
                f"Failed to change state of replica {broker_id} for partition {partition} to"
                f" OfflineReplica: {failure.reason}",
                warning=True,
            )
        )
