"""Drives one machine over a ZooKeeper tree, one operation at a time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from featurewatch.reference.zookeeper.machines.dialect import RELEASED, Dialect
from featurewatch.reference.zookeeper.machines.encoding import (
    CONTROLLER,
    BrokerIdentity,
    broker_path,
    encode_broker,
)
from featurewatch.reference.zookeeper.machines.protocol import (
    Effect,
    Event,
    ExitProcess,
    Machine,
    OperationCompleted,
    RequestReceived,
    SendResponse,
    SessionStarted,
    WatchFired,
    WatchKind,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.requests import Request
from featurewatch.reference.zookeeper.machines.zookeeper import (
    CheckVersion,
    Create,
    Delete,
    Multi,
    Operation,
    OperationResult,
    SetData,
)
from featurewatch.streams.types import SupportedRange
from tests.simulation.reference.tree import History, read

SESSION = 7
WRITES = (Create, SetData, Delete, Multi, CheckVersion)


@dataclass(slots=True)
class Driver:
    """Runs a machine; its operations wait in ``pending`` until they are served."""

    machine: Machine
    history: History = field(default_factory=History)
    now_ms: int = 1000
    requests: int = 0
    pending: deque[ZookeeperRequest] = field(default_factory=deque)
    served: list[Operation] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    log_lines: list[str] = field(default_factory=list)
    exits: list[ExitProcess] = field(default_factory=list)

    def give(self, event: Event) -> list[Effect]:
        """Passes an event to the machine and queues its requests."""
        effects = [*self.machine.receive(event, self.now_ms)]
        for effect in effects:
            match effect:
                case ZookeeperRequest():
                    self.pending.append(effect)
                case SendResponse(_, response):
                    self.replies.append(response)
                case WriteLog(line):
                    self.log_lines.append(line)
                case ExitProcess():
                    self.exits.append(effect)
        return effects

    def request(self, request: Request) -> None:
        """Passes a client's request to the machine."""
        self.requests += 1
        self.give(RequestReceived(self.requests, request))

    def serve(self, outcome: OperationResult | None = None) -> Operation:
        """Performs the next operation, or completes it with ``outcome`` without performing it."""
        request = self.pending.popleft()
        self.served.append(request.operation)
        if outcome is None:
            act = self.history.write if isinstance(request.operation, WRITES) else None
            outcome = (
                act(SESSION, request.operation)
                if act
                else read(self.history.tree, request.operation)
            )
        self.give(OperationCompleted(request.token, outcome))
        return request.operation

    def until(self, matches: Callable[[Operation], bool]) -> Operation:
        """Serves operations until the next one matches; returns it."""
        while not matches(self.pending[0].operation):
            self.serve()
        return self.pending[0].operation

    def rest(self) -> None:
        """Serves all operations."""
        while self.pending:
            self.serve()

    def start(self) -> None:
        """Starts a session and serves all operations."""
        self.give(SessionStarted(SESSION))
        self.rest()

    def join(self, broker_id: int, dialect: Dialect = RELEASED, **ranges: tuple[int, int]) -> None:
        """Registers a broker and fires the watch of the list."""
        supported = {name: SupportedRange(*bounds) for name, bounds in ranges.items()}
        data = encode_broker(dialect, BrokerIdentity(broker_id), supported, 5)
        self.history.write(100 + broker_id, Create(broker_path(broker_id), data, ephemeral=True))
        self.give(WatchFired("/brokers/ids", WatchKind.CHILDREN))

    def depose(self) -> None:
        """Elects another controller without an event to the machine."""
        tree = self.history.tree
        epoch = tree["/controller_epoch"]
        raised = SetData("/controller_epoch", str(int(epoch.data) + 1).encode(), epoch.stat.version)
        controller = Create(
            CONTROLLER, b'{"version":1,"brokerid":99,"timestamp":"1"}', ephemeral=True
        )
        self.history.write(99, Multi((Delete(CONTROLLER), controller, raised)))
