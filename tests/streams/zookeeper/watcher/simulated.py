"""A small ZooKeeper: servers that lag, connections that break, watches that fire once.

Every transaction is in the log; a server has applied a part of it. Nothing happens on its own: the
test says when a server takes a request, applies a transaction, or a message reaches the client.
"""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from featurewatch.streams.events import DeadLetter, ZnodeChange, ZnodeSnapshot
from featurewatch.streams.znodes import Znode, ZnodeContent
from featurewatch.streams.zookeeper.decoding.znodes import decode_znode
from featurewatch.streams.zookeeper.paths import TargetKind, WatchTarget
from featurewatch.streams.zookeeper.watcher.changes import WatcherEvent
from featurewatch.streams.zookeeper.watcher.requests import (
    ReadChildren,
    ReadData,
    ReadForbidden,
    ReadOperation,
    ReadRequest,
    ReadResult,
    Synced,
    ZnodeAbsent,
    ZnodeVersion,
)
from featurewatch.streams.zookeeper.watcher.requests import ReadExists as Exists
from featurewatch.streams.zookeeper.watcher.watcher import ZnodeWatcher

CLUSTER = "5L6g3nShT-eMCtK--X86sw"


def cluster_id(name: str = CLUSTER) -> bytes:
    """The content of /cluster/id as Kafka writes it."""
    return orjson.dumps({"version": "1", "id": name})


def content(path: str, number: int) -> bytes:
    """Some content for a path that differs by number, now and then one that cannot be read."""
    if number % 7 == 3:
        return b"{" * (number % 5)
    if path.startswith("/brokers/ids/"):
        features = {"f": {"min_version": 1, "max_version": number + 1}}
        return orjson.dumps({"version": 5, "endpoints": [], "features": features})
    features = {"f": {"max_version_level": number + 1}}
    return orjson.dumps({"version": 2, "status": 1, "features": features})


@dataclass(frozen=True)
class Node:
    """A znode."""

    stat: ZnodeVersion
    data: bytes
    forbidden: bool = False


class Ensemble:
    """The log, as the states after each transaction; zxids count from 1."""

    def __init__(self) -> None:
        self.states: list[dict[str, Node]] = [{}]
        self.touched: list[tuple[str, str]] = [("", "")]
        """For each transaction: what it did (made, set, deleted) and to which path."""
        for path in ("/", "/cluster", "/brokers", "/brokers/ids"):
            self.make(path, b"")
        self.make("/cluster/id", cluster_id())

    @property
    def zxid(self) -> int:
        """The newest transaction."""
        return len(self.states) - 1

    @property
    def nodes(self) -> dict[str, Node]:
        """The newest state."""
        return self.states[-1]

    def make(self, path: str, data: bytes, owner: int = 0) -> None:
        """Creates a znode."""
        zxid = len(self.states)
        self._commit("made", path, Node(ZnodeVersion(zxid, zxid, 0, owner), data))

    def set(self, path: str, data: bytes) -> None:
        """Writes its data."""
        stat = self.nodes[path].stat
        stat = ZnodeVersion(stat.czxid, len(self.states), stat.version + 1, stat.owner)
        self._commit("set", path, Node(stat, data, self.nodes[path].forbidden))

    def delete(self, path: str) -> None:
        """Deletes it, if it has no children."""
        if not children(self.nodes, path):
            self._commit("deleted", path, None)

    def forbid(self, path: str, forbidden: bool = True) -> None:
        """Changes its access control list."""
        node = self.nodes[path]
        self._commit("acl", path, Node(node.stat, node.data, forbidden))

    def _commit(self, what: str, path: str, node: Node | None) -> None:
        state = dict(self.nodes)
        if node is None:
            del state[path]
        else:
            state[path] = node
        self.states.append(state)
        self.touched.append((what, path))


def children(nodes: dict[str, Node], path: str) -> list[str]:
    """The names below a path."""
    prefix = path.rstrip("/") + "/"
    below = (name[len(prefix) :] for name in nodes if name.startswith(prefix) and name != path)
    return sorted(name for name in below if "/" not in name)


