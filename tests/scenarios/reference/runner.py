"""Plays a scenario of the reference system: an aligned table of events and their effects.

A row is ``event | expected``; ``#`` begins a comment. The expected effects are all those that
follow until the cluster is at rest, in any order, separated by commas:

- ``+b1``, ``-b1``: the znode of broker 1 is created, or deleted,
- ``elected b1 @2``: broker 1 is the controller, with controller epoch 2, and has started up,
- ``@3 alpha=2 beta=1``: the features znode is written: its data version and its levels,
- ``ok``, ``NOT_CONTROLLER``, ``alpha:INVALID_REQUEST beta:ok``, ``unknown``: a response,
- ``finalized @3 alpha=2 supported alpha:1-3``: a broker's response to ``discover``,
- ``tells b2 @3 alpha=2``: the controller sends a broker the levels, if the dialect pushes,
  ``ok with @3 alpha=2``: a response with them,
- ``keeps out b2``: the controller excludes a broker from its live set,
- ``exit b2``: a broker exits with a non-zero code; ``off /feature``: the znode is disabled.

Events; the first is always ``speak`` with the name of a dialect:

- ``start b1 alpha:1-3``, ``stop b1``, ``kill b1`` (its session lives on), ``expire b1``,
- ``ask b1 alpha=2 beta=1!``: update features; ``!`` allows a downgrade, ``!!`` is an unsafe one,
  ``?`` an unknown type; ``ask/2`` is version 2, ``dry`` validates only; ``within 50`` is a timeout,
- ``delete b1 alpha``: DELETE_FEATURES, ``discover b1``: ApiVersions (``discover/2``: version 2),
- ``put /feature {...}``, ``remove /controller``: an operator's writes,
- ``deafen b1``: it receives no events from ZooKeeper, ``freeze b1``: ZooKeeper performs none of its
  operations; ``resume b1`` ends both,
- ``cut b1 done``, ``cut b1 lost``: its connection breaks, and its frozen operations are performed,
  or not; ``join b1``: it is connected again,
- ``wait 60000``: time passes, in milliseconds.
"""

from random import Random

from featurewatch.reference.zookeeper.machines.dialect import DIALECTS, EARLY_DRAFT_STRUCK, Dialect
from featurewatch.reference.zookeeper.machines.protocol import Disconnected, OperationCompleted
from featurewatch.reference.zookeeper.machines.requests import (
    ApiVersions,
    DeleteFeatures,
    EarlyUpdate,
    LaterUpdate,
    ReleasedUpdate,
    Request,
    Response,
    Update,
    UpdateFeatures,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    ANY_VERSION,
    Create,
    Delete,
    OutcomeUnknown,
    SetData,
)
from featurewatch.streams.types import SupportedRange
from tests.scenarios.reference.vocabulary import response_words, whole_set, written
from tests.simulation.reference.node import MACHINES, Process
from tests.simulation.reference.session import Session
from tests.simulation.reference.tree import History

EXCLUDED_TEXT = (
    "Ignoring registration of new brokers due to incompatibilities with finalized features: "
)


