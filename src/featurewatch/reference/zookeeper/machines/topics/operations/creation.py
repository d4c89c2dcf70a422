"""New topics and new partitions: reads assignments, and starts the partitions.

Follows ``KafkaController.processTopicChange``, ``processPartitionModifications`` and
``onNewPartitionCreation``. Whoever creates a topic writes its znode without the controller's fence;
the controller learns of it by its watches.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.encoding import ZnodeDecodeError
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    SCHEMA_WITH_ID,
    TOPICS,
    TopicZnode,
    decode_topic,
    encode_topic,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    ANY_VERSION,
    Create,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    NoNode,
    OperationDone,
    OperationResult,
    SetData,
)


class TopicCreation:
    """Follows the list of topics and their assignments; ``new_topic_id`` returns an unused id."""

    def __init__(self, parts: OperationParts, new_topic_id: Callable[[], str]) -> None:
        self._parts = parts
        self._new_topic_id = new_topic_id

    def load(self) -> Task[None]:
        """Reads all topics and their assignments, when a controller is elected."""
        names = yield from self._names()
        yield from self._read(names or set())

    def on_topics_changed(self) -> Task[None]:
        """Reads the list of topics: starts new ones, and forgets deleted ones."""
        names = yield from self._names()
        if names is None:
            return
        context = self._parts.context
        for topic in sorted(context.topics - names):
            context.remove_topic(topic)
        added = yield from self._read(names - context.topics)
        yield from self.leave_controllers(added)
        yield from self.start_partitions(added)

    def on_topic_changed(self, topic: str) -> Task[None]:
        """Reads a topic's assignment: starts the partitions that are new.

        Partitions that are added to a topic that is being deleted are taken back.
        """
        if topic not in self._parts.context.topics:
            return
        result = yield from perform(GetData(topic_path(topic), watch=True))
        yield from self._add_partitions(topic, result)

    def read_again(self) -> Task[None]:
        """Reads and watches all topics again, after the watches were lost."""
        topics = sorted(self._parts.context.topics)
        if topics:
            results = yield tuple(GetData(topic_path(topic), watch=True) for topic in topics)
            for topic, result in zip(topics, results, strict=True):
                yield from self._add_partitions(topic, result)
        yield from self.on_topics_changed()

    def _add_partitions(self, topic: str, result: OperationResult) -> Task[None]:
        context = self._parts.context
        znode = self._decode(topic, result.data) if isinstance(result, GetDataResult) else None
        if znode is None:
            return
        known = {partition.number for partition in context.partitions_of(topic)}
        added = [number for number in znode.assignments if number not in known]
        if not added:
            return
        if topic in context.queued_deletions:
            self._parts.log(f"topic {topic} is being deleted: no partitions are added to it")
            yield from self._parts.write_topic(topic, {})
            return
        partitions = [TopicPartition(topic, number) for number in added]
        for partition in partitions:
            context.assignments[partition] = znode.assignments[partition.number]
        yield from self.leave_controllers(partitions)
        yield from self.start_partitions(partitions)

    def leave_controllers(self, partitions: Iterable[TopicPartition]) -> Task[None]:
        """Moves replicas of new partitions away from nodes that have none.

        A broker that creates a topic automatically places replicas on every node that it knows.
        """
        context = self._parts.context
        changes: defaultdict[str, dict[TopicPartition, ReplicaAssignment]] = defaultdict(dict)
        for partition in partitions:
            replicas = context.assignment(partition).replicas
            moved = _without_controllers(context, partition.number, replicas)
            if moved and moved != replicas:
                changes[partition.topic][partition] = ReplicaAssignment(moved)
        for topic, assignments in changes.items():
            if (yield from self._parts.write_topic(topic, assignments)):
                for partition, assignment in assignments.items():
                    context.assignments[partition] = assignment

    def start_partitions(self, partitions: Iterable[TopicPartition]) -> Task[None]:
        """Makes new partitions available (``onNewPartitionCreation``)."""
        created = [*partitions]
        replicas = self._parts.context.replicas_of(created)
        yield from self._parts.partitions.move(created, PartitionState.NEW)
        yield from self._parts.replicas.move(replicas, ReplicaState.NEW)
        yield from self._parts.partitions.move(created, PartitionState.ONLINE)
        yield from self._parts.replicas.move(replicas, ReplicaState.ONLINE)

    def _names(self) -> Task[set[str] | None]:
        result = yield from perform(GetChildren(TOPICS, watch=True))
        if isinstance(result, NoNode):
            yield from perform(Create(TOPICS, b""))
            result = yield from perform(GetChildren(TOPICS, watch=True))
        if isinstance(result, GetChildrenResult):
            return {*result.names}
        self._parts.log(f"cannot list the topics: {result}")
        return None

    def _read(self, topics: Iterable[str]) -> Task[list[TopicPartition]]:
        """Reads and watches assignments; an unreadable one leaves out that topic alone."""
        context, added = self._parts.context, []
        names = sorted(topics)
        if not names:
            return []
        results = yield tuple(GetData(topic_path(topic), watch=True) for topic in names)
        for topic, result in zip(names, results, strict=True):
            znode = self._decode(topic, result.data) if isinstance(result, GetDataResult) else None
            if znode is None:
                continue
            context.topics.add(topic)
            for number, assignment in znode.assignments.items():
                partition = TopicPartition(topic, number)
                context.assignments[partition] = assignment
                added.append(partition)
            yield from self._set_topic_id(topic, znode)
        return added

    def _set_topic_id(self, topic: str, znode: TopicZnode) -> Task[None]:
        """Gives a topic that an older broker or tool created its id."""
        context = self._parts.context
        if znode.topic_id is not None:
            context.set_topic_id(topic, znode.topic_id)
        elif self._parts.dialect.assignment_schema >= SCHEMA_WITH_ID:
            topic_id = self._new_topic_id()
            data = encode_topic(znode._replace(topic_id=topic_id), SCHEMA_WITH_ID)
            result = yield from self._parts.write(SetData(topic_path(topic), data, ANY_VERSION))
            if isinstance(result, OperationDone):
                context.set_topic_id(topic, topic_id)

    def _decode(self, topic: str, data: bytes) -> TopicZnode | None:
        try:
            return decode_topic(data)
        except ZnodeDecodeError as error:
            self._parts.log(f"cannot read the assignment of topic {topic}: {error}; repair it")
            return None


def _without_controllers(
    context: ControllerContext, number: int, replicas: tuple[int, ...]
) -> tuple[int, ...]:
    """Replicas with other live brokers in place of the nodes that have none."""
    if context.controller_ids.isdisjoint(replicas):
        return replicas
    others = [broker_id for broker_id in context.live_brokers if broker_id not in replicas]
    turn = number % max(1, len(others))
    spare = iter(others[turn:] + others[:turn])
    chosen = (
        next(spare, None) if broker_id in context.controller_ids else broker_id
        for broker_id in replicas
    )
    return tuple(broker_id for broker_id in chosen if broker_id is not None)
