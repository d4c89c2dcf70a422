"""The transition tables of the observers, from which the state diagrams in the docs follow."""

from collections.abc import Mapping
from enum import StrEnum

import pytest

from featurewatch.streams.kraft.observer import states as observer
from featurewatch.streams.zookeeper.watcher import states as watcher
from featurewatch.streams.zookeeper.watcher.states import WatcherState, WatcherTrigger

Transitions = Mapping[tuple[StrEnum, StrEnum], StrEnum]


@pytest.mark.parametrize(
    ("start", "states", "transitions"),
    [
        (observer.ObserverState.SEEKING, observer.ObserverState, observer.TRANSITIONS),
        (WatcherState.OFFLINE, WatcherState, watcher.TRANSITIONS),
    ],
)
def test_every_state_is_reachable(
    start: StrEnum, states: type[StrEnum], transitions: Transitions
) -> None:
    """From the start each state is reached by some triggers, and the start is reached again."""
    reached: set[StrEnum] = set()
    pending = [start]
    while pending:
        state = pending.pop()
        after = {to for (before, _), to in transitions.items() if before is state}
        pending += after - reached
        reached |= after
    assert reached == set(states)


def test_a_connection_may_come_and_go_in_every_state_of_the_watcher() -> None:
    """A new connection begins with a sync, and a lost one leaves the watcher offline."""
    for state in WatcherState:
        assert watcher.TRANSITIONS[state, WatcherTrigger.CONNECTED] is WatcherState.SYNCING
        assert watcher.TRANSITIONS[state, WatcherTrigger.DISCONNECTED] is WatcherState.OFFLINE
