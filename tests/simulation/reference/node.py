"""A simulated process: a reference broker and a candidate for the controller in one session."""

from collections import deque
from collections.abc import Callable, Mapping

from featurewatch.reference.machines.broker import BrokerIdentity, ReferenceBroker
from featurewatch.reference.machines.controller.controller import ReferenceController
from featurewatch.reference.machines.dialect import Dialect
from featurewatch.reference.machines.protocol import (
    Event,
    ExitProcess,
    RequestReceived,
    SendResponse,
    SendUpdateMetadata,
    SessionLost,
    SessionStarted,
    Tick,
    UpdateMetadataReceived,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.machines.requests import ApiVersions, Request, Response
from featurewatch.streams.types import Range
from tests.simulation.reference.session import Session

OnResponse = Callable[[int, Response], None]
BROKER, CONTROLLER = "broker", "controller"
MACHINES = (BROKER, CONTROLLER)


class Process:
    """One start of a node; what was asked of it and not answered when it dies, is not answered."""

    def __init__(
        self, node_id: int, dialect: Dialect, ranges: Mapping[str, Range], answer: OnResponse
    ) -> None:
        self.node_id = node_id
        self.ranges = dict(ranges)
        self.broker = ReferenceBroker(BrokerIdentity(node_id), dialect, ranges)
        self.controller = ReferenceController(node_id, dialect, ranges)
        self.session: Session | None = None
        self.requests: deque[tuple[int, Request]] = deque()
        self.updates: deque[SendUpdateMetadata] = deque()
        """What its controller sends to brokers; the world carries it."""
        self.exit: ExitProcess | None = None
        self.logged: list[str] = []
        self._answer = answer
        self._standing = False

    @property
    def session_id(self) -> int:
        """Its session; 0: none."""
        return 0 if self.session is None else self.session.session_id

    def begin(self, session: Session) -> None:
        """A session is there."""
        self.session = session
        session.begin(BROKER)

    def expire(self, now_ms: int) -> None:
        """The session has expired, and it is told so."""
        self.session = None
        standing, self._standing = self._standing, False
        self._give(BROKER, SessionLost(), now_ms)
        if standing:
            self._give(CONTROLLER, SessionLost(), now_ms)

    def deliver(self, now_ms: int) -> None:
        """Take the next event that comes from ZooKeeper."""
        assert self.session is not None
        who, event = self.session.events.popleft()
        if who == CONTROLLER and not self._standing:
            return
        self._give(who, event, now_ms)
        if self.broker.registered and not self._standing and self.exit is None:
            self._standing = True
            self._give(CONTROLLER, SessionStarted(self.session_id), now_ms)

    def serve(self, now_ms: int) -> None:
        """Take the next request; what the controller is asked for comes to that machine."""
        request_id, request = self.requests.popleft()
        who = BROKER if isinstance(request, ApiVersions) or not self._standing else CONTROLLER
        self._give(who, RequestReceived(request_id, request), now_ms)

    def on_update_metadata(self, tell: SendUpdateMetadata, now_ms: int) -> None:
        """A controller's message has come."""
        self._give(BROKER, UpdateMetadataReceived(tell.message), now_ms)

    def tick(self, now_ms: int) -> None:
        """Time has passed."""
        self._give(BROKER, Tick(), now_ms)
        self._give(CONTROLLER, Tick(), now_ms)

    def _give(self, who: str, event: Event, now_ms: int) -> None:
        machine = self.broker if who == BROKER else self.controller
        for effect in machine.receive(event, now_ms):
            match effect:
                case ZookeeperRequest():
                    if self.session is not None:
                        self.session.send(who, effect)
                case SendResponse(request_id, response):
                    self._answer(request_id, response)
                case ExitProcess():
                    self.exit = effect
                case WriteLog(line):
                    self.logged.append(line)
                case SendUpdateMetadata():
                    self.updates.append(effect)
