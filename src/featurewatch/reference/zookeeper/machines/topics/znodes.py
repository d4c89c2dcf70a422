"""Reads and writes the bytes of the znodes of topics, partitions and administrative tasks.

They are ``TopicZNode``, ``TopicPartitionStateZNode``, ``ReassignPartitionsZNode``,
``PreferredReplicaElectionZNode``, ``IsrChangeNotificationSequenceZNode`` and
``LogDirEventNotificationSequenceZNode`` of ``kafka.zk.ZkData`` in Kafka 2.8 to 3.9.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.streams.codec.checks import INT32, a_text, list_of, map_of
from featurewatch.streams.znodes import AdminZnode, PartitionStateZnode, UnreadableZnode
from featurewatch.streams.zookeeper import paths
from featurewatch.streams.zookeeper.decoding.fields import (
    ZnodeFormatError,
    json_object,
    optional,
    required,
    schema,
)
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode

TOPICS: Final = paths.TOPICS
DELETE_TOPICS: Final = paths.DELETE_TOPICS
REASSIGN_PARTITIONS: Final = paths.REASSIGN_PARTITIONS
PREFERRED_ELECTION: Final = paths.PREFERRED_ELECTION
ISR_CHANGES: Final = "/isr_change_notification"
LOG_DIR_EVENTS: Final = "/log_dir_event_notification"
TOPIC_CONFIGS: Final = "/config/topics"

SCHEMA_WITH_ID: Final = 3
"""The schema of a topic's znode from which on it has the topic's id."""

_REPLICAS: Final = map_of(list_of(INT32))
_RECOVERING: Final = 1


class TopicZnode(NamedTuple):
    """``/brokers/topics/<topic>``: replicas by partition number; from schema 3 on the id."""

    assignments: Mapping[int, ReplicaAssignment]
    topic_id: str | None


class ReassignmentEntry(NamedTuple):
    """An entry of ``/admin/reassign_partitions``: the target replicas of a partition."""

    partition: TopicPartition
    replicas: tuple[int, ...]


def topic_path(topic: str) -> str:
    """The path of a topic's assignment."""
    return f"{TOPICS}/{topic}"


def state_path(partition: TopicPartition) -> str:
    """The path of a partition's leader and ISR."""
    return f"{TOPICS}/{partition.topic}/partitions/{partition.number}/state"


def topic_config_path(topic: str) -> str:
    """The path of a topic's own configuration."""
    return f"{TOPIC_CONFIGS}/{topic}"


# -- topics ----------------------------------------------------------------------------------------


def encode_topic(znode: TopicZnode, version: int) -> bytes:
    """Encodes a topic's assignment in schema 1, 2 or 3."""
    numbers = sorted(znode.assignments.items())

    def lists(name: str) -> dict[str, list[int]]:
        values = ((number, getattr(assignment, name)) for number, assignment in numbers)
        return {str(number): [*value] for number, value in values}

    content: dict[str, Any] = {"version": version, "partitions": lists("replicas")}
    if version > 1:
        for name in ("adding", "removing"):
            changing = lists(name)
            content[f"{name}_replicas"] = {
                number: replicas for number, replicas in changing.items() if replicas
            }
    if version > 2 and znode.topic_id is not None:
        content["topic_id"] = znode.topic_id
    return orjson.dumps(content)


def decode_topic(data: bytes) -> TopicZnode:
    """Decodes a topic's assignment.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable, or replicas are named twice.
    """
    try:
        content = json_object(data)
        schema(content, 1, 3)
        replicas = required(content, "partitions", _REPLICAS)
        adding = optional(content, "adding_replicas", _REPLICAS, {})
        removing = optional(content, "removing_replicas", _REPLICAS, {})
        topic_id = optional(content, "topic_id", a_text, None)
        assignments = {
            _partition_number(number): ReplicaAssignment(
                _distinct(listed),
                _distinct(adding.get(number, ())),
                _distinct(removing.get(number, ())),
            )
            for number, listed in replicas.items()
        }
    except ValueError as error:
        raise ZnodeDecodeError(str(error)) from None
    return TopicZnode(dict(sorted(assignments.items())), topic_id)


