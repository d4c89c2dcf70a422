"""Applies the records of topics and partitions to an image (Kafka: ``TopicsDelta.replay``).

`PartitionReplay` mutates copies of the image's maps; `PartitionReplay.finish` gives the next image.
A record that was applied before changes nothing: every topic and partition has the offset of the
record that changed it last.
"""

from collections.abc import Iterable, Iterator
from sys import intern
from typing import Final, NamedTuple

from immutables import MapMutation

from featurewatch.streams.kraft.records.selection import PARTITION_RECORD_TYPES
from featurewatch.tables.partitions.image import (
    MAX_LISTED_IDS,
    MAX_PARTITIONS,
    Condition,
    Partition,
    PartitionKey,
    PartitionsImage,
    TopicEntry,
    advance_since,
    conditions_of,
    with_eligible,
    with_number,
)
from featurewatch.tables.partitions.minimums import (
    CONFIG_RECORD,
    configure,
    min_isr_of,
    topic_of,
    topic_resource,
)
from featurewatch.tables.partitions.partition_records import (
    NO_CHANGE,
    Data,
    changed_partition,
    new_partition,
    text_of,
    whole_number,
)

FOLLOWED_RECORD_TYPES: Final = PARTITION_RECORD_TYPES | {CONFIG_RECORD}
"""The records that are applied."""

_MAX_ID_CHARS: Final = 64
_MAX_NAME_CHARS: Final = 249
_ALL: Final = ""
"""The scope of a record that clears the eligible leaders of all topics; no topic has this id."""

