"""Replica lists under reassignment, placement, and the tables of states."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.placement import (
    PlacementError,
    PlacementStart,
    alternate_racks,
    place_replicas,
)
from featurewatch.controller.partitions.states import (
    DOCUMENT_REPLICAS,
    RELEASED_PARTITIONS,
    PartitionState,
    PartitionTransitions,
    ReplicaState,
    ReplicaTransitions,
    invalid_transition,
)
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)

LISTS = st.lists(st.integers(1, 9), unique=True).map(tuple)


@pytest.mark.form("released")
def test_a_reassignment_keeps_both_lists() -> None:
    """The target comes first, what it lacks is removed at the end (C-43 as released)."""
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((3, 4, 2))
    assert moving == ReplicaAssignment((3, 4, 2, 1), (4,), (1,))
    assert (moving.origin, moving.target) == ((3, 2, 1), (3, 4, 2))
    assert str(TopicPartition("a-b", 3)) == "a-b-3"


@pytest.mark.form("document")
@pytest.mark.parametrize(
    ("target", "moving"),
    [
        ((4, 5, 6), ReplicaAssignment((1, 2, 3, 4, 5, 6), (4, 5, 6), (1, 2, 3))),
        ((3, 4, 2), ReplicaAssignment((1, 2, 3, 4), (4,), (1,), (3, 4, 2))),
        ((2, 3), ReplicaAssignment((1, 2, 3), (), (1,))),
        ((3, 2, 1), ReplicaAssignment((1, 2, 3), (), (), (3, 2, 1))),
    ],
)
def test_the_document_appends_the_target(
    target: tuple[int, ...], moving: ReplicaAssignment
) -> None:
    """OAR + RAR in this order, and both lists are known, also if they overlap (C-43, C-56)."""
    assignment = ReplicaAssignment((1, 2, 3)).append(target)
    assert assignment == moving
    assert (assignment.origin, assignment.target) == ((1, 2, 3), target)
    assert assignment.append(target) == moving
    assert assignment.append(assignment.origin).target == (1, 2, 3)


def test_a_replaced_reassignment_drops_what_it_had_added() -> None:
    """Replicas that only the first target had are in no list any more."""
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((4, 2, 3))
    assert moving.reassign_to((5, 2, 3)) == ReplicaAssignment((5, 2, 3, 1), (5,), (1,))


def test_canceling_loses_the_order() -> None:
    """The replicas are those of before, and another one may be preferred."""
    moving = ReplicaAssignment((1, 2, 3)).reassign_to((4, 2, 3))
    assert moving.reassign_to(moving.origin) == ReplicaAssignment((2, 3, 1))


@pytest.mark.parametrize("appends", [False, True])
@given(LISTS, LISTS, LISTS)
def test_lists_of_any_reassignment(
    appends: bool, origin: tuple[int, ...], target: tuple[int, ...], replacement: tuple[int, ...]
) -> None:
    """However often it is replaced, the origin stays, and the target is the newest."""
    assignment = ReplicaAssignment(origin)
    for wanted in (target, replacement):
        assignment = assignment.append(wanted) if appends else assignment.reassign_to(wanted)
        assert {*assignment.origin} == {*origin}
        assert assignment.target == wanted
        assert {*assignment.replicas} == {*origin, *wanted}
        assert not {*assignment.adding} & {*assignment.removing}
        assert assignment.is_complete(wanted)
        assert assignment.is_complete(()) == (not wanted)
    for gone in assignment.replicas:
        rest = assignment.remove(gone)
        assert gone not in {*rest.replicas, *rest.adding, *rest.removing}


# -- placement -------------------------------------------------------------------------------------


def test_placement_without_racks() -> None:
    """The worked example of Kafka's ``AdminUtils``: five brokers, ten partitions."""
    placed = place_replicas(dict.fromkeys(range(5)), 10, 3, PlacementStart(0, 0))
    assert [placed[number] for number in (0, 1, 5, 9)] == [
        (0, 1, 2),
        (1, 2, 3),
        (0, 2, 3),
        (4, 1, 2),
    ]


