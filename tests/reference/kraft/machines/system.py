"""A whole cluster of machines in one deterministic loop: controllers, brokers, no sockets.

Each controller is a voter and a metadata controller; each host runs light brokers. Messages take
one step of 10 ms. A node that has halted, or is cut off, answers nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final
from uuid import UUID

from featurewatch.reference.kraft.machines.broker.connections import (
    AskPeer,
    ClientConnected,
    CloseClient,
    Connections,
    PeerDisconnected,
    PeerVersions,
)
from featurewatch.reference.kraft.machines.broker.light_brokers import (
    BrokerBecame,
    BrokerEnded,
    ControllerAnswered,
    LightBrokers,
    LightEffect,
    LightEvent,
    ShutDownBrokers,
    StartBrokers,
    ToController,
)
from featurewatch.reference.kraft.machines.broker.loader import ImagePublished, SnapshotMade
from featurewatch.reference.kraft.machines.broker.observer import Observer, Quorum
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.broker.states import BrokerState
from featurewatch.reference.kraft.machines.controller import protocol as metadata
from featurewatch.reference.kraft.machines.controller.controller import (
    ControllerSettings,
    MetadataController,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    ControllerRequest,
    FeatureUpdate,
    UpdateFeatures,
)
from featurewatch.reference.kraft.machines.controller.settings import Form
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.metadata.state import Listener
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    BecameLeader,
    Committed,
    Effect,
    Event,
    Flush,
    Flushed,
    Halt,
    InstallSnapshot,
    LostLeadership,
    Propose,
    Proposed,
    QuorumState,
    Reply,
    RequestReceived,
    Resign,
    Send,
    SnapshotTaken,
    Tick,
)
from featurewatch.reference.kraft.machines.replicas import (
    Endpoint,
    ReplicaKey,
    VoterNode,
    VoterSet,
    text_of,
)
from featurewatch.reference.kraft.machines.requests import RaftAnswer
from featurewatch.reference.kraft.machines.voter import Voter, VoterSettings
from featurewatch.streams.types import METADATA_VERSION, FeatureName, SupportedRanges

CLUSTER: Final = "cluster-of-a-test-0000"
STEP_MS: Final = 10
TIMEOUT_MS: Final = 2_000
HOST_ID: Final = 1_000
LEVEL: Final = str(METADATA_VERSION)


def uuid(number: int) -> str:
    """Kafka's text of a UUID that is not reserved."""
    return text_of(UUID(int=(number + 1) << 64))


def ranges(low: int, high: int) -> SupportedRanges:
    """The ranges of a software that supports these levels."""
    return SupportedRanges({METADATA_VERSION: (low, high), FeatureName("kraft.version"): (0, 1)})


def endpoint(node_id: int) -> Endpoint:
    """The listener of a controller."""
    return Endpoint("CONTROLLER", "localhost", node_id)


def broker(broker_id: int, form: Form, **other: Any) -> BrokerSettings:
    """The settings of a broker."""
    listeners = (Listener("PLAINTEXT", "localhost", 20_000 + broker_id),)
    given: dict[str, Any] = {
        "incarnation_id": uuid(broker_id),
        "log_dirs": (uuid(500 + broker_id),),
        "form": form,
        **other,
    }
    return BrokerSettings(broker_id, CLUSTER, listeners=listeners, **given)


