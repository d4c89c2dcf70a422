"""The invariants of a KRaft log: none fires on what controllers do, each fires on its fault."""

from dataclasses import replace
from random import Random

import pytest

from featurewatch.controller.partitions.kraft_election import (
    KraftElection,
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
    PartitionTarget,
    change_partition,
)
from featurewatch.controller.partitions.kraft_invariants import (
    CheckedChange,
    PartitionInvariant,
    apply_change,
    broken_by_creation,
    broken_invariants,
)
from featurewatch.controller.partitions.legality import written_fields
from featurewatch.streams.kraft.records.directory_ids import UNASSIGNED
from tests.plugins.nightly import case_count, case_seeds

BROKERS = range(1, 7)
RELEASES = [(3, 3), (3, 9), (4, 0), (4, 1), (4, 3)]


class ControllerWalk:
    """A controller of one release that does what controllers do, by chance."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        release = self.chance.choice(RELEASES)
        elr = release >= (3, 9) and self.chance.random() < 0.5
        self.rules = KraftElectionRules(release, elr, release < (3, 6))
        self.usable = {*BROKERS}
        replicas = tuple(self.chance.sample(BROKERS, 3))
        self.partition = KraftPartition(replicas, replicas, replicas[0])
        self.count = 0

    def step(self) -> list[tuple[KraftPartition, PartitionChange, list[PartitionInvariant]]]:
        """One event; what each record of it breaks."""
        kind = self.chance.random()
        if kind < 0.2:
            return self._fence()
        if kind < 0.35:
            return self._unfence()
        if kind < 0.7:
            return self._alter_isr()
        if kind < 0.9:
            return self._reassign()
        election = self.chance.choice([KraftElection.PREFERRED, KraftElection.UNCLEAN])
        return self._change(election=election)

    def _change(
        self, usable: set[int] | None = None, **target: object
    ) -> list[tuple[KraftPartition, PartitionChange, list[PartitionInvariant]]]:
        before = self.partition
        seen = self.usable if usable is None else usable
        min_isr = min(2, len(before.replicas))
        wanted = PartitionTarget(frozenset(seen), min_isr, **target)  # type: ignore[arg-type]
        record = change_partition(self.rules, before, wanted)
        if record.is_empty:
            return []
        self.count += 1
        self.partition = apply_change(before, record)
        checked = CheckedChange(self.rules, before, record, seen, min_isr)
        return [(before, record, broken_invariants(checked))]

    def _fence(self) -> list[tuple[KraftPartition, PartitionChange, list[PartitionInvariant]]]:
        broker_id = self.chance.choice(BROKERS)
        if broker_id not in self.usable:
            return []
        self.usable.discard(broker_id)
        isr = tuple(member for member in self.partition.isr if member != broker_id)
        unclean = self.chance.random() < 0.2
        election = KraftElection.UNCLEAN if unclean else KraftElection.ONLINE
        return self._change(isr=isr, election=election)

    def _unfence(self) -> list[tuple[KraftPartition, PartitionChange, list[PartitionInvariant]]]:
        self.usable.add(self.chance.choice(BROKERS))
        return self._change() if self.partition.leader == -1 else []

    def _alter_isr(self) -> list[tuple[KraftPartition, PartitionChange, list[PartitionInvariant]]]:
        leader, partition = self.partition.leader, self.partition
        if leader not in self.usable:
            return []
        if partition.recovering:
            return self._change(recovering=False)
        others = [
            broker_id
            for broker_id in partition.replicas
            if broker_id != leader and broker_id in self.usable and self.chance.random() < 0.7
        ]
        return self._change(isr=(leader, *others))

    def _reassign(self) -> list[tuple[KraftPartition, PartitionChange, list[PartitionInvariant]]]:
        """A new target; as in Kafka, sets that would be empty stay as they are."""
        current = self.partition.replicas
        wanted = tuple(self.chance.sample(BROKERS, self.chance.randint(1, 3)))
        removing = tuple(sorted({*current} - {*wanted}))
        adding = tuple(sorted({*wanted} - {*current}))
        return self._change(
            replicas=(*wanted, *removing), removing=removing or None, adding=adding or None
        )


def test_no_false_alarm() -> None:
    """Fences, ISR changes, reassignments and elections of five releases break no rule."""
    count = 0
    for seed in case_seeds(500):
        walk = ControllerWalk(seed)
        for _ in range(30):
            for before, record, broken in walk.step():
                assert broken == [], f"seed {seed}, {walk.rules}: {before} {record}"
        count += walk.count
    assert count > case_count(4_000)


LED = KraftPartition((1, 2, 3), (1, 2), 1)
MOVING = KraftPartition((4, 2, 3, 1), (1, 2), 1, adding=(4,), removing=(1,))
LOST = KraftPartition((1, 2, 3), (1,), -1)
RECOVERING = KraftPartition((1, 2), (1,), 1, recovering=True)
ELR = KraftElectionRules((4, 3), elr=True)


@pytest.mark.parametrize(
    ("before", "record", "rule"),
    [
        (LED, PartitionChange(), PartitionInvariant.CHANGES),
        (LED, PartitionChange(replicas=(1, 2, 2), leader=1), PartitionInvariant.REPLICAS),
        (LED, PartitionChange(isr=(1, 9)), PartitionInvariant.ISR),
        (LED, PartitionChange(isr=(1, 1)), PartitionInvariant.ISR),
        (LED, PartitionChange(isr=(), leader=-1), PartitionInvariant.ISR),
        (LED, PartitionChange(isr=(2,)), PartitionInvariant.LEADER_IN_ISR),
        (LED, PartitionChange(adding=(9,)), PartitionInvariant.ASSIGNMENT),
        (LED, PartitionChange(adding=(3,), removing=(3,)), PartitionInvariant.ASSIGNMENT),
        (LED, PartitionChange(replicas=(1, 2)), PartitionInvariant.EPOCH),
        (
            MOVING,
            PartitionChange(replicas=(5, 2, 3), leader=2, adding=(), removing=(), isr=(2,)),
            PartitionInvariant.COMPLETION,
        ),
        (LED, PartitionChange(leader=3, isr=(3,)), PartitionInvariant.CLEAN_LEADER),
        (LOST, PartitionChange(leader=2, isr=(2, 3), recovering=True), PartitionInvariant.RECOVERY),
        (RECOVERING, PartitionChange(isr=(1, 2)), PartitionInvariant.RECOVERY),
        (
            RECOVERING,
            PartitionChange(leader=2, isr=(2,), recovering=False),
            PartitionInvariant.RECOVERY,
        ),
        (LED, PartitionChange(leader=2, isr=(1, 2, 3)), PartitionInvariant.ISR_GROWTH),
        (
            KraftPartition((1, 2, 6), (1, 2), 1),
            PartitionChange(isr=(1, 2, 6)),
            PartitionInvariant.ISR_GROWTH,
        ),
        (LED, PartitionChange(elr=(2,)), PartitionInvariant.ELIGIBLE),
        (LED, PartitionChange(elr=(3,)), PartitionInvariant.ELIGIBLE),
        (LED, PartitionChange(last_known_elr=(1, 2)), PartitionInvariant.ELIGIBLE),
        (
            KraftPartition((1, 6), (1, 6), 1),
            PartitionChange(leader=6),
            PartitionInvariant.USABLE_LEADER,
        ),
    ],
)
def test_each_fault_breaks_its_rule(
    before: KraftPartition, record: PartitionChange, rule: PartitionInvariant
) -> None:
    """A record with one fault breaks the rule about it; broker 6 is fenced."""
    rules = KraftElectionRules((4, 3))
    assert rule in broken_invariants(CheckedChange(rules, before, record, {1, 2, 3, 4, 5}, 2))


def test_an_empty_isr_is_legal_with_eligible_leaders() -> None:
    """With ELR a partition that lost all members has an empty ISR."""
    record = PartitionChange(isr=(), leader=-1, elr=(1, 2))
    assert broken_invariants(CheckedChange(ELR, LED, record, {3}, 2)) == []


def test_an_eligible_leader_may_fill_the_isr_alone() -> None:
    """Kafka settles the eligible leaders before the election: they stay although 1 is enough."""
    lost = KraftPartition((1,), (), -1, elr=(1, 5))
    record = PartitionChange(leader=1, isr=(1,), elr=(5,))
    assert broken_invariants(CheckedChange(ELR, lost, record, {1}, 1)) == []


@pytest.mark.parametrize(
    ("partition", "leader_epoch", "rules"),
    [
        (KraftPartition((1, 2), (1, 2), 1), 0, []),
        (KraftPartition((1, 2), (1, 2), 2), 0, [PartitionInvariant.CREATION]),
        (KraftPartition((1, 2), (1,), 1), 1, [PartitionInvariant.CREATION]),
        (KraftPartition((1, 2), (1,), 1, adding=(2,)), 0, [PartitionInvariant.CREATION]),
        (KraftPartition((1, 1), (1,), 1), 0, [PartitionInvariant.REPLICAS]),
        (KraftPartition((1, 2), (1, 3), 1), 0, [PartitionInvariant.ISR]),
    ],
)
def test_new_partitions(
    partition: KraftPartition, leader_epoch: int, rules: list[PartitionInvariant]
) -> None:
    """A new partition is led by the first member of its ISR, and all counts are 0."""
    assert broken_by_creation(partition, leader_epoch, 0) == rules


def test_directories_alone_are_a_change() -> None:
    """A broker that enters KRaft mode assigns its replicas to directories, and nothing else
    (KIP-858)."""
    data = {"topicId": "T", "partitionId": 4, "directories": [UNASSIGNED]}
    change = CheckedChange(KraftElectionRules((3, 9)), LED, written_fields(data), {1, 2, 3}, 2)
    assert broken_invariants(change) == []
    empty = written_fields({**data, "directories": None})
    assert broken_invariants(replace(change, record=empty)) == [PartitionInvariant.CHANGES]
