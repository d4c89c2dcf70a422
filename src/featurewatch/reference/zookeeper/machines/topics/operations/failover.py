"""The start of an elected controller: reads everything, and resumes what is unfinished.

Follows ``KafkaController.onControllerFailover`` after the election. A controller that dies at any
step leaves nothing to repair: the next one begins here again.
"""

from typing import Final

from featurewatch.controller.partitions.states import ReplicaState
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.context import (
    PartitionLeadership,
    PartitionReplica,
)
from featurewatch.reference.zookeeper.machines.topics.operations.creation import TopicCreation
from featurewatch.reference.zookeeper.machines.topics.operations.deletion import TopicDeletion
from featurewatch.reference.zookeeper.machines.topics.operations.elections import RequestedElections
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.operations.reassignment import Reassignments
from featurewatch.reference.zookeeper.machines.topics.state_store import StateFailure
from featurewatch.reference.zookeeper.machines.topics.znodes import ISR_CHANGES, LOG_DIR_EVENTS
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    GetChildren,
    GetChildrenResult,
    NoNode,
)

_NOTIFICATIONS: Final = (LOG_DIR_EVENTS, ISR_CHANGES)


class Failover:
    """Makes a newly elected controller ready; its context has the brokers already."""

    def __init__(
        self,
        parts: OperationParts,
        creation: TopicCreation,
        deletion: TopicDeletion,
        reassignments: Reassignments,
        elections: RequestedElections,
    ) -> None:
        self._parts = parts
        self._creation = creation
        self._deletion = deletion
        self._reassignments = reassignments
        self._elections = elections

    def run(self) -> Task[None]:
        """Reads the cluster, restores the states of replicas and partitions, and resumes.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        parts, deletes = self._parts, self._parts.dialect.deletes_by_states
        context = parts.context
        for path in _NOTIFICATIONS:
            yield from self._clear(path)
        yield from self._creation.load()
        yield from self._read_states()
        yield from self._creation.leave_controllers(
            [part for part in context.assignments if part not in context.leaderships]
        )
        self._find_reassignments()
        if deletes:
            yield from self._deletion.load()
        parts.send_metadata(context.registered_brokers, [])
        yield from self._start_replicas()
        parts.partitions.restore_states()
        yield from parts.partitions.elect_leaderless()
        started = yield from self._reassignments.start_requested()
        yield from self._reassignments.resume(context.reassigning - started)
        if deletes:
            yield from self._deletion.resume()
        yield from self._elections.on_requested()

    def _clear(self, path: str) -> Task[None]:
        """Removes notifications: what they are about is read anyway; leaves a watch."""
        result = yield from perform(GetChildren(path, watch=True))
        if isinstance(result, NoNode):
            yield from perform(Create(path, b""))
            result = yield from perform(GetChildren(path, watch=True))
        if isinstance(result, GetChildrenResult) and result.names:
            deletions = [Delete(f"{path}/{name}") for name in sorted(result.names)]
            yield from self._parts.writer.write(deletions)

    def _read_states(self) -> Task[None]:
        context = self._parts.context
        # As in Kafka, whoever wrote a state: what changes it later checks who did.
        states = yield from self._parts.store.read(context.assignments, accepts_newer=True)
        for partition, state in states.items():
            if isinstance(state, PartitionLeadership):
                context.leaderships[partition] = state
            elif isinstance(state, StateFailure) and state.is_error:
                self._parts.log(f"partition {partition}: {state.reason}")

    def _find_reassignments(self) -> None:
        context = self._parts.context
        context.reassigning |= {
            partition
            for partition, assignment in context.assignments.items()
            if assignment.is_being_reassigned
        }

    def _start_replicas(self) -> Task[None]:
        """Sets the replicas of live brokers online, those of dead ones offline."""
        context, machine = self._parts.context, self._parts.replicas
        machine.restore_states()
        live: list[PartitionReplica] = []
        dead: list[PartitionReplica] = []
        for replica in context.replicas_of(context.assignments):
            is_online = context.is_online(replica.broker_id, replica.partition)
            (live if is_online else dead).append(replica)
        if self._parts.dialect.restarts_dead:
            yield from machine.move([*live, *dead], ReplicaState.ONLINE)
        else:
            yield from machine.move(live, ReplicaState.ONLINE)
            yield from machine.move(dead, ReplicaState.OFFLINE)
