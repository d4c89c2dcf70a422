"""A small model of ZooKeeper with a cluster's znodes, and a source that watches it, from one seed.

`Ensemble.znodes` is the truth; each action returns the events that the source publishes.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random

from featurewatch.streams.events import Event, SourceState
from featurewatch.streams.znodes import UnreadableZnode, Znode, ZnodeContent
from tests.simulation import znodes as z
from tests.simulation.records import GV, MV, TV, Ranges
from tests.simulation.znodes import DRAFT, FEATURE

SUPPORTED: tuple[Ranges, ...] = (
    {},
    {MV: (1, 21)},
    {MV: (7, 30), TV: (0, 2)},
    {MV: (1, 14), GV: (0, 2**40)},
    {MV: (9, 3)},
    {MV: (-1, 21)},
)
"""Supported ranges of brokers; the last two are invalid."""


class Ensemble:
    """A simulated ZooKeeper and its source; ``random`` decides, ``tick`` gives the time."""

    def __init__(self, random: Random, tick: Callable[[], int], nodes: int = 6) -> None:
        self.random = random
        self.znodes: dict[str, Znode] = {}
        self._tick = tick
        self._nodes = nodes
        self._zxid = 1
        self._readings = 0
        self._past: list[tuple[int, dict[str, Znode]]] = []
        self._actions: list[tuple[int, Callable[[], Iterator[Event]]]] = [
            (6, self._broker),
            (6, self._levels),
            (2, self._features_end),
            (2, self._unreadable),
            (2, self._controller),
            (1, self._partition),
            (1, self._migration),
            (3, self._session_lost),
            (1, self._restore_backup),
            (1, self._stall),
            (1, self._too_early),
        ]

    def history(self, steps: int) -> list[Event]:
        """The events of the source over some steps; at the end it has caught up."""
        events = [*self.start()]
        for _ in range(steps):
            events += self.act()
        return [*events, z.following(self._tick())]

    def start(self) -> Iterator[Event]:
        """The source starts with a complete snapshot."""
        for act in self.random.choices((self._broker, self._levels, self._controller), k=3):
            list(act())  # before the source starts
        yield z.catching_up(self._tick())
        yield from self._read()
        yield z.following(self._tick())

    def act(self) -> Iterator[Event]:
        """Runs one random action."""
        (_, act), *_ = self.random.choices(self._actions, [weight for weight, _ in self._actions])
        yield from act()

    # -- ZooKeeper -----------------------------------------------------------------------------

    def _set(self, path: str, content: ZnodeContent) -> Iterator[Event]:
        """Creates or changes a znode, perhaps so fast that the source misses versions."""
        before = self.znodes.get(path)
        missed = self.random.choice((0, 0, 0, 0, 1, 5))
        recreated = before is not None and self.random.random() < 0.2
        self._zxid += 1 + missed
        if before is None or recreated:
            znode = Znode(path, self._zxid - missed, self._zxid, missed, 0, content)
        else:
            znode = replace(
                before, mzxid=self._zxid, version=before.version + 1 + missed, content=content
            )
        self._remember()
        self.znodes[path] = znode
        yield z.change(znode, self._zxid, self._tick(), missed=missed, recreated=recreated)

    def _delete(self, path: str) -> Iterator[Event]:
        if path in self.znodes:
            self._zxid += 1
            self._remember()
            del self.znodes[path]
            yield z.deleted(path, self._zxid, self._tick())

    def _remember(self) -> None:
        self._past.append((self._zxid - 1, dict(self.znodes)))

    # -- actions on the cluster -----------------------------------------------------------------

    def _id(self) -> int:
        return self.random.randrange(self._nodes)

    def _broker(self) -> Iterator[Event]:
        znode = z.broker(self._id(), self.random.choice(SUPPORTED))
        if znode.path in self.znodes and self.random.random() < 0.5:
            yield from self._delete(znode.path)
        else:
            yield from self._set(znode.path, znode.content)

    def _path(self) -> str:
        return self.random.choice((FEATURE, FEATURE, FEATURE, DRAFT))

    def _levels(self) -> Iterator[Event]:
        names = self.random.sample((MV, TV, GV), k=self.random.randint(0, 3))
        levels: dict[str, int] = {name: self.random.choice((0, 1, 3, 25, 2**40)) for name in names}
        path = self._path()
        enabled = path == DRAFT or self.random.random() < 0.85
        znode = z.features(levels if enabled else {}, path=path, enabled=enabled)
        yield from self._set(path, znode.content)

    def _features_end(self) -> Iterator[Event]:
        yield from self._delete(self._path())

    def _unreadable(self) -> Iterator[Event]:
        paths = (self._path(), f"/brokers/ids/{self._id()}", "/controller")
        yield from self._set(self.random.choice(paths), UnreadableZnode("not JSON"))

    def _controller(self) -> Iterator[Event]:
        if self.random.random() < 0.3:
            yield from self._delete("/controller")
        else:
            kraft_epoch = self.random.choice((-1, -1, 3))
            znode = z.controller(self._id(), kraft_epoch=kraft_epoch)
            yield from self._set("/controller", znode.content)
        epoch = z.controller_epoch(self.random.randint(1, 9))
        yield from self._set(epoch.path, epoch.content)

    def _partition(self) -> Iterator[Event]:
        znode = z.partition(self._id())
        yield z.change(znode, self._zxid, self._tick(), missed=1)

    def _migration(self) -> Iterator[Event]:
        if self.random.random() < 0.4:
            yield from self._delete("/migration")
        else:
            yield from self._set("/migration", z.migration(self._id()).content)

    # -- actions on the source -------------------------------------------------------------------

    def _read(self) -> Iterator[Event]:
        self._readings += 1
        znodes = list(self.znodes.values())
        self.random.shuffle(znodes)
        name, chunks = f"session-{self._readings}", self.random.randint(1, 4)
        yield from z.reading(name, znodes, self._zxid, chunks=chunks, seen_ms=self._tick())

    def _session_lost(self) -> Iterator[Event]:
        """Actions during a disconnection are not observed; the snapshot after it may be cut off."""
        if self.random.random() < 0.7:
            yield z.catching_up(self._tick())
        for act in self.random.choices((self._broker, self._levels, self._features_end), k=2):
            if self.random.random() < 0.5:
                list(act())
        if self.random.random() < 0.4:
            parts = [*self._read()]
            yield from parts[: self.random.randint(0, len(parts) - 1)]
            list(self._broker())
        yield from self._read()
        yield z.following(self._tick())

    def _restore_backup(self) -> Iterator[Event]:
        """ZooKeeper is restored from an older state: later transactions reuse its numbers."""
        if self._past and self.random.random() < 0.6:
            self._zxid, self.znodes = self.random.choice(self._past)
            self.znodes = dict(self.znodes)
            self._past = [state for state in self._past if state[0] <= self._zxid]
            yield from self._session_lost()

    def _stall(self) -> Iterator[Event]:
        yield z.status(self.random.choice((SourceState.STALLED, SourceState.SILENT)), self._tick())
        if self.random.random() < 0.7:
            yield z.following(self._tick())

    def _too_early(self) -> Iterator[Event]:
        """A chunk of a snapshot whose beginning was lost."""
        if self.random.random() < 0.3:
            self._readings += 1
            name = f"session-{self._readings}"
            parts = z.reading(name, [], self._zxid, chunks=3, seen_ms=self._tick())
            yield parts[self.random.randint(1, 2)]