class WatchFired(NamedTuple):
    """A watch fires."""

    generation: int
    target: WatchTarget


class ReadDone(NamedTuple):
    """The server responds to a read, with the last transaction that it has applied."""

    token: int
    result: ReadResult
    zxid: int


class Connection:
    """A client's connection to a server that has applied the log up to ``applied``."""

    def __init__(self, ensemble: Ensemble, applied: int, observer: ZnodeWatcher) -> None:
        self.ensemble = ensemble
        self.applied = applied
        self.observer = observer
        self.requests: deque[ReadRequest] = deque()
        self.wire: deque[WatchFired | ReadDone] = deque()
        self.watches: set[tuple[int, WatchTarget]] = set()
        self.seen = 0
        """The newest transaction of which the client was told."""

    @property
    def busy(self) -> bool:
        """Whether anything is under way."""
        return bool(self.requests or self.wire) or self.applied < self.ensemble.zxid

    def send(self) -> bool:
        """The client sends what it wants to ask next, if anything."""
        request = self.observer.next_request()
        if request is None:
            return False
        self.requests.append(request)
        return True

    def apply(self) -> None:
        """The server applies the next transaction; watches fire."""
        if self.applied == self.ensemble.zxid:
            return
        self.applied += 1
        what, path = self.ensemble.touched[self.applied]
        parent = WatchTarget(path.rpartition("/")[0] or "/", TargetKind.CHILDREN)
        fire = {"made": [parent], "set": [], "acl": []}.get(what)
        if fire is None:
            fire = [parent, WatchTarget(path, TargetKind.CHILDREN)]
        if what != "acl":
            fire.append(WatchTarget(path, TargetKind.DATA))
        # A watch for the existence of a directory is one on its data.
        for left in sorted(self.watches):
            generation, target = left
            exists = target.kind is TargetKind.CHILDREN and (generation, target) in self._existence
            watch_target = (
                WatchTarget(target.path, TargetKind.DATA) in fire if exists else target in fire
            )
            if watch_target:
                self.watches.discard(left)
                self.wire.append(WatchFired(generation, target))

    @property
    def _existence(self) -> set[tuple[int, WatchTarget]]:
        nodes = self.ensemble.states[self.applied - 1]
        return {left for left in self.watches if left[1].path not in nodes}

    def serve(self) -> None:
        """The server takes the next request."""
        if not self.requests:
            return
        request = self.requests.popleft()
        if request.operation is ReadOperation.SYNC:
            while self.applied < self.ensemble.zxid:
                self.apply()
        outcome = self._outcome(request, self.ensemble.states[self.applied])
        self.wire.append(ReadDone(request.token, outcome, self.applied))

    def _outcome(self, ask: ReadRequest, nodes: dict[str, Node]) -> ReadResult:
        path = ask.target.path
        node = nodes.get(path)
        if ask.operation is ReadOperation.SYNC:
            return Synced()
        if ask.operation is ReadOperation.CHROOT:
            return Exists(nodes["/"].stat) if "/" in nodes else ZnodeAbsent()
        if node is None:
            if ask.operation is ReadOperation.EXISTS:
                self.watches.add((ask.generation, ask.target))
            return ZnodeAbsent()
        if ask.operation is ReadOperation.EXISTS:
            self.watches.add((ask.generation, ask.target))
            return Exists(node.stat)
        if node.forbidden:
            return ReadForbidden()
        self.watches.add((ask.generation, ask.target))
        if ask.operation is ReadOperation.LIST:
            return ReadChildren(tuple(children(nodes, path)))
        return ReadData(node.data, node.stat)

    def deliver(self, now_ms: int) -> list[WatcherEvent]:
        """The next message reaches the client; gives the events that the watcher publishes."""
        if not self.wire:
            return []
        message = self.wire.popleft()
        if isinstance(message, WatchFired):
            self.observer.on_watch(message.generation, message.target)
            return []
        self.seen = max(self.seen, message.zxid)
        return self.observer.on_response(
            message.token, message.result, message.zxid, now_ms, now_ms
        )


