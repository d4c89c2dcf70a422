"""What is known of the znodes, and what is new in a reading."""

from collections.abc import Mapping
from dataclasses import dataclass

from featurewatch.streams.znodes import Znode, ZnodeContent
from featurewatch.streams.zookeeper.paths import ordered
from featurewatch.streams.zookeeper.watcher.requests import ZnodeVersion


class StaleReadError(Exception):
    """A reading is older than what is known: the server lags behind."""


@dataclass(frozen=True, slots=True)
class ZnodeUpdate:
    """A znode that changed (None: it is gone), and how many versions between nobody saw.

    Of a znode that was made anew the versions of the one before cannot be known: ``recreated``.
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
        """What is known now."""
        return dict(self._znodes)

    def missed_since(self, before: Mapping[str, Znode]) -> int:
        """How many versions lie between what was known before and what is known now."""
        return sum(_missed(before.get(path), znode) for path, znode in self._znodes.items())

    def clear(self) -> None:
        """Forget everything."""
        self._znodes.clear()

    def is_new(self, path: str, stat: ZnodeVersion) -> bool:
        """Whether a reading says more than what is known; raises `StaleReadError` if it says
        less."""
        known = self._znodes.get(path)
        if known is None:
            return True
        if stat.czxid == known.czxid:
            if stat.version < known.version:
                raise StaleReadError
            return stat.version != known.version
        if stat.czxid < known.czxid:
            raise StaleReadError
        return True

    def put(self, path: str, stat: ZnodeVersion, content: ZnodeContent) -> ZnodeUpdate:
        """What a reading that `is_new` means."""
        known = self._znodes.get(path)
        znode = Znode(path, stat.czxid, stat.mzxid, stat.version, stat.owner, content)
        self._znodes[path] = znode
        recreated = known is not None and known.czxid != stat.czxid
        return ZnodeUpdate(path, znode, _missed(known, znode), recreated)

    def remove(self, path: str) -> ZnodeUpdate | None:
        """That a znode is gone; None if it was not known."""
        return ZnodeUpdate(path, None) if self._znodes.pop(path, None) is not None else None


def _missed(known: Znode | None, znode: Znode) -> int:
    if known is None or known.czxid != znode.czxid:
        return znode.version
    return max(0, znode.version - known.version - 1)