class Controller:
    """A voter and the metadata controller above it."""

    def __init__(
        self, system: "System", node_id: int, voters: VoterSet, log: Log, **other: Any
    ) -> None:
        self.id = node_id
        self.is_cut_off = False
        self.halted: str | None = None
        self._system = system
        settings = ControllerSettings(
            node_id=node_id,
            cluster_id=CLUSTER,
            incarnation_id=uuid(10_000 + node_id),
            listeners=(Listener(*endpoint(node_id)),),
            quorum=voters.ids,
            **other,
        )
        self.metadata = MetadataController(settings, Random(node_id))
        raft = VoterSettings(ReplicaKey(node_id), CLUSTER, (endpoint(node_id),))
        self.voter = Voter(raft, log, QuorumState(), Random(node_id), system.now_ms)
        self.effects: list[Effect | metadata.ControllerEffect] = []
        self.waiting: dict[int, Callable[[Any], None]] = {}
        self._numbers = 0

    @property
    def is_there(self) -> bool:
        """Whether it runs and can be reached."""
        return self.halted is None and not self.is_cut_off

    def tick(self) -> None:
        """Gives both machines the time."""
        self.to_voter(Tick())
        self.to_metadata(Tick())

    def ask_raft(self, request: Any, on_answer: Callable[[RaftAnswer], None]) -> None:
        """Sends the voter a request."""
        self._numbers += 1
        self.waiting[self._numbers] = on_answer
        self.to_voter(RequestReceived(self._numbers, request))

    def ask(self, request: ControllerRequest, version: int, on: Callable[[Any], None]) -> None:
        """Sends the metadata controller a request."""
        self._numbers += 1
        self.waiting[self._numbers] = on
        self.to_metadata(metadata.RequestReceived(self._numbers, request, version))

    def to_voter(self, event: Event) -> None:
        """Gives the voter an event and performs its effects."""
        if self.halted is not None:
            return
        for effect in self.voter.receive(event, self._system.now_ms):
            self.effects.append(effect)
            match effect:
                case Flush(offset, flushed_epoch):
                    self.to_voter(Flushed(offset, flushed_epoch))
                case Send():
                    self._system.send(self, effect, self._answered(effect.number))
                case Reply(request_id, answer):
                    self.waiting.pop(request_id)(answer)
                case BecameLeader() | LostLeadership() | Proposed():
                    self.to_metadata(effect)
                case Committed() | InstallSnapshot():
                    self._catch_up()
                case Halt(reason):
                    self.halted = reason

    def _catch_up(self) -> None:
        """Gives the metadata controller what is committed and not yet applied."""
        log = self.voter.log
        if self.metadata.position < log.start.offset:
            loaded = metadata.SnapshotLoaded(log.start, log.snapshots[log.start])
            self.to_metadata(loaded)
        position, end = self.metadata.position, log.high_watermark
        new = tuple(it for it in log.batches if it.base >= position and it.last < end)
        if new:
            self.to_metadata(metadata.Applied(end, new))

    def _answered(self, number: int) -> Callable[[RaftAnswer | None], None]:
        return lambda answer: self.to_voter(AnswerReceived(number, answer))

    def to_metadata(self, event: metadata.ControllerEvent) -> None:
        """Gives the metadata controller an event and performs its effects."""
        if self.halted is not None:
            return
        for effect in self.metadata.receive(event, self._system.now_ms):
            if not isinstance(effect, Propose | Resign | SnapshotTaken):
                self.effects.append(effect)
            match effect:
                case Propose() | Resign():
                    self.to_voter(effect)
                case SnapshotTaken():
                    self._system.trace.append((self.id, effect))
                    self.to_voter(effect)
                case metadata.Answer(request_id, response):
                    self.waiting.pop(request_id)(response)
                case metadata.Register(request):
                    active = self._system.active
                    if active is not None:
                        active.ask(request, 0, lambda _: None)
                case Halt(reason):
                    self.halted = reason


