"""Invariants of every change of a partition in a KRaft log, whoever caused it.

Each rule is one that released controllers keep in every operation; a change that breaks one is the
fault of a controller, or of a reader that missed records. The rules ask only for what a reader of
the log knows: the partition before, the record, and the brokers by the records before it.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass
from enum import StrEnum

from featurewatch.controller.partitions.kraft_election import (
    NO_LEADER,
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
)


class PartitionInvariant(StrEnum):
    """The rules, by name; the value is the sentence that was broken."""

    CHANGES = "a change sets at least one field"
    REPLICAS = "a partition has replicas, each once"
    ISR = "the ISR is a part of the replicas, each once, and empty only with eligible leaders"
    LEADER_IN_ISR = "a leader is a member of the ISR"
    ASSIGNMENT = "adding and removing replicas are replicas, and in both only while stale"
    EPOCH = "the leader is written when a replica is removed"
    COMPLETION = "a reassignment that ends adds no replica"
    CLEAN_LEADER = "a clean election elects from the ISR or the eligible leaders"
    RECOVERY = "an unclean leader is alone in the ISR, and recovers without another election"
    ISR_GROWTH = "the ISR grows with usable replicas under an unchanged leader, or by completion"
    ELIGIBLE = "eligible leaders are outside the ISR, and only below its minimum"
    USABLE_LEADER = "an elected leader is registered, unfenced and not shutting down"
    ELECTION_ORDER = "a clean election elects the first usable ISR member in the replicas' order"
    CREATION = "a new partition has epochs of 0, no reassignment, and the first ISR member leads"


@dataclass(frozen=True, slots=True)
class CheckedChange:
    """One change with what is known around it.

    ``usable``: the brokers that may lead, by the records before this one; ``min_isr``: the
    effective minimum of the ISR, None if it is not known.
    """

    rules: KraftElectionRules
    before: KraftPartition
    record: PartitionChange
    usable: Container[int]
    min_isr: int | None = None


def apply_change(before: KraftPartition, record: PartitionChange) -> KraftPartition:
    """The partition after a record (``PartitionRegistration.merge``)."""

    def chosen(written: tuple[int, ...] | None, current: tuple[int, ...]) -> tuple[int, ...]:
        return current if written is None else written

    return KraftPartition(
        replicas=chosen(record.replicas, before.replicas),
        isr=chosen(record.isr, before.isr),
        leader=before.leader if record.leader is None else record.leader,
        adding=chosen(record.adding, before.adding),
        removing=chosen(record.removing, before.removing),
        recovering=before.recovering if record.recovering is None else record.recovering,
        elr=chosen(record.elr, before.elr),
        last_known_elr=chosen(record.last_known_elr, before.last_known_elr),
    )


def broken_invariants(change: CheckedChange) -> list[PartitionInvariant]:
    """The rules that a change breaks; none if it is legal."""
    after = apply_change(change.before, change.record)
    return [*_broken_lists(change, after), *_broken_elections(change, after)]


def broken_by_creation(
    partition: KraftPartition, leader_epoch: int, partition_epoch: int
) -> list[PartitionInvariant]:
    """The rules that a PartitionRecord of a new partition breaks."""
    is_fresh = (
        leader_epoch == partition_epoch == 0
        and not partition.adding
        and not partition.removing
        and partition.isr[:1] == (partition.leader,)
    )
    broken = [] if is_fresh else [PartitionInvariant.CREATION]
    if not _is_list(partition.replicas) or not partition.replicas:
        broken.append(PartitionInvariant.REPLICAS)
    if not _is_list(partition.isr) or not {*partition.isr} <= {*partition.replicas}:
        broken.append(PartitionInvariant.ISR)
    return broken


def _broken_lists(change: CheckedChange, after: KraftPartition) -> Iterator[PartitionInvariant]:
    before, record = change.before, change.record
    replicas, isr = {*after.replicas}, {*after.isr}
    if record.is_empty:
        yield PartitionInvariant.CHANGES
    if not after.replicas or not _is_list(after.replicas):
        yield PartitionInvariant.REPLICAS
    if not _is_list(after.isr) or not isr <= replicas or not (isr or change.rules.elr):
        yield PartitionInvariant.ISR
    changing = {*after.adding} | {*after.removing}
    is_stale = bool(before.adding or before.removing)
    is_in_both = bool({*after.adding} & {*after.removing})
    if not changing <= replicas or (is_in_both and not is_stale):
        yield PartitionInvariant.ASSIGNMENT
    if record.leader is None and not {*before.replicas} <= replicas:
        yield PartitionInvariant.EPOCH
    if is_stale and not changing and not replicas <= {*before.replicas}:
        yield PartitionInvariant.COMPLETION
    is_above = change.min_isr is not None and len(after.isr) >= change.min_isr
    # The eligible leaders are settled before the election: one of them may fill the ISR alone.
    is_from_elr = after.isr == (after.leader,) and after.leader in before.elr
    is_filled = bool(record.elr) and is_above and not is_from_elr
    if {*after.elr} & isr or len(after.last_known_elr) > 1 or is_filled:
        yield PartitionInvariant.ELIGIBLE


def _broken_elections(change: CheckedChange, after: KraftPartition) -> Iterator[PartitionInvariant]:
    before, usable = change.before, change.usable
    is_elected = after.leader not in (NO_LEADER, before.leader)
    is_unclean = change.record.recovering is True
    is_completed = bool(before.adding or before.removing) and not (after.adding or after.removing)
    if after.leader not in (NO_LEADER, *after.isr):
        yield PartitionInvariant.LEADER_IN_ISR
    may_be_dead = change.rules.elr and not change.rules.of_release.checks_last_known
    was_last_known = may_be_dead and before.last_known_elr == (after.leader,)
    if is_elected and after.leader not in usable and not was_last_known:
        yield PartitionInvariant.USABLE_LEADER
    clean = {*before.isr, *before.elr, *(after.isr if is_completed else ())}
    if is_elected and not after.recovering and after.leader not in clean:
        yield PartitionInvariant.CLEAN_LEADER
    candidates = (member for member in after.replicas if member in after.isr and member in usable)
    first = next(candidates, NO_LEADER)
    if is_elected and not after.recovering and first not in (NO_LEADER, after.leader):
        yield PartitionInvariant.ELECTION_ORDER
    is_lone = after.isr == (after.leader,)
    is_recovered = before.recovering and not after.recovering
    recovers_badly = (is_unclean and not is_lone) or (is_recovered and is_elected)
    if recovers_badly or (after.recovering and len(after.isr) > 1):
        yield PartitionInvariant.RECOVERY
    grown = {*after.isr} - {*before.isr}
    # Without a usable member, canceling a reassignment leaves the first replica in the ISR.
    is_lost = after.leader == NO_LEADER and len(after.isr) == 1
    from_election = after.recovering or grown <= {*before.elr} or is_lost
    is_usable = all(member in usable for member in grown)
    from_leader = is_usable and (not is_elected or is_completed)
    if grown and not from_election and not from_leader:
        yield PartitionInvariant.ISR_GROWTH


def _is_list(broker_ids: tuple[int, ...]) -> bool:
    return len({*broker_ids}) == len(broker_ids)
