"""The leader selectors, rule by rule and for any partition."""

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.partitions.assignment import ReplicaAssignment
from featurewatch.controller.partitions.selectors import (
    DOCUMENT_SELECTORS,
    RELEASED_SELECTORS,
    ElectionInput,
    SelectedLeader,
    SelectorDialect,
    select_controlled_shutdown,
    select_first,
    select_offline,
    select_preferred,
    select_reassigned,
)

BOTH = pytest.mark.parametrize("dialect", [DOCUMENT_SELECTORS, RELEASED_SELECTORS])


def partition(
    replicas: Iterable[int],
    isr: Iterable[int],
    live: Iterable[int],
    stopping: Iterable[int] = (),
    removing: Iterable[int] = (),
) -> ElectionInput:
    """A partition; ``removing`` are the replicas that a reassignment drops."""
    assignment = ReplicaAssignment(tuple(replicas), (), tuple(removing))
    return ElectionInput(assignment, tuple(isr), {*live}, {*stopping})


def test_a_new_partition_is_led_by_its_first_live_replica() -> None:
    """The leader is the first live replica in order, the ISR all live ones (C-07)."""
    assert select_first(partition([1, 2, 3], [], [3, 2])) == SelectedLeader(2, (2, 3), (2, 3))
    assert select_first(partition([1, 2, 3], [], [4])) is None


@BOTH
def test_a_dead_leader_is_replaced_from_the_isr(dialect: SelectorDialect) -> None:
    """A live ISR member leads, the ISR keeps its live members, live replicas learn (C-15,
    C-17, C-18).

    Ties go by the assignment in released Kafka (C-15 as released), by the ISR in the document's
    code.
    """
    selected = select_offline(dialect, partition([1, 2, 3, 4], [3, 2, 1], [2, 3, 4]))
    leader = 3 if dialect is DOCUMENT_SELECTORS else 2
    assert selected == SelectedLeader(leader, (3, 2), (2, 3, 4))


@BOTH
@pytest.mark.parametrize("allow_unclean", [False, True])
def test_without_the_isr_any_live_replica_leads(
    dialect: SelectorDialect, allow_unclean: bool
) -> None:
    """A replica outside the ISR leads alone; released Kafka must allow it (C-16, C-17).

    That is where unclean elections are enabled or requested (C-16 as released).
    """
    lost = partition([1, 2, 3], [1], [2, 3])
    selected = select_offline(dialect, lost, allow_unclean=allow_unclean)
    if allow_unclean or dialect is DOCUMENT_SELECTORS:
        assert selected == SelectedLeader(2, (2,), (2, 3), is_unclean=True)
    else:
        assert selected is None


@BOTH
def test_without_live_replicas_nobody_leads(dialect: SelectorDialect) -> None:
    """No live assigned replica, no leader, whatever is allowed (C-18)."""
    dead = partition([1, 2], [1, 2], [3])
    assert select_offline(dialect, dead, allow_unclean=True) is None


@BOTH
def test_a_reassigned_partition_is_led_from_the_target(dialect: SelectorDialect) -> None:
    """A live replica of the target leads, the ISR stays, the target learns (C-19, C-20).

    Released Kafka demands that it is in the ISR (C-19 as released).
    """
    moving = partition([4, 5, 6, 1], [1, 5, 6], [1, 4, 5], removing=[1])
    leader = 5 if dialect is RELEASED_SELECTORS else 4
    expected = SelectedLeader(leader, (1, 5, 6), (4, 5, 6))
    assert select_reassigned(dialect, moving) == expected
    assert select_reassigned(dialect, partition([4, 1], [1], [1], removing=[1])) is None


@BOTH
def test_the_preferred_replica_leads_or_nobody_does(dialect: SelectorDialect) -> None:
    """Only the first assigned replica, only from the ISR, which stays (C-21, C-22).

    In released Kafka it must be alive, too (C-21 as released).
    """
    assert select_preferred(dialect, partition([1, 2, 3], [3, 1], [1, 3])) == SelectedLeader(
        1, (3, 1), (1, 2, 3)
    )
    assert select_preferred(dialect, partition([1, 2, 3], [2, 3], [1, 2, 3])) is None
    dead = select_preferred(dialect, partition([1, 2], [1, 2], [2]))
    assert (dead is None) == (dialect is RELEASED_SELECTORS)


