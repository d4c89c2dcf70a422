"""The state diagrams in the docs follow from the observers' transition tables."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from featurewatch.streams.kraft.observer import states as observer
from featurewatch.streams.zookeeper.watcher import states as watcher
from featurewatch.streams.zookeeper.watcher.states import WatcherState, WatcherTrigger
from scripts.draw_states import DIAGRAMS, with_diagram

Transitions = Mapping[tuple[StrEnum, StrEnum], StrEnum]


@pytest.mark.parametrize("path", DIAGRAMS, ids=lambda path: path.name)
def test_a_diagram_is_the_table_that_the_code_moves_by(path: Path) -> None:
    """The document between its markers is what the script draws."""
    text = path.read_text()
    assert with_diagram(text, DIAGRAMS[path]) == text, "run python -m scripts.draw_states"


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
