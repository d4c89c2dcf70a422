"""Topics that clients create and delete.

Follows ``ZkAdminManager`` and ``AdminZkClient`` of Kafka 3.9, which write in the threads of
requests. Here the controller does it in its queue, so that its writes check the controller's epoch,
and a topic has its leaders when the response leaves.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from zlib import crc32

import orjson

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.placement import (
    PlacementError,
    PlacementStart,
    place_replicas,
)
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.operations.creation import TopicCreation
from featurewatch.reference.zookeeper.machines.topics.operations.deletion import TopicDeletion
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.requests import (
    MAX_NEW_PARTITIONS,
    TOO_MANY_PARTITIONS,
    NewTopic,
    TopicResult,
)
from featurewatch.reference.zookeeper.machines.topics.setting_rules import invalid_settings
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    DELETE_TOPICS,
    SCHEMA_WITH_ID,
    TopicZnode,
    encode_topic,
    topic_config_path,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    ANY_VERSION,
    Create,
    NodeExists,
    OperationDone,
    SetData,
)

MAX_NAME_LENGTH: Final = 249
_LEGAL_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")

_Assignments = Mapping[int, tuple[int, ...]]


class ClientTopics:
    """Performs CreateTopics and DeleteTopics; ``new_topic_id`` returns an unused id."""

    def __init__(
        self,
        parts: OperationParts,
        creation: TopicCreation,
        deletion: TopicDeletion,
        new_topic_id: Callable[[], str],
    ) -> None:
        self._parts = parts
        self._context = parts.context
        self._creation = creation
        self._deletion = deletion
        self._new_topic_id = new_topic_id

    def create(self, topics: Iterable[NewTopic], *, dry_run: bool) -> Task[dict[str, TopicResult]]:
        """Creates topics; one without a live replica has the error that it still has no leader."""
        requested = [*topics]
        counts = Counter(topic.name for topic in requested)
        results: dict[str, TopicResult] = {}
        created: set[str] = set()
        partition_count = 0
        for topic in requested:
            partition_count += max(0, topic.partition_count, len(topic.assignments))
            if partition_count > MAX_NEW_PARTITIONS:
                results[topic.name] = TOO_MANY_PARTITIONS
                continue
            if counts[topic.name] > 1:
                error = ErrorCode.INVALID_REQUEST
                results[topic.name] = TopicResult(error, "Found multiple entries for this topic.")
                continue
            checked = self._checked(topic)
            if isinstance(checked, TopicResult):
                results[topic.name] = checked
            elif dry_run:
                results[topic.name] = TopicResult(assignments=checked)
            else:
                written = results[topic.name] = yield from self._write(topic, checked)
                if written.error is ErrorCode.NONE:
                    created.add(topic.name)
        if created:
            yield from self._creation.on_topics_changed()
        return {
            name: self._awaited(name, result) if name in created else result
            for name, result in results.items()
        }

    def _checked(self, topic: NewTopic) -> _Assignments | TopicResult:
        """The assignments of a topic, or the reason why it cannot be created."""
        if topic.name in self._context.topics:
            if topic.name in self._context.queued_deletions:
                reason = f"Topic '{topic.name}' is marked for deletion."
            else:
                reason = f"Topic '{topic.name}' already exists."
            return TopicResult(ErrorCode.TOPIC_ALREADY_EXISTS, reason)
        if None in topic.configs.values():
            names = ",".join(name for name, value in topic.configs.items() if value is None)
            return TopicResult(
                ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {names}"
            )
        if topic.assignments and (topic.partition_count, topic.replication_factor) != (-1, -1):
            return TopicResult(
                ErrorCode.INVALID_REQUEST,
                "Both numPartitions or replicationFactor and replicasAssignments were set. "
                "Both cannot be used at the same time.",
            )
        reason_of_name = invalid_name(topic.name) or self._collision(topic.name)
        if topic.assignments:
            placed = _invalid_assignments(topic.assignments) or topic.assignments
        else:
            placed = self._placed(topic)
        if reason_of_name is not None:
            return TopicResult(ErrorCode.INVALID_TOPIC_EXCEPTION, reason_of_name)
        invalid = invalid_settings({name: str(value) for name, value in topic.configs.items()})
        if invalid is not None and not isinstance(placed, TopicResult):
            return TopicResult(ErrorCode.INVALID_CONFIG, invalid)
        return placed

    def _placed(self, topic: NewTopic) -> _Assignments | TopicResult:
        # -1 asks for the broker's defaults, which are 1.
        count = 1 if topic.partition_count == -1 else topic.partition_count
        factor = 1 if topic.replication_factor == -1 else topic.replication_factor
        racks = self._context.racks
        # Kafka draws the start at random; any that differs between topics spreads the leaders.
        start = crc32(topic.name.encode()) % max(1, len(racks))
        try:
            return place_replicas(racks, count, factor, PlacementStart(start, start))
        except PlacementError as error:
            is_count = count <= 0
            code = (
                ErrorCode.INVALID_PARTITIONS if is_count else ErrorCode.INVALID_REPLICATION_FACTOR
            )
            return TopicResult(code, str(error))

    def _collision(self, name: str) -> str | None:
        """Names that differ by ``.`` and ``_`` alone have one name in metrics."""
        flat = name.replace(".", "_")
        if flat == name and "_" not in name:
            return None
        colliding = sorted(
            topic for topic in self._context.topics if topic.replace(".", "_") == flat
        )
        if not colliding:
            return None
        return f"Topic '{name}' collides with existing topics: {', '.join(colliding)}"

    def _write(self, topic: NewTopic, assignments: _Assignments) -> Task[TopicResult]:
        """Writes the configuration, then the assignment, as Kafka does."""
        config = orjson.dumps({"version": 1, "config": dict(topic.configs)})
        path = topic_config_path(topic.name)
        result = yield from self._parts.write(Create(path, config))
        if isinstance(result, NodeExists):
            # Left by a controller that died between the two writes.
            result = yield from self._parts.write(SetData(path, config, ANY_VERSION))
        if isinstance(result, OperationDone):
            schema = self._parts.dialect.assignment_schema
            topic_id = self._new_topic_id() if schema >= SCHEMA_WITH_ID else None
            replicas = {
                number: ReplicaAssignment(tuple(listed)) for number, listed in assignments.items()
            }
            data = encode_topic(TopicZnode(replicas, topic_id), schema)
            result = yield from self._parts.write(Create(topic_path(topic.name), data))
            if isinstance(result, OperationDone):
                return TopicResult(topic_id=topic_id, assignments=assignments)
        if isinstance(result, NodeExists):
            return TopicResult(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists."
            )
        return TopicResult(ErrorCode.UNKNOWN_SERVER_ERROR, f"The topic cannot be written: {result}")

    def _awaited(self, name: str, result: TopicResult) -> TopicResult:
        """A written topic whose partitions do not all have a leader is not ready."""
        leaderships = self._context.leaderships
        partitions = (TopicPartition(name, number) for number in result.assignments)
        if all(part in leaderships and leaderships[part].leader >= 0 for part in partitions):
            return result
        return result._replace(
            error=ErrorCode.REQUEST_TIMED_OUT,
            message="The topic was created, and a partition has no live replica yet.",
        )

    def delete(self, names: Iterable[str]) -> Task[dict[str, TopicResult]]:
        """Requests the deletion of topics and begins it; a dead replica delays its end."""
        results: dict[str, TopicResult] = {}
        for name in names:
            if name not in self._context.topics:
                results[name] = TopicResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            elif not self._deletion.is_enabled:
                results[name] = TopicResult(ErrorCode.TOPIC_DELETION_DISABLED)
            else:
                topic_id = self._context.topic_ids.get(name)
                written = yield from self._parts.write(Create(f"{DELETE_TOPICS}/{name}", b""))
                if isinstance(written, OperationDone | NodeExists):
                    results[name] = TopicResult(topic_id=topic_id)
                else:
                    reason = f"The deletion cannot be requested: {written}"
                    results[name] = TopicResult(ErrorCode.UNKNOWN_SERVER_ERROR, reason)
        yield from self._deletion.on_requested()
        return results


def invalid_name(name: str) -> str | None:
    """Why a topic cannot have this name, in Kafka's words; None if it can."""
    reason = None
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > MAX_NAME_LENGTH:
        reason = f"the length of '{name}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    elif not _LEGAL_NAME.fullmatch(name):
        reason = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    return None if reason is None else f"Topic name is invalid: {reason}"


def _invalid_assignments(assignments: _Assignments) -> TopicResult | None:
    reason = None
    if sorted(assignments) != [*range(len(assignments))]:
        reason = "partitions should be a consecutive 0-based integer sequence"
    elif len({len(replicas) for replicas in assignments.values()}) > 1:
        reason = "All partitions should have the same number of replicas"
    elif not all(assignments.values()):
        reason = "Empty replica list specified in partition assignment."
    elif any(
        len({*replicas}) < len(replicas) or min(replicas) < 0 for replicas in assignments.values()
    ):
        reason = "Duplicate replica assignment found, or a negative broker id"
    return None if reason is None else TopicResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, reason)
