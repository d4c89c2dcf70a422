"""Deletes topics: queued, retried when brokers return, and ended when every replica is deleted.

Follows ``TopicDeletionManager``; the document Kafka Controller Internals has no such operation. The
requests are the znodes below ``/admin/delete_topics``, which are all that a failover leaves.
"""

from collections.abc import Iterable, Mapping

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.context import PartitionReplica
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    DELETE_TOPICS,
    state_path,
    topic_config_path,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    GetChildren,
    GetChildrenResult,
    NoNode,
)


class TopicDeletion:
    """The topics that are being deleted; the sets are in the controller's context."""

    def __init__(self, parts: OperationParts, *, is_enabled: bool = True) -> None:
        self._parts = parts
        self.is_enabled = is_enabled
        """``delete.topic.enable``: if not, requests are removed and nothing is deleted."""
        self._context = parts.context

    def load(self) -> Task[None]:
        """Queues the requested deletions when a controller is elected, without starting them.

        Topics with a dead replica or a reassignment are ineligible until these are over.
        """
        context = self._context
        topics = yield from self._accepted()
        context.queued_deletions |= topics & self._context.topics
        for replica in context.replicas_of(context.assignments):
            partition, broker_id = replica
            if not context.is_online(broker_id, partition) or partition in context.reassigning:
                self.mark_ineligible([partition.topic])

    def on_requested(self) -> Task[None]:
        """Queues the topics that someone has requested to delete, and starts what can start."""
        topics = yield from self._accepted()
        unknown = sorted(topics - self._context.topics)
        for topic in unknown:
            yield from self._parts.write(Delete(f"{DELETE_TOPICS}/{topic}"))
        queued = topics - {*unknown}
        self._context.queued_deletions |= queued
        reassigning = {partition.topic for partition in self._context.reassigning}
        self.mark_ineligible(queued & reassigning)
        yield from self.resume()

    def resume_topics(self, topics: Iterable[str]) -> Task[None]:
        """Tries again: a broker with one of their replicas returned, or a reassignment ended."""
        resumed = {*topics} & self._context.queued_deletions
        if resumed:
            self._context.ineligible_deletions -= resumed
            yield from self.resume()

    def mark_ineligible(self, topics: Iterable[str]) -> None:
        """Keeps queued topics from being deleted until `resume_topics`."""
        self._context.ineligible_deletions |= {*topics} & self._context.queued_deletions

    def fail(self, replicas: Iterable[PartitionReplica]) -> Task[None]:
        """Records that replicas could not be deleted."""
        failed = [replica for replica in replicas if self._is_queued(replica)]
        if failed:
            yield from self._parts.replicas.move(failed, ReplicaState.DELETION_INELIGIBLE)
            self.mark_ineligible({replica.partition.topic for replica in failed})
            yield from self.resume()

    def on_stop_replica_response(
        self, broker_id: int, errors: Mapping[TopicPartition, int]
    ) -> Task[None]:
        """Records which replicas a broker has deleted; the error of a request counts for all."""
        started = self._context.started_deletions
        counted = {
            PartitionReplica(partition, broker_id): error
            for partition, error in errors.items()
            if partition.topic in started
        }
        failed = [replica for replica, error in counted.items() if error != ErrorCode.NONE]
        deleted = [replica for replica in counted if counted[replica] == ErrorCode.NONE]
        yield from self.fail(failed)
        deleted = [replica for replica in deleted if self._is_queued(replica)]
        if deleted:
            yield from self._parts.replicas.move(deleted, ReplicaState.DELETION_SUCCESSFUL)
            yield from self.resume()

    def resume(self) -> Task[None]:
        """Ends, retries or starts the deletion of each queued topic, whichever is possible."""
        retried, eligible = [], []
        for topic in sorted(self._context.queued_deletions):
            if self._is_deleted(topic):
                yield from self._complete(topic)
                continue
            if self._has(topic, ReplicaState.DELETION_STARTED):
                continue
            if self._has(topic, ReplicaState.DELETION_INELIGIBLE):
                retried.append(topic)
            if topic not in self._context.ineligible_deletions:
                eligible.append(topic)
        ineligible = [
            replica
            for topic in retried
            for replica in self._context.replicas_in(topic, ReplicaState.DELETION_INELIGIBLE)
        ]
        yield from self._parts.replicas.move(ineligible, ReplicaState.OFFLINE)
        if eligible:
            yield from self._start(eligible)

    # -- steps -------------------------------------------------------------------------------------

    def _start(self, topics: list[str]) -> Task[None]:
        context = self._context
        unseen = [topic for topic in topics if topic not in context.started_deletions]
        partitions = [part for topic in unseen for part in context.partitions_of(topic)]
        yield from self._parts.partitions.move(partitions, PartitionState.OFFLINE)
        yield from self._parts.partitions.move(partitions, PartitionState.NON_EXISTENT)
        context.started_deletions |= {*unseen}
        affected = [part for topic in topics for part in context.partitions_of(topic)]
        self._parts.send_metadata(context.registered_brokers, affected)
        yield from self._delete_replicas(affected)

    def _delete_replicas(self, partitions: list[TopicPartition]) -> Task[None]:
        context, dead, live = self._context, [], []
        for replica in context.replicas_of(partitions):
            if not context.is_online(replica.broker_id, replica.partition):
                dead.append(replica)
            elif context.replica_state(replica) is not ReplicaState.DELETION_SUCCESSFUL:
                live.append(replica)
        machine = self._parts.replicas
        yield from machine.move(dead, ReplicaState.DELETION_INELIGIBLE)
        yield from machine.move(live, ReplicaState.OFFLINE)
        yield from machine.move(live, ReplicaState.DELETION_STARTED)
        self.mark_ineligible({replica.partition.topic for replica in dead})

    def _complete(self, topic: str) -> Task[None]:
        """Removes a topic whose replicas are all gone: its znodes last, the request at the end."""
        context, write = self._context, self._parts.write
        partitions = context.partitions_of(topic)
        replicas = context.replicas_in(topic, ReplicaState.DELETION_SUCCESSFUL)
        yield from self._parts.replicas.move(replicas, ReplicaState.NON_EXISTENT)
        for partition in partitions:
            yield from write(Delete(state_path(partition)))
            yield from write(Delete(state_path(partition).removesuffix("/state")))
        yield from write(Delete(f"{topic_path(topic)}/partitions"))
        yield from write(Delete(topic_path(topic)))
        yield from write(Delete(topic_config_path(topic)))
        yield from write(Delete(f"{DELETE_TOPICS}/{topic}"))
        context.remove_topic(topic)

    def _accepted(self) -> Task[set[str]]:
        """The topics to be deleted; if deletion is disabled, their requests are removed."""
        topics = yield from self._requested()
        if self.is_enabled:
            return topics
        for topic in sorted(topics):
            self._parts.log(f"topic {topic} is not deleted: delete.topic.enable is false")
            yield from self._parts.write(Delete(f"{DELETE_TOPICS}/{topic}"))
        return set()

    def _requested(self) -> Task[set[str]]:
        result = yield from perform(GetChildren(DELETE_TOPICS, watch=True))
        if isinstance(result, NoNode):
            yield from perform(Create(DELETE_TOPICS, b""))
            result = yield from perform(GetChildren(DELETE_TOPICS, watch=True))
        return {*result.names} if isinstance(result, GetChildrenResult) else set()

    def _is_queued(self, replica: PartitionReplica) -> bool:
        return replica.partition.topic in self._context.queued_deletions

    def _is_deleted(self, topic: str) -> bool:
        replicas = self._context.replicas_of(self._context.partitions_of(topic))
        return all(
            self._context.replica_state(replica) is ReplicaState.DELETION_SUCCESSFUL
            for replica in replicas
        )

    def _has(self, topic: str, state: ReplicaState) -> bool:
        return bool(self._context.replicas_in(topic, state))
