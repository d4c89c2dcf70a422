"""Any history of writes, any order of deliveries: what is said is what ZooKeeper holds."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.streams.events import ZnodeChange
from tests.plugins.nightly import case_count
from tests.streams.zookeeper.watcher.simulated import (
    settle,
    truth,
)
from tests.streams.zookeeper.watcher.world import WATCHED, WatcherWorld, play

SEEDS = case_count(1000)
BLOCK = case_count(100)


@pytest.mark.form("document")
@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_the_events_give_the_state_of_zookeeper(first):
    """Replayed, the events give ZooKeeper's state once all is quiet; what no event shows is counted
    as missed; nothing is said twice and no reading goes back (F-11, F-12)."""
    for seed in range(first, first + BLOCK):
        world = WatcherWorld()
        try:
            play(seed, world)
            settle(world.connection, world.auditor, world.now_ms)
            assert world.auditor.known == truth(world.ensemble, WATCHED)
            assert world.auditor.passed_over == world.auditor.reported_passed_over
            assert world.observer.caught_up
            assert world.observer.stall_reason is None
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(["write", "delete"]), st.integers(0, 10**6))))
def test_a_reconnect_within_the_session_publishes_only_changes(writes):
    """However much was written in between, no snapshot comes; without a write nothing does."""
    world = WatcherWorld()
    settle(world.connection, world.auditor, 0)
    before, event_count = dict(world.auditor.known), len(world.auditor.events)
    world.observer.on_disconnected("away", 0)
    for action, number in writes:
        world.act(action, number)
    world.connect(world.ensemble.zxid)
    settle(world.connection, world.auditor, 0)
    changed = {
        path
        for path in before | world.auditor.known
        if before.get(path) != world.auditor.known.get(path)
    }
    events = world.auditor.events[event_count:]
    changes = [event for event in events if isinstance(event, ZnodeChange)]
    assert changes == events
    assert sorted(change.path for change in changes) == sorted(changed)
