"""Events from what was read: changes within a session, a snapshot after a lost one."""

from collections.abc import Mapping
from typing import Final

from featurewatch.streams.events import DeadLetter, ZnodeChange, ZnodeSnapshot
from featurewatch.streams.types import ClusterId
from featurewatch.streams.znodes import UnreadableZnode, Znode
from featurewatch.streams.zookeeper.decoding.znodes import DecodedZnode, decode_znode
from featurewatch.streams.zookeeper.watcher.requests import UNKNOWN, ZnodeVersion
from featurewatch.streams.zookeeper.watcher.znode_cache import ZnodeCache, ZnodeUpdate

MAX_ZNODE_BYTES: Final = 4 << 20
"""The largest znode that is decoded, in bytes; ZooKeeper itself allows 1 MiB unless told
otherwise. Its event is at most twice as large, which the bus accepts."""

WatcherEvent = ZnodeChange | ZnodeSnapshot | DeadLetter


class ChangeRecorder:
    """Records which changes of znodes are published, and which are still to be published.

    While a snapshot is due, changes are only recorded; the snapshot then contains them all.
    """

    def __init__(self, cluster: ClusterId | None, chunk: int) -> None:
        self.cluster = cluster
        self.zxid = 0
        self.znodes_decoded = 0
        self.snapshot_due: str | None = "the source started"
        self._cache = ZnodeCache()
        self._chunk = chunk
        self._sizes: dict[str, int] = {}
        self._snapshot_count = 0
        self._published: Mapping[str, Znode] | None = None
        """The znodes as published when the snapshot became due."""

    def observe_zxid(self, zxid: int) -> None:
        """A server knew of this transaction."""
        self.zxid = max(self.zxid, zxid)

    def need_snapshot(self, reason: str) -> None:
        """Everything must be published again, as a snapshot; the first reason counts."""
        if self.snapshot_due is None:
            self.snapshot_due, self._published = reason, self._cache.copy()

    def restart(self, reason: str) -> None:
        """Forget everything that was read, transactions included."""
        self.snapshot_due, self.zxid, self._published = reason, 0, None
        self._cache.clear()
        self._sizes.clear()

    def read(self, path: str, data: bytes, stat: ZnodeVersion, seen_ms: int) -> list[WatcherEvent]:
        """A znode was read; raises `StaleReadError` if it was read before in a newer state."""
        if not self._cache.is_new(path, stat):
            return []
        if len(data) > MAX_ZNODE_BYTES:
            error = f"it has {len(data)} bytes, more than {MAX_ZNODE_BYTES}"
            decoded = DecodedZnode(UnreadableZnode(error), error)
        else:
            decoded = decode_znode(path, data)
        self._sizes[path] = len(data)
        self.znodes_decoded += 1
        events = self._change(self._cache.put(path, stat, decoded.content), seen_ms)
        if decoded.error is not None:
            place = f"znode {path} version {stat.version} of transaction {stat.czxid}"
            reason = f"{path} has invalid content: {decoded.error}"
            events.append(self.dead_letter(place, reason, data, seen_ms))
        return events

    def forbidden(self, path: str, seen_ms: int) -> list[WatcherEvent]:
        """A znode may not be read: what was read before stays, otherwise it becomes unreadable.

        So readers can distinguish it from one that does not exist. Its versions are unknown: 0.
        """
        if self._cache.get(path) is not None:
            return []
        content = UnreadableZnode(f"reading it is forbidden: give READ on {path}")
        return self._change(self._cache.put(path, UNKNOWN, content), seen_ms)

    def allowed(self, path: str) -> None:
        """A znode may be read again: if it was unreadable, a snapshot is due."""
        znode = self._cache.get(path)
        if znode is not None and znode.czxid == UNKNOWN.czxid:
            self.need_snapshot(f"{path} may be read now")
            self._cache.remove(path)

    def deleted(self, path: str, seen_ms: int) -> list[WatcherEvent]:
        """The znode does not exist, or is no longer wanted."""
        self._sizes.pop(path, None)
        update = self._cache.remove(path)
        return self._change(update, seen_ms) if update else []

    def snapshot(self, session: int, seen_ms: int) -> list[WatcherEvent]:
        """The snapshot, if it is due and the cluster is known, in chunks."""
        if self.snapshot_due is None or self.cluster is None:
            return []
        znodes = tuple(self._cache.all())
        reason = self.snapshot_due
        missed = self._cache.missed_since(self._published) if self._published is not None else 0
        if missed:
            reason += f"; versions in between were not read: {missed}"
        self._snapshot_count += 1
        self._published = self.snapshot_due = None
        chunks = self._chunks(znodes)
        return [
            ZnodeSnapshot(
                cluster=self.cluster,
                resync=f"{session & (2**64 - 1):x}-{self._snapshot_count}",
                index=index,
                last=index == len(chunks) - 1,
                znodes=chunk,
                reason=reason,
                zxid=self.zxid,
                seen_ms=seen_ms,
            )
            for index, chunk in enumerate(chunks)
        ]

    def _chunks(self, znodes: tuple[Znode, ...]) -> list[tuple[Znode, ...]]:
        """Of up to so many znodes and `MAX_ZNODE_BYTES`; one at least, which may be empty."""
        chunks: list[list[Znode]] = [[]]
        size = 0
        for znode in znodes:
            size += self._sizes.get(znode.path, 0)
            if chunks[-1] and (len(chunks[-1]) >= self._chunk or size > MAX_ZNODE_BYTES):
                chunks.append([])
                size = self._sizes.get(znode.path, 0)
            chunks[-1].append(znode)
        return [tuple(chunk) for chunk in chunks]

    def dead_letter(self, place: str, reason: str, payload: bytes, seen_ms: int) -> DeadLetter:
        """A dead letter, under the cluster's id if it is known."""
        return DeadLetter(self.cluster or "", place, reason, payload, seen_ms)

    def _change(self, update: ZnodeUpdate, seen_ms: int) -> list[WatcherEvent]:
        if update.znode is not None:
            self.observe_zxid(update.znode.mzxid)
        if self.snapshot_due is not None or self.cluster is None:
            return []
        return [
            ZnodeChange(
                cluster=self.cluster,
                path=update.path,
                znode=update.znode,
                missed=update.missed,
                recreated=update.recreated,
                zxid=self.zxid,
                seen_ms=seen_ms,
            )
        ]
