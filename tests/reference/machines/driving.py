"""One machine over a ZooKeeper tree, an operation at a time."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from featurewatch.reference.machines.dialect import RELEASED, Dialect
from featurewatch.reference.machines.encoding import (
    CONTROLLER,
    BrokerIdentity,
    broker_path,
    encode_broker,
)
from featurewatch.reference.machines.protocol import (
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
from featurewatch.reference.machines.requests import Request
from featurewatch.reference.machines.zookeeper import (
    CheckVersion,
    Create,
    Delete,
    Multi,
    Operation,
    OperationResult,
    SetData,
)
from featurewatch.streams.types import Range
from tests.simulation.reference.tree import History, read

SESSION = 7
WRITES = (Create, SetData, Delete, Multi, CheckVersion)


@dataclass(slots=True)
class Driver:
    """Runs a machine; operations wait in ``asked`` until they are served."""

    machine: Machine
    history: History = field(default_factory=History)
    now_ms: int = 1000
    requests: int = 0
    pending: deque[ZookeeperRequest] = field(default_factory=deque)
    served: list[Operation] = field(default_factory=list)
    replies: list[Any] = field(default_factory=list)
    logged: list[str] = field(default_factory=list)
    exits: list[ExitProcess] = field(default_factory=list)

    def deliver(self, event: Event) -> list[Effect]:
        """Give the machine an event; what it asks for waits."""
        effects = [*self.machine.receive(event, self.now_ms)]
        for effect in effects:
            match effect:
                case ZookeeperRequest():
                    self.pending.append(effect)
                case SendResponse(_, response):
                    self.replies.append(response)
                case WriteLog(line):
                    self.logged.append(line)
                case ExitProcess():
                    self.exits.append(effect)
        return effects

    def request(self, request: Request) -> None:
        """A client asks."""
        self.requests += 1
        self.deliver(RequestReceived(self.requests, request))

    def serve(self, outcome: OperationResult | None = None) -> Operation:
        """Carry out the next operation, or answer it with this and do nothing."""
        request = self.pending.popleft()
        self.served.append(request.operation)
        if outcome is None:
            act = self.history.write if isinstance(request.operation, WRITES) else None
            outcome = (
                act(SESSION, request.operation)
                if act
                else read(self.history.tree, request.operation)
            )
        self.deliver(OperationCompleted(request.token, outcome))
        return request.operation

    def until(self, wanted: Callable[[Operation], bool]) -> Operation:
        """Serve until the next operation is a wanted one."""
        while not wanted(self.pending[0].operation):
            self.serve()
        return self.pending[0].operation

    def rest(self) -> None:
        """Serve all."""
        while self.pending:
            self.serve()

    def start(self) -> None:
        """Begin a session, and come to rest."""
        self.deliver(SessionStarted(SESSION))
        self.rest()

    def joins(self, broker_id: int, dialect: Dialect = RELEASED, **ranges: Range) -> None:
        """A broker registers, and the machine is told."""
        data = encode_broker(dialect, BrokerIdentity(broker_id), ranges, 5)
        self.history.write(100 + broker_id, Create(broker_path(broker_id), data, ephemeral=True))
        self.deliver(WatchFired("/brokers/ids", WatchKind.CHILDREN))

    def deposed(self) -> None:
        """Another is elected; the machine does not hear of it."""
        tree = self.history.tree
        epoch = tree["/controller_epoch"]
        raised = SetData("/controller_epoch", str(int(epoch.data) + 1).encode(), epoch.stat.version)
        other = Create(CONTROLLER, b'{"version":1,"brokerid":99,"timestamp":"1"}', ephemeral=True)
        self.history.write(99, Multi((Delete(CONTROLLER), other, raised)))
