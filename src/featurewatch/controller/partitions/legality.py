"""Holds each change of a partition against the invariants and the election rules of its release.

`broken_by_change` and `broken_by_creation` give the rules that a record breaks. Most changes of a
cluster are a replica that leaves or joins the ISR and an election among the rest; those are decided
without the objects that `controller.partitions` works with.
"""

from collections.abc import Container, Mapping
from typing import Any

from featurewatch.controller.partitions.kraft_election import (
    NO_LEADER,
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
)
from featurewatch.controller.partitions.kraft_invariants import (
    CheckedChange,
    PartitionInvariant,
    broken_invariants,
)
from featurewatch.controller.partitions.kraft_invariants import (
    broken_by_creation as broken_by_new_partition,
)
from featurewatch.tables.partitions.image import Partition
from featurewatch.tables.partitions.replay import PartitionAdded, PartitionChanged

_NONE: list[PartitionInvariant] = []


def broken_by_change(
    rules: KraftElectionRules, change: PartitionChanged, usable: Container[int]
) -> list[PartitionInvariant]:
    """The rules that a change breaks; ``usable`` are the brokers that may lead before it."""
    before, after = change.before, change.after
    if _is_plain(before, after, change.data) and _is_plainly_legal(before, after, usable):
        return _NONE
    checked = CheckedChange(rules, kraft_partition(before), written_fields(change.data), usable)
    return broken_invariants(checked)


def broken_by_creation(added: PartitionAdded) -> list[PartitionInvariant]:
    """The rules that a new partition breaks."""
    after = added.after
    return broken_by_new_partition(
        kraft_partition(after), after.leader_epoch, after.partition_epoch
    )


def _is_plain(before: Partition, after: Partition, data: Mapping[str, Any]) -> bool:
    """Whether a change is about leader and ISR alone, of a partition without a reassignment."""
    return (
        after.replicas is before.replicas
        and not (after.adding or after.removing or before.adding or before.removing)
        and not (after.recovering or before.recovering)
        and not (after.elr or before.elr or after.last_known_elr or before.last_known_elr)
        and ("isr" in data or "leader" in data)
        and before.leader != NO_LEADER
    )


def _is_plainly_legal(before: Partition, after: Partition, usable: Container[int]) -> bool:
    """Whether such a change certainly breaks no rule; false: it must be checked in full."""
    isr, leader = after.isr, after.leader
    members = {*isr}
    if not isr or len(members) != len(isr) or leader not in members:
        return False
    if isr is not before.isr:
        if not members.issubset(after.replicas):
            return False
        grown = members.difference(before.isr)
        if grown and (leader != before.leader or any(member not in usable for member in grown)):
            return False
    if leader == before.leader:
        return True
    first = next((r for r in after.replicas if r in members and r in usable), NO_LEADER)
    return leader == first


def kraft_partition(partition: Partition) -> KraftPartition:
    """A partition as `controller.partitions` has it."""
    return KraftPartition(
        replicas=partition.replicas,
        isr=partition.isr,
        leader=partition.leader,
        adding=partition.adding,
        removing=partition.removing,
        recovering=partition.recovering,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
    )


def written_fields(data: Mapping[str, Any]) -> PartitionChange:
    """The fields that a PartitionChangeRecord has set."""

    def listed(name: str) -> tuple[int, ...] | None:
        value = data.get(name)
        return None if value is None else tuple(value)

    leader, recovery = data.get("leader", -2), data.get("leaderRecoveryState", -1)
    return PartitionChange(
        leader=None if leader == -2 else leader,
        isr=listed("isr"),
        replicas=listed("replicas"),
        adding=listed("addingReplicas"),
        removing=listed("removingReplicas"),
        recovering=None if recovery == -1 else recovery == 1,
        elr=listed("eligibleLeaderReplicas"),
        last_known_elr=listed("lastKnownElr"),
        has_directories=data.get("directories") is not None,
    )
