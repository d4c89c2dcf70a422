"""A simulated ensemble with one watcher: random writes, deliveries and losses of the connection."""

import random

from featurewatch.streams.types import ClusterId
from featurewatch.streams.zookeeper.paths import TargetKind, WatchScope
from featurewatch.streams.zookeeper.watcher.requests import WatcherTiming
from featurewatch.streams.zookeeper.watcher.watcher import ZnodeWatcher
from tests.streams.zookeeper.watcher.simulated import (
    CLUSTER,
    Auditor,
    Connection,
    Ensemble,
    ReadDone,
    WatchFired,
    content,
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
STEPS = 400


class WatcherWorld:
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
                self.auditor.apply(connection.deliver(self.now_ms))
            case "swap":
                # A fired watch may reach us before the answer that came first.
                wire = connection.wire
                match list(wire)[:2]:
                    case [ReadDone(), WatchFired()]:
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


def play(seed: int, world: WatcherWorld) -> None:
    """Some history; how often what happens is drawn too, so that worlds differ."""
    chance = random.Random(seed)
    weights = [weight * chance.choice((0.1, 1, 4)) for weight in WEIGHTS.values()]
    for action in chance.choices(list(WEIGHTS), weights, k=STEPS):
        world.act(action, chance.randrange(10**6))
