"""Partitions that clients add to topics; follows ``AdminZkClient.addPartitions`` of Kafka 3.9."""

from collections.abc import Iterable, Mapping

from featurewatch.controller.partitions.assignment import ReplicaAssignment
from featurewatch.controller.partitions.placement import (
    PlacementError,
    PlacementStart,
    place_replicas,
)
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.operations.creation import TopicCreation
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.requests import (
    MAX_NEW_PARTITIONS,
    TOO_MANY_PARTITIONS,
    NewPartitions,
    TopicResult,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    TopicZnode,
    encode_topic,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import ANY_VERSION, OperationDone, SetData

_Assignments = Mapping[int, tuple[int, ...]]


class ClientPartitions:
    """Performs CreatePartitions."""

    def __init__(self, parts: OperationParts, creation: TopicCreation) -> None:
        self._parts = parts
        self._context = parts.context
        self._creation = creation

    def create(
        self, topics: Iterable[NewPartitions], *, dry_run: bool
    ) -> Task[dict[str, TopicResult]]:
        """Adds partitions to topics."""
        results: dict[str, TopicResult] = {}
        for topic in topics:
            checked = self._checked_partitions(topic)
            if isinstance(checked, TopicResult):
                results[topic.topic] = checked
                continue
            results[topic.topic] = TopicResult(assignments=checked)
            if dry_run:
                continue
            present = {
                partition.number: self._context.assignments[partition]
                for partition in self._context.partitions_of(topic.topic)
            }
            added = {number: ReplicaAssignment(tuple(ids)) for number, ids in checked.items()}
            znode = TopicZnode({**present, **added}, self._context.topic_ids.get(topic.topic))
            data = encode_topic(znode, self._parts.dialect.assignment_schema)
            written = yield from self._parts.write(
                SetData(topic_path(topic.topic), data, ANY_VERSION)
            )
            if isinstance(written, OperationDone):
                yield from self._creation.on_topic_changed(topic.topic)
            else:
                reason = f"The topic cannot be written: {written}"
                results[topic.topic] = TopicResult(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
        return results

    def _checked_partitions(self, topic: NewPartitions) -> _Assignments | TopicResult:
        """The replicas of the new partitions, or the reason why they cannot be created."""
        name, context = topic.topic, self._context
        present = sorted(context.partitions_of(name))
        if not present:
            reason = f"The topic '{name}' does not exist."
            return TopicResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, reason)
        if name in context.queued_deletions:
            return TopicResult(
                ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion."
            )
        if any(context.assignments[partition].is_being_reassigned for partition in present):
            return TopicResult(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{name}'.",
            )
        added_count = topic.partition_count - len(present)
        if added_count <= 0:
            reason = (
                f"Topic already has {len(present)} partitions."
                if added_count == 0
                else f"Topic currently has {len(present)} partitions, which is higher than the "
                f"requested {topic.partition_count}."
            )
            return TopicResult(ErrorCode.INVALID_PARTITIONS, reason)
        if added_count > MAX_NEW_PARTITIONS:
            return TOO_MANY_PARTITIONS
        first = context.assignments[present[0]].replicas
        if topic.replicas is not None:
            return self._manual_partitions(topic.replicas, len(present), added_count, first)
        racks = context.racks
        ids = [*racks]
        start = next((ids.index(broker) for broker in ids if broker >= first[0]), 0) if first else 0
        try:
            return place_replicas(
                racks, added_count, len(first), PlacementStart(start, start, len(present))
            )
        except PlacementError as error:
            return TopicResult(ErrorCode.INVALID_REPLICATION_FACTOR, str(error))

    def _manual_partitions(
        self,
        replicas: tuple[tuple[int, ...], ...],
        present_count: int,
        added_count: int,
        first: tuple[int, ...],
    ) -> _Assignments | TopicResult:
        reason = None
        unknown = sorted({*sum(replicas, ())} - self._context.brokers.keys())
        other = [
            present_count + index for index, ids in enumerate(replicas) if len(ids) != len(first)
        ]
        if len(replicas) != added_count:
            reason = (
                f"Increasing the number of partitions by {added_count} but {len(replicas)} "
                "assignments provided."
            )
        elif unknown:
            listed = ", ".join(map(str, unknown))
            reason = f"Unknown broker(s) in replica assignment: {listed}."
        elif other or any(len({*ids}) < len(ids) for ids in replicas):
            reason = (
                "Inconsistent replication factor between partitions, partition 0 has "
                f"{len(first)} while partitions {other} have another one, or a broker twice."
            )
        if reason is not None:
            return TopicResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
        return {present_count + index: ids for index, ids in enumerate(replicas)}
