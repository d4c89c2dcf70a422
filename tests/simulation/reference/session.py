"""A client's session with a simulated ZooKeeper server that may lag behind.

What ZooKeeper promises, and no more, holds: the operations of a session are carried out in order,
a session's view never goes back, its own writes bring it up to date, and a watch fires before a
read can show the change.
"""

from collections import deque
from random import Random

from featurewatch.reference.machines.protocol import (
    Disconnected,
    Event,
    OperationCompleted,
    Reconnected,
    SessionStarted,
    WatchFired,
    WatchKind,
    ZookeeperRequest,
)
from featurewatch.reference.machines.zookeeper import (
    Exists,
    GetChildren,
    GetData,
    NoNode,
    Operation,
    OperationResult,
    OutcomeUnknown,
)
from tests.simulation.reference.tree import History, read

AddressedEvent = tuple[str, Event]
"""An event for one of the machines that share a session, by its name."""


class Session:
    """``asked`` are operations under way to the server, ``coming`` is what comes from it."""

    def __init__(self, session_id: int, history: History) -> None:
        self.session_id = session_id
        self.connected = True
        self.requests: deque[tuple[str, ZookeeperRequest]] = deque()
        self.events: deque[AddressedEvent] = deque()
        self.over = False
        self._history = history
        self._view = len(history.log)
        self._data: dict[str, set[str]] = {}
        self._children: dict[str, set[str]] = {}

    @property
    def lag(self) -> int:
        """How many transactions its server has not shown it."""
        return len(self._history.log) - self._view

    def begin(self, who: str) -> None:
        """The session's first event for one of its machines."""
        self.events.append((who, SessionStarted(self.session_id)))

    def send(self, who: str, asked: ZookeeperRequest) -> None:
        """Send an operation; with no connection its outcome is unknown, and it is not done."""
        if self.connected:
            self.requests.append((who, asked))
        else:
            self.events.append((who, OperationCompleted(asked.token, OutcomeUnknown())))

    def serve(self) -> None:
        """The server carries out the next operation."""
        who, request = self.requests.popleft()
        self.events.append(
            (who, OperationCompleted(request.token, self._do(who, request.operation)))
        )

    def advance(self, steps: int) -> None:
        """The server comes to know of more transactions; watches on what they changed fire."""
        target = min(self._view + steps, len(self._history.log))
        while self._view < target:
            for change in self._history.log[self._view].changes:
                watches = self._children if change.kind is WatchKind.CHILDREN else self._data
                for who in sorted(watches.pop(change.path, ())):
                    self.events.append((who, WatchFired(change.path, change.kind)))
            self._view += 1

    def disconnect(self, random: Random, machines: tuple[str, ...]) -> None:
        """The connection breaks; of what is under way a part has arrived, and a part is done."""
        arrived = random.randint(0, len(self.events))
        done = random.randint(0, len(self.requests))
        kept = [*self.events][:arrived]
        for who, event in [*self.events][arrived:]:
            if isinstance(event, OperationCompleted):
                kept.append((who, OperationCompleted(event.token, OutcomeUnknown())))
            elif not isinstance(event, WatchFired):
                kept.append((who, event))
        for number, (who, request) in enumerate(self.requests):
            if number < done and not isinstance(request.operation, GetData | Exists | GetChildren):
                self._history.write(self.session_id, request.operation)
            kept.append((who, OperationCompleted(request.token, OutcomeUnknown())))
        self.events = deque(kept)
        self.requests.clear()
        self._data.clear()
        self._children.clear()
        self.connected = False
        self.events.extend((who, Disconnected()) for who in machines)

    def reconnect(self, machines: tuple[str, ...]) -> None:
        """Another server takes the session over."""
        self.connected = True
        self.events.extend((who, Reconnected()) for who in machines)

    def expire(self) -> None:
        """The servers give it up: its ephemeral znodes go."""
        self._history.close(self.session_id)
        self.over, self.connected = True, False
        self.requests.clear()

    def _do(self, who: str, operation: Operation) -> OperationResult:
        match operation:
            case GetData(path, watch) | Exists(path, watch) | GetChildren(path, watch):
                found = read(self._history.at(self._view), operation)
                there = isinstance(operation, Exists) or not isinstance(found, NoNode)
                if watch and there:
                    watches = self._children if isinstance(operation, GetChildren) else self._data
                    watches.setdefault(path, set()).add(who)
                return found
            case _:
                outcome = self._history.write(self.session_id, operation)
                self.advance(self.lag)
                return outcome
