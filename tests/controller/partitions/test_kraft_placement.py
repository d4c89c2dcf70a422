"""Placement of new replicas in KRaft mode, topics' names, and the begin of reassignments."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.partitions.kraft_election import (
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
)
from featurewatch.controller.partitions.kraft_invariants import apply_change
from featurewatch.controller.partitions.kraft_reassignment import (
    begin_reassignment,
    can_complete,
)
from featurewatch.controller.partitions.placement import PlacementError
from featurewatch.controller.partitions.striped_placement import UsableBroker, place_striped
from featurewatch.controller.partitions.topic_names import colliding_topics, topic_name_error

ALIVE = frozenset(range(1, 7))


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    """Brokers from 1 on, one for each rack."""
    return [UsableBroker(n, rack, n in fenced) for n, rack in enumerate(racks, start=1)]


def test_partitions_are_striped_over_brokers() -> None:
    """As Kafka's placer with ``new Random(0)``, whose first draw is 0 too."""
    placed = place_striped(brokers(*[None] * 6), 3, 3)
    assert placed == [(1, 2, 3), (2, 3, 4), (3, 4, 5)]


def test_racks_take_turns() -> None:
    """Each partition begins in the next rack, and each of its replicas is in another one."""
    racks = ("a", "a", "b", "b")
    assert place_striped(brokers(*racks), 4, 2) == [(1, 3), (4, 2), (1, 3), (4, 2)]


def test_a_fenced_broker_never_leads() -> None:
    """It is the last of the replicas."""
    placed = place_striped(brokers(None, None, None, fenced=(1,)), 4, 3)
    assert {replicas[-1] for replicas in placed} == {1}


@given(
    st.lists(
        st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
    ),
    st.integers(1, 30),
    st.data(),
)
def test_replicas_are_different_brokers(
    listed: list[tuple[str | None, bool]], partition_count: int, data: st.DataObject
) -> None:
    """As many as were asked for, the first one unfenced; racks repeat only when all are used."""
    known = [UsableBroker(n, rack, fenced) for n, (rack, fenced) in enumerate(listed)]
    replication_factor = data.draw(st.integers(1, len(known)))
    if all(broker.is_fenced for broker in known):
        with pytest.raises(PlacementError, match="fenced"):
            place_striped(known, partition_count, replication_factor)
        return
    rack_count = len({broker.rack for broker in known})
    placed = place_striped(known, partition_count, replication_factor)
    assert len(placed) == partition_count
    for replicas in placed:
        assert len({*replicas}) == replication_factor
        assert not known[replicas[0]].is_fenced
        racks = {known[broker_id].rack for broker_id in replicas}
        assert len(racks) == min(rack_count, replication_factor)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("a" * 250, "is longer than the max allowed length 249"),
        ("a/b", "contains one or more characters other than ASCII alphanumerics"),
        ("ä", "contains one or more characters other than ASCII alphanumerics"),
        ("a.b-C_9", None),
    ],
)
def test_names_of_topics(name: str, reason: str | None) -> None:
    """Kafka's rules and texts."""
    error = topic_name_error(name)
    assert (error is None) == (reason is None)
    assert reason is None or reason in (error or "")


def test_topics_with_one_metric_name_collide() -> None:
    """``.`` and ``_`` are one in metrics."""
    assert colliding_topics("a.b", ["a_b", "a.b", "ab"]) == ["a_b"]
    assert colliding_topics("ab", ["a_b"]) == []


def test_a_reassignment_begins_with_target_and_old_replicas() -> None:
    """The target comes first, then what is removed; the leader stays."""
    partition = KraftPartition((1, 2, 3), (1, 2, 3), 1)
    change = begin_reassignment(KraftElectionRules((4, 3)), partition, (4, 2, 3), ALIVE)
    assert change == PartitionChange(replicas=(4, 2, 3, 1), adding=(4,), removing=(1,))


def test_the_same_list_writes_nothing() -> None:
    """And a new order writes only the replicas."""
    partition, rules = KraftPartition((1, 2), (1, 2), 1), KraftElectionRules((4, 3))
    assert begin_reassignment(rules, partition, (1, 2), ALIVE).is_empty
    change = begin_reassignment(rules, partition, (2, 1), ALIVE)
    assert change == PartitionChange(replicas=(2, 1))


@pytest.mark.parametrize(
    ("release", "ends"), [((3, 3), False), ((3, 7), False), ((3, 8), True), ((4, 3), False)]
)
def test_going_back_in_the_middle_may_never_end(release: tuple[int, int], ends: bool) -> None:
    """The replica that was being added is removed too, and stays in both sets."""
    rules = KraftElectionRules(release)
    moving = KraftPartition((4, 2, 3, 1), (1, 2), 1, adding=(4,), removing=(1,))
    after = apply_change(moving, begin_reassignment(rules, moving, (1, 2, 3), ALIVE))
    assert (after.adding, after.removing) == ((4,), (4,))
    assert can_complete(rules, after) == ends
    assert can_complete(rules, moving)
