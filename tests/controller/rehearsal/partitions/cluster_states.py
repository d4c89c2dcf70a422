"""Clusters with partitions, from which rehearsals of operations start."""

from collections.abc import Iterable
from types import ModuleType

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.kraft_election import KraftElectionRules, KraftPartition
from featurewatch.controller.rehearsal.partitions import kraft, zookeeper
from featurewatch.controller.rehearsal.partitions.state import (
    RehearsedBroker,
    RehearsedPartitions,
)

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def cluster(
    rules: KraftElectionRules | None, *lists: tuple[int, ...], brokers: Iterable[int] = range(1, 5)
) -> RehearsedPartitions:
    """A topic with partitions of these replicas, all in sync."""
    partitions = {
        TopicPartition("t", number): KraftPartition(replicas, replicas, replicas[0])
        for number, replicas in enumerate(lists)
    }
    return RehearsedPartitions(rules, {n: RehearsedBroker() for n in brokers}, partitions)


def machine(state: RehearsedPartitions) -> ModuleType:
    """The operations of its kind of controller."""
    return zookeeper if state.rules is None else kraft
