"""Any history of writes, any order of deliveries: what is said is what ZooKeeper holds."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.streams.types import ClusterId
from featurewatch.streams.zookeeper.paths import TargetKind, WatchScope
from featurewatch.streams.zookeeper.watcher.requests import WatcherTiming
from featurewatch.streams.zookeeper.watcher.watcher import ZnodeWatcher
from tests.streams.zookeeper.watcher.simulated import (
    CLUSTER,
    Auditor,
    Connection,
    Ensemble,
    content,
    settle,
    truth,
)

PATHS = ["/feature", "/controller", "/brokers/ids", *(f"/brokers/ids/{n}" for n in range(4))]
WATCHED = {target.path for target in WatchScope().roots() if target.kind is TargetKind.DATA}
WEIGHTS = {
    "write": 3.0,
    "delete": 1.0,
    "serve": 8.0,
    "deliver": 8.0,
    "send": 8.0,
    "apply": 6.0,
    "swap": 2.0,
    "drop": 0.2,
    "expire": 0.2,
    "tick": 1.0,
}
SEEDS = 1000
STEPS = 400


class World:
    """An ensemble, one observer, and the connection that it has at the time."""

    def __init__(self) -> None:
        self.ensemble = Ensemble()
        self.observer = ZnodeWatcher("zk:2181", ClusterId(CLUSTER), timing=WatcherTiming(chunk=2))
        self.auditor = Auditor(self.ensemble)
        self.session = 1
        self.now_ms = 0
        self.seen = 0
        self.connect(self.ensemble.zxid)

    def connect(self, applied: int) -> None:
        """A connection to a server that has applied so much."""
        self.connection = Connection(self.ensemble, applied, self.observer)
        self.connection.seen = self.seen
        self.observer.on_connected(self.session)

    def act(self, action: str, number: int) -> None:
        """One step of whoever is named."""
        self.now_ms += number % 40
        connection = self.connection
        match action:
            case "write":
                self.write(PATHS[number % len(PATHS)], number)
            case "delete":
                path = PATHS[number % len(PATHS)]
                if path in self.ensemble.nodes:
                    self.ensemble.delete(path)
            case "serve":
                connection.serve()
            case "apply":
                connection.apply()
            case "send":
                connection.send()
            case "deliver":
                self.auditor.take(connection.deliver(self.now_ms))
            case "swap":
                # A fired watch may reach us before the answer that came first.
                wire = connection.wire
                if len(wire) > 1 and (wire[0][0], wire[1][0]) == ("answer", "fired"):
                    wire[0], wire[1] = wire[1], wire[0]
            case "tick":
                self.observer.tick(self.now_ms)
            case "drop" | "expire":
                self.lose(number, expired=action == "expire")

    def write(self, path: str, number: int) -> None:
        """Makes or sets a path."""
        if path in self.ensemble.nodes:
            self.ensemble.set(path, content(path, number))
        elif path == "/brokers/ids" or path.rpartition("/")[0] in ("", *self.ensemble.nodes):
            self.ensemble.make(path, content(path, number), owner=number)

    def lose(self, number: int, *, expired: bool) -> None:
        """A server takes the session up if it knows what the client saw; a new one always."""
        self.seen = self.connection.seen
        self.observer.on_disconnected("away", self.now_ms)
        if expired:
            self.session += 1
            self.seen = 0
        low, lag = max(1, self.seen), (0, 1, 2, 3, number)[number % 5]
        self.connect(max(low, self.ensemble.zxid - lag % self.ensemble.zxid))


def play(seed: int, world: World) -> None:
    """Some history; how often what happens is drawn too, so that worlds differ."""
    chance = random.Random(seed)
    weights = [weight * chance.choice((0.1, 1, 4)) for weight in WEIGHTS.values()]
    for action in chance.choices(list(WEIGHTS), weights, k=STEPS):
        world.act(action, chance.randrange(10**6))


@pytest.mark.parametrize("first", range(0, SEEDS, 100))
def test_what_is_said_is_what_zookeeper_holds(first):
    """Replayed, the events give ZooKeeper's state once all is quiet; what no event shows is counted
    as missed; nothing is said twice and no reading goes back (F-11, F-12)."""
    for seed in range(first, first + 100):
        world = World()
        try:
            play(seed, world)
            settle(world.connection, world.auditor, world.now_ms)
            assert world.auditor.known == truth(world.ensemble, WATCHED)
            assert world.auditor.passed_over == world.auditor.said_passed_over
            assert world.observer.caught_up
            assert world.observer.stall_reason is None
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["write", "delete"]), st.integers(0, 10**6))))
def test_a_reconnect_within_the_session_says_only_what_changed(writes):
    """However much was written in between, no snapshot comes; without a write nothing does."""
    world = World()
    settle(world.connection, world.auditor, 0)
    before, said = dict(world.auditor.known), len(world.auditor.events)
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
    assert sorted(event.path for event in world.auditor.events[said:]) == sorted(changed)