@BOTH
def test_a_broker_that_shuts_down_is_replaced(dialect: SelectorDialect) -> None:
    """An ISR member that stays leads, the ISR loses those that stop (C-23,
    C-24, C-25).

    Released Kafka takes the first in the order of the assignment (C-23 as released), and informs
    the brokers that stop, too (C-25 as released).
    """
    seen = partition([1, 2, 3, 4], [1, 3, 2], [2, 3], stopping=[1])
    leader = 3 if dialect is DOCUMENT_SELECTORS else 2
    receivers = (1, 2, 3) if dialect is RELEASED_SELECTORS else (2, 3)
    expected = SelectedLeader(leader, (3, 2), receivers)
    assert select_controlled_shutdown(dialect, seen, {1}) == expected
    two = partition([1, 2, 3, 4], [1, 3, 2], [3], stopping=[1, 2])
    informed = (1, 2, 3) if dialect is RELEASED_SELECTORS else (3,)
    assert select_controlled_shutdown(dialect, two, {1, 2}) == SelectedLeader(3, (3,), informed)
    alone = partition([1, 2], [1], [2], stopping=[1])
    assert select_controlled_shutdown(dialect, alone, {1}) is None


@BOTH
def test_the_document_does_not_ask_whether_the_replacement_is_alive(
    dialect: SelectorDialect,
) -> None:
    """At a shutdown any ISR member leads (C-23), as released a live one only (C-23 as released)."""
    seen = partition([1, 2], [1, 2], [], stopping=[1])
    selected = select_controlled_shutdown(dialect, seen, {1})
    assert (selected is None) == (dialect is RELEASED_SELECTORS)


# -- any partition ---------------------------------------------------------------------------------


@st.composite
def partitions(draw: st.DrawFn) -> ElectionInput:
    """A partition on up to six brokers in any state."""
    replicas = draw(st.lists(st.integers(1, 6), unique=True))
    isr = draw(st.lists(st.sampled_from(replicas), unique=True)) if replicas else []
    removing = [broker_id for broker_id in replicas if draw(st.booleans())]
    alive = draw(st.sets(st.integers(1, 6)))
    stopping = {broker_id for broker_id in alive if draw(st.booleans())}
    return partition(replicas, isr, alive - stopping, stopping, removing)


Selector = Callable[[ElectionInput], SelectedLeader | None]

SELECTORS: dict[str, Selector] = {
    "offline": lambda seen: select_offline(RELEASED_SELECTORS, seen),
    "unclean": lambda seen: select_offline(RELEASED_SELECTORS, seen, allow_unclean=True),
    "reassigned": lambda seen: select_reassigned(RELEASED_SELECTORS, seen),
    "preferred": lambda seen: select_preferred(RELEASED_SELECTORS, seen),
    "shutdown": lambda seen: select_controlled_shutdown(RELEASED_SELECTORS, seen, seen.stopping),
}


def broken_rules(seen: ElectionInput, selected: SelectedLeader) -> list[str]:
    """The invariants of released elections that a result breaks."""
    rules = {
        "the leader is live": selected.leader in seen.live,
        "the leader is assigned": selected.leader in seen.assignment.replicas,
        "the leader is in the new ISR": selected.leader in selected.isr,
        "the ISR has no duplicates": len({*selected.isr}) == len(selected.isr),
        "an ISR only grows by an unclean election": selected.is_unclean
        or {*selected.isr} <= {*seen.isr},
        "an unclean ISR is the leader": not selected.is_unclean or len(selected.isr) == 1,
        "an unclean leader comes from outside": selected.is_unclean
        == (selected.leader not in seen.isr),
        "receivers are assigned": {*selected.receivers} <= {*seen.assignment.replicas},
        "the leader is informed": selected.leader in selected.receivers,
    }
    return [rule for rule, holds in rules.items() if not holds]


@pytest.mark.parametrize("name", SELECTORS)
@given(seen=partitions())
def test_invariants_of_elections(name: str, seen: ElectionInput) -> None:
    """An elected leader is live, assigned, informed, and in the ISR unless it is unclean."""
    selected = SELECTORS[name](seen)
    if selected is not None:
        assert broken_rules(seen, selected) == []


@pytest.mark.parametrize(
    "wrong",
    [
        SelectedLeader(3, (1, 2), (1, 2)),
        SelectedLeader(9, (9,), (9,), is_unclean=True),
        SelectedLeader(2, (1, 2, 4), (1, 2)),
        SelectedLeader(2, (2,), (1, 2), is_unclean=True),
        SelectedLeader(2, (1, 2), (1,)),
        SelectedLeader(4, (4, 1), (4,), is_unclean=True),
    ],
)
def test_a_wrong_election_breaks_a_rule(wrong: SelectedLeader) -> None:
    """The invariants above are not always true."""
    assert broken_rules(partition([1, 2, 3, 4], [1, 2], [1, 2, 4]), wrong)
