"""Light brokers: brokers that register, report and follow the metadata, and serve no data. Pure.

One machine runs any number of them in one process. They have a lifecycle each; the replica of the
metadata log, its images and the connections of clients are one for all, so that a thousand cost
little more than one. Controllers and watchers cannot distinguish them from full brokers.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from featurewatch.reference.kraft.machines.broker.connections import (
    ClientConnected,
    ClientGone,
    ConnectionEffect,
    ConnectionEvent,
    Connections,
    LevelPublished,
    PeerDisconnected,
    PeersPublished,
    PeerVersions,
    RetryPeers,
)
from featurewatch.reference.kraft.machines.broker.image import BrokerImage
from featurewatch.reference.kraft.machines.broker.lifecycle import Lifecycle
from featurewatch.reference.kraft.machines.broker.loader import (
    ImagePublished,
    SnapshotMade,
    SnapshotRefused,
)
from featurewatch.reference.kraft.machines.broker.observer import Observer, ObserverEffect
from featurewatch.reference.kraft.machines.broker.protocol import (
    Answered,
    Applied,
    BecameState,
    BrokerRequest,
    End,
    LevelUnsupported,
    LifecycleEvent,
    Published,
    Registration,
    SendToController,
    ShutDown,
    Start,
    Tick,
    WriteLog,
)
from featurewatch.reference.kraft.machines.broker.settings import BrokerSettings
from featurewatch.reference.kraft.machines.broker.states import BrokerState
from featurewatch.reference.kraft.machines.controller.requests import ControllerResponse
from featurewatch.reference.kraft.machines.metadata.state import Broker
from featurewatch.reference.kraft.machines.protocol import AnswerReceived, Halt, Send

IN_FLIGHT: Final = 256
"""At most this many requests to the controller are on their way at once."""
MAX_PEERS: Final = 100
"""Versions are negotiated with at most this many brokers of other processes."""


# -- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StartBrokers:
    """An order: start these brokers; one that runs is left alone."""

    brokers: tuple[BrokerSettings, ...]


@dataclass(frozen=True, slots=True)
class ShutDownBrokers:
    """An order: shut these brokers down, in a controlled way if they run."""

    broker_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class KillBrokers:
    """An order: end these brokers without a word, as if their processes had been killed."""

    broker_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class ControllerAnswered:
    """The response to the `ToController` with this number; None: there was none in time."""

    number: int
    response: ControllerResponse | None


LightEvent = (
    StartBrokers
    | ShutDownBrokers
    | KillBrokers
    | ControllerAnswered
    | AnswerReceived
    | ConnectionEvent
    | Tick
)


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToController:
    """Send a request of a broker to the active controller."""

    number: int
    broker_id: int
    request: BrokerRequest


@dataclass(frozen=True, slots=True)
class BrokerBecame:
    """A broker is in another state."""

    broker_id: int
    state: BrokerState


@dataclass(frozen=True, slots=True)
class BrokerEnded:
    """A broker has ended; ``is_failure``: its process would exit with a non-zero code."""

    broker_id: int
    reason: str
    is_failure: bool


LightEffect = (
    ToController
    | BrokerBecame
    | BrokerEnded
    | ImagePublished
    | SnapshotMade
    | ConnectionEffect
    | Send
    | WriteLog
    | Halt
)


class LightBrokers:
    """The machine; ``states`` has the brokers that have not ended."""

    def __init__(self, observer: Observer, connections: Connections, random: Random) -> None:
        self.observer = observer
        self.connections = connections
        self.ended: dict[int, BrokerEnded] = {}
        self._random = random
        self._applied = Applied()
        self._lives: dict[int, Lifecycle] = {}
        self._registrations: dict[int, Broker | None] = {}
        self._level: int | None = None
        self._unsupported: LevelUnsupported | None = None
        self._due: list[tuple[int, int]] = []
        self._queue: deque[tuple[Lifecycle, SendToController]] = deque()
        self._in_flight: dict[int, tuple[Lifecycle, int]] = {}
        self._numbers = 0
        self._now_ms = 0
        self._out: list[LightEffect] = []

    @property
    def states(self) -> dict[int, BrokerState]:
        """The state of each broker, by id."""
        return {broker_id: life.state for broker_id, life in self._lives.items()}

    @property
    def image(self) -> BrokerImage | None:
        """The metadata image that was published last."""
        return self.observer.loader.image

    def receive(self, event: LightEvent, now_ms: int) -> Sequence[LightEffect]:
        """Processes one event and returns its effects."""
        self._now_ms, self._out = now_ms, []
        match event:
            case Tick():
                self._observe(self.observer.receive(event, now_ms))
                self._out += self.connections.receive(RetryPeers(), now_ms)
                self._wake()
            case AnswerReceived():
                self._observe(self.observer.receive(event, now_ms))
            case ControllerAnswered(number, response):
                self._on_answer(number, response)
            case StartBrokers(brokers):
                for settings in brokers:
                    self._start(settings)
            case ShutDownBrokers(broker_ids):
                self._give_all(sorted(broker_ids), ShutDown())
            case KillBrokers(broker_ids):
                for broker_id in broker_ids:
                    self._lives.pop(broker_id, None)
            case (
                ClientConnected() | ClientGone() | PeerDisconnected() | PeerVersions()
            ) as of_connection:
                self._out += self.connections.receive(of_connection, now_ms)
            case _:
                pass
        self._send_queued()
        return self._out

    # -- brokers -----------------------------------------------------------------------------------

    def _start(self, settings: BrokerSettings) -> None:
        broker_id = settings.broker_id
        if broker_id in self._lives:
            return
        self.ended.pop(broker_id, None)
        self._registrations.pop(broker_id, None)
        self._lives[broker_id] = Lifecycle(settings, self._random, self._applied)
        self._give(broker_id, Start())
        if self._unsupported is not None:
            self._give(broker_id, self._unsupported)

    def _give_all(self, broker_ids: Iterable[int], event: LifecycleEvent) -> None:
        for broker_id in broker_ids:
            self._give(broker_id, event)

    def _give(self, broker_id: int, event: LifecycleEvent) -> None:
        life = self._lives.get(broker_id)
        if life is None:
            return
        for effect in life.receive(event, self._now_ms):
            match effect:
                case SendToController():
                    self._queue.append((life, effect))
                case BecameState(state):
                    self._out.append(BrokerBecame(broker_id, state))
                case WriteLog():
                    self._out.append(effect)
                case End(reason, is_failure):
                    del self._lives[broker_id]
                    self.ended[broker_id] = BrokerEnded(broker_id, reason, is_failure)
                    self._out.append(self.ended[broker_id])
        if life.due_ms is not None:
            heapq.heappush(self._due, (life.due_ms, broker_id))

    def _wake(self) -> None:
        """Gives the time to the brokers that wait for it."""
        woken = set[int]()
        while self._due and self._due[0][0] <= self._now_ms:
            _, broker_id = heapq.heappop(self._due)
            life = self._lives.get(broker_id)
            is_due = life is not None and (life.due_ms or self._now_ms + 1) <= self._now_ms
            if is_due and broker_id not in woken:
                woken.add(broker_id)
                self._give(broker_id, Tick())

    def _send_queued(self) -> None:
        while self._queue and len(self._in_flight) < IN_FLIGHT:
            life, send = self._queue.popleft()
            broker_id = life.settings.broker_id
            if self._lives.get(broker_id) is life:
                self._numbers += 1
                self._in_flight[self._numbers] = (life, send.number)
                self._out.append(ToController(self._numbers, broker_id, send.request))

    def _on_answer(self, number: int, response: ControllerResponse | None) -> None:
        life, of_life = self._in_flight.pop(number, (None, 0))
        if life is not None and self._lives.get(life.settings.broker_id) is life:
            self._give(life.settings.broker_id, Answered(of_life, response))

    # -- metadata ----------------------------------------------------------------------------------

    def _observe(self, effects: Sequence[ObserverEffect]) -> None:
        for effect in effects:
            match effect:
                case ImagePublished(image):
                    self._out.append(effect)
                    self._on_image(image)
                case LevelUnsupported():
                    self._unsupported = effect
                    self._give_all([*self._lives], effect)
                case SnapshotRefused(reason):
                    self._out.append(WriteLog(f"metadata: {reason}", is_warning=True))
                case _:
                    self._out.append(effect)

    def _on_image(self, image: BrokerImage) -> None:
        self._applied.offset = image.position.offset
        is_new_level = image.level != self._level or self._unsupported is not None
        self._level, self._unsupported = image.level, None
        for broker_id in [*self._lives]:
            broker = image.state.brokers.get(broker_id)
            if is_new_level or broker is not self._registrations.get(broker_id):
                self._registrations[broker_id] = broker
                self._give(broker_id, Published(image.level, _registration(broker)))
        if image.level is not None:
            self._out += self.connections.receive(LevelPublished(image.level), self._now_ms)
        self._out += self.connections.receive(self._peers(image), self._now_ms)

    def _peers(self, image: BrokerImage) -> PeersPublished:
        """The unfenced brokers of other processes, those with the lowest ids."""
        others = (
            broker.id
            for broker in image.state.brokers.values()
            if not broker.fenced and broker.id not in self._lives
        )
        return PeersPublished(frozenset(heapq.nsmallest(MAX_PEERS, others)))


def _registration(broker: Broker | None) -> Registration | None:
    return None if broker is None else Registration(broker.epoch, bool(broker.log_dirs))
