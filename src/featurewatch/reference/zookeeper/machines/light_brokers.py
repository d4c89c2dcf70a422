"""Light brokers: thousands of registrations that consist of an ephemeral znode only.

Controllers and watchers cannot distinguish them from full brokers. They read nothing, so no level
makes one exit; a client that uses their address reaches a full node. They end and start by order.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from featurewatch.reference.zookeeper.machines.encoding import broker_path
from featurewatch.reference.zookeeper.machines.protocol import (
    BrokerEffect,
    BrokerEvent,
    Disconnected,
    Effect,
    Event,
    OperationCompleted,
    Reconnected,
    SessionLost,
    SessionStarted,
    Tick,
    WriteLog,
    ZookeeperRequest,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    Exists,
    NodeExists,
    NoNode,
    Operation,
    OperationDone,
    OperationRefused,
    OperationResult,
)

IN_FLIGHT: Final = 256
"""At most this many registrations are in flight at once; more is not faster."""


@dataclass(frozen=True, slots=True)
class EndLightBrokers(BrokerEvent):
    """An order: delete the znodes of these brokers, as if their processes had ended."""

    broker_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class StartLightBrokers(BrokerEvent):
    """An order: register these brokers again."""

    broker_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class LightBrokerRegistered(BrokerEffect):
    """A broker has registered; ``epoch`` is the transaction that created its znode."""

    broker_id: int
    epoch: int


class LightBrokers:
    """A machine that registers brokers in each session; ``contents`` maps ids to znode contents.

    While a znode of an earlier session exists, its registration is retried until that expires.
    `rejected` maps the ids that ZooKeeper rejected to the reasons.
    """

    def __init__(self, contents: Mapping[int, bytes]) -> None:
        self._contents = dict(contents)
        self.registered: set[int] = set()
        self.rejected: dict[int, str] = {}
        self._ended: set[int] = set()
        """By order; they are not registered, or will not be once their znode is deleted."""
        self._queue: deque[int] = deque(sorted(contents))
        self._in_flight: dict[int, tuple[int, Operation]] = {}
        self._retry_at_tick: list[int] = []
        self._token = 0
        self._connected = False
        self._session_id = 0

    @property
    def complete(self) -> bool:
        """Whether the brokers are registered, but for those that an order has ended."""
        return self.registered == self._contents.keys() - self._ended

    def receive(self, event: Event, now_ms: int) -> Sequence[Effect]:
        """Processes one event and returns its effects."""
        del now_ms
        effects: list[Effect] = []
        match event:
            case SessionStarted(session_id):
                self._session_id = session_id
                self.registered.clear()
                self._in_flight.clear()
                self._queue = deque(sorted(self._contents))
                self._connected = True
            case Reconnected():
                self._connected = True
            case Disconnected() | SessionLost():
                self._connected = False
                self._queue.extendleft(broker_id for broker_id, _ in self._in_flight.values())
                self._in_flight.clear()
            case OperationCompleted(token, outcome) if token in self._in_flight:
                broker_id, operation = self._in_flight.pop(token)
                if isinstance(operation, Delete):
                    self._on_deleted(broker_id, outcome)
                else:
                    effects = self._on_created(broker_id, outcome)
            case EndLightBrokers(broker_ids):
                self._ended |= broker_ids & self._contents.keys()
                self._queue.extend(sorted(broker_ids & self._contents.keys()))
            case StartLightBrokers(broker_ids):
                self._ended -= broker_ids
                self._queue.extend(sorted(broker_ids & self._contents.keys()))
            case Tick():
                self._queue.extend(self._retry_at_tick)
                self._retry_at_tick.clear()
        return effects + self._next_requests()

    def _on_created(self, broker_id: int, outcome: OperationResult) -> list[Effect]:
        match outcome:
            case OperationDone(stats):
                stat = stats[0] if stats else None
                if stat is not None and stat.owner != self._session_id:
                    self._retry_at_tick.append(broker_id)  # of a session that will expire
                    return []
                self.registered.add(broker_id)
                if broker_id in self._ended:  # meanwhile, by order
                    self._queue.append(broker_id)
                    return []
                epoch = -1 if stat is None else stat.czxid
                return [LightBrokerRegistered(broker_id, epoch)]
            case NodeExists():
                return [self._request(broker_id, Exists(broker_path(broker_id)))]
            case OperationRefused(reason):
                self.rejected[broker_id] = reason
                return [WriteLog(f"light broker {broker_id} is rejected: {reason}", warning=True)]
            case NoNode():
                self._queue.append(broker_id)
            case _:
                if broker_id in self._ended:
                    self.registered.add(broker_id)  # perhaps it is, so it is deleted
                self._retry_at_tick.append(broker_id)
        return []

    def _on_deleted(self, broker_id: int, outcome: OperationResult) -> None:
        if isinstance(outcome, OperationDone | NoNode):
            self.registered.discard(broker_id)
            self._queue.append(broker_id)  # it may have been started meanwhile
        else:
            self._retry_at_tick.append(broker_id)

    def _next_requests(self) -> list[Effect]:
        effects: list[Effect] = []
        while self._connected and self._queue and len(self._in_flight) < IN_FLIGHT:
            broker_id = self._queue.popleft()
            is_registered, is_ended = broker_id in self.registered, broker_id in self._ended
            if is_registered == is_ended and not self._is_in_flight(broker_id):
                effects.append(self._request(broker_id, self._operation(broker_id)))
        return effects

    def _operation(self, broker_id: int) -> Operation:
        path = broker_path(broker_id)
        if broker_id in self._ended:
            return Delete(path)
        return Create(path, self._contents[broker_id], ephemeral=True)

    def _is_in_flight(self, broker_id: int) -> bool:
        return any(broker_id == busy_id for busy_id, _ in self._in_flight.values())

    def _request(self, broker_id: int, operation: Operation) -> ZookeeperRequest:
        self._token += 1
        self._in_flight[self._token] = (broker_id, operation)
        return ZookeeperRequest(self._token, operation)
