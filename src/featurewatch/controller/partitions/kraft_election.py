"""How a KRaft controller changes a partition: completed reassignments, elections, epochs, ELR.

Follows ``PartitionChangeBuilder`` and ``PartitionReassignmentReplicas`` of Kafka's package
``org.apache.kafka.controller``, whose rules differ between releases. `change_partition` gives the
fields of the PartitionChangeRecord that the controller of a release writes.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from featurewatch.controller.partitions.assignment import without
from featurewatch.controller.partitions.release_rules import (
    CompletionRule,
    PartitionRules,
    partition_rules,
)

NO_LEADER: Final = -1


class KraftElection(StrEnum):
    """Why a leader is elected."""

    PREFERRED = "preferred"
    ONLINE = "online"
    UNCLEAN = "unclean"


@dataclass(frozen=True, slots=True)
class KraftElectionRules:
    """The rules of one release, as (major, minor) in ``release``.

    ``raises_epoch_on_shrink``: the leader epoch grows when the ISR shrinks (metadata.version below
    12, or a migration from ZooKeeper); ``elr``: eligible leader replicas are enabled.
    """

    release: tuple[int, int]
    elr: bool = False
    raises_epoch_on_shrink: bool = False

    @property
    def completion(self) -> CompletionRule:
        """When a reassignment completes."""
        return self.of_release.completion

    @property
    def of_release(self) -> PartitionRules:
        """What depends on the release alone."""
        return partition_rules(self.release)


@dataclass(frozen=True, slots=True)
class KraftPartition:
    """A partition in the metadata image (``PartitionRegistration``), directories left out."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PartitionTarget:
    """The desired change of a partition; None leaves a part unchanged.

    ``usable`` are the brokers that may lead: registered, unfenced and not shutting down, with the
    replica's directory online. ``min_isr`` is the effective minimum. ``unclean_shutdown`` are
    brokers that lost data.
    """

    usable: Set[int]
    min_isr: int = 1
    election: KraftElection = KraftElection.ONLINE
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovering: bool | None = None
    unclean_shutdown: Set[int] = frozenset()


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """The fields of a PartitionChangeRecord; None: the field is not written.

    ``has_directories``: it writes the replicas' directories (KIP-858), and may write nothing else.
    """

    leader: int | None = None
    isr: tuple[int, ...] | None = None
    replicas: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    recovering: bool | None = None
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    has_directories: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no record is written."""
        return self == PartitionChange()


def completed_reassignment(
    rule: CompletionRule,
    replicas: Sequence[int],
    adding: Sequence[int],
    removing: Sequence[int],
    isr: Sequence[int],
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The replicas and the ISR after a reassignment, if it completes with this ISR."""
    if not adding and not removing:
        return None
    remaining_isr, remaining = without(isr, removing), without(replicas, removing)
    if not remaining_isr or not remaining:
        return None
    match rule:
        case CompletionRule.ADDING:
            needed = {*adding}
        case CompletionRule.ALL:
            needed = {*remaining}
        case CompletionRule.ADDING_UNLESS_SHRINKING:
            needed = {*adding, *(remaining if len(adding) < len(removing) else ())}
    return (remaining, remaining_isr) if needed <= {*remaining_isr} else None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The lists on the way to a record."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    elr: tuple[int, ...]


def change_partition(
    rules: KraftElectionRules, partition: KraftPartition, target: PartitionTarget
) -> PartitionChange:
    """The fields that the controller of a release writes; empty if nothing changes."""
    wanted = _with_elr(rules, partition, target, _completed(rules, partition, target))
    leader, is_unclean = _elect(rules, partition, target, wanted)
    record = PartitionChange()
    isr, elr = wanted.isr, wanted.elr
    if leader != partition.leader:
        record = replace(record, leader=leader)
        if is_unclean:
            recovering = None if partition.recovering else True
            record = replace(record, isr=(leader,), recovering=recovering)
        elif leader != NO_LEADER and leader not in isr:
            isr, elr = (leader,), without(elr, [leader])
    if record.leader is None and not {*partition.replicas} <= {*wanted.replicas}:
        record = replace(record, leader=partition.leader)
    if record.isr is not None or not rules.elr:
        elr = ()
    if elr != partition.elr:
        record = replace(record, elr=elr)
    if record.isr is None and (isr or rules.elr) and isr != partition.isr:
        record = replace(record, isr=isr)
    record = _with_epoch_of_shrink(rules, partition, isr, record)
    record = _with_last_known(rules, partition, record)
    return _with_assignment(partition, target, wanted, record)


