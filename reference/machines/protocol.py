"""How the reference machines talk with ZooKeeper and with those who ask them: events and effects.

``machine.receive(event, now_ms)`` takes one event and gives the effects that follow, in order. A
machine reads no clock, does no IO and draws no lots: the same events give the same effects.

What a shell promises:

- One machine has one ZooKeeper session. `SessionStarted` comes first; `Reconnected` follows a
  `Disconnected` of the same session; `SessionLost` says that the session has expired (its
  ephemeral znodes are gone), and a new `SessionStarted` follows it.
- Operations are carried out in the order in which they were asked for, and each `ZookeeperRequest`
  is answered once by `OperationCompleted` with its token. What was asked for and not answered
  before a `Disconnected` is answered `OutcomeUnknown` before that event; what is asked for while
  disconnected is answered `OutcomeUnknown`.
- A watch that was asked for fires once, at the earliest change after the read that set it, and
  before a later read of this session can show that change. Watches are gone after `Disconnected`:
  the machine reads, and watches, everything again.
- `Tick` comes now and then, at least some times a second: only with it do timeouts run out.
- After `ExitProcess` the machine gets no more events, and its session is closed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from featurewatch.reference.machines.requests import Request, Response, UpdateMetadata
from featurewatch.reference.machines.zookeeper import Operation, OperationResult

Token = int
"""What pairs an answer with its `ZookeeperRequest`; unique in one machine, never used again."""


# -- operations ------------------------------------------------------------------------------------


# -- outcomes --------------------------------------------------------------------------------------


# -- events ----------------------------------------------------------------------------------------


class WatchKind(StrEnum):
    """What a watch that fired says of its path."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class SessionStarted:
    """A new session stands; it owns nothing yet."""

    session_id: int


@dataclass(frozen=True, slots=True)
class SessionLost:
    """The session has expired, and its ephemeral znodes are gone."""


@dataclass(frozen=True, slots=True)
class Disconnected:
    """No server is reached; the session may live on or expire."""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """A server is reached again, and the session is the same."""


@dataclass(frozen=True, slots=True)
class OperationCompleted:
    """What came of an operation."""

    token: Token
    outcome: OperationResult


@dataclass(frozen=True, slots=True)
class WatchFired:
    """Something happened to a path; what it holds now must be read."""

    path: str
    kind: WatchKind


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A client's request; ``request_id`` comes back in the `SendResponse`, exactly once."""

    request_id: int
    request: Request


@dataclass(frozen=True, slots=True)
class UpdateMetadataReceived:
    """A controller's `SendUpdateMetadata` has arrived."""

    message: UpdateMetadata


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


Event = (
    SessionStarted
    | SessionLost
    | Disconnected
    | Reconnected
    | OperationCompleted
    | WatchFired
    | RequestReceived
    | UpdateMetadataReceived
    | Tick
)


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ZookeeperRequest:
    """Ask ZooKeeper for this."""

    token: Token
    operation: Operation


@dataclass(frozen=True, slots=True)
class SendResponse:
    """Answer a client."""

    request_id: int
    response: Response


@dataclass(frozen=True, slots=True)
class ExitProcess:
    """End the process of this machine with a code and say why, in one line."""

    code: int
    reason: str


@dataclass(frozen=True, slots=True)
class WriteLog:
    """One line for the log."""

    line: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class SendUpdateMetadata:
    """Send this to a broker, once, with no answer; only dialects that push say it."""

    broker_id: int
    message: UpdateMetadata


Effect = ZookeeperRequest | SendResponse | ExitProcess | WriteLog | SendUpdateMetadata


class Machine(Protocol):
    """What a shell drives: `ReferenceController` and `ReferenceBroker` are machines."""

    def receive(self, event: Event, now_ms: int) -> Sequence[Effect]:
        """Take one event; ``now_ms`` is the time, which never goes back."""


Ranges = Mapping[str, tuple[int, int]]
"""Supported ranges by feature, both ends inclusive."""
