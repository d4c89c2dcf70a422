"""The fold of a gate: no message takes a cluster back to an earlier revision."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.client.errors import (
    ClusterRetiredError,
    LaterVersionError,
    NotReadyError,
    RevisionBackError,
    RevisionsLostError,
    UnknownClusterError,
)
from featurewatch.client.gate_state import GateState
from featurewatch.streams.outputs import FeatureChange, Snapshot
from tests.client.published import CLUSTER, FEATURE, change, removal, snapshot

Step = FeatureChange | Snapshot | LaterVersionError | None

LATER = LaterVersionError("a place", CLUSTER, 2, 1)


def apply(state: GateState, step: Step) -> list[type]:
    """Applies a message, None being a deletion; returns the kinds of problems."""
    if isinstance(step, Snapshot):
        return [type(problem) for problem in state.apply_snapshot(step)]
    if isinstance(step, FeatureChange):
        return [type(problem) for problem in state.apply_change(step)]
    if isinstance(step, LaterVersionError):
        return [type(problem) for problem in state.apply_problem(step)]
    return [type(problem) for problem in state.apply_deletion(CLUSTER)]


def level(state: GateState) -> object:
    """The level of the feature, None if not finalized, or the name of the error."""
    try:
        return state.view(CLUSTER).levels.get(FEATURE)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(
    ("steps", "levels", "problems"),
    [
        ([], [], []),
        ([change(1)], [UnknownClusterError], []),  # one level alone is no state
        ([snapshot(1), change(2)], [21, 22], []),
        ([snapshot(1), change(2), snapshot(1), snapshot(2)], [21, 22, 22, 22], []),
        ([snapshot(3), change(2), change(3, 99)], [23, 23, 23], []),
        ([snapshot(1), removal(2)], [21, None], []),
        ([snapshot(1), change(4)], [21, 24], [RevisionsLostError]),
        ([snapshot(5), snapshot(2), snapshot(2)], [25, 25, 25], [RevisionBackError]),
        ([snapshot(5), None, snapshot(1)], [25, ClusterRetiredError, 21], [ClusterRetiredError]),
        ([None, change(1)], [ClusterRetiredError, ClusterRetiredError], []),
        ([snapshot(1, ready=False), snapshot(2)], [NotReadyError, 22], []),
        ([snapshot(1), snapshot(2, ready=False)], [21, 22], []),
        ([snapshot(1), LATER, change(2)], [21, LaterVersionError, LaterVersionError],
         [LaterVersionError]),
        ([LATER, snapshot(1)], [LaterVersionError, 21], [LaterVersionError]),
    ],
)  # fmt: skip
def test_the_level_after_each_message(steps, levels, problems):
    """Retired, not ready and not readable are errors by their names, and never a level."""
    state, found = GateState(), []
    for step, expected in zip(steps, levels, strict=True):
        found += apply(state, step)
        assert level(state) == expected
        assert (CLUSTER in state.levels) == (expected is None or isinstance(expected, int))
    assert found == problems


def test_levels_of_one_commit_are_completed_by_its_snapshot():
    """Changes of one revision come one after the other."""
    state = GateState()
    apply(state, snapshot(1))
    apply(state, change(2))
    apply(state, change(2, 1, feature="kraft.version"))
    assert state.view(CLUSTER).levels == {FEATURE: 22, "kraft.version": 1}
    apply(state, snapshot(2, {FEATURE: 22, "kraft.version": 1, "group.version": 1}))
    assert state.view(CLUSTER).levels == {FEATURE: 22, "kraft.version": 1, "group.version": 1}


def test_a_restart_of_the_revisions_is_taken_if_the_caller_accepts_it():
    """Until then the later revision counts."""
    state = GateState()
    for step in (snapshot(5), snapshot(1)):
        apply(state, step)
    state.accept("another")
    assert level(state) == 25
    state.accept(CLUSTER)
    assert (level(state), state.view(CLUSTER).revision) == (21, 1)
    state.accept(CLUSTER)
    assert level(state) == 21


def test_an_error_is_another_object_each_time():
    """One object for all callers would collect their stacks."""
    state = GateState()
    apply(state, LATER)
    with pytest.raises(LaterVersionError) as first:
        state.view(CLUSTER)
    with pytest.raises(LaterVersionError) as second:
        state.view(CLUSTER)
    assert first.value is not second.value
    assert (str(first.value), first.value.version) == (str(LATER), 2)


_STEPS: list[Callable[[int], Step]] = [change, snapshot, removal]


@given(st.lists(st.tuples(st.sampled_from(_STEPS), st.integers(1, 6))))
def test_the_revision_never_goes_back(steps):
    """Whatever the order of the messages is, while the cluster is not retired."""
    state, revision = GateState(), -1
    for step, number in steps:
        apply(state, step(number))
        try:
            current = state.view(CLUSTER).revision
        except UnknownClusterError:
            continue
        assert current >= revision
        revision = current
