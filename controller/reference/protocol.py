"""How the reference machines talk with ZooKeeper and with those who ask them: events and effects.

``machine.receive(event, now_ms)`` takes one event and gives the effects that follow, in order. A
machine reads no clock, does no IO and draws no lots: the same events give the same effects.

What a shell promises:

- One machine has one ZooKeeper session. `SessionStarted` comes first; `Reconnected` follows a
  `Disconnected` of the same session; `SessionLost` says that the session has expired (its
  ephemeral znodes are gone), and a new `SessionStarted` follows it.
- Operations are carried out in the order in which they were asked for, and each `ZookeeperRequest` is answered
  once by `OperationCompleted` with its token. What was asked for and not answered before a `Disconnected` is
  answered `OutcomeUnknown` before that event; what is asked for while disconnected is answered `OutcomeUnknown`.
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

from controller.reference.requests import Request, Response, UpdateMetadata

Token = int
"""What pairs an answer with its `ZookeeperRequest`; unique in one machine, never used again."""

ANY_VERSION = -1
"""A write with it is unconditional."""


@dataclass(frozen=True, slots=True)
class Stat:
    """What ZooKeeper knows of a znode: ``version`` counts the changes of its data from 0.

    ``czxid`` and ``mzxid`` are the transactions that made it and last changed it; ``owner`` is the
    session that an ephemeral znode belongs to, 0 for a persistent one.
    """

    version: int
    czxid: int
    mzxid: int
    owner: int = 0


# -- operations ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetData:
    """Read a znode → `GetDataResult`, or `NoNode`, which leaves no watch behind (as in ZooKeeper)."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether a znode is there → `OperationDone` with its stat, or `NoNode`; a watch is left either way."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren:
    """The names below a znode → `GetChildrenResult`, or `NoNode`."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """Make a znode → `OperationDone`, or `NodeExists`; the shell makes missing parents of it, empty."""

    path: str
    data: bytes
    ephemeral: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Write a znode if it has this version → `OperationDone`, `NoNode` or `BadVersion`."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode if it has this version → `OperationDone`, `NoNode` or `BadVersion`."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Part of a `Multi`: all of it fails unless the znode has this version."""

    path: str
    version: int


WriteOperation = Create | SetData | Delete | CheckVersion


@dataclass(frozen=True, slots=True)
class Multi:
    """All or none → `OperationDone` with one stat a part (None for a check or a deletion), or what failed.

    The failure names the part by its index.
    """

    operations: tuple[WriteOperation, ...]


Operation = GetData | Exists | GetChildren | Create | SetData | Delete | Multi


# -- outcomes --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GetDataResult:
    """The content of a znode."""

    data: bytes
    stat: Stat


@dataclass(frozen=True, slots=True)
class GetChildrenResult:
    """The names of a znode's children, in no order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperationDone:
    """It is done; one stat for each part of a `Multi`, else one in all."""

    stats: tuple[Stat | None, ...] = ()


@dataclass(frozen=True, slots=True)
class NoNode:
    """There is no such znode."""

    index: int = 0


@dataclass(frozen=True, slots=True)
class NodeExists:
    """There is such a znode already."""

    index: int = 0


@dataclass(frozen=True, slots=True)
class BadVersion:
    """The znode has another version than the one asked for."""

    index: int = 0


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """The connection was lost: what was asked for may or may not have been done."""


@dataclass(frozen=True, slots=True)
class OperationRefused:
    """ZooKeeper refuses for good (no right, no such parent); nothing was done."""

    reason: str


OperationResult = (
    GetDataResult
    | GetChildrenResult
    | OperationDone
    | NoNode
    | NodeExists
    | BadVersion
    | OutcomeUnknown
    | OperationRefused
)


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
