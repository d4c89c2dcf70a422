"""The throttles of a reassignment: settings of brokers and topics, as Kafka's tool sets them.

Follows ``ReassignPartitionsCommand``: a rate on each broker that sends or receives replicas, and on
each topic the list of replicas that the rate holds for.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from featurewatch.admin.cluster.configs import ConfigOwner, OwnConfigs, ResourceKind
from featurewatch.admin.cluster.values import PartitionDetails
from featurewatch.admin.reassignments.types import Targets
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition

LEADER_RATE: Final = "leader.replication.throttled.rate"
FOLLOWER_RATE: Final = "follower.replication.throttled.rate"
MOVE_RATE: Final = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER_SETTINGS: Final = (LEADER_RATE, FOLLOWER_RATE, MOVE_RATE)

LEADER_REPLICAS: Final = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS: Final = "follower.replication.throttled.replicas"
TOPIC_SETTINGS: Final = (LEADER_REPLICAS, FOLLOWER_REPLICAS)

_LISTED = re.compile(r"(\d+:\d+)?(,\d+:\d+)*")
"""Partitions and brokers: what tools write. ``*`` and ``none`` are a person's."""


ConfigChanges = Mapping[ConfigOwner, Mapping[str, str | None]]
"""Values to set for each owner; None deletes the setting."""


class PartitionMove(NamedTuple):
    """The brokers that a partition is copied from and to."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = Mapping[TopicPartition, PartitionMove]


def moves_of(
    running: Mapping[TopicPartition, ReplicaAssignment],
    targets: Targets,
    present: Mapping[TopicPartition, PartitionDetails],
) -> dict[TopicPartition, PartitionMove]:
    """All moves once ``targets`` are requested: the running ones, and the new ones in their place.

    A partition that moves already is copied from the replicas that it had before.
    """
    moves = {
        partition: PartitionMove(frozenset(assignment.origin), frozenset(assignment.adding))
        for partition, assignment in running.items()
    }
    for partition, replicas in targets.items():
        before = moves.get(partition)
        sources = before.sources if before else frozenset(present[partition].replicas)
        moves[partition] = PartitionMove(sources, frozenset(replicas) - sources)
    return moves


def topic_throttles(moves: Moves) -> ConfigChanges:
    """The lists of throttled replicas, by topic."""
    leaders: defaultdict[str, set[str]] = defaultdict(set)
    followers: defaultdict[str, set[str]] = defaultdict(set)
    for partition, move in moves.items():
        leaders[partition.topic] |= {f"{partition.number}:{one}" for one in move.sources}
        followers[partition.topic] |= {f"{partition.number}:{one}" for one in move.destinations}
    return {
        ConfigOwner.topic(name): {
            LEADER_REPLICAS: ",".join(sorted(leaders[name])),
            FOLLOWER_REPLICAS: ",".join(sorted(followers[name])),
        }
        for name in leaders
    }


def broker_throttles(moves: Moves, rate: int) -> ConfigChanges:
    """The rates of all brokers that send or receive, in bytes each second."""
    involved = {one for move in moves.values() for one in (*move.sources, *move.destinations)}
    values = {LEADER_RATE: str(rate), FOLLOWER_RATE: str(rate)}
    return {ConfigOwner.broker(broker_id): values for broker_id in sorted(involved)}


def move_throttles(broker_ids: Iterable[int], rate: int) -> ConfigChanges:
    """The rates of brokers that move replicas between directories, in bytes each second."""
    return {
        ConfigOwner.broker(broker_id): {MOVE_RATE: str(rate)} for broker_id in sorted({*broker_ids})
    }


def without_broker_throttles(broker_ids: Iterable[int]) -> ConfigChanges:
    """Deletes the rates of these brokers."""
    return {
        ConfigOwner.broker(broker_id): dict.fromkeys(BROKER_SETTINGS) for broker_id in broker_ids
    }


def without_topic_throttles(names: Iterable[str]) -> ConfigChanges:
    """Deletes the lists of these topics."""
    return {ConfigOwner.topic(name): dict.fromkeys(TOPIC_SETTINGS) for name in names}


def leftover_topics(configs: OwnConfigs) -> list[str]:
    """The topics with a list of throttled replicas that a tool wrote, by name.

    ``*``, which throttles a topic for good, is a person's setting and none of these.
    """
    return sorted(
        owner.name
        for owner, values in configs.items()
        if owner.kind is ResourceKind.TOPIC
        and any(_LISTED.fullmatch(values[name]) for name in TOPIC_SETTINGS if name in values)
    )


def leftover_brokers(configs: OwnConfigs) -> list[int]:
    """The brokers that have their own throttle rate, by id."""
    return sorted(
        int(owner.name)
        for owner, values in configs.items()
        if owner.kind is ResourceKind.BROKER and any(name in values for name in BROKER_SETTINGS)
    )