class Auditor:
    """Replays what was said into a plain dict, and complains of what cannot be."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble = ensemble
        self.known: dict[str, tuple[ZnodeVersion, ZnodeContent]] = {}
        self.ids: set[str] = set()
        self.passed_over = 0
        """Versions that the snapshots jumped over."""
        self.reported_passed_over = 0
        self.events: list[ZnodeChange | ZnodeSnapshot] = []
        self.dead_letters: list[DeadLetter] = []
        self._reading: dict[str, tuple[ZnodeVersion, ZnodeContent]] | None = None
        self._first = True

    def apply(self, events: list[WatcherEvent]) -> None:
        """Applies events in order."""
        for event in events:
            if isinstance(event, DeadLetter):
                self.dead_letters.append(event)
                continue
            assert event.id not in self.ids, f"said twice: {event.id}"
            self.ids.add(event.id)
            self.events.append(event)
            if isinstance(event, ZnodeChange):
                self._change(event)
            else:
                self._chunk(event)

    def _change(self, event: ZnodeChange) -> None:
        assert self._reading is None, "a change is between the chunks of a snapshot"
        before = self.known.get(event.path)
        if event.znode is None:
            assert before is not None, f"{event.path} was deleted and was not there"
            self._was_gone(event.path, event.zxid)
            del self.known[event.path]
            return
        stat, content = _of(event.znode)
        if before is not None and before[0].czxid == stat.czxid:
            assert event.missed == stat.version - before[0].version - 1
            assert not event.recreated
        else:
            assert event.missed == stat.version
            assert event.recreated == (before is not None)
            assert before is None or before[0].czxid < stat.czxid
        self.known[event.path] = stat, content

    def _chunk(self, event: ZnodeSnapshot) -> None:
        assert (event.index == 0) == (self._reading is None)
        self._reading = self._reading or {}
        for znode in event.znodes:
            assert znode.path not in self._reading
            self._reading[znode.path] = _of(znode)
        if not event.last:
            return
        for path in self.known.keys() - self._reading.keys():
            self._was_gone(path, event.zxid)
        for path, (stat, _) in self._reading.items() if not self._first else ():
            before = self.known.get(path)
            if before is None or before[0].czxid != stat.czxid:
                self.passed_over += stat.version
            else:
                assert stat.version >= before[0].version, "a reading went back"
                self.passed_over += max(0, stat.version - before[0].version - 1)
        text = event.reason.partition("were not read: ")[2]
        self.reported_passed_over += int(text or 0)
        self._first = False
        self.known, self._reading = self._reading, None

    def _was_gone(self, path: str, zxid: int) -> None:
        states = self._ensemble.states[self.known[path][0].mzxid : zxid + 1]
        assert any(path not in state for state in states), f"{path} was never gone"


def _of(znode: Znode) -> tuple[ZnodeVersion, ZnodeContent]:
    return ZnodeVersion(znode.czxid, znode.mzxid, znode.version, znode.owner), znode.content


def truth(ensemble: Ensemble, watched: set[str]) -> dict[str, tuple[ZnodeVersion, ZnodeContent]]:
    """The state that an observer should have once all is quiet."""
    return {
        path: (node.stat, decode_znode(path, node.data).content)
        for path, node in ensemble.nodes.items()
        if path in watched or path.startswith("/brokers/ids/")
    }


def settle(connection: Connection, auditor: Auditor, now_ms: int) -> None:
    """Lets everything happen that is under way."""
    for _ in range(10_000):
        now_ms += 50
        connection.observer.tick(now_ms)
        sent = connection.send()
        connection.serve()
        connection.apply()
        auditor.apply(connection.deliver(now_ms))
        if not sent and not connection.busy and connection.observer.caught_up:
            return
    raise AssertionError(f"it does not come to rest: {connection.observer.stall_reason}")
