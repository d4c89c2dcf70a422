"""The output of ``kafka-topics --describe``, byte for byte and in its order; pure.

The tool keeps topics and settings in Java's hash maps, and prints them in the order of these.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.controller.kraft.map_order import hash_map_order, sized_hash_map_order
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition

if TYPE_CHECKING:
    from featurewatch.admin.cluster.configs import TopicConfig
    from featurewatch.admin.cluster.values import PartitionDetails, TopicDetails

_MIN_ISR = "min.insync.replicas"
Reassignments = Mapping[TopicPartition, ReplicaAssignment]


class PartitionFilter(NamedTuple):
    """Which partitions are printed; without a condition all are, and the topics' own lines."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    @property
    def is_set(self) -> bool:
        """Whether there is a condition."""
        return any(self)

    def selects(
        self,
        partition: "PartitionDetails",
        reassignment: ReplicaAssignment | None,
        min_isr: int | None,
        live: frozenset[int],
    ) -> bool:
        """Whether a partition is printed; ``live`` are the brokers of the cluster."""
        isr = len(partition.isr)
        return (
            not self.is_set
            or (self.under_replicated and replication_factor(partition, reassignment) > isr)
            or (self.unavailable and partition.leader not in live)
            or (self.under_min_isr and (partition.leader is None or isr < _known(min_isr)))
            or (self.at_min_isr and isr == _known(min_isr))
        )


def in_order_of_tool(topics: Iterable["TopicDetails"]) -> list["TopicDetails"]:
    """Topics in the order of the tool's map."""
    by_name = {topic.name: topic for topic in topics}
    return [by_name[name] for name in sized_hash_map_order(by_name)]


def topic_lines(
    topic: "TopicDetails",
    config: "TopicConfig",
    reassignments: Reassignments,
    *,
    condition: PartitionFilter,
    live: frozenset[int],
    overridden_only: bool = False,
) -> Iterator[str]:
    """The line of a topic and those of its partitions; with ``overridden_only`` only the first, and
    only for topics that override a setting.

    Raises:
        KafkaToolError: The settings could not be read.
    """
    if config.error:
        raise KafkaToolError(config.text, right=config.right)
    settings = config.non_default
    if not condition.is_set and (settings or not overridden_only):
        order = _config_order(tuple([value.name for value in config.values]))
        shown = {name: settings[name] for name in order if name in settings}
        yield _topic_line(topic, shown, reassignments)
    if overridden_only:
        return
    min_isr = minimum_isr(config)
    for partition in topic.partitions:
        reassignment = reassignments.get(TopicPartition(topic.name, partition.partition))
        if condition.selects(partition, reassignment, min_isr, live):
            yield _partition_line(topic.name, partition, reassignment)


def minimum_isr(config: "TopicConfig") -> int | None:
    """The setting min.insync.replicas; None if it is missing or not a number."""
    text = next((value.value for value in config.values if value.name == _MIN_ISR), None)
    return int(text) if text is not None and text.isdecimal() and len(text) < 11 else None


def replication_factor(
    partition: "PartitionDetails", reassignment: ReplicaAssignment | None
) -> int:
    """The replicas of a partition, without those that a reassignment is adding."""
    if reassignment is not None:
        changing = {*reassignment.adding, *reassignment.removing}
        if not changing.isdisjoint(partition.replicas):
            return len(reassignment.replicas) - len(reassignment.adding)
    return len(partition.replicas)


def _topic_line(
    topic: "TopicDetails", settings: Mapping[str, str | None], reassignments: Reassignments
) -> str:
    from featurewatch.admin.topics.values import text_of_id

    shown = ",".join(
        f"{name}={'null' if value is None else value}" for name, value in settings.items()
    )
    if not topic.partitions:
        raise KafkaToolError("Index 0 out of bounds for length 0")
    first = topic.partitions[0]
    reassignment = reassignments.get(TopicPartition(topic.name, first.partition))
    parts = [
        f"Topic: {topic.name}",
        *([] if topic.topic_id is None else [f"TopicId: {text_of_id(topic.topic_id)}"]),
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {replication_factor(first, reassignment)}",
        f"Configs: {shown}",
    ]
    return "\t".join(parts)


@lru_cache(maxsize=64)
def _config_order(names: tuple[str, ...]) -> list[str]:
    """The order in which settings are printed; most topics of a cluster have the same ones."""
    return hash_map_order(names)


def _partition_line(
    topic: str, partition: "PartitionDetails", reassignment: ReplicaAssignment | None
) -> str:
    leader = "none" if partition.leader is None else partition.leader
    parts = [
        "",
        f"Topic: {topic}",
        f"Partition: {partition.partition}",
        f"Leader: {leader}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.isr)}",
    ]
    if reassignment is not None:
        parts.append(f"Adding Replicas: {_ids(reassignment.adding)}")
        parts.append(f"Removing Replicas: {_ids(reassignment.removing)}")
    parts.append(f"Elr: {_ids(partition.eligible_leaders)}")
    parts.append(f"LastKnownElr: {_ids(partition.last_known_leaders)}")
    return "\t".join(parts)


def _ids(ids: Sequence[int] | None) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))


def _known(min_isr: int | None) -> int:
    if min_isr is None:
        raise KafkaToolError(f"the topic has no {_MIN_ISR}")
    return min_isr
