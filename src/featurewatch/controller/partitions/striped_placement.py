"""Chooses brokers for the replicas of new partitions in KRaft mode.

Follows ``StripedReplicaPlacer`` of Kafka's package ``org.apache.kafka.metadata.placement``: racks
and brokers take turns, the first replica is never on a fenced broker, and fenced brokers come last.
After as many partitions as there are unfenced brokers a round ends. Kafka draws the first rack and
the first broker of each rack at random and shuffles them after each round; here the first ones
begin, and the order stays.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from featurewatch.controller.partitions.placement import PlacementError
from featurewatch.controller.partitions.release_rules import NEWEST, ReleaseNumber, partition_rules


class UsableBroker(NamedTuple):
    """A registered broker; one that shuts down counts as usable until it is fenced."""

    broker_id: int
    rack: str | None
    is_fenced: bool


@dataclass(slots=True)
class _Turns:
    """Brokers that take turns: each partition begins with the next one.

    ``epoch`` is the number of the partition in its round.
    """

    brokers: list[int]
    epoch: int = 0
    index: int = 0
    offset: int = 0

    def next(self, epoch: int) -> int | None:
        """The next broker for this partition, None if all had their turn."""
        if not self.brokers:
            return None
        if self.epoch != epoch:
            self.epoch, self.index = epoch, 0
            self.offset = (self.offset + 1) % len(self.brokers)
        if self.index >= len(self.brokers):
            return None
        broker_id = self.brokers[(self.index + self.offset) % len(self.brokers)]
        self.index += 1
        return broker_id


@dataclass(slots=True)
class _Rack:
    unfenced: _Turns
    fenced: _Turns

    def next(self, epoch: int) -> int | None:
        broker_id = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker_id is None else broker_id


def place_striped(
    brokers: Iterable[UsableBroker],
    partition_count: int,
    replication_factor: int,
    release: ReleaseNumber = NEWEST,
) -> list[tuple[int, ...]]:
    """The replicas of each new partition, the preferred leader first.

    ``release`` is that of the controller, as (major, minor), which changes its texts.

    Raises:
        PlacementError: if too few brokers are registered, or all are fenced; the text is Kafka's.
    """
    known, has_cordons = [*brokers], partition_rules(release).cordons
    if replication_factor <= 0:
        raise PlacementError(
            f"Invalid replication factor {replication_factor}: the replication factor must be "
            "positive."
        )
    if all(broker.is_fenced for broker in known):
        also = (
            ", or have all their log directories cordoned"
            if partition_rules(release).cordons
            else ""
        )
        raise PlacementError(f"All brokers are currently fenced{also}.")
    if replication_factor > len(known):
        also = " or some brokers have all their log directories cordoned"
        raise PlacementError(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(known)} broker(s) are registered{also if has_cordons else ''}."
        )
    racks = _racks(known)
    unfenced = sum(not broker.is_fenced for broker in known)
    # A round of a single partition would not let its broker have another turn.
    round_length = unfenced if unfenced > 1 else partition_count
    return [
        _place(racks, number % len(racks), number % round_length, replication_factor)
        for number in range(partition_count)
    ]


def _racks(brokers: Iterable[UsableBroker]) -> list[_Rack]:
    """The racks by name; brokers without one are a rack, which comes first."""
    by_rack: dict[tuple[bool, str], _Rack] = {}
    for broker_id, rack_name, is_fenced in sorted(brokers, key=lambda broker: broker.broker_id):
        key = (rack_name is not None, rack_name or "")
        rack = by_rack.setdefault(key, _Rack(_Turns([]), _Turns([])))
        (rack.fenced if is_fenced else rack.unfenced).brokers.append(broker_id)
    return [by_rack[key] for key in sorted(by_rack)]


def _place(racks: list[_Rack], offset: int, epoch: int, replication_factor: int) -> tuple[int, ...]:
    """The replicas of one partition, which begin at the rack ``offset``."""
    first = offset
    while (leader := racks[first].unfenced.next(epoch)) is None:
        first = (first + 1) % len(racks)
    replicas, index, leader_rack = [leader], offset, first
    while len(replicas) < replication_factor:
        if index == leader_rack:
            leader_rack = -1  # it had its turn in this round
        elif (broker_id := racks[index].next(epoch)) is not None:
            replicas.append(broker_id)
        index = (index + 1) % len(racks)
    return tuple(replicas)