def _completed(
    rules: KraftElectionRules, partition: KraftPartition, target: PartitionTarget
) -> _Wanted:
    def chosen(wanted: tuple[int, ...] | None, current: tuple[int, ...]) -> tuple[int, ...]:
        return current if wanted is None else wanted

    wanted = _Wanted(
        chosen(target.replicas, partition.replicas),
        chosen(target.isr, partition.isr),
        chosen(target.adding, partition.adding),
        chosen(target.removing, partition.removing),
        partition.elr,
    )
    completed = completed_reassignment(
        rules.completion, wanted.replicas, wanted.adding, wanted.removing, wanted.isr
    )
    if completed is None:
        return wanted
    replicas, isr = completed
    return replace(wanted, replicas=replicas, isr=isr, adding=(), removing=())


def _with_elr(
    rules: KraftElectionRules,
    partition: KraftPartition,
    target: PartitionTarget,
    wanted: _Wanted,
) -> _Wanted:
    """The eligible leader replicas: those that left the ISR while it is below its minimum."""
    if not rules.elr:
        return wanted
    if len(wanted.isr) >= target.min_isr:
        return replace(wanted, elr=())
    left = {*wanted.elr, *partition.isr} - {*wanted.isr} - target.unclean_shutdown
    return replace(wanted, elr=tuple(sorted(left)))


def _elect(
    rules: KraftElectionRules,
    partition: KraftPartition,
    target: PartitionTarget,
    wanted: _Wanted,
) -> tuple[int, bool]:
    """The leader, and whether it may lack acknowledged writes."""
    eligible = wanted.isr or (wanted.elr if rules.elr else ())
    valid = [broker_id for broker_id in wanted.replicas if broker_id in eligible]
    valid = [broker_id for broker_id in valid if broker_id in target.usable]
    is_current_valid = partition.leader in eligible and partition.leader in target.usable
    is_preferred = target.election is KraftElection.PREFERRED and bool(wanted.replicas)
    if is_preferred and wanted.replicas[0] in valid:
        return wanted.replicas[0], False
    if is_current_valid:
        return partition.leader, False
    if valid:
        return valid[0], False
    last_known = partition.last_known_elr
    is_last_chance = rules.elr and not wanted.isr and not wanted.elr and len(last_known) == 1
    is_checked = rules.of_release.checks_last_known
    if is_last_chance and (not is_checked or last_known[0] in target.usable):
        return last_known[0], True
    if target.election is KraftElection.UNCLEAN:
        for broker_id in wanted.replicas:
            if broker_id in target.usable:
                return broker_id, True
    return NO_LEADER, False


def _with_epoch_of_shrink(
    rules: KraftElectionRules,
    partition: KraftPartition,
    isr: tuple[int, ...],
    record: PartitionChange,
) -> PartitionChange:
    shrinks = record.isr is not None and not {*partition.isr} <= {*isr}
    if rules.raises_epoch_on_shrink and record.leader is None and shrinks:
        return replace(record, leader=partition.leader)
    return record


def _with_last_known(
    rules: KraftElectionRules, partition: KraftPartition, record: PartitionChange
) -> PartitionChange:
    """Remembers the last leader of a partition that loses it, and forgets it when one leads."""
    if not rules.elr:
        return record
    last_known = partition.last_known_elr
    if rules.of_release.clears_late:
        if record.leader == NO_LEADER and not last_known:
            return replace(record, last_known_elr=(partition.leader,))
        if record.leader is not None and record.leader >= 0 and last_known:
            return replace(record, last_known_elr=())
        return record
    if record.isr == () and last_known != (partition.leader,):
        return replace(record, last_known_elr=(partition.leader,))
    keeps_leader = partition.leader != NO_LEADER and record.leader != NO_LEADER
    gets_leader = record.leader is not None and record.leader >= 0
    if (gets_leader or keeps_leader) and last_known:
        return replace(record, last_known_elr=())
    return record


def _with_assignment(
    partition: KraftPartition, target: PartitionTarget, wanted: _Wanted, record: PartitionChange
) -> PartitionChange:
    if wanted.replicas and wanted.replicas != partition.replicas:
        record = replace(record, replicas=wanted.replicas)
    if wanted.removing != partition.removing:
        record = replace(record, removing=wanted.removing)
    if wanted.adding != partition.adding:
        record = replace(record, adding=wanted.adding)
    if target.recovering is not None and target.recovering != partition.recovering:
        record = replace(record, recovering=target.recovering)
    return record