_MAX_GAP: Final = 1000
"""By how much a partition's number may exceed the number of those before it: a snapshot need not
have them in order."""


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
    """A partition was created, or, with ``before``, written again."""

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
    """Applies records in order; ``topics``, ``partitions`` and ``min_isrs`` are what was touched.

    The partitions of a topic whose minimum ISR changed are evaluated at the end, once.
    """

    def __init__(self, image: PartitionsImage) -> None:
        self._image = image
        self._topics = image.topics.mutate()
        self._partitions = image.partitions.mutate()
        self._ids = image.ids.mutate()
        self._min_isrs = image.min_isrs
        self._listed_ids = image.listed_ids
        self._eligible = image.eligible
        self._sparse = image.sparse
        self._oldest_eligible: dict[str, int] = {}
        self._at_ms = 0
        self.min_isrs: dict[str, None] = {}
        self.topics: dict[str, None] = {}
        self.partitions: dict[PartitionKey, Partition | None] = {}
        """The partitions that were touched, with their state before."""

    def apply(self, kind: str, offset: int, data: Data, at_ms: int) -> Applied | None:
        """Applies one record of `FOLLOWED_RECORD_TYPES`; ``at_ms`` dates what begins by it.

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
        if kind == CONFIG_RECORD:
            self._configure(offset, data, at_ms)
        else:
            self._clear_elr(offset, data, at_ms)
        return None

    def finish(self) -> PartitionsImage:
        """The next image."""
        self._evaluate_min_isrs()
        if not self.topics and not self.partitions and not self.min_isrs:
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
        return PartitionsImage(
            topics,
            partitions,
            ids,
            conditions,
            self._min_isrs,
            self._listed_ids,
            self._eligible,
            self._sparse,
        )

    def _put(self, key: PartitionKey, before: Partition | None, after: Partition | None) -> None:
        """Replaces a partition.

        Raises:
            ValueError: The lists of brokers of all partitions would become too long.
        """
        listed_ids = self._listed_ids
        listed_ids += (after.listed_ids if after else 0) - (before.listed_ids if before else 0)
        if listed_ids > MAX_LISTED_IDS and listed_ids > self._listed_ids:
            topic = self._topics.get(key[0])
            raise ValueError(
                f"partition {key[1]} of {topic.name if topic else key[0]} is beyond what can be "
                f"followed: all lists of replicas have {MAX_LISTED_IDS} ids"
            )
        self._listed_ids = listed_ids
        if key not in self.partitions:
            self.partitions[key] = before
        self._eligible = with_eligible(self._eligible, key, before, after)
        if after is not None and self._oldest_eligible:
            for scope in (_ALL, key[0]):
                if after.offset < self._oldest_eligible.get(scope, -1):
                    self._oldest_eligible[scope] = after.offset
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
        key = (intern(key[0]), key[1])
        after = changed_partition(before, data, offset, at_ms, self._min_isr(key[0], before, data))
        self._put(key, before, after)
        return PartitionChanged(key, before, after, data)

    def _add(self, offset: int, data: Data, at_ms: int) -> PartitionAdded | None:
        topic_id, index = data["topicId"], whole_number(data, "partitionId", 0)
        topic = self._topics.get(topic_id)
        if topic is None:
            raise ValueError(f"partition {index} is of topic {topic_id}, which is not known")
        key = (intern(topic_id), index)  # the same text for all partitions of a topic
        before = self._partitions.get(key)
        if before is not None and offset <= before.offset:
            return None
        if index > topic.partitions + _MAX_GAP or len(self._partitions) >= MAX_PARTITIONS:
            raise ValueError(f"partition {index} of {topic.name} is beyond what can be followed")
        after = new_partition(
            data, offset, at_ms, min_isr_of(self._min_isrs, topic.name, data["leader"])
        )
        self._put(key, before, after)
        self._sparse = with_number(self._sparse, topic_id, topic.partitions, index)
        if index >= topic.partitions:
            self._topics[topic_id] = topic._replace(partitions=index + 1)
            self.topics[topic_id] = None
        return PartitionAdded(key, before, after)

    def _add_topic(self, offset: int, data: Data) -> TopicAdded | None:
        topic_id, name = (
            text_of(data, "topicId", _MAX_ID_CHARS),
            text_of(data, "name", _MAX_NAME_CHARS),
        )
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
        for key, partition in self._partitions_of([topic_id]):
            self._put(key, partition, None)
        del self._topics[topic_id]
        if topic_id in self._sparse:
            self._sparse = self._sparse.delete(topic_id)
        if self._ids.get(topic.name) == topic_id:
            del self._ids[topic.name]
        self.topics[topic_id] = None
        if (resource := topic_resource(topic.name)) in self._min_isrs:
            self._min_isrs = self._min_isrs.delete(resource)
            self.min_isrs[resource] = None
        return TopicRemoved(topic_id, topic.name, topic.partitions, offset)

    def _clear_elr(self, offset: int, data: Data, at_ms: int) -> None:
        """Clears the eligible leaders of a topic, or of all if it is named by nothing.

        Only partitions that have some are looked at, and not again where those of the last record
        stayed, as their own records are newer: a log may have any number of these records.
        """
        name = text_of(data, "topicName", _MAX_NAME_CHARS)
        scope = self._ids.get(name) if name else _ALL
        if scope is None or offset <= self._oldest_eligible.get(scope, -1):
            return
        topics = [scope] if scope != _ALL else sorted(self._eligible)
        keys = [(it, index) for it in topics for index in sorted(self._eligible.get(it, ()))]
        cleared: Data = {"eligibleLeaderReplicas": [], "lastKnownElr": []}
        left: list[int] = []
        for key in keys:
            before = self._partitions[key]
            if offset <= before.offset:
                left.append(before.offset)
                continue
            min_isr = self._min_isr(key[0], before, cleared)
            self._put(key, before, changed_partition(before, cleared, offset, at_ms, min_isr))
        self._oldest_eligible[scope] = min(left, default=offset)

    def _configure(self, offset: int, data: Data, at_ms: int) -> None:
        self._min_isrs, resource = configure(self._min_isrs, offset, data)
        if resource is not None:
            self.min_isrs[resource] = None
            self._at_ms = at_ms

    def _min_isr(self, topic_id: str, before: Partition, data: Data) -> int:
        """The minimum of a partition after a change by ``data``."""
        if not self._min_isrs:
            return 1
        leader = data.get("leader", NO_CHANGE)
        leader = before.leader if leader == NO_CHANGE else leader
        topic = self._topics.get(topic_id)
        return min_isr_of(self._min_isrs, topic.name if topic else "", leader)

    def _evaluate_min_isrs(self) -> None:
        """Dates the conditions of the partitions whose minimum may have changed."""
        if not self.min_isrs:
            return
        names = [topic_of(resource) for resource in self.min_isrs]
        if None in names:
            topics = self._all_topics()
        else:
            topics = [self._ids[name] for name in names if name is not None and name in self._ids]
        for key, before in self._partitions_of(topics):
            conditions = conditions_of(
                before.leader,
                before.replicas,
                before.isr,
                before.adding,
                before.removing,
                before.elr,
                self._min_isr(key[0], before, {}),
            )
            since = advance_since(before.since, conditions, self._at_ms)
            if since != before.since:
                self._put(key, before, before._replace(since=since))

    def _all_topics(self) -> list[str]:
        # What is being changed cannot be iterated over.
        return [it for it in {**self._image.topics, **self.topics} if it in self._topics]

    def _partitions_of(self, topics: Iterable[str]) -> Iterator[tuple[PartitionKey, Partition]]:
        for topic_id in topics:
            known = self._sparse.get(topic_id)
            count = self._topics[topic_id].partitions
            for index in range(count) if known is None else sorted(known):
                key = (topic_id, index)
                if (partition := self._partitions.get(key)) is not None:
                    yield key, partition
