"""Applies the records of topics and partitions to an image (Kafka: ``TopicsDelta.replay``).

`PartitionReplay` mutates copies of the image's maps; `PartitionReplay.finish` gives the next image.
A record that was applied before changes nothing: every topic and partition has the offset of the
record that changed it last.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from immutables import MapMutation

from featurewatch.tables.partitions.image import (
    MAX_PARTITIONS,
    NO_LEADER,
    Brokers,
    Condition,
    Move,
    Partition,
    PartitionKey,
    PartitionsImage,
    TopicEntry,
    advance_since,
    conditions_of,
)

Data = Mapping[str, Any]

_MAX_REPLICAS: Final = 1000
_MAX_ID_CHARS: Final = 64
_MAX_NAME_CHARS: Final = 249
_MAX_GAP: Final = 1000
"""By how much a partition's number may exceed the number of those before it: a snapshot need not
have them in order."""

_NO_CHANGE: Final = -2
"""The leader of a PartitionChangeRecord that leaves it as it is."""

_KNOWN_LISTS: dict[Brokers, Brokers] = {}
_MAX_KNOWN_LISTS: Final = 1 << 16


class TopicAdded(NamedTuple):
    """A topic was created."""

    topic_id: str
    name: str
    offset: int


class TopicRemoved(NamedTuple):
    """A topic was deleted, with so many partitions."""

    topic_id: str
    name: str
    partitions: int
    offset: int


class PartitionAdded(NamedTuple):
    """A partition was created, or, with ``before``, written anew."""

    key: PartitionKey
    before: Partition | None
    after: Partition


class PartitionChanged(NamedTuple):
    """A partition changed by the fields in ``data``, as its record has them."""

    key: PartitionKey
    before: Partition
    after: Partition
    data: Data


Applied = TopicAdded | TopicRemoved | PartitionAdded | PartitionChanged


class PartitionReplay:
    """Applies records in order; ``partitions`` and ``topics`` are what was touched, by key."""

    def __init__(self, image: PartitionsImage) -> None:
        self._image = image
        self._topics = image.topics.mutate()
        self._partitions = image.partitions.mutate()
        self._ids = image.ids.mutate()
        self.topics: dict[str, None] = {}
        self.partitions: dict[PartitionKey, Partition | None] = {}
        """What was touched, with what it was before."""

    def apply(self, kind: str, offset: int, data: Data, at_ms: int) -> Applied | None:
        """Applies one record of `PARTITION_RECORD_TYPES`; ``at_ms`` dates what begins by it.

        Returns what it did, or None if it changed nothing that can be named.

        Raises:
            KeyError, TypeError, ValueError: The record is not readable, or names what is unknown.
        """
        if kind == "PARTITION_CHANGE_RECORD":
            return self._change(offset, data, at_ms)
        if kind == "PARTITION_RECORD":
            return self._add(offset, data, at_ms)
        if kind == "TOPIC_RECORD":
            return self._add_topic(offset, data)
        if kind == "REMOVE_TOPIC_RECORD":
            return self._remove_topic(offset, data)
        self._clear_elr(offset, data, at_ms)
        return None

    def finish(self) -> PartitionsImage:
        """The next image."""
        if not self.topics and not self.partitions:
            return self._image
        partitions = self._partitions.finish()
        members: dict[Condition, MapMutation[PartitionKey, int]] = {}
        for key, before in self.partitions.items():
            after = partitions.get(key)
            old, new = before.since if before else (), after.since if after else ()
            if old is new:
                continue
            for condition, _ in old:
                if condition not in members:
                    members[condition] = self._image.conditions[condition].mutate()
                members[condition].pop(key, None)
            for condition, since_ms in new:
                if condition not in members:
                    members[condition] = self._image.conditions[condition].mutate()
                members[condition][key] = since_ms
        conditions = self._image.conditions.update(
            {condition: mutation.finish() for condition, mutation in members.items()}
        )
        topics, ids = self._topics.finish(), self._ids.finish()
        return PartitionsImage(topics, partitions, ids, conditions)

    def _put(self, key: PartitionKey, before: Partition | None, after: Partition | None) -> None:
        if key not in self.partitions:
            self.partitions[key] = before
        if after is None:
            del self._partitions[key]
        else:
            self._partitions[key] = after

    def _change(self, offset: int, data: Data, at_ms: int) -> PartitionChanged | None:
        key = (data["topicId"], data["partitionId"])
        before = self._partitions.get(key)
        if before is None or type(key[1]) is not int:
            raise ValueError(f"partition {key[1]} of topic {key[0]} changes and is not known")
        if offset <= before.offset:
            return None
        after = changed_partition(before, data, offset, at_ms)
        self._put(key, before, after)
        return PartitionChanged(key, before, after, data)

    def _add(self, offset: int, data: Data, at_ms: int) -> PartitionAdded | None:
        topic_id, index = data["topicId"], _int(data, "partitionId", 0)
        topic = self._topics.get(topic_id)
        if topic is None:
            raise ValueError(f"partition {index} is of topic {topic_id}, which is not known")
        key = (topic_id, index)
        before = self._partitions.get(key)
        if before is not None and offset <= before.offset:
            return None
        if index > topic.partitions + _MAX_GAP or len(self._partitions) >= MAX_PARTITIONS:
            raise ValueError(f"partition {index} of {topic.name} is beyond what can be followed")
        after = _new_partition(data, offset, at_ms)
        self._put(key, before, after)
        if index >= topic.partitions:
            self._topics[topic_id] = topic._replace(partitions=index + 1)
            self.topics[topic_id] = None
        return PartitionAdded(key, before, after)

    def _add_topic(self, offset: int, data: Data) -> TopicAdded | None:
        topic_id, name = _text(data, "topicId", _MAX_ID_CHARS), _text(data, "name", _MAX_NAME_CHARS)
        if not topic_id or not topic_id.replace("-", "").replace("_", "").isalnum():
            raise ValueError("topicId is not the id of a topic")
        topic = self._topics.get(topic_id)
        if topic is not None:
            return None
        self._topics[topic_id] = TopicEntry(name, 0, offset)
        self._ids[name] = topic_id
        self.topics[topic_id] = None
        return TopicAdded(topic_id, name, offset)

    def _remove_topic(self, offset: int, data: Data) -> TopicRemoved | None:
        topic_id = data["topicId"]
        topic = self._topics.get(topic_id)
        if topic is None:
            return None  # before a crash this very record may have removed it
        for index in range(topic.partitions):
            key = (topic_id, index)
            if (partition := self._partitions.get(key)) is not None:
                self._put(key, partition, None)
        del self._topics[topic_id]
        if self._ids.get(topic.name) == topic_id:
            del self._ids[topic.name]
        self.topics[topic_id] = None
        return TopicRemoved(topic_id, topic.name, topic.partitions, offset)

    def _clear_elr(self, offset: int, data: Data, at_ms: int) -> None:
        """Clears the eligible leaders of a topic, or of all if it is named by nothing."""
        name = _text(data, "topicName", _MAX_NAME_CHARS)
        if name:
            chosen = [self._ids[name]] if name in self._ids else []
        else:  # what is being changed cannot be iterated over
            chosen = [it for it in {**self._image.topics, **self.topics} if it in self._topics]
        for topic_id in chosen:
            for index in range(self._topics[topic_id].partitions):
                key = (topic_id, index)
                before = self._partitions.get(key)
                has_any = before is not None and (before.elr or before.last_known_elr)
                if before is None or not has_any or offset <= before.offset:
                    continue
                cleared: Data = {"eligibleLeaderReplicas": [], "lastKnownElr": []}
                self._put(key, before, changed_partition(before, cleared, offset, at_ms))


_ELECTION_FIELDS: Final = frozenset({"topicId", "partitionId", "isr", "leader", "directories"})


def changed_partition(before: Partition, data: Data, offset: int, at_ms: int) -> Partition:
    """The partition after a PartitionChangeRecord (``PartitionRegistration.merge``)."""
    leader = data.get("leader", _NO_CHANGE)
    if type(leader) is not int:
        raise TypeError("leader is not a whole number")
    leader_epoch = before.leader_epoch
    if leader == _NO_CHANGE:
        leader = before.leader
    else:
        leader_epoch += 1
    isr = data.get("isr")
    isr = before.isr if isr is None else _brokers(isr)
    if not _ELECTION_FIELDS.issuperset(data):
        return _with_lists(before, data, offset, at_ms, isr, leader, leader_epoch)
    since = before.since
    if leader != before.leader:
        conditions = conditions_of(
            leader, before.replicas, before.adding, before.removing, before.elr
        )
        since = advance_since(since, conditions, at_ms)
    return Partition(
        before.replicas,
        isr,
        leader,
        leader_epoch,
        before.partition_epoch + 1,
        before.adding,
        before.removing,
        before.recovering,
        before.elr,
        before.last_known_elr,
        offset,
        since,
        before.move,
    )


def _with_lists(
    before: Partition,
    data: Data,
    offset: int,
    at_ms: int,
    isr: Brokers,
    leader: int,
    leader_epoch: int,
) -> Partition:
    """The partition after a record with more fields than leader and ISR."""

    def chosen(name: str, current: Brokers) -> Brokers:
        value = data.get(name)
        return current if value is None else _brokers(value)

    adding = chosen("addingReplicas", before.adding)
    removing = chosen("removingReplicas", before.removing)
    recovery = data.get("leaderRecoveryState", -1)
    replicas = chosen("replicas", before.replicas)
    elr = chosen("eligibleLeaderReplicas", before.elr)
    if not replicas:
        raise ValueError("a partition has no replicas")
    move = (before.move or Move(offset, at_ms)) if adding or removing else None
    conditions = conditions_of(leader, replicas, adding, removing, elr)
    return Partition(
        replicas,
        isr,
        leader,
        leader_epoch,
        before.partition_epoch + 1,
        adding,
        removing,
        before.recovering if recovery == -1 else recovery == 1,
        elr,
        chosen("lastKnownElr", before.last_known_elr),
        offset,
        advance_since(before.since, conditions, at_ms),
        move,
    )


def _new_partition(data: Data, offset: int, at_ms: int) -> Partition:
    def listed(name: str) -> Brokers:
        value = data.get(name)
        return () if value is None else _brokers(value)

    replicas, leader = listed("replicas"), _int(data, "leader", NO_LEADER)
    if not replicas:
        raise ValueError("a partition has no replicas")
    adding, removing = listed("addingReplicas"), listed("removingReplicas")
    elr = listed("eligibleLeaderReplicas")
    return Partition(
        replicas,
        listed("isr"),
        leader,
        _int(data, "leaderEpoch", 0),
        _int(data, "partitionEpoch", 0),
        adding,
        removing,
        data.get("leaderRecoveryState", 0) == 1,
        elr,
        listed("lastKnownElr"),
        offset,
        advance_since((), conditions_of(leader, replicas, adding, removing, elr), at_ms),
        Move(-1, at_ms) if adding or removing else None,
    )


def _brokers(value: Any) -> Brokers:
    """A list of broker ids; equal ones are one tuple."""
    try:
        known = _KNOWN_LISTS.get(ids := tuple(value))
    except TypeError:
        raise TypeError("a list of brokers is not one") from None
    if known is not None:
        return known
    if type(value) is not list or len(ids) > _MAX_REPLICAS:
        raise TypeError("a list of brokers is not one, or too long")
    if not all(type(broker_id) is int for broker_id in ids):
        raise TypeError("a list of brokers has something else in it")
    if len(_KNOWN_LISTS) >= _MAX_KNOWN_LISTS:
        _KNOWN_LISTS.clear()
    _KNOWN_LISTS[ids] = ids
    return ids


def _int(data: Data, name: str, lowest: int) -> int:
    value = data[name]
    if type(value) is not int or value < lowest:
        raise TypeError(f"{name} is not a whole number from {lowest} on")
    return value


def _text(data: Data, name: str, longest: int) -> str:
    value = data[name]
    if type(value) is not str or len(value) > longest:
        raise TypeError(f"{name} is not a string of at most {longest} characters")
    return value
