"""A cluster of reference nodes over a faulty ZooKeeper, driven by a seed.

Each step does one thing to one node: a server performs an operation, or shows the node's session
more of the history, or an event or a request arrives. Sometimes a connection breaks, a session
expires, a process dies or returns with other ranges, or an operator deletes ``/controller``, which
deposes a controller that does not know.
"""

from collections.abc import Callable
from itertools import count
from random import Random

from featurewatch.reference.zookeeper.machines.dialect import DIALECTS, EARLY_DRAFT_STRUCK, Dialect
from featurewatch.reference.zookeeper.machines.requests import Request, UpdateResponse
from featurewatch.reference.zookeeper.machines.zookeeper import Delete
from featurewatch.streams.types import SupportedRange
from tests.reference.zookeeper.machines.results import succeeded
from tests.simulation.reference.auditor import CONTROLLER, Auditor, fits
from tests.simulation.reference.clients import random_request, single_update
from tests.simulation.reference.node import MACHINES, Process
from tests.simulation.reference.session import Session
from tests.simulation.reference.tree import History

FEATURES = ("alpha", "beta", "gamma")
MAX_REST_STEPS = 20_000
"""Rounds until which a cluster without faults must have come to rest."""


class World:
    """One cluster; with ``faults`` False nothing fails."""

    def __init__(self, seed: int, *, faults: bool = True, dialect: Dialect | None = None) -> None:
        self.random = Random(seed)
        self.dialect = dialect or self.random.choice([*DIALECTS.values(), EARLY_DRAFT_STRUCK])
        self.history = History()
        self.auditor = Auditor(self.history, self.dialect.path)
        self.now_ms = 1_000_000
        self._request_rate = self.random.choice((0.02, 0.06, 0.06))
        self._fault_rate = self.random.choice((0.005, 0.015, 0.05)) if faults else 0.0
        self.exits = 0
        self._sessions = count(1)
        self._orphans: list[Session] = []
        self._base = {name: self.random.randint(3, 5) for name in FEATURES}
        self.nodes: dict[int, Process | None] = dict.fromkeys(range(self.random.randint(2, 4)))
        for node_id in self.nodes:
            self._start(node_id)

    # -- processes ---------------------------------------------------------------------------------

    def _start(self, node_id: int) -> None:
        ranges: dict[str, SupportedRange] = {
            name: SupportedRange(
                self.random.choice((1, 1, 1, 2)),
                top + self.random.choice((0, 0, 0, 0, 0, 1, -1)),
            )
            for name, top in self._base.items()
            if self.random.random() < 0.98
        }
        self.start(node_id, ranges)

    def start(self, node_id: int, ranges: dict[str, SupportedRange]) -> Process:
        """Starts a node's process in a new session."""
        process = Process(node_id, self.dialect, ranges, self.auditor.on_response)
        self.nodes[node_id] = process
        self._join(process)
        return process

    def _join(self, process: Process) -> None:
        process.begin(Session(next(self._sessions), self.history))
        self.auditor.on_session(process)

    @property
    def processes(self) -> list[Process]:
        """The running processes."""
        return [process for process in self.nodes.values() if process is not None]

    def _remove_exited(self, process: Process) -> None:
        """Removes a process that has exited, and expires its session."""
        if process.exit is not None:
            assert process.exit.code != 0
            if process.session is not None:
                process.session.expire()
            self.exits += 1
            self.nodes[process.node_id] = None

    # -- what can happen ---------------------------------------------------------------------------

    def play(self, steps: int) -> None:
        """Runs some steps, then rests, checks everything and that the cluster still serves."""
        for _ in range(steps):
            self.step()
        self.rest()
        self.auditor.check_at_rest(self.processes)
        if self.processes:
            self._probe()

    def _probe(self) -> None:
        """At rest a level that all brokers support is finalized, and an unsupported one is
        rejected."""
        levels, ranges = self.auditor.levels, [process.ranges for process in self.processes]
        for feature, level in ((name, level) for name in FEATURES for level in (1, 2, 3, 4)):
            current = levels.get(feature)
            if level != current and all(fits(supported, {feature: level}) for supported in ranges):
                update = single_update(
                    self.dialect, feature, level, down=bool(current and level < current)
                )
                assert self._served(update)
                assert self.auditor.levels == {**levels, feature: level}
                break
        before = self.auditor.levels
        assert not self._served(single_update(self.dialect, FEATURES[0], 99, down=False))
        assert self.auditor.levels == before
        self.auditor.check_at_rest(self.processes)

    def _served(self, request: Request) -> bool:
        session_id = self.auditor.true_controller()
        (process,) = (
            candidate for candidate in self.processes if candidate.session_id == session_id
        )
        number = self.auditor.on_request(process, request)
        process.requests.append((number, request))
        self.rest()
        response = self.auditor.claims[number].response
        assert isinstance(response, UpdateResponse)
        return succeeded(response)

    def step(self) -> None:
        """Performs one random step."""
        self.now_ms += self.random.randint(0, 30)
        process = self.random.choice([*self.nodes.values()])
        chance = self.random.random()
        if process is None:
            if chance < 0.1:
                self._revive()
        elif chance < self._request_rate:
            self.request(
                process, random_request(self.random, self.dialect, FEATURES, self.auditor.levels)
            )
        elif chance < self._request_rate + self._fault_rate:
            self._fault(process)
        else:
            self._work(process)
        if self._orphans and self.random.random() < 0.03:
            self._orphans.pop(0).expire()
        self.auditor.check(process)

    def _revive(self) -> None:
        """Starts a dead node, mostly after its old session has expired."""
        node_id = self.random.choice(
            [node_id for node_id, process in self.nodes.items() if not process]
        )
        if f"/brokers/ids/{node_id}" not in self.history.tree or self.random.random() < 0.1:
            self._start(node_id)

    def request(self, process: Process, request: Request) -> int:
        """Sends a client's request to a process, mostly to the controller."""
        if self.random.random() < 0.8:
            session_id = self.auditor.true_controller()
            process = next(
                (candidate for candidate in self.processes if candidate.session_id == session_id),
                process,
            )
        number = self.auditor.on_request(process, request)
        process.requests.append((number, request))
        return number

    def _work(self, process: Process) -> None:
        ready = self._ready(process)
        if ready:
            self.random.choice(ready)()
            self._remove_exited(process)

    def _ready(self, process: Process) -> list[Callable[[], None]]:
        session = process.session
        ready: list[Callable[[], None]] = []
        if process.requests:
            ready.append(lambda: process.serve(self.now_ms))
        if process.outgoing:
            ready.append(lambda: self._deliver_message(process))
        if session is None or (not session.incoming and not session.connected):
            ready.append(lambda: self._reconnect(process))
        elif session.incoming:
            ready.append(lambda: process.receive(self.now_ms))
        if session is not None and session.connected:
            if session.in_flight:
                ready.append(session.serve)
            if session.lag:
                ready.append(lambda: session.advance(self.random.randint(1, 3)))
        return ready

    def _deliver_message(self, process: Process) -> None:
        """Delivers or loses one of a controller's messages; the receiver may exit."""
        message = process.outgoing.popleft()
        receiver = self.nodes.get(message.broker_id)
        if receiver is not None and self.random.random() < 0.9:
            receiver.on_update_metadata(message, self.now_ms)
            if receiver.exit is None:
                process.on_delivered(message, self.now_ms)
            self._remove_exited(receiver)

    def _reconnect(self, process: Process) -> None:
        session = process.session
        if session is None or session.expired:
            process.on_session_lost(self.now_ms)
            self._join(process)
        else:
            session.reconnect(MACHINES)

    def _fault(self, process: Process) -> None:
        session, chance = process.session, self.random.random()
        if chance < 0.1:
            self.history.write(0, Delete(CONTROLLER))
        elif chance < 0.2:
            if session is not None and not session.expired:
                self._orphans.append(session)
            self.nodes[process.node_id] = None
        elif chance < 0.5:
            process.tick(self.now_ms)
        elif session is not None and session.connected:
            session.disconnect(self.random, MACHINES)
        elif session is not None and not session.expired:
            session.expire()

    # -- rest --------------------------------------------------------------------------------------

    def _has_open_request(self) -> bool:
        return any(
            claim.response is None and claim.process in self.processes
            for claim in self.auditor.claims.values()
        )

    def rest(self) -> None:
        """Injects no faults and runs until nothing is in flight.

        Time passes while a request is open: what got lost is sent again then.
        """
        while self._orphans:
            self._orphans.pop(0).expire()
        for _ in range(MAX_REST_STEPS):
            self.now_ms += 1
            busy = [
                (process, ready) for process in self.processes if (ready := self._ready(process))
            ]
            if not busy:
                if not self._has_open_request():
                    return
                for process in self.processes:
                    process.tick(self.now_ms)
                continue
            process, ready = self.random.choice(busy)
            self.random.choice(ready)()
            self._remove_exited(process)
            self.auditor.check(process)
        raise AssertionError("the cluster does not come to rest")