class Scenario:
    """Plays one table."""

    def __init__(self) -> None:
        self.history = History()
        self.processes: dict[str, Process] = {}
        self._dialect: Dialect = DIALECTS["released"]
        self._dead: dict[str, Session] = {}
        self._sessions = 0
        self._now_ms = 1_000_000
        self._deaf: set[str] = set()
        self._frozen: set[str] = set()
        self._happened: list[str] = []
        self._active: dict[str, int] = {}
        self._read = 0
        self._requests = 0

    def play(self, text: str) -> None:
        """Plays all rows; the first with another result fails with its number and text."""
        for number, line in enumerate(text.splitlines(), start=1):
            row = line.partition("#")[0].strip()
            if row:
                event, _, expected = row.partition("|")
                self._row(event.strip(), expected.strip(), f"line {number}: {line}")

    def _row(self, event: str, expected: str, label: str) -> None:
        self._happened.clear()
        verb, _, rest = event.partition(" ")
        verb, _, version = verb.partition("/")
        arguments = rest.split(" ", 1) if verb == "put" else rest.split()
        getattr(self, f"_{verb}")(*arguments, **({"version": int(version)} if version else {}))
        self._run()
        expected_events = sorted(part.strip() for part in expected.split(",") if part.strip())
        assert sorted(self._happened) == expected_events, (
            f"{label}\n  led to: {', '.join(self._happened)}"
        )

    # -- until the cluster is at rest --------------------------------------------------------------

    def _run(self) -> None:
        for _ in range(10_000):
            turns = [self._turn(name, process) for name, process in [*self.processes.items()]]
            self._observe()
            if not any(turns):
                return
        raise AssertionError("the cluster does not come to rest")

    def _turn(self, name: str, process: Process) -> bool:
        """Performs the pending work of one process; returns whether there was any."""
        session = process.session
        assert session is not None
        before = len(self.history.log), len(process.requests)
        while process.requests:
            process.serve(self._now_ms)
        operation_count = 0 if name in self._frozen else len(session.in_flight)
        for _ in range(operation_count):
            session.serve()
        event_count = 0
        if name not in self._deaf:
            session.advance(session.lag if session.connected else 0)
            event_count = len(session.incoming)
            for _ in range(event_count):
                if process.exit is None:
                    process.receive(self._now_ms)
        messages = [process.outgoing.popleft() for _ in range(len(process.outgoing))]
        for message in messages:
            self._happened.append(f"tells b{message.broker_id} {whole_set(message.message)}")
            receiver = self.processes[f"b{message.broker_id}"]
            receiver.on_update_metadata(message, self._now_ms)
            if receiver.exit is None:
                process.on_delivered(message, self._now_ms)
        if process.exit is not None:
            self._happened.append(f"exit {name}" if process.exit.code else f"exit {name} 0")
            self._close(name)
        return bool(operation_count or event_count or messages) or before != (
            len(self.history.log),
            len(process.requests),
        )

    def _observe(self) -> None:
        for transaction in self.history.log[self._read :]:
            self._happened += written(transaction.before, transaction.after)
        self._read = len(self.history.log)
        for name, process in self.processes.items():
            lines = [
                line.removeprefix(EXCLUDED_TEXT)
                for line in process.log_lines
                if EXCLUDED_TEXT in line
            ]
            self._happened += [
                f"keeps out b{broker_id}" for line in lines for broker_id in line.split(",")
            ]
            process.log_lines.clear()
            epoch = process.controller.epoch if process.controller.active else 0
            if epoch > self._active.get(name, 0):
                self._happened.append(f"elected {name} @{epoch}")
            self._active[name] = max(epoch, self._active.get(name, 0))

    # -- processes ---------------------------------------------------------------------------------

    def _speak(self, name: str) -> None:
        self._dialect = {**DIALECTS, EARLY_DRAFT_STRUCK.name: EARLY_DRAFT_STRUCK}[name]

    def _start(self, name: str, *features: str) -> None:
        pairs = (word.split(":") for word in features)
        ranges = {
            feature: SupportedRange(int(bounds[0]), int(bounds[2])) for feature, bounds in pairs
        }
        self.processes[name] = Process(int(name[1:]), self._dialect, ranges, self._answer)
        self._active.pop(name, None)
        self._begin(name)

    def _begin(self, name: str) -> None:
        self._sessions += 1
        self.processes[name].begin(Session(self._sessions, self.history))

    def _stop(self, name: str) -> None:
        self._close(name)

    def _close(self, name: str) -> None:
        session = self.processes.pop(name).session
        assert session is not None
        session.expire()

    def _kill(self, name: str) -> None:
        session = self.processes.pop(name).session
        assert session is not None
        self._dead[name] = session

    def _expire(self, name: str) -> None:
        if name in self._dead:
            self._dead.pop(name).expire()
            return
        process = self.processes[name]
        assert process.session is not None
        process.session.expire()
        process.on_session_lost(self._now_ms)
        self._begin(name)

    # -- faults ------------------------------------------------------------------------------------

    def _deafen(self, name: str) -> None:
        self._deaf.add(name)

    def _freeze(self, name: str) -> None:
        self._frozen.add(name)

    def _resume(self, name: str) -> None:
        self._deaf.discard(name)
        self._frozen.discard(name)

    def _cut(self, name: str, mode: str) -> None:
        session = self.processes[name].session
        assert session is not None
        if mode == "done":
            while session.in_flight:
                session.serve()
            for number, (machine, event) in enumerate(session.incoming):
                if isinstance(event, OperationCompleted):
                    session.incoming[number] = (
                        machine,
                        OperationCompleted(event.token, OutcomeUnknown()),
                    )
        session.disconnect(_AllArrived(), MACHINES)
        assert any(isinstance(event, Disconnected) for _, event in session.incoming)
        self._resume(name)

    def _join(self, name: str) -> None:
        session = self.processes[name].session
        assert session is not None
        session.reconnect(MACHINES)

    def _wait(self, ms: str) -> None:
        self._now_ms += int(ms)
        for process in self.processes.values():
            process.tick(self._now_ms)

    def _put(self, path: str, data: str) -> None:
        exists = path in self.history.tree
        write = SetData(path, data.encode(), ANY_VERSION) if exists else Create(path, data.encode())
        self.history.write(0, write)

    def _remove(self, path: str) -> None:
        self.history.write(0, Delete(path))

    # -- clients -----------------------------------------------------------------------------------

    def _ask(self, name: str, *words: str, version: int = 1, dry: bool = False) -> None:
        within = int(words[words.index("within") + 1]) if "within" in words else 60_000
        items = words[: words.index("within")] if "within" in words else words
        updates = tuple(self._update(word) for word in items)
        self._send(name, UpdateFeatures(updates, within, version, dry))

    def _dry(self, name: str, *words: str) -> None:
        self._ask(name, *words, dry=True)

    def _delete(self, name: str, *features: str) -> None:
        self._send(name, DeleteFeatures(features))

    def _discover(self, name: str, version: int = 4) -> None:
        self._send(name, ApiVersions(version))

    def _send(self, name: str, request: Request) -> None:
        self._requests += 1
        self.processes[name].requests.append((self._requests, request))

    def _update(self, word: str) -> Update:
        feature, _, level = word.partition("=")
        mark = level.lstrip("-0123456789")
        number = int(level.removesuffix(mark))
        if self._dialect.per_item:
            upgrade_type = {"": 1, "!": 2, "!!": 3, "?": 9}[mark]
            return ReleasedUpdate(feature, number, mark != "", upgrade_type)
        if self._dialect.has_delete:
            return EarlyUpdate(feature, number, {"": 0, "!": 1, "x": 2, "?": 9}[mark])
        return LaterUpdate(feature, number, mark == "!")

    def _answer(self, _request_id: int, response: Response) -> None:
        self._happened.append(response_words(response))


class _AllArrived(Random):
    """For `Session.disconnect`: all events have arrived, and no further write is done."""

    def randint(self, a: int, b: int) -> int:
        """First the number of arrived events, then that of performed writes."""
        self._drawn = getattr(self, "_drawn", 0) + 1
        return b if self._drawn == 1 else a
