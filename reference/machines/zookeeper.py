"""ZooKeeper's operations and their results, as the reference machines use them."""

from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class GetData:
    """Read a znode → `GetDataResult`, or `NoNode`, which leaves no watch behind (as in
    ZooKeeper)."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether a znode is there → `OperationDone` with its stat, or `NoNode`; a watch is left either
    way."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren:
    """The names below a znode → `GetChildrenResult`, or `NoNode`."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """Make a znode → `OperationDone`, or `NodeExists`; the shell makes missing parents of it,
    empty."""

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
    """All or none → `OperationDone` with one stat a part (None for a check or a deletion), or what
    failed.

    The failure names the part by its index.
    """

    operations: tuple[WriteOperation, ...]


Operation = GetData | Exists | GetChildren | Create | SetData | Delete | Multi


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
