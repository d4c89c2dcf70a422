"""Light brokers: thousands of registrations that consist of an ephemeral znode only.

Controllers and watchers cannot distinguish them from full brokers. They read nothing, so no level
makes one exit; a client that uses their address reaches a full node.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from featurewatch.reference.machines.encoding import broker_path
from featurewatch.reference.machines.protocol import (
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
from featurewatch.reference.machines.zookeeper import (
    Create,
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


class LightBrokers:
    """A machine that registers brokers in each session; ``contents`` maps ids to znode contents.

    While a znode of an earlier session exists, its registration is retried until that expires.
    `rejected` maps the ids that ZooKeeper rejected to the reasons.
    """

    def __init__(self, contents: Mapping[int, bytes]) -> None:
        self._contents = dict(contents)
        self.registered: set[int] = set()
        self.rejected: dict[int, str] = {}
        self._queue: deque[int] = deque(sorted(contents))
        self._in_flight: dict[int, int] = {}
        self._retry_at_tick: list[int] = []
        self._token = 0
        self._connected = False
        self._session_id = 0

    @property
    def complete(self) -> bool:
        """Whether all brokers are registered."""
        return len(self.registered) == len(self._contents)

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
                self._queue.extendleft(self._in_flight.values())
                self._in_flight.clear()
            case OperationCompleted(token, outcome):
                effects = self._on_completed(token, outcome)
            case Tick():
                self._queue.extend(self._retry_at_tick)
                self._retry_at_tick.clear()
        return effects + self._next_requests()

    def _on_completed(self, token: int, outcome: OperationResult) -> list[Effect]:
        broker_id = self._in_flight.pop(token, None)
        if broker_id is None:
            return []
        match outcome:
            case OperationDone(stats):
                owner = stats[0].owner if stats and stats[0] is not None else self._session_id
                if owner != self._session_id:  # of a session that will expire
                    self._retry_at_tick.append(broker_id)
                else:
                    self.registered.add(broker_id)
            case NodeExists():
                return [self._request(broker_id, Exists(broker_path(broker_id)))]
            case OperationRefused(reason):
                self.rejected[broker_id] = reason
                return [WriteLog(f"light broker {broker_id} is rejected: {reason}", warning=True)]
            case NoNode():
                self._queue.append(broker_id)
            case _:
                self._retry_at_tick.append(broker_id)
        return []

    def _next_requests(self) -> list[Effect]:
        effects: list[Effect] = []
        while self._connected and self._queue and len(self._in_flight) < IN_FLIGHT:
            broker_id = self._queue.popleft()
            content = self._contents[broker_id]
            effects.append(
                self._request(broker_id, Create(broker_path(broker_id), content, ephemeral=True))
            )
        return effects

    def _request(self, broker_id: int, operation: Operation) -> ZookeeperRequest:
        self._token += 1
        self._in_flight[self._token] = broker_id
        return ZookeeperRequest(self._token, operation)