def _partition_number(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ZnodeFormatError(f"{text!r} is not a number of a partition")
    return int(INT32(int(text)))


def _distinct(broker_ids: Iterable[int]) -> tuple[int, ...]:
    ids = tuple(broker_ids)
    if len({*ids}) < len(ids) or any(broker_id < 0 for broker_id in ids):
        raise ZnodeFormatError(f"{[*ids]} is not a list of replicas")
    return ids


# -- partition states ------------------------------------------------------------------------------


def encode_state(leadership: PartitionLeadership) -> bytes:
    """Encodes a partition's leader and ISR; its partition epoch is the znode's version."""
    content: dict[str, Any] = {
        "controller_epoch": leadership.controller_epoch,
        "leader": leadership.leader,
        "version": 1,
        "leader_epoch": leadership.leader_epoch,
        "isr": [*leadership.isr],
    }
    if leadership.recovering:
        content["leader_recovery_state"] = _RECOVERING
    return orjson.dumps(content)


def decode_state(partition: TopicPartition, data: bytes, version: int) -> PartitionLeadership:
    """Decodes a partition's leader and ISR; ``version`` is the znode's.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    content = decode_znode(state_path(partition), data).content
    if not isinstance(content, PartitionStateZnode):
        reason = content.reason if isinstance(content, UnreadableZnode) else "unknown path"
        raise ZnodeDecodeError(reason)
    return PartitionLeadership(
        leader=int(content.leader),
        isr=tuple(map(int, content.isr)),
        leader_epoch=content.leader_epoch,
        controller_epoch=content.controller_epoch,
        partition_epoch=version,
        recovering=content.recovering,
    )


# -- administrative tasks --------------------------------------------------------------------------


def encode_reassignments(entries: Iterable[ReassignmentEntry]) -> bytes:
    """Encodes the reassignments that are requested by znode."""
    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.number,
            "replicas": [*replicas],
        }
        for partition, replicas in entries
    ]
    return orjson.dumps({"version": 1, "partitions": partitions})


def decode_reassignments(data: bytes) -> list[ReassignmentEntry]:
    """Decodes the reassignments that are requested by znode; of duplicates the last one counts.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    entries = {
        _partition(entry): tuple(entry["replicas"])
        for entry in _task_entries(REASSIGN_PARTITIONS, data)
    }
    return [ReassignmentEntry(partition, replicas) for partition, replicas in entries.items()]


def encode_preferred_elections(partitions: Iterable[TopicPartition]) -> bytes:
    """Encodes the partitions of a preferred election that is requested by znode."""
    entries = [{"topic": topic, "partition": number} for topic, number in partitions]
    return orjson.dumps({"version": 1, "partitions": entries})


def decode_preferred_elections(data: bytes) -> list[TopicPartition]:
    """Decodes the partitions of a preferred election that is requested by znode.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    entries = _task_entries(PREFERRED_ELECTION, data)
    return [*dict.fromkeys(_partition(entry) for entry in entries)]


def decode_isr_changes(data: bytes) -> list[TopicPartition]:
    """Decodes the partitions of an ISR change notification (brokers before AlterPartition).

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    return [_partition(entry) for entry in _task_entries(PREFERRED_ELECTION, data)]


def decode_log_dir_event(data: bytes) -> int:
    """Decodes the id of the broker that lost a log directory.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    try:
        content = json_object(data)
        schema(content, 1, 1)
        return int(required(content, "broker", INT32))
    except ValueError as error:
        raise ZnodeDecodeError(str(error)) from None


def decode_topic_config(data: bytes) -> Mapping[str, str]:
    """Decodes a topic's own configuration.

    Raises:
        ZnodeDecodeError: if the bytes are unreadable.
    """
    try:
        content = json_object(data)
        schema(content, 1, 1)
        config: Mapping[str, str] = required(content, "config", map_of(a_text))
    except ValueError as error:
        raise ZnodeDecodeError(str(error)) from None
    return config


def _task_entries(path: str, data: bytes) -> tuple[Mapping[str, Any], ...]:
    content = decode_znode(path, data).content
    if isinstance(content, AdminZnode):
        return content.partitions
    reason = content.reason if isinstance(content, UnreadableZnode) else "unknown path"
    raise ZnodeDecodeError(reason)


def _partition(entry: Mapping[str, Any]) -> TopicPartition:
    return TopicPartition(entry["topic"], entry["partition"])