class Host:
    """A process with light brokers."""

    def __init__(self, system: "System", number: int, settings: Sequence[BrokerSettings]) -> None:
        self.id = HOST_ID + number
        first = settings[0]
        raft = VoterSettings(
            ReplicaKey(first.broker_id, UUID(int=self.id << 64)), CLUSTER, (), fetch_wait_ms=50
        )
        quorum = Quorum(system.voters)
        observer = Observer(first, raft, quorum, Random(self.id), system.now_ms)
        self.brokers = LightBrokers(observer, Connections(first), Random(self.id))
        self.effects: list[LightEffect] = []
        self.is_cut_off = False
        self._system = system
        self.receive(StartBrokers(tuple(settings)))

    @property
    def is_there(self) -> bool:
        """Whether it can reach others."""
        return not self.is_cut_off

    @property
    def levels(self) -> list[int | None]:
        """The levels of the images that it has published, without repetitions."""
        found = [it.image.level for it in self.of(ImagePublished)]
        return [level for at, level in enumerate(found) if at == 0 or found[at - 1] != level]

    def of(self, form: type[Any]) -> list[Any]:
        """Its effects of one class."""
        return [effect for effect in self.effects if isinstance(effect, form)]

    def state(self, broker_id: int) -> BrokerState | None:
        """The state of a broker; None: it has ended."""
        return self.brokers.states.get(broker_id)

    def shut_down(self, *broker_ids: int) -> None:
        """Tells brokers to shut down."""
        self.receive(ShutDownBrokers(frozenset(broker_ids)))

    def receive(self, event: LightEvent) -> None:
        """Gives it an event and performs its effects."""
        for effect in self.brokers.receive(event, self._system.now_ms):
            self.effects.append(effect)
            match effect:
                case Send(number):
                    self._system.send(self, effect, self._answered(number))
                case ToController(number, _, request):
                    self._system.to_controller(self, number, request)
                case AskPeer(number, peer_id):
                    self._system.ask_peer(self, number, peer_id)
                case CloseClient(connection_id):
                    self._system.close(self, connection_id)
                case SnapshotMade() | ImagePublished() | BrokerEnded():
                    self._system.trace.append((self.id, effect))
                case _:
                    pass

    def _answered(self, number: int) -> Callable[[RaftAnswer | None], None]:
        return lambda answer: self.receive(AnswerReceived(number, answer))


