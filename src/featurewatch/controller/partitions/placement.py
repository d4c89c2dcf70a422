"""Chooses brokers for the replicas of new partitions in ZooKeeper mode.

Follows ``AdminUtils.assignReplicasToBrokers`` of Kafka 3.9. Kafka draws the start index and the
shift at random; here both are handed in.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class PlacementError(ValueError):
    """The replicas cannot be placed; the text is Kafka's."""


class PlacementStart(NamedTuple):
    """Where the round over the brokers begins.

    ``leader`` is the place of the first leader, ``shift`` the distance of the followers, both from
    0; ``partition`` is the number of the first new partition.
    """

    leader: int
    shift: int
    partition: int = 0


def place_replicas(
    racks: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    start: PlacementStart,
) -> dict[int, tuple[int, ...]]:
    """The replicas of each new partition, the preferred leader first.

    ``racks`` maps the ids of the brokers, in the order of the round, to their racks. If all have
    one, replicas are spread over racks.

    Raises:
        PlacementError: if the numbers are too small or too large, or some brokers have no rack.
    """
    if partition_count <= 0:
        raise PlacementError("Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise PlacementError("Replication factor must be larger than 0.")
    if replication_factor > len(racks):
        raise PlacementError(
            f"Replication factor: {replication_factor} larger than available brokers: {len(racks)}."
        )
    known = {broker_id: rack for broker_id, rack in racks.items() if rack is not None}
    if known and len(known) < len(racks):
        raise PlacementError(
            "Not all brokers have rack information for replica rack aware assignment."
        )
    brokers = alternate_racks(known) if known else [*racks]
    shift, first_partition = start.shift, max(0, start.partition)
    placed = {}
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start.leader) % len(brokers)
        placed[partition] = (
            _spread_over_racks(brokers, known, first, shift, replication_factor)
            if known
            else _spread(brokers, first, shift, replication_factor)
        )
    return placed


def alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """The brokers in turns of one from each rack: racks by name, brokers of a rack by id."""
    by_rack: defaultdict[str, list[int]] = defaultdict(list)
    for broker_id in sorted(racks, reverse=True):
        by_rack[racks[broker_id]].append(broker_id)
    # Java compares strings by their UTF-16 units, Python by code points.
    turns = [by_rack[rack] for rack in sorted(by_rack, key=lambda rack: rack.encode("utf-16-be"))]
    brokers: list[int] = []
    while len(brokers) < len(racks):
        brokers += [turn.pop() for turn in turns if turn]
    return brokers


def _spread(
    brokers: Sequence[int], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    followers = (
        brokers[_follower_index(first, shift, turn, len(brokers))]
        for turn in range(replication_factor - 1)
    )
    return (brokers[first], *followers)


def _spread_over_racks(
    brokers: Sequence[int],
    racks: Mapping[int, str],
    first: int,
    shift: int,
    replication_factor: int,
) -> tuple[int, ...]:
    """As `_spread`, but passes over racks that have a replica while another has none."""
    rack_count = len({*racks.values()})
    replicas = [brokers[first]]
    used_racks = {racks[brokers[first]]}
    turn = 0
    while len(replicas) < replication_factor:
        broker_id = brokers[_follower_index(first, shift * rack_count, turn, len(brokers))]
        turn += 1
        rack = racks[broker_id]
        is_rack_free = rack not in used_racks or len(used_racks) == rack_count
        if is_rack_free and broker_id not in replicas:
            replicas.append(broker_id)
            used_racks.add(rack)
    return tuple(replicas)


def _follower_index(first: int, shift: int, turn: int, broker_count: int) -> int:
    return (first + 1 + (shift + turn) % (broker_count - 1)) % broker_count
