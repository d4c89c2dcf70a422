"""ZooKeeper's tree as a history: each transaction gives a new tree, and all of them stay
readable."""

from dataclasses import dataclass, field
from typing import NamedTuple

from immutables import Map

from featurewatch.reference.zookeeper.machines.protocol import WatchKind
from featurewatch.reference.zookeeper.machines.zookeeper import (
    ANY_VERSION,
    BadVersion,
    CheckVersion,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetChildrenResult,
    GetData,
    GetDataResult,
    Multi,
    NodeExists,
    NoNode,
    Operation,
    OperationDone,
    OperationResult,
    SetData,
    Stat,
    WriteOperation,
)


class Node(NamedTuple):
    """A znode."""

    data: bytes
    stat: Stat


Tree = Map[str, Node]


@dataclass(frozen=True, slots=True)
class Change:
    """The change of one path by a transaction."""

    path: str
    kind: WatchKind


@dataclass(frozen=True, slots=True)
class Transaction:
    """A write of ``session``, with the trees before and after it."""

    zxid: int
    session: int
    before: Tree
    after: Tree
    changes: tuple[Change, ...]


@dataclass(slots=True)
class History:
    """All transactions; the zxid of a transaction is its index + 1."""

    log: list[Transaction] = field(default_factory=list)

    @property
    def tree(self) -> Tree:
        """The newest tree."""
        return self.at(len(self.log))

    def at(self, zxid: int) -> Tree:
        """The tree after a transaction; for 0 the empty tree."""
        return self.log[zxid - 1].after if zxid else Map()

    def write(self, session: int, operation: Operation) -> OperationResult:
        """Performs a write on the newest tree."""
        parts = operation.operations if isinstance(operation, Multi) else (operation,)
        zxid, tree = len(self.log) + 1, self.tree
        changes: list[Change] = []
        stats: list[Stat | None] = []
        for index, part in enumerate(parts):
            assert isinstance(part, WriteOperation)
            if isinstance(part, Create) and part.sequence:
                part = Create(f"{part.path}{zxid:010d}", part.data)
            outcome = _apply(tree, part, session, zxid)
            if isinstance(outcome, type):
                return outcome(index)
            tree = outcome
            changes += _changes(part)
            node = tree.get(part.path)
            has_stat = not isinstance(part, CheckVersion | Delete)
            stats.append(node.stat if has_stat and node is not None else None)
        self.log.append(Transaction(zxid, session, self.tree, tree, tuple(changes)))
        return OperationDone(tuple(stats))

    def close(self, session: int) -> None:
        """Ends a session: its ephemeral znodes are deleted in one transaction."""
        paths = sorted(path for path, node in self.tree.items() if node.stat.owner == session)
        if paths:
            tree = self.tree
            for path in paths:
                tree = tree.delete(path)
            changes = tuple(change for path in paths for change in _changes(Delete(path)))
            zxid = len(self.log) + 1
            self.log.append(Transaction(zxid, session, self.tree, tree, changes))


def read(tree: Tree, operation: Operation) -> OperationResult:
    """Performs a read."""
    match operation:
        case GetChildren(path):
            names = (node_path.rpartition("/") for node_path in sorted(tree))
            return GetChildrenResult(tuple(name for parent, _, name in names if parent == path))
        case GetData(path) | Exists(path) if path in tree:
            node = tree[path]
            return (
                GetDataResult(*node)
                if isinstance(operation, GetData)
                else OperationDone((node.stat,))
            )
        case _:
            return NoNode()


def _apply(
    tree: Tree, part: WriteOperation, session: int, zxid: int
) -> Tree | type[NoNode] | type[NodeExists] | type[BadVersion]:
    node = tree.get(part.path)
    if isinstance(part, Create):
        if node is not None:
            return NodeExists
        owner = session if part.ephemeral else 0
        return tree.set(part.path, Node(part.data, Stat(0, zxid, zxid, owner)))
    if node is None:
        return NoNode
    if part.version not in (ANY_VERSION, node.stat.version):
        return BadVersion
    if isinstance(part, SetData):
        old = node.stat
        return tree.set(
            part.path, Node(part.data, Stat(old.version + 1, old.czxid, zxid, old.owner))
        )
    return tree.delete(part.path) if isinstance(part, Delete) else tree


def _changes(part: WriteOperation) -> list[Change]:
    parent = Change(part.path.rpartition("/")[0], WatchKind.CHILDREN)
    match part:
        case Create(path):
            return [Change(path, WatchKind.CREATED), parent]
        case SetData(path):
            return [Change(path, WatchKind.CHANGED)]
        case Delete(path):
            return [Change(path, WatchKind.DELETED), parent]
        case CheckVersion():
            return []
