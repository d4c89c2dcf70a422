"""The znodes as they were last read, and what is new in a read."""

from collections.abc import Mapping
from dataclasses import dataclass

from featurewatch.streams.znodes import Znode, ZnodeContent
from featurewatch.streams.zookeeper.paths import ordered
from featurewatch.streams.zookeeper.watcher.requests import ZnodeVersion


class StaleReadError(Exception):
    """A read is older than one before it: the server lags behind."""


@dataclass(frozen=True, slots=True)
class ZnodeUpdate:
    """A znode that changed (None: it was deleted), and how many versions in between were missed.

    ``recreated``: it was deleted and created again, so that earlier versions are unknown.
    """

    path: str
    znode: Znode | None
    missed: int = 0
    recreated: bool = False


class ZnodeCache:
    """The znodes that hold data, as they were read last."""

    def __init__(self) -> None:
        self._znodes: dict[str, Znode] = {}

    def __len__(self) -> int:
        return len(self._znodes)

    def get(self, path: str) -> Znode | None:
        """The znode as it was read last."""
        return self._znodes.get(path)

    def all(self) -> list[Znode]:
        """Every znode; roots first, then brokers by number."""
        return [self._znodes[path] for path in ordered(self._znodes)]

    def copy(self) -> Mapping[str, Znode]:
        """All znodes by path."""
        return dict(self._znodes)

    def missed_since(self, before: Mapping[str, Znode]) -> int:
        """How many versions lie between ``before`` and now, unread."""
        return sum(_missed(before.get(path), znode) for path, znode in self._znodes.items())

    def clear(self) -> None:
        """Forget everything."""
        self._znodes.clear()

    def is_new(self, path: str, stat: ZnodeVersion) -> bool:
        """Whether a read is newer than the last; raises `StaleReadError` if it is older."""
        before = self._znodes.get(path)
        if before is None:
            return True
        if stat.czxid == before.czxid:
            if stat.version < before.version:
                raise StaleReadError
            return stat.version != before.version
        if stat.czxid < before.czxid:
            raise StaleReadError
        return True

    def put(self, path: str, stat: ZnodeVersion, content: ZnodeContent) -> ZnodeUpdate:
        """Store a read that `is_new`; returns the update."""
        before = self._znodes.get(path)
        znode = Znode(path, stat.czxid, stat.mzxid, stat.version, stat.owner, content)
        self._znodes[path] = znode
        recreated = before is not None and before.czxid != stat.czxid
        return ZnodeUpdate(path, znode, _missed(before, znode), recreated)

    def remove(self, path: str) -> ZnodeUpdate | None:
        """Remove a znode; None if it was not there."""
        return ZnodeUpdate(path, None) if self._znodes.pop(path, None) is not None else None


def _missed(before: Znode | None, znode: Znode) -> int:
    if before is None or before.czxid != znode.czxid:
        return znode.version
    return max(0, znode.version - before.version - 1)
