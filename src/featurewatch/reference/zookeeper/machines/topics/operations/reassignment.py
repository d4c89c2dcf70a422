"""Moves partitions to other replicas: started, completed, replaced, canceled, and resumed.

Follows ``KafkaController.onPartitionReassignment``. The steps have the numbers of Kafka Controller
Internals, where OAR is `ReplicaAssignment.origin` and RAR is `ReplicaAssignment.target`:

1. write OAR + RAR; 2. LeaderAndIsr to all of them, with the next leader epoch; 3. the added ones
become new; 4. wait until RAR is in the ISR; 5. RAR online; 6. AR = RAR in memory; 7. elect a leader
in RAR, or raise the leader epoch; 8. the removed ones offline; 9. and deleted; 10. write RAR;
11. remove the request; 12. UpdateMetadata.

RAR is written last, so that OAR can be read from ZooKeeper until the end: a controller that is
elected after any step begins again. In the document's form the znode of requests has RAR in its
order until then.

The module is above 300 lines, so that the twelve steps are in one order in one place.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from featurewatch.controller.partitions.assignment import (
    ReplicaAssignment,
    TopicPartition,
    without,
)
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.context import PartitionReplica
from featurewatch.reference.zookeeper.machines.topics.operations.deletion import TopicDeletion
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.partition_machine import REASSIGN_ELECTION
from featurewatch.reference.zookeeper.machines.topics.requests import ReassignRequest
from featurewatch.reference.zookeeper.machines.topics.results import NO_ERROR, PartitionResult
from featurewatch.reference.zookeeper.machines.topics.state_store import StateFailure
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    REASSIGN_PARTITIONS,
    ReassignmentEntry,
    decode_reassignments,
    encode_reassignments,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    ANY_VERSION,
    Create,
    Delete,
    Exists,
    GetData,
    GetDataResult,
    OperationDone,
    SetData,
)


class Reassignments:
    """The reassignments of a controller; those that run are in ``context.reassigning``."""

    def __init__(self, parts: OperationParts, deletion: TopicDeletion) -> None:
        self._parts = parts
        self._context = parts.context
        self._deletion = deletion

    # -- requests ----------------------------------------------------------------------------------

    def request(self, request: ReassignRequest) -> Task[dict[TopicPartition, PartitionResult]]:
        """Starts, replaces or cancels reassignments (AlterPartitionReassignments)."""
        if request.validate_only or request.all_or_nothing:
            checked = {
                partition: self._check_all(partition, target)
                for partition, target in request.targets.items()
            }
            if request.validate_only or {*checked.values()} != {NO_ERROR}:
                return checked
        results = {}
        for partition, target in request.targets.items():
            result = self._check(partition, target)
            if result is NO_ERROR:
                yield from self._forget([partition])
                if self._parts.dialect.notes_requests:
                    result = yield from self._note(partition, target)
            if result is NO_ERROR:
                result = yield from self._reassign(partition, target)
            results[partition] = result
        return results

    def on_requested(self) -> Task[None]:
        """Starts the reassignments of the znode; entries that cannot be started are removed.

        Those that this controller has noted there itself run already.
        """
        running = self._context.reassigning if self._parts.dialect.notes_requests else ()
        yield from self.start_requested(
            {partition: self._context.assignment(partition).target for partition in running}
        )

    def start_requested(
        self, running: Mapping[TopicPartition, Sequence[int]] = MappingProxyType({})
    ) -> Task[set[TopicPartition]]:
        """As `on_requested`; returns the partitions whose reassignment was started."""
        entries = yield from self._requested()
        failed = set()
        for partition, replicas in entries:
            if running.get(partition) == replicas:
                continue
            if (yield from self._reassign(partition, replicas)) is not NO_ERROR:
                failed.add(partition)
        yield from self._forget(failed)
        return {entry.partition for entry in entries} - failed

    def resume(self, partitions: Iterable[TopicPartition]) -> Task[None]:
        """Continues the reassignments of these partitions."""
        for partition in sorted(partitions):
            yield from self.run(partition, self._context.assignment(partition))

    def on_brokers_started(self, broker_ids: Iterable[int]) -> Task[None]:
        """Continues the reassignments with a replica of the target on one of the brokers.

        In the document's form with any replica on one of them. In the released form also those
        whose target is in the ISR already: a partition that got its first leader by this start has
        all live replicas in it, so no ISR change will follow. Kafka leaves that one to the next
        controller.
        """
        context, started = self._context, {*broker_ids}
        waiting = []
        for partition in context.reassigning:
            assignment = context.assignment(partition)
            if self._parts.dialect.resumes_any_replica:
                is_waiting = bool(started & {*assignment.replicas})
            else:
                leadership = context.leaderships.get(partition)
                is_in_sync = leadership is not None and assignment.is_complete(leadership.isr)
                is_waiting = is_in_sync or bool(started & {*assignment.target})
            if is_waiting:
                waiting.append(partition)
        yield from self.resume(waiting)

    def complete(self, partitions: Iterable[TopicPartition]) -> Task[None]:
        """Completes the reassignments whose target is in the ISR by now."""
        for partition in partitions:
            if partition not in self._context.reassigning:
                continue
            assignment = self._context.assignment(partition)
            if (yield from self._is_complete(partition, assignment)):
                yield from self._finish(partition, assignment)

    def _check(self, partition: TopicPartition, target: Sequence[int] | None) -> PartitionResult:
        """The checks of a requested target, with Kafka's texts (``validateReplicas``)."""
        if target is None:
            return NO_ERROR
        added = self._context.assignment(partition).reassign_to(target).adding
        live = self._context.live_brokers
        if not target:
            reason = "Empty replica list specified in partition reassignment."
        elif len({*target}) < len(target):
            reason = (
                "Duplicate replica ids in partition reassignment replica list:"
                f" ArrayBuffer({_listed(target)})"
            )
        elif any(broker_id < 0 for broker_id in target):
            reason = f"Invalid broker id in replica list: ArrayBuffer({_listed(target)})"
        elif not {*added} <= {*live}:
            reason = (
                "Replica assignment has brokers that are not alive. Replica list:"
                f" ArrayBuffer({_listed(added)}), live broker list: Set({_listed(live)})"
            )
        else:
            return NO_ERROR
        return PartitionResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)

    def _check_all(
        self, partition: TopicPartition, target: Sequence[int] | None
    ) -> PartitionResult:
        result = self._check(partition, target)
        return self._check_partition(partition, target) if result is NO_ERROR else result

    def _check_partition(
        self, partition: TopicPartition, target: Sequence[int] | None
    ) -> PartitionResult:
        assignment = self._context.assignment(partition)
        if target is None and not assignment.is_being_reassigned:
            return PartitionResult(
                ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress."
            )
        if self._context.is_being_deleted(partition):
            return PartitionResult(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The topic is being deleted"
            )
        if not assignment.replicas:
            return PartitionResult(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist."
            )
        return NO_ERROR

    def _reassign(
        self, partition: TopicPartition, target: Sequence[int] | None
    ) -> Task[PartitionResult]:
        checked = self._check_partition(partition, target)
        if checked is not NO_ERROR:
            return checked
        assignment = self._context.assignment(partition)
        wanted = assignment.origin if target is None else target
        appends = self._parts.dialect.appends_target
        next_assignment = assignment.append(wanted) if appends else assignment.reassign_to(wanted)
        if not (yield from self.run(partition, next_assignment)):
            return PartitionResult(
                ErrorCode.UNKNOWN_SERVER_ERROR, "The assignment of the topic cannot be written."
            )
        return NO_ERROR

    # -- the twelve steps --------------------------------------------------------------------------

    def run(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Task[bool]:
        """Takes a reassignment as far as it gets now; whether its beginning could be written.

        Raises:
            ControllerMovedError: if another controller was elected.
        """
        self._deletion.mark_ineligible([partition.topic])
        if not (yield from self._begin(partition, assignment)):
            return False
        is_complete = yield from self._is_complete(partition, assignment)
        if not is_complete or self._parts.dialect.takes_all_steps:
            yield from self._raise_epoch(partition)  # step 2
            for broker_id in assignment.adding:
                replica = PartitionReplica(partition, broker_id)
                yield from self._parts.replicas.move([replica], ReplicaState.NEW)  # step 3
        if is_complete:
            yield from self._finish(partition, assignment)
        return True

    def _begin(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Task[bool]:
        """Step 1; a replaced reassignment's own additions are stopped and deleted."""
        context = self._context
        current = context.assignment(partition)
        if current != assignment:
            if not (yield from self._parts.write_topic(partition.topic, {partition: assignment})):
                return False
            context.assignments[partition] = assignment
            yield from self._drop(partition, without(current.replicas, assignment.replicas))
        context.reassigning.add(partition)
        return True

    def _is_complete(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Task[bool]:
        """Step 4: whether there is nothing left to wait for."""
        if not assignment.is_being_reassigned and not self._parts.dialect.takes_all_steps:
            return True
        states = yield from self._parts.store.read([partition])
        state = states[partition]
        return not isinstance(state, StateFailure) and assignment.is_complete(state.isr)

    def _finish(self, partition: TopicPartition, assignment: ReplicaAssignment) -> Task[None]:
        """Steps 5 to 12."""
        context, dialect = self._context, self._parts.dialect
        started = assignment.target if dialect.starts_all_target else assignment.adding
        replicas = [PartitionReplica(partition, broker_id) for broker_id in started]
        yield from self._parts.replicas.move(replicas, ReplicaState.ONLINE)  # step 5
        completed = ReplicaAssignment(assignment.target)
        context.assignments[partition] = completed  # step 6
        yield from self._lead_from_target(partition)  # step 7
        yield from self._drop(partition, assignment.removing)  # steps 8 and 9
        yield from self._parts.write_topic(partition.topic, {partition: completed})  # step 10
        context.assignments[partition] = completed
        yield from self._forget([partition], completed.replicas)  # step 11
        context.reassigning.discard(partition)
        self._parts.send_metadata(context.registered_brokers, [partition])  # step 12
        yield from self._deletion.resume_topics([partition.topic])

    def _lead_from_target(self, partition: TopicPartition) -> Task[None]:
        context = self._context
        leadership = context.leaderships.get(partition)
        leader = None if leadership is None else leadership.leader
        keeps_leader = leader in context.assignment(partition).replicas and (
            not self._parts.dialect.replaces_dead_leader
            or (leader is not None and context.is_online(leader, partition))
        )
        if keeps_leader:
            yield from self._raise_epoch(partition)
        else:
            yield from self._parts.partitions.move(
                [partition], PartitionState.ONLINE, REASSIGN_ELECTION
            )

    def _raise_epoch(self, partition: TopicPartition) -> Task[None]:
        """Informs all replicas of the assignment, with the next leader epoch."""
        if (yield from self._parts.raise_leader_epoch(partition)):
            assignment, batch = self._context.assignment(partition), self._parts.batch
            batch.add_leader_and_isr(assignment.origin, partition, is_new=False)
            batch.add_leader_and_isr(assignment.adding, partition, is_new=True)
            batch.send()

    def _drop(self, partition: TopicPartition, broker_ids: Iterable[int]) -> Task[None]:
        """Stops and deletes replicas; as in Kafka, nobody waits for the brokers' responses."""
        replicas = [PartitionReplica(partition, broker_id) for broker_id in broker_ids]
        states = [ReplicaState.OFFLINE]
        if self._parts.dialect.deletes_by_states:
            states += [ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL]
        for state in (*states, ReplicaState.NON_EXISTENT):
            yield from self._parts.replicas.move(replicas, state)

    # -- the znode of requests ---------------------------------------------------------------------

    def _requested(self) -> Task[list[ReassignmentEntry]]:
        """The entries of the znode, which is watched; none if it is absent or unreadable."""
        yield from perform(Exists(REASSIGN_PARTITIONS, watch=True))
        result = yield from perform(GetData(REASSIGN_PARTITIONS))
        if not isinstance(result, GetDataResult):
            return []
        try:
            return decode_reassignments(result.data)
        except ZnodeDecodeError as error:
            self._parts.log(f"cannot read {REASSIGN_PARTITIONS}: {error}; write it again")
            return []

    def _note(
        self, partition: TopicPartition, target: Sequence[int] | None
    ) -> Task[PartitionResult]:
        """Adds a request to the znode, where the next controller finds it; whether it can start."""
        checked = self._check_partition(partition, target)
        if checked is not NO_ERROR or target is None:
            return checked
        content = yield from perform(GetData(REASSIGN_PARTITIONS))
        entries = []
        if isinstance(content, GetDataResult):
            try:
                entries = decode_reassignments(content.data)
            except ZnodeDecodeError as error:
                return PartitionResult(
                    ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot read {REASSIGN_PARTITIONS}: {error}"
                )
        data = encode_reassignments([*entries, ReassignmentEntry(partition, tuple(target))])
        if isinstance(content, GetDataResult):
            written = yield from self._parts.write(
                SetData(REASSIGN_PARTITIONS, data, content.stat.version)
            )
        else:
            written = yield from self._parts.write(Create(REASSIGN_PARTITIONS, data))
        if isinstance(written, OperationDone):
            return NO_ERROR
        return PartitionResult(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot write {REASSIGN_PARTITIONS}: {written}"
        )

    def _forget(
        self, partitions: Iterable[TopicPartition], replicas: Sequence[int] | None = None
    ) -> Task[None]:
        """Removes partitions from the znode; with ``replicas`` only entries that are equal."""
        removed = {*partitions}
        if not removed:
            return
        result = yield from perform(GetData(REASSIGN_PARTITIONS))
        if not isinstance(result, GetDataResult):
            return
        try:
            entries = decode_reassignments(result.data)
        except ZnodeDecodeError:
            return
        kept = [
            entry
            for entry in entries
            if entry.partition not in removed
            or (replicas is not None and entry.replicas != tuple(replicas))
        ]
        if len(kept) == len(entries):
            return
        if kept:
            data = encode_reassignments(kept)
            yield from self._parts.write(SetData(REASSIGN_PARTITIONS, data, ANY_VERSION))
        else:
            yield from self._parts.write(Delete(REASSIGN_PARTITIONS))


def _listed(broker_ids: Iterable[int]) -> str:
    return ", ".join(map(str, broker_ids))
