"""A cluster of reference nodes over a faulty ZooKeeper, played from a seed.

At each step one thing happens to one node: a server carries out an operation, or shows the node's
session more of the history, or an event arrives, or a request; now and then a connection breaks, a
session expires, a process dies or comes back with other ranges, or an operator deletes
``/controller``, so that a controller is deposed that does not know.
"""

from collections.abc import Callable
from itertools import count
from random import Random

from featurewatch.reference.machines.dialect import DIALECTS, EARLY_DRAFT_STRUCK, Dialect
from featurewatch.reference.machines.requests import Request, UpdateResponse
from featurewatch.reference.machines.zookeeper import Delete
from featurewatch.streams.types import Range
from tests.simulation.reference.auditor import CONTROLLER, Auditor, fits
from tests.simulation.reference.clients import one_update, random_request
from tests.simulation.reference.node import MACHINES, Process
from tests.simulation.reference.session import Session
from tests.simulation.reference.tree import History

FEATURES = ("alpha", "beta", "gamma")
LONG = 20_000
"""Rounds until which a cluster without faults must have come to rest."""


class World:
    """One cluster; ``faults`` off: nothing breaks."""

    def __init__(self, seed: int, *, faults: bool = True, dialect: Dialect | None = None) -> None:
        self.random = Random(seed)
        self.dialect = dialect or self.random.choice([*DIALECTS.values(), EARLY_DRAFT_STRUCK])
        self.history = History()
        self.auditor = Auditor(self.history, self.dialect.path)
        self.now_ms = 1_000_000
        self._asks = self.random.choice((0.02, 0.06, 0.06))
        self._faults = self.random.choice((0.005, 0.015, 0.05)) if faults else 0.0
        self.exits = 0
        self._sessions = count(1)
        self._orphans: list[Session] = []
        self._base = {name: self.random.randint(3, 5) for name in FEATURES}
        self.nodes: dict[int, Process | None] = dict.fromkeys(range(self.random.randint(2, 4)))
        for node_id in self.nodes:
            self._start(node_id)

    # -- processes ---------------------------------------------------------------------------------

    def _start(self, node_id: int) -> None:
        ranges: dict[str, Range] = {
            name: (
                self.random.choice((1, 1, 1, 2)),
                top + self.random.choice((0, 0, 0, 0, 0, 1, -1)),
            )
            for name, top in self._base.items()
            if self.random.random() < 0.98
        }
        self.start(node_id, ranges)

    def start(self, node_id: int, ranges: dict[str, Range]) -> Process:
        """Start a node's process in a new session."""
        process = Process(node_id, self.dialect, ranges, self.auditor.on_response)
        self.nodes[node_id] = process
        self._join(process)
        return process

    def _join(self, process: Process) -> None:
        process.begin(Session(next(self._sessions), self.history))
        self.auditor.joined(process)

    @property
    def processes(self) -> list[Process]:
        """Those that run."""
        return [process for process in self.nodes.values() if process is not None]

    def _reap(self, process: Process) -> None:
        """A process that said it exits has closed its session."""
        if process.exit is not None:
            assert process.exit.code != 0
            if process.session is not None:
                process.session.expire()
            self.exits += 1
            self.nodes[process.node_id] = None

    # -- what can happen ---------------------------------------------------------------------------

    def play(self, steps: int) -> None:
        """Some steps of life, then rest, and proof that it still serves; all of it is audited."""
        for _ in range(steps):
            self.step()
        self.rest()
        self.auditor.rest(self.processes)
        if self.processes:
            self._probe()

    def _probe(self) -> None:
        """At rest a level that all support is finalized, and one that nobody supports is not."""
        now, ranges = self.auditor.levels, [process.ranges for process in self.processes]
        for feature, level in ((name, level) for name in FEATURES for level in (1, 2, 3, 4)):
            held = now.get(feature)
            if level != held and all(fits(each, {feature: level}) for each in ranges):
                update = one_update(self.dialect, feature, level, down=bool(held and level < held))
                assert self._served(update)
                assert self.auditor.levels == {**now, feature: level}
                break
        before = self.auditor.levels
        assert not self._served(one_update(self.dialect, FEATURES[0], 99, down=False))
        assert self.auditor.levels == before
        self.auditor.rest(self.processes)

    def _served(self, request: Request) -> bool:
        true = self.auditor.true_controller()
        (process,) = (each for each in self.processes if each.session_id == true)
        number = self.auditor.on_request(process, request)
        process.requests.append((number, request))
        self.rest()
        response = self.auditor.claims[number].response
        assert isinstance(response, UpdateResponse)
        return response.succeeded

    def step(self) -> None:
        """One thing happens."""
        self.now_ms += self.random.randint(0, 30)
        process = self.random.choice([*self.nodes.values()])
        chance = self.random.random()
        if process is None:
            if chance < 0.1:
                self._revive()
        elif chance < self._asks:
            self.request(
                process, random_request(self.random, self.dialect, FEATURES, self.auditor.levels)
            )
        elif chance < self._asks + self._faults:
            self._fault(process)
        else:
            self._work(process)
        if self._orphans and self.random.random() < 0.03:
            self._orphans.pop(0).expire()
        self.auditor.check(process)

    def _revive(self) -> None:
        """Start a dead node, most often not before its old session has expired."""
        node_id = self.random.choice(
            [node_id for node_id, process in self.nodes.items() if not process]
        )
        if f"/brokers/ids/{node_id}" not in self.history.tree or self.random.random() < 0.1:
            self._start(node_id)

    def request(self, process: Process, request: Request) -> int:
        """A client asks a process; most know who is the controller."""
        if self.random.random() < 0.8:
            true = self.auditor.true_controller()
            process = next((each for each in self.processes if each.session_id == true), process)
        number = self.auditor.on_request(process, request)
        process.requests.append((number, request))
        return number

    def _work(self, process: Process) -> None:
        ready = self._ready(process)
        if ready:
            self.random.choice(ready)()
            self._reap(process)

    def _ready(self, process: Process) -> list[Callable[[], None]]:
        session = process.session
        ready: list[Callable[[], None]] = []
        if process.requests:
            ready.append(lambda: process.serve(self.now_ms))
        if process.updates:
            ready.append(lambda: self._carry(process))
        if session is None or (not session.events and not session.connected):
            ready.append(lambda: self._reconnect(process))
        elif session.events:
            ready.append(lambda: process.deliver(self.now_ms))
        if session is not None and session.connected:
            if session.requests:
                ready.append(session.serve)
            if session.lag:
                ready.append(lambda: session.advance(self.random.randint(1, 3)))
        return ready

    def _carry(self, process: Process) -> None:
        """One of a controller's messages arrives, or is lost; the receiver may end by it."""
        update = process.updates.popleft()
        receiver = self.nodes.get(update.broker_id)
        if receiver is not None and self.random.random() < 0.9:
            receiver.on_update_metadata(update, self.now_ms)
            self._reap(receiver)

    def _reconnect(self, process: Process) -> None:
        session = process.session
        if session is None or session.over:
            process.expire(self.now_ms)
            self._join(process)
        else:
            session.reconnect(MACHINES)

    def _fault(self, process: Process) -> None:
        session, chance = process.session, self.random.random()
        if chance < 0.1:
            self.history.write(0, Delete(CONTROLLER))
        elif chance < 0.2:
            if session is not None and not session.over:
                self._orphans.append(session)
            self.nodes[process.node_id] = None
        elif chance < 0.5:
            process.tick(self.now_ms)
        elif session is not None and session.connected:
            session.disconnect(self.random, MACHINES)
        elif session is not None and not session.over:
            session.expire()

    # -- rest --------------------------------------------------------------------------------------

    def rest(self) -> None:
        """No new faults: everything that is under way comes to its end."""
        while self._orphans:
            self._orphans.pop(0).expire()
        for _ in range(LONG):
            self.now_ms += 1
            busy = [
                (process, ready) for process in self.processes if (ready := self._ready(process))
            ]
            if not busy:
                return
            process, ready = self.random.choice(busy)
            self.random.choice(ready)()
            self._reap(process)
            self.auditor.check(process)
        raise AssertionError("the cluster does not come to rest")
