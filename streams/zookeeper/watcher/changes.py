"""What was read becomes events: changes within a session, snapshots around a lost one."""

from collections.abc import Mapping

from featurewatch.streams.events import DeadLetter, ZnodeChange, ZnodeSnapshot
from featurewatch.streams.types import ClusterId
from featurewatch.streams.znodes import UnreadableZnode, Znode
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode
from featurewatch.streams.zookeeper.watcher.requests import UNKNOWN, ZnodeVersion
from featurewatch.streams.zookeeper.watcher.znode_cache import ZnodeCache, ZnodeUpdate

WatcherEvent = ZnodeChange | ZnodeSnapshot | DeadLetter


class ChangeRecorder:
    """What was said of the znodes, and what is still to be said.

    While a snapshot is due, changes are only taken in; the snapshot then says them all.
    """

    def __init__(self, cluster: ClusterId | None, chunk: int) -> None:
        self.cluster = cluster
        self.zxid = 0
        self.taken = 0
        self.snapshot_due: str | None = "the source started"
        self._image = ZnodeCache()
        self._chunk = chunk
        self._readings = 0
        self._told: Mapping[str, Znode] | None = None
        """What was said when the snapshot became due."""

    def observe_zxid(self, zxid: int) -> None:
        """A server knew of this transaction."""
        self.zxid = max(self.zxid, zxid)

    def need_snapshot(self, reason: str) -> None:
        """What was said before needs saying anew, as a whole; the first reason counts."""
        if self.snapshot_due is None:
            self.snapshot_due, self._told = reason, self._image.copy()

    def begin_anew(self, reason: str) -> None:
        """Nothing of what was known is true any more, transactions included."""
        self.snapshot_due, self.zxid, self._told = reason, 0, None
        self._image.clear()

    def read(self, path: str, data: bytes, stat: ZnodeVersion, seen_ms: int) -> list[WatcherEvent]:
        """A znode was read; raises `StaleReadError` if it was read before in a newer state."""
        if not self._image.is_new(path, stat):
            return []
        decoded = decode_znode(path, data)
        self.taken += 1
        said = self._tell(self._image.put(path, stat, decoded.content), seen_ms)
        if decoded.error is not None:
            place = f"znode {path} version {stat.version} of transaction {stat.czxid}"
            reason = f"{path} cannot be taken as it is: {decoded.error}"
            said.append(self.dead_letter(place, reason, data, seen_ms))
        return said

    def forbidden(self, path: str, seen_ms: int) -> list[WatcherEvent]:
        """A znode may not be read; what was known of it stays, and else it is called unreadable.

        So a reader can tell it from one that is not there. Its numbers are 0: they are not known.
        """
        if self._image.get(path) is not None:
            return []
        content = UnreadableZnode(f"reading it is forbidden: give READ on {path}")
        return self._tell(self._image.put(path, UNKNOWN, content), seen_ms)

    def allowed(self, path: str) -> None:
        """A znode may be read again: if it was called unreadable, all is said anew."""
        known = self._image.get(path)
        if known is not None and known.czxid == UNKNOWN.czxid:
            self.need_snapshot(f"{path} may be read now")
            self._image.remove(path)

    def gone(self, path: str, seen_ms: int) -> list[WatcherEvent]:
        """There is no such znode, or nobody wants it."""
        news = self._image.remove(path)
        return self._tell(news, seen_ms) if news else []

    def snapshot(self, session: int, seen_ms: int) -> list[WatcherEvent]:
        """The snapshot, if it is due and the cluster is known, in chunks."""
        if self.snapshot_due is None or self.cluster is None:
            return []
        znodes = tuple(self._image.all())
        reason = self.snapshot_due
        missed = self._image.missed_since(self._told) if self._told is not None else 0
        if missed:
            reason += f"; versions in between that are not told: {missed}"
        self._readings += 1
        self._told = self.snapshot_due = None
        starts = range(0, max(len(znodes), 1), self._chunk)
        return [
            ZnodeSnapshot(
                cluster=self.cluster,
                reading=f"{session & (2**64 - 1):x}-{self._readings}",
                index=index,
                last=start + self._chunk >= len(znodes),
                znodes=znodes[start : start + self._chunk],
                reason=reason,
                zxid=self.zxid,
                seen_ms=seen_ms,
            )
            for index, start in enumerate(starts)
        ]

    def dead_letter(self, place: str, reason: str, payload: bytes, seen_ms: int) -> DeadLetter:
        """What could not be read, under the cluster's name as far as it is known."""
        return DeadLetter(self.cluster or "", place, reason, payload, seen_ms)

    def _tell(self, news: ZnodeUpdate, seen_ms: int) -> list[WatcherEvent]:
        if news.znode is not None:
            self.observe_zxid(news.znode.mzxid)
        if self.snapshot_due is not None or self.cluster is None:
            return []
        return [
            ZnodeChange(
                cluster=self.cluster,
                path=news.path,
                znode=news.znode,
                missed=news.missed,
                recreated=news.recreated,
                zxid=self.zxid,
                seen_ms=seen_ms,
            )
        ]
