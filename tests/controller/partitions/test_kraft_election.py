"""Elections and reassignments of KRaft controllers, release by release."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.partitions.kraft_election import (
    KraftElection,
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
    PartitionTarget,
    change_partition,
    completed_reassignment,
)
from featurewatch.controller.partitions.release_rules import CompletionRule

V39 = KraftElectionRules((3, 9))
V43 = KraftElectionRules((4, 3))


@pytest.mark.parametrize(
    ("release", "rule"),
    [
        ((3, 3), CompletionRule.ADDING),
        ((3, 7), CompletionRule.ADDING),
        ((3, 8), CompletionRule.ALL),
        ((4, 2), CompletionRule.ALL),
        ((4, 3), CompletionRule.ADDING_UNLESS_SHRINKING),
    ],
)
def test_releases_complete_reassignments_by_different_rules(
    release: tuple[int, int], rule: CompletionRule
) -> None:
    """The rule changed in 3.8 and in 4.3."""
    assert KraftElectionRules(release).completion is rule


@pytest.mark.parametrize(
    ("rule", "isr", "is_complete"),
    [
        (CompletionRule.ADDING, (1, 2, 4), True),
        (CompletionRule.ALL, (1, 2, 4), False),
        (CompletionRule.ALL, (2, 3, 4), True),
        (CompletionRule.ADDING_UNLESS_SHRINKING, (1, 2, 4), True),
        (CompletionRule.ADDING_UNLESS_SHRINKING, (1, 2, 3), False),
        (CompletionRule.ADDING, (1,), False),
    ],
)
def test_one_move_under_each_rule(
    rule: CompletionRule, isr: tuple[int, ...], is_complete: bool
) -> None:
    """From 1, 2, 3 to 4, 2, 3."""
    completed = completed_reassignment(rule, (4, 2, 3, 1), (4,), (1,), isr)
    assert (completed is not None) == is_complete
    if completed is not None:
        assert completed == ((4, 2, 3), tuple(member for member in isr if member != 1))


@pytest.mark.parametrize("rule", CompletionRule)
def test_stale_sets_never_complete_but_in_3_8_to_4_2(rule: CompletionRule) -> None:
    """Going back while a replica is added leaves it in both sets (1,2,3 → 4,2,3 → 1,2,3)."""
    completed = completed_reassignment(rule, (1, 2, 3, 4), (4,), (4,), (1, 2, 3))
    assert (completed is not None) == (rule is CompletionRule.ALL)


def test_a_shrinking_move_waits_for_all_in_4_3() -> None:
    """More are removed than added: every replica that stays must be in the ISR."""
    rule = CompletionRule.ADDING_UNLESS_SHRINKING
    assert completed_reassignment(rule, (2, 3, 1), (), (1,), (1, 2)) is None
    assert completed_reassignment(rule, (2, 3, 1), (), (1,), (1, 2, 3)) == ((2, 3), (2, 3))


def test_a_completing_isr_change_is_one_record() -> None:
    """ISR, replicas, both sets and the leader change at once; a kept leader gets a new epoch."""
    moving = KraftPartition((4, 2, 3, 1), (1, 2, 3), 2, adding=(4,), removing=(1,))
    change = change_partition(V39, moving, PartitionTarget({1, 2, 3, 4}, isr=(1, 2, 3, 4)))
    assert change == PartitionChange(
        leader=2, isr=(2, 3, 4), replicas=(4, 2, 3), adding=(), removing=()
    )


@pytest.mark.parametrize(
    ("election", "leader"),
    [(KraftElection.PREFERRED, 1), (KraftElection.ONLINE, None), (KraftElection.UNCLEAN, None)],
)
def test_only_a_preferred_election_replaces_a_valid_leader(
    election: KraftElection, leader: int | None
) -> None:
    """The other elections keep a leader that may lead."""
    led = KraftPartition((1, 2, 3), (1, 2, 3), 2)
    change = change_partition(V43, led, PartitionTarget({1, 2, 3}, election=election))
    assert change == PartitionChange(leader=leader)


def test_without_the_isr_only_an_unclean_election_finds_a_leader() -> None:
    """It is marked as recovering, and its ISR is the leader alone."""
    lost = KraftPartition((1, 2), (1,), 1)
    assert change_partition(V39, lost, PartitionTarget({2})) == PartitionChange(leader=-1)
    target = PartitionTarget({2}, election=KraftElection.UNCLEAN)
    change = change_partition(V39, lost, target)
    assert change == PartitionChange(leader=2, isr=(2,), recovering=True)


def test_a_last_known_leader_need_not_be_alive_in_3_9() -> None:
    """3.9 and 4.0 elect it although it is not usable; 4.1 and later do not."""
    lost = KraftPartition((1, 2), (), -1, last_known_elr=(1,))
    target = PartitionTarget(frozenset())
    for release, leader in (((4, 0), 1), ((4, 1), None)):
        rules = KraftElectionRules(release, elr=True)
        assert change_partition(rules, lost, target).leader == leader


PARTITIONS = st.lists(st.integers(1, 6), unique=True, min_size=1).flatmap(
    lambda replicas: st.builds(
        KraftPartition,
        st.just(tuple(replicas)),
        st.lists(st.sampled_from(replicas), unique=True, min_size=1).map(tuple),
        st.just(-1) | st.sampled_from(replicas),
    )
)


@given(
    PARTITIONS,
    st.sets(st.integers(1, 6)),
    st.sampled_from([*KraftElection]),
    st.sampled_from([(3, 3), (3, 9), (4, 3)]),
)
def test_any_election(
    partition: KraftPartition,
    usable: set[int],
    election: KraftElection,
    release: tuple[int, int],
) -> None:
    """An elected leader is usable, assigned, and in the ISR that is written with it."""
    rules = KraftElectionRules(release)
    change = change_partition(rules, partition, PartitionTarget(usable, election=election))
    if change.leader is not None and change.leader >= 0:
        isr = partition.isr if change.isr is None else change.isr
        assert change.leader in usable & {*partition.replicas} & {*isr}
        assert (change.leader in partition.isr) != bool(change.recovering)
