"""The events and effects of the reference machines, and the contract of their shells.

``machine.receive(event, now_ms)`` processes one event and returns the effects that follow, in
order. A machine reads no clock, does no IO and uses no random numbers: the same events give the
same effects.

A shell guarantees:

- One machine has one ZooKeeper session. `SessionStarted` comes first; `Reconnected` follows a
  `Disconnected` of the same session. `SessionLost` means that the session has expired (its
  ephemeral znodes are deleted); a new `SessionStarted` follows.
- Operations are performed in the order of their requests, and each `ZookeeperRequest` gets one
  `OperationCompleted` with its token. A request in flight at a `Disconnected` completes with
  `OutcomeUnknown` before that event, and so does a request made while disconnected.
- A watch fires once, at the first change after the read that set it, and before a later read of
  this session can show that change. `Disconnected` removes all watches: the machine reads and
  watches everything again.
- `Tick` comes several times a second; timeouts expire only then.
- After `ExitProcess` the machine gets no more events, and its session is closed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from featurewatch.reference.zookeeper.machines.requests import (
    Request,
    Response,
    TopicMessage,
    UpdateMetadata,
)
from featurewatch.reference.zookeeper.machines.zookeeper import Operation, OperationResult

Token = int
"""Pairs a result with its `ZookeeperRequest`; unique within one machine, never reused."""


# -- events ----------------------------------------------------------------------------------------


class WatchKind(StrEnum):
    """The change of a path that fired a watch."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A new session is established; it owns no znodes yet."""

    session_id: int


@dataclass(frozen=True, slots=True)
class SessionLost:
    """The session has expired, and its ephemeral znodes are deleted."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """No server is reachable; the session may survive or expire."""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A server is reachable again, and the session is the same."""


@dataclass(frozen=True, slots=True)
class OperationCompleted:
    """The result of a `ZookeeperRequest`."""

    token: Token
    outcome: OperationResult


@dataclass(frozen=True, slots=True)
class WatchFired:
    """A path changed; its new content must be read."""

    path: str
    kind: WatchKind


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A client's request; exactly one `SendResponse` carries its ``request_id``."""

    request_id: int
    request: Request | TopicMessage


@dataclass(frozen=True, slots=True)
class UpdateMetadataReceived:
    """A controller's UpdateMetadata message arrived."""

    message: UpdateMetadata


class BrokerEvent:
    """Base of what a controller learns from brokers; see `topics.broker_requests`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class UpdateMetadataDelivered(BrokerEvent):
    """A broker has confirmed a `SendUpdateMetadata` with this epoch."""

    broker_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; see ``now_ms`` of `Machine.receive`."""


Event = (
    SessionStarted
    | SessionLost
    | Disconnected
    | Reconnected
    | OperationCompleted
    | WatchFired
    | RequestReceived
    | UpdateMetadataReceived
    | BrokerEvent
    | Tick
)


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ZookeeperRequest:
    """Send an operation to ZooKeeper."""

    token: Token
    operation: Operation


@dataclass(frozen=True, slots=True)
class SendResponse:
    """Send a response to a client."""

    request_id: int
    response: Response | TopicMessage


@dataclass(frozen=True, slots=True)
class ExitProcess:
    """End the process of this machine with an exit code and a reason of one line."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Write one line to the log."""

    line: str
    warning: bool = False


class BrokerEffect:
    """Base of what a controller's shell does with brokers; others are in
    `topics.broker_requests`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata(BrokerEffect):
    """Send a message to a broker once; only in dialects with ``pushes``.

    The shell delivers an `UpdateMetadataDelivered` when the broker has confirmed it.
    """

    broker_id: int
    message: UpdateMetadata


Effect = ZookeeperRequest | SendResponse | ExitProcess | WriteLog | BrokerEffect


class Machine(Protocol):
    """A state machine that a shell drives, such as `ReferenceController`."""

    def receive(self, event: Event, now_ms: int) -> Sequence[Effect]:
        """Processes one event and returns its effects; ``now_ms`` never goes back."""