def test_placement_with_racks() -> None:
    """The worked example of Kafka's ``AdminUtils``: six brokers in three racks."""
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert alternate_racks(racks) == [0, 3, 1, 5, 4, 2]
    placed = place_replicas(racks, 7, 3, PlacementStart(0, 0))
    assert [*placed.values()] == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
    ]


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "text"),
    [
        ({1: None}, 0, 1, "Number of partitions must be larger than 0."),
        ({1: None}, 1, 0, "Replication factor must be larger than 0."),
        ({1: None}, 1, 2, "Replication factor: 2 larger than available brokers: 1."),
        ({}, 1, 1, "Replication factor: 1 larger than available brokers: 0."),
        (
            {1: "a", 2: None},
            1,
            1,
            "Not all brokers have rack information for replica rack aware assignment.",
        ),
    ],
)
def test_what_cannot_be_placed(
    racks: dict[int, str | None], partitions: int, factor: int, text: str
) -> None:
    """Kafka's texts."""
    with pytest.raises(PlacementError) as error:
        place_replicas(racks, partitions, factor, PlacementStart(0, 0))
    assert str(error.value) == text


@given(
    st.dictionaries(st.integers(0, 20), st.sampled_from(["a", "b", "c"]), min_size=1),
    st.integers(1, 20),
    st.integers(1, 5),
    st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30)),
)
def test_placement_spreads_over_racks(
    racks: dict[int, str | None], partitions: int, factor: int, start: tuple[int, int, int]
) -> None:
    """No broker twice, as many racks as possible, and no broker leads twice more than another."""
    factor = min(factor, len(racks))
    placed = place_replicas(racks, partitions, factor, PlacementStart(*start))
    assert len(placed) == partitions
    for replicas in placed.values():
        assert len({*replicas}) == factor
        used = {racks[broker_id] for broker_id in replicas}
        assert len(used) == min(factor, len({*racks.values()}))
    leaders = [replicas[0] for replicas in placed.values()]
    counts = [leaders.count(broker_id) for broker_id in racks]
    assert max(counts) - min(counts) <= 1


# -- states ----------------------------------------------------------------------------------------


def pairs_of(
    table: PartitionTransitions | ReplicaTransitions, subject: str
) -> set[tuple[str, str]]:
    """The valid transitions, by the names of the states."""
    return {
        (state.removesuffix(subject), target.removesuffix(subject))
        for target, states in table.items()
        for state in states
    }


@pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
def test_tables_have_the_documents_transitions(dialect: OperationsDialect) -> None:
    """Seven of sixteen pairs each in the document (C-14, C-36).

    In released Kafka also Offline to Offline (C-14 as released), and for replicas those of
    deletion, which has three additional states (C-36 as released).
    """
    seven = {
        ("NonExistent", "New"),
        ("New", "Online"),
        ("Online", "Online"),
        ("Offline", "Online"),
        ("New", "Offline"),
        ("Online", "Offline"),
        ("Offline", "NonExistent"),
    }
    eighth = {("Offline", "Offline")}
    deletion = {
        ("Offline", "ReplicaDeletionStarted"),
        ("ReplicaDeletionStarted", "ReplicaDeletionSuccessful"),
        ("ReplicaDeletionSuccessful", "NonExistent"),
        ("Offline", "ReplicaDeletionIneligible"),
        ("ReplicaDeletionStarted", "ReplicaDeletionIneligible"),
        ("ReplicaDeletionIneligible", "Online"),
        ("ReplicaDeletionIneligible", "Offline"),
    }
    if dialect is DOCUMENT_OPERATIONS:
        partitions = replicas = seven
    else:
        partitions = seven | eighth
        replicas = seven - {("Offline", "NonExistent")} | eighth | deletion
    assert pairs_of(dialect.partitions, "Partition") == partitions
    assert pairs_of(dialect.replicas, "Replica") == replicas
    assert {*dialect.partitions} == {*PartitionState}
    assert len(dialect.replicas) == (4 if dialect is DOCUMENT_OPERATIONS else len(ReplicaState))
    assert [state.number for state in (PartitionState.NEW, ReplicaState.NEW)] == [0, 1]


def test_an_invalid_transition_has_kafkas_text() -> None:
    """The states that may come before, the target, and the state it is in."""
    reason = invalid_transition(
        "Partition t-0", RELEASED_PARTITIONS, PartitionState.NEW, PartitionState.NON_EXISTENT
    )
    assert reason == (
        "Partition t-0 should be in one of OfflinePartition states before moving to"
        " NonExistentPartition state. Instead it is in NewPartition state"
    )
    pairs = product(ReplicaState, ReplicaState)
    valid = {
        (state, target)
        for state, target in pairs
        if invalid_transition("r", DOCUMENT_REPLICAS, state, target) is None
    }
    assert len(valid) == 7
