"""ZooKeeper's operations and their results, as the reference machines use them."""

from dataclasses import dataclass

ANY_VERSION = -1
"""The version that makes a write unconditional."""


@dataclass(frozen=True, slots=True)
class Stat:
    """The metadata of a znode; ``version`` counts the changes of its data from 0.

    ``czxid`` and ``mzxid`` are the transactions that created it and last changed it; ``owner`` is
    the session of an ephemeral znode, 0 for a persistent one.
    """

    version: int
    czxid: int
    mzxid: int
    owner: int = 0


@dataclass(frozen=True, slots=True)
class GetData:
    """Reads a znode → `GetDataResult`, or `NoNode`, which sets no watch (as in ZooKeeper)."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Checks for a znode → `OperationDone` with its stat, or `NoNode`; both set the watch."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren:
    """Lists the children of a znode → `GetChildrenResult`, or `NoNode`."""

    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Create:
    """Creates a znode → `OperationDone`, or `NodeExists`; the shell creates missing parents.

    With ``sequence`` the server appends a number of ten digits that grows.
    """

    path: str
    data: bytes
    ephemeral: bool = False
    sequence: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """Writes a znode if it has this version → `OperationDone`, `NoNode` or `BadVersion`."""

    path: str
    data: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Deletes a znode if it has this version → `OperationDone`, `NoNode` or `BadVersion`."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Part of a `Multi`, which fails as a whole unless the znode has this version."""

    path: str
    version: int


WriteOperation = Create | SetData | Delete | CheckVersion


@dataclass(frozen=True, slots=True)
class Multi:
    """Performs all operations or none → `OperationDone`, or the failure with the part's index.

    The result has one stat per part, None for a check or a deletion.
    """

    operations: tuple[WriteOperation, ...]


Operation = GetData | Exists | GetChildren | Create | SetData | Delete | Multi


@dataclass(frozen=True, slots=True)
class GetDataResult:
    """The content and the stat of a znode."""

    data: bytes
    stat: Stat


@dataclass(frozen=True, slots=True)
class GetChildrenResult:
    """The names of a znode's children, in no particular order."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OperationDone:
    """The operation succeeded; ``stats`` has one entry per part of a `Multi`, else one."""

    stats: tuple[Stat | None, ...] = ()


@dataclass(frozen=True, slots=True)
class NoNode:
    """The znode does not exist; ``index`` is that of the failed part of a `Multi`."""

    index: int = 0


@dataclass(frozen=True, slots=True)
class NodeExists:
    """The znode already exists; ``index`` is that of the failed part of a `Multi`."""

    index: int = 0


@dataclass(frozen=True, slots=True)
class BadVersion:
    """The znode has another version; ``index`` is that of the failed part of a `Multi`."""

    index: int = 0


@dataclass(frozen=True, slots=True)
class OutcomeUnknown:
    """The connection was lost; the operation may or may not have been performed."""


@dataclass(frozen=True, slots=True)
class OperationRefused:
    """ZooKeeper rejected the operation for good (no permission, no parent); nothing changed."""

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
