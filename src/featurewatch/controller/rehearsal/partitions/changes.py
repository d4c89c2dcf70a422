"""Collects the changes that a KRaft controller makes to partitions in one operation."""

from collections.abc import Set
from typing import Any

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.kraft_election import (
    NO_LEADER,
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
    PartitionTarget,
    change_partition,
)
from featurewatch.controller.partitions.kraft_invariants import apply_change
from featurewatch.controller.partitions.kraft_reassignment import begin_reassignment
from featurewatch.controller.rehearsal.partitions.operations import OperationResult
from featurewatch.controller.rehearsal.partitions.state import RehearsedPartitions


class KraftChanges:
    """The partitions of ``before`` with the changes so far; ``usable`` are the brokers that may
    lead while they are made."""

    def __init__(self, before: RehearsedPartitions, usable: Set[int]) -> None:
        self._before = before
        self._usable = usable
        self._rules = before.rules or KraftElectionRules((0, 0))
        self._min_isrs = before.minimum_isrs()
        self._changed: dict[TopicPartition, KraftPartition] = {}
        self._unclean: set[TopicPartition] = set()

    def __getitem__(self, partition: TopicPartition) -> KraftPartition:
        """A partition as it is now."""
        changed = self._changed.get(partition)
        return self._before.partitions[partition] if changed is None else changed

    def usable(self, partition: TopicPartition) -> Set[int]:
        """The brokers that may lead a partition."""
        return self._before.usable_for(partition, self._usable)

    def change(self, partition: TopicPartition, **wanted: Any) -> bool:
        """Makes the change that `PartitionTarget` describes; false: there is nothing to write."""
        target = PartitionTarget(self.usable(partition), self._min_isrs[partition.topic], **wanted)
        return self._write(
            partition, target.isr, change_partition(self._rules, self[partition], target)
        )

    def reassign(self, partition: TopicPartition, replicas: tuple[int, ...]) -> bool:
        """Begins a reassignment; false: there is nothing to write."""
        min_isr = self._min_isrs[partition.topic]
        usable = self.usable(partition)
        record = begin_reassignment(self._rules, self[partition], replicas, usable, min_isr)
        return self._write(partition, None, record)

    def join_isr(self, partition: TopicPartition, broker_id: int) -> None:
        """The leader, if there is one, adds a replica that has caught up (``AlterPartition``)."""
        state = self[partition]
        is_follower = broker_id in state.replicas and broker_id not in state.isr
        if state.leader != NO_LEADER and is_follower and broker_id in self.usable(partition):
            self.change(
                partition,
                isr=(*state.isr, broker_id),
                election=self._before.election(partition.topic),
                recovering=False,
            )

    def result(self, after: RehearsedPartitions, **details: Any) -> OperationResult:
        """The changes, applied to ``after``."""
        applied = after.with_partitions(self._changed)
        return OperationResult(applied, unclean=frozenset(self._unclean), **details)

    def _write(
        self, partition: TopicPartition, isr: tuple[int, ...] | None, record: PartitionChange
    ) -> bool:
        if record.is_empty:
            return False
        state = self[partition]
        eligible = {*(state.isr if isr is None else isr), *state.elr}
        is_elected = record.leader is not None and record.leader not in (NO_LEADER, state.leader)
        if is_elected and record.leader not in eligible:
            self._unclean.add(partition)
        self._changed[partition] = apply_change(state, record)
        return True
