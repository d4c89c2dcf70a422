"""A simulated process: a reference broker and a candidate for the controller in one session."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from featurewatch.reference.zookeeper.machines.broker import BrokerIdentity, ReferenceBroker
from featurewatch.reference.zookeeper.machines.controller.controller import ReferenceController
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.machines.dialect import Dialect
from featurewatch.reference.zookeeper.machines.protocol import (
    Event,
    ExitProcess,
    RequestReceived,
    SendResponse,
    SendUpdateMetadata,
    SessionLost,
    SessionStarted,
    Tick,
    UpdateMetadataDelivered,
    UpdateMetadataReceived,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.requests import ApiVersions
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    BrokerRequest,
    BrokerResponded,
    SendBrokerRequest,
    SetLiveBrokers,
)
from featurewatch.reference.zookeeper.machines.topics.context import (
    ClusterBroker,
    ControllerContext,
)
from featurewatch.streams.types import SupportedRange
from tests.simulation.reference.session import Session

OnResponse = Callable[[int, Any], None]
BROKER, CONTROLLER = "broker", "controller"
MACHINES = (BROKER, CONTROLLER)


class Channels:
    """A controller's requests to brokers that were not delivered yet, in order for each broker."""

    def __init__(self) -> None:
        self.queues: dict[int, deque[BrokerRequest]] = {}
        self._epochs: dict[int, int] = {}

    def set_live(self, brokers: Mapping[int, ClusterBroker]) -> None:
        """As `BrokerChannels.set_live`."""
        for broker_id in [*self.queues]:
            if broker_id not in brokers or brokers[broker_id].epoch != self._epochs[broker_id]:
                del self.queues[broker_id]
        for broker_id, broker in brokers.items():
            self.queues.setdefault(broker_id, deque())
            self._epochs[broker_id] = broker.epoch

    def send(self, broker_id: int, request: BrokerRequest) -> None:
        """As `BrokerChannels.send`."""
        if self._epochs.get(broker_id) == request.broker_epoch and broker_id in self.queues:
            self.queues[broker_id].append(request)


class Process:
    """One run of a node; requests that are pending when it dies get no response."""

    def __init__(
        self,
        node_id: int,
        dialect: Dialect,
        ranges: Mapping[str, SupportedRange],
        on_response: OnResponse,
        operations: OperationsSettings | None = None,
    ) -> None:
        self.node_id = node_id
        self.ranges = dict(ranges)
        self.broker = ReferenceBroker(BrokerIdentity(node_id), dialect, ranges)
        self.controller = ReferenceController(node_id, dialect, ranges, operations)
        self.session: Session | None = None
        self.requests: deque[tuple[int, Any]] = deque()
        self.outgoing: deque[SendUpdateMetadata] = deque()
        """The requests of its controller to brokers; the world carries them."""
        self.channels = Channels()
        self.on_sent: Callable[[int, BrokerRequest], None] = lambda *_: None
        """Is shown what its controller sends to brokers."""
        self.exit: ExitProcess | None = None
        self.log_lines: list[str] = []
        self._on_response = on_response
        self._is_candidate = False
        self.crash_after: int | None = None
        """After so many effects the process dies, wherever it is."""

    @property
    def has_crashed(self) -> bool:
        """Whether it has died between two effects."""
        return self.crash_after == 0

    @property
    def session_id(self) -> int:
        """The id of its session; 0 without one."""
        return 0 if self.session is None else self.session.session_id

    @property
    def epoch(self) -> int:
        """The epoch of its controller's last election."""
        return self.controller.epoch

    @property
    def memory(self) -> ControllerContext:
        """What its controller of topics knows, also while it starts."""
        operations = self.controller._topics
        assert operations is not None
        return operations._controller.context

    def begin(self, session: Session) -> None:
        """Starts with a new session."""
        self.session = session
        session.begin(BROKER)

    def on_session_lost(self, now_ms: int) -> None:
        """Notifies the machines that the session has expired."""
        self.session = None
        was_candidate, self._is_candidate = self._is_candidate, False
        self._deliver(BROKER, SessionLost(), now_ms)
        if was_candidate:
            self._deliver(CONTROLLER, SessionLost(), now_ms)

    def receive(self, now_ms: int) -> None:
        """Processes the next event from ZooKeeper."""
        assert self.session is not None
        machine, event = self.session.incoming.popleft()
        if machine == CONTROLLER and not self._is_candidate:
            return
        self._deliver(machine, event, now_ms)
        if self.broker.registered and not self._is_candidate and self.exit is None:
            self._is_candidate = True
            self._deliver(CONTROLLER, SessionStarted(self.session_id), now_ms)

    def serve(self, now_ms: int) -> None:
        """Processes the next request; updates go to the controller's machine."""
        request_id, request = self.requests.popleft()
        machine = (
            BROKER if isinstance(request, ApiVersions) or not self._is_candidate else CONTROLLER
        )
        self._deliver(machine, RequestReceived(request_id, request), now_ms)

    def on_update_metadata(self, effect: SendUpdateMetadata, now_ms: int) -> None:
        """Processes a controller's message."""
        self._deliver(BROKER, UpdateMetadataReceived(effect.message), now_ms)

    def on_delivered(self, effect: SendUpdateMetadata, now_ms: int) -> None:
        """Notifies the controller that a broker has confirmed its message."""
        delivered = UpdateMetadataDelivered(effect.broker_id, effect.message.epoch)
        self._deliver(CONTROLLER, delivered, now_ms)

    def on_broker_responded(self, event: BrokerResponded, now_ms: int) -> None:
        """Notifies the controller of a broker's response."""
        self._deliver(CONTROLLER, event, now_ms)

    def tick(self, now_ms: int) -> None:
        """Notifies the machines that time has passed."""
        self._deliver(BROKER, Tick(), now_ms)
        self._deliver(CONTROLLER, Tick(), now_ms)

    def _deliver(self, machine: str, event: Event, now_ms: int) -> None:
        target = self.broker if machine == BROKER else self.controller
        for effect in target.receive(event, now_ms):
            if self.has_crashed:
                return
            if self.crash_after is not None:
                self.crash_after -= 1
            match effect:
                case ZookeeperRequest():
                    if self.session is not None:
                        self.session.send(machine, effect)
                case SendResponse(request_id, response):
                    self._on_response(request_id, response)
                case ExitProcess():
                    self.exit = effect
                case WriteLog(line):
                    self.log_lines.append(line)
                case SendUpdateMetadata():
                    self.outgoing.append(effect)
                case SetLiveBrokers(brokers):
                    self.channels.set_live(brokers)
                case SendBrokerRequest(broker_id, request):
                    self.channels.send(broker_id, request)
                    self.on_sent(broker_id, request)
