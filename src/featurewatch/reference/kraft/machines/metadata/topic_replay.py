"""Applies records of topics and partitions to the state (``ReplicationControlManager``)."""

from typing import Any, Final

from featurewatch.reference.kraft.machines.metadata.records import Data, Record
from featurewatch.reference.kraft.machines.metadata.state import (
    TOPIC,
    MetadataState,
    Partition,
    Topic,
)
from featurewatch.streams.kraft.records.directory_ids import MIGRATING

_NO_CHANGE: Final = -2


def add_topic(state: MetadataState, record: Record) -> MetadataState:
    """A topic is created, without partitions."""
    topic = Topic(record.data["topicId"], record.data["name"], 0)
    return state._replace(
        topics=state.topics.set(topic.id, topic), ids=state.ids.set(topic.name, topic.id)
    )


def remove_topic(state: MetadataState, record: Record) -> MetadataState:
    """A topic is deleted, with its partitions and settings."""
    topic = state.topics[record.data["topicId"]]
    for key in state.keys_of(topic):
        state = state.with_partition(key, None)
    resource = (TOPIC, topic.name)
    return state._replace(
        topics=state.topics.delete(topic.id),
        ids=state.ids.delete(topic.name),
        configs=state.configs.delete(resource) if resource in state.configs else state.configs,
    )


def set_partition(state: MetadataState, record: Record) -> MetadataState:
    """A partition is created, or set as a whole."""
    data = record.data
    topic, index = state.topics[data["topicId"]], data["partitionId"]
    replicas = tuple(data["replicas"])
    partition = Partition(
        replicas,
        tuple(data["isr"]),
        tuple(data["removingReplicas"]),
        tuple(data["addingReplicas"]),
        data["leader"],
        data.get("leaderRecoveryState", 0),
        data["leaderEpoch"],
        data["partitionEpoch"],
        tuple(data.get("directories") or (MIGRATING,) * len(replicas)),
        tuple(data.get("eligibleLeaderReplicas") or ()),
        tuple(data.get("lastKnownElr") or ()),
    )
    state = state.with_partition((topic.id, index), partition)
    topic = topic._replace(partitions=max(topic.partitions, index + 1))
    return state._replace(topics=state.topics.set(topic.id, topic))


def change_partition(state: MetadataState, record: Record) -> MetadataState:
    """A part of a partition changes."""
    key = (record.data["topicId"], record.data["partitionId"])
    return state.with_partition(key, changed(state.partitions[key], record.data))


def changed(partition: Partition, data: Data) -> Partition:
    """A partition after a PartitionChangeRecord (``PartitionRegistration.merge``)."""

    def listed(name: str, current: tuple[Any, ...]) -> tuple[Any, ...]:
        value = data.get(name)
        return current if value is None else tuple(value)

    leader, recovery = data.get("leader", _NO_CHANGE), data.get("leaderRecoveryState", -1)
    replicas = listed("replicas", partition.replicas)
    directories = listed("directories", partition.directories)
    if data.get("directories") is None and replicas != partition.replicas:
        directories = tuple(partition.directory_of(broker_id) for broker_id in replicas)
    return Partition(
        replicas,
        listed("isr", partition.isr),
        listed("removingReplicas", partition.removing),
        listed("addingReplicas", partition.adding),
        partition.leader if leader == _NO_CHANGE else leader,
        partition.recovery_state if recovery == -1 else recovery,
        partition.leader_epoch + (leader != _NO_CHANGE),
        partition.partition_epoch + 1,
        directories,
        listed("eligibleLeaderReplicas", partition.elr),
        listed("lastKnownElr", partition.last_known_elr),
    )


def clear_elr(state: MetadataState, record: Record) -> MetadataState:
    """Eligible leader replicas are forgotten: of one topic, or of all without a name."""
    name = record.data["topicName"]
    topics = [state.topics[state.ids[name]]] if name else [*state.topics.values()]
    for topic in topics:
        for key in state.keys_of(topic):
            partition = state.partitions[key]
            if partition.elr or partition.last_known_elr:
                cleared = partition._replace(
                    elr=(), last_known_elr=(), partition_epoch=partition.partition_epoch + 1
                )
                state = state.with_partition(key, cleared)
    return state
