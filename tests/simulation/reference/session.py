"""A client's session with a simulated ZooKeeper server that may lag behind.

It gives exactly ZooKeeper's guarantees: the operations of a session are performed in order, a
session's view never goes back, its own writes bring it up to date, and a watch fires before a read
can show the change.
"""

from collections import deque
from random import Random

from featurewatch.reference.zookeeper.machines.protocol import (
    Disconnected,
    Event,
    OperationCompleted,
    Reconnected,
    SessionStarted,
    WatchFired,
    WatchKind,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Exists,
    GetChildren,
    GetData,
    NoNode,
    Operation,
    OperationResult,
    OutcomeUnknown,
)
from tests.simulation.reference.tree import History, read

MachineEvent = tuple[str, Event]
"""An event for one of the machines that share a session, by its name."""


class Session:
    """``in_flight`` are operations on the way to the server, ``incoming`` are events from it."""

    def __init__(self, session_id: int, history: History) -> None:
        self.session_id = session_id
        self.connected = True
        self.in_flight: deque[tuple[str, ZookeeperRequest]] = deque()
        self.incoming: deque[MachineEvent] = deque()
        self.expired = False
        self._history = history
        self._view = len(history.log)
        self._data: dict[str, set[str]] = {}
        self._children: dict[str, set[str]] = {}

    @property
    def lag(self) -> int:
        """The number of transactions that its server has not applied yet."""
        return len(self._history.log) - self._view

    def begin(self, machine: str) -> None:
        """Queues the session's first event for one of its machines."""
        self.incoming.append((machine, SessionStarted(self.session_id)))

    def send(self, machine: str, request: ZookeeperRequest) -> None:
        """Sends an operation; without a connection it is not performed and its outcome is
        unknown."""
        if self.connected:
            self.in_flight.append((machine, request))
        else:
            self.incoming.append((machine, OperationCompleted(request.token, OutcomeUnknown())))

    def serve(self) -> None:
        """Performs the next operation on the server."""
        machine, request = self.in_flight.popleft()
        self.incoming.append(
            (machine, OperationCompleted(request.token, self._perform(machine, request.operation)))
        )

    def advance(self, steps: int) -> None:
        """Applies further transactions on the server; watches on changed paths fire."""
        target = min(self._view + steps, len(self._history.log))
        while self._view < target:
            for change in self._history.log[self._view].changes:
                watches = self._children if change.kind is WatchKind.CHILDREN else self._data
                for machine in sorted(watches.pop(change.path, ())):
                    self.incoming.append((machine, WatchFired(change.path, change.kind)))
            self._view += 1

    def disconnect(self, random: Random, machines: tuple[str, ...]) -> None:
        """Breaks the connection; a random part of the events has arrived, and a part of the writes
        is done."""
        arrived_count = random.randint(0, len(self.incoming))
        performed_count = random.randint(0, len(self.in_flight))
        incoming = [*self.incoming][:arrived_count]
        for machine, event in [*self.incoming][arrived_count:]:
            if isinstance(event, OperationCompleted):
                incoming.append((machine, OperationCompleted(event.token, OutcomeUnknown())))
            elif not isinstance(event, WatchFired):
                incoming.append((machine, event))
        for number, (machine, request) in enumerate(self.in_flight):
            if number < performed_count and not isinstance(
                request.operation, GetData | Exists | GetChildren
            ):
                self._history.write(self.session_id, request.operation)
            incoming.append((machine, OperationCompleted(request.token, OutcomeUnknown())))
        self.incoming = deque(incoming)
        self.in_flight.clear()
        self._data.clear()
        self._children.clear()
        self.connected = False
        self.incoming.extend((machine, Disconnected()) for machine in machines)

    def reconnect(self, machines: tuple[str, ...]) -> None:
        """Connects the session to another server."""
        self.connected = True
        self.incoming.extend((machine, Reconnected()) for machine in machines)

    def expire(self) -> None:
        """Expires the session, which deletes its ephemeral znodes."""
        self._history.close(self.session_id)
        self.expired, self.connected = True, False
        self.in_flight.clear()

    def _perform(self, machine: str, operation: Operation) -> OperationResult:
        match operation:
            case GetData(path, watch) | Exists(path, watch) | GetChildren(path, watch):
                result = read(self._history.at(self._view), operation)
                sets_watch = isinstance(operation, Exists) or not isinstance(result, NoNode)
                if watch and sets_watch:
                    watches = self._children if isinstance(operation, GetChildren) else self._data
                    watches.setdefault(path, set()).add(machine)
                return result
            case _:
                outcome = self._history.write(self.session_id, operation)
                self.advance(self.lag)
                return outcome