@dataclass
class System:
    """The cluster. ``trace`` has the snapshots, images and ends of all nodes in their order."""

    now_ms: int = 1_000_000
    controllers: list[Controller] = field(default_factory=list)
    hosts: list[Host] = field(default_factory=list)
    voters: VoterSet = field(default_factory=lambda: VoterSet(()))
    trace: list[tuple[int, Any]] = field(default_factory=list)
    _due: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    _messages: int = 0
    _peers: dict[int, tuple[Host, int]] = field(default_factory=dict)
    """Connections of one broker to another, by their number: who opened it, and to whom."""

    def later(self, action: Callable[[], None], delay_ms: int = STEP_MS) -> None:
        """Does something after a while, in the order of the calls."""
        self._messages += 1
        self._due.append((self.now_ms + delay_ms, self._messages, action))

    def add_controllers(self, *settings: dict[str, Any], log: Callable[[Log], None]) -> None:
        """Starts controllers 1, 2, … with these settings; ``log`` fills the log that each has."""
        ids = range(1, len(settings) + 1)
        self.voters = VoterSet.of(VoterNode(ReplicaKey(one), (endpoint(one),)) for one in ids)
        for node_id, other in zip(ids, settings, strict=True):
            own = Log(self.voters)
            log(own)
            self.controllers.append(Controller(self, node_id, self.voters, own, **other))

    def add_host(self, *settings: BrokerSettings) -> Host:
        """Starts a process with these brokers."""
        self.hosts.append(Host(self, len(self.hosts), settings))
        return self.hosts[-1]

    @property
    def active(self) -> Controller | None:
        """The active controller."""
        found = [it for it in self.controllers if it.is_there and it.metadata.is_active]
        return max(found, key=lambda it: it.voter.epoch, default=None)

    def _controller(self, place: Endpoint | None) -> Controller | None:
        found = [it for it in self.controllers if place is not None and it.id == place.port]
        return found[0] if found and found[0].is_there else None

    def send(
        self, sender: Controller | Host, send: Send, on: Callable[[RaftAnswer | None], None]
    ) -> None:
        """Carries a request of Raft and its answer."""
        receiver = self._controller(send.endpoint)
        if receiver is None or not sender.is_there:
            self.later(lambda: on(None), 200)
            return
        back = self._back(sender, on)
        self.later(lambda: receiver.ask_raft(send.request, back))

    def to_controller(self, host: Host, number: int, request: ControllerRequest) -> None:
        """Carries a request of a broker and its answer."""

        def on(response: Any) -> None:
            host.receive(ControllerAnswered(number, response))

        receiver = self._controller(host.brokers.observer.leader)
        if receiver is None or not host.is_there:
            self.later(lambda: on(None), 200)
            return
        back = self._back(host, on)
        self.later(lambda: receiver.ask(request, 0, back))

    def _back(
        self, receiver: Controller | Host, on: Callable[[Any], None]
    ) -> Callable[[Any], None]:
        """Carries an answer back; without one in time the request has failed."""
        answered: list[Any] = []

        def once(answer: Any) -> None:
            if not answered:
                answered.append(answer)
                on(answer if receiver.is_there else None)

        self.later(lambda: once(None), TIMEOUT_MS)
        return lambda answer: self.later(lambda: once(answer))

    def ask_peer(self, host: Host, number: int, broker_id: int) -> None:
        """Carries ApiVersions to another broker and back."""
        found = [it for it in self.hosts if broker_id in it.brokers.states]
        if not found:
            self.later(lambda: host.receive(PeerVersions(number, None)))
            return
        self._messages += 1
        self._peers[self._messages] = (host, broker_id)
        found[0].receive(ClientConnected(self._messages))
        offered = dict(found[0].brokers.connections.offered)
        self.later(lambda: host.receive(PeerVersions(number, offered)))

    def close(self, host: Host, connection_id: int) -> None:
        """Closes a connection to a host: a broker that has opened it learns of that."""
        peer, broker_id = self._peers.pop(connection_id, (None, 0))
        if peer is not None and peer is not host:
            self.later(lambda: peer.receive(PeerDisconnected(broker_id)))

    def run(self, until: Callable[[], object] | None = None, limit_ms: int = 30_000) -> None:
        """Lets time pass until something is so; for all of the time without it.

        Raises:
            AssertionError: if it is not so in time.
        """
        end_ms = self.now_ms + limit_ms
        while self.now_ms < end_ms and not (until is not None and until()):
            self.now_ms += STEP_MS
            due = sorted(it for it in self._due if it[0] <= self.now_ms)
            self._due = [it for it in self._due if it[0] > self.now_ms]
            for _, _, action in due:
                action()
            for controller in self.controllers:
                controller.tick()
            for host in self.hosts:
                host.receive(Tick())
        assert until is None or until(), "it did not happen in time"

    def ask(self, request: ControllerRequest, version: int = 1) -> Any:
        """Sends the active controller a request; returns its answer."""
        self.run(lambda: self.active is not None)
        answers: list[Any] = []
        active = self.active
        assert active is not None
        active.ask(request, version, answers.append)
        self.run(lambda: answers)
        return answers[0]

    def update(self, level: int, kind: int = 0, *, dry_run: bool = False) -> int:
        """Asks for a level as KIP-778 does (``kind`` is DowngradeType); returns the error."""
        one = FeatureUpdate(LEVEL, level, upgrade_type=kind)
        response = self.ask(UpdateFeatures((one,), validate_only=dry_run))
        assert response.error_code == 0
        return int(response.results[0].error_code)

    def settled(self, level: int) -> bool:
        """Whether every host has published an image at a level."""
        return all(
            it.brokers.image is not None and it.brokers.image.level == level for it in self.hosts
        )


def became(host: Host, broker_id: int) -> list[BrokerState]:
    """The states that a broker has entered."""
    return [it.state for it in host.of(BrokerBecame) if it.broker_id == broker_id]


def system_of(
    controllers: int | Sequence[SupportedRanges] = 1,
    *hosts: Sequence[BrokerSettings],
    form: Form = Form.KIP_778,
    level: int | None = 8,
    log: Callable[[Log], None] = lambda _: None,
    release: str = "4.3",
) -> System:
    """A cluster whose brokers run; ``level`` is that of the format, None: it has none."""
    found = [ranges(1, 30)] * controllers if isinstance(controllers, int) else controllers
    bootstrap = {} if level is None else {METADATA_VERSION: level}
    system = System()
    settings = [
        {"form": form, "release": release, "ranges": one, "bootstrap": bootstrap} for one in found
    ]
    system.add_controllers(*settings, log=log)
    system.run(lambda: system.active is not None)
    for brokers in hosts:
        system.add_host(*brokers)
    placed = zip(system.hosts, hosts, strict=True)
    everyone = [(host, one.broker_id) for host, brokers in placed for one in brokers]
    system.run(lambda: all(host.state(it) is BrokerState.RUNNING for host, it in everyone))
    return system
