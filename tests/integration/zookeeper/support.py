"""Shared by the tests of the ZooKeeper source: a sink, a writer, and waiting."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

import orjson
from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from featurewatch.streams.events import (
    DeadLetter,
    Event,
    SourceState,
    ZnodeChange,
    ZnodeSnapshot,
)
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.streams.znodes import FeaturesZnode, Znode
from featurewatch.streams.zookeeper.paths import CLUSTER_ID
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.source import ZookeeperSource
from tests.running import running
from tests.streams.recording_sink import RecordingSink

C = TypeVar("C")
CLUSTER = "5L6g3nShT-eMCtK--X86sw"
_numbers = itertools.count()


def chroot() -> str:
    """One that nobody has yet."""
    return f"/test-{next(_numbers)}-{time.time_ns()}"


class ZnodeSink(RecordingSink):
    """Keeps events and the znodes that they describe; a change must follow from what was known."""

    def __init__(self) -> None:
        super().__init__()
        self.znodes: dict[str, Znode] = {}
        self.accepting = asyncio.Event()
        self.accepting.set()
        self._reading: dict[str, Znode] = {}

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> asyncio.Future[None]:
        """Keeps an event, once the sink accepts any."""
        await self.accepting.wait()
        delivery = await super().publish(topic, event)
        match event:
            case ZnodeChange(znode=None):
                del self.znodes[event.path]
            case ZnodeChange(znode=Znode() as znode):
                before = self.znodes.get(event.path)
                assert before is None or before.mzxid < znode.mzxid
                self.znodes[event.path] = znode
            case ZnodeSnapshot():
                self._reading |= {znode.path: znode for znode in event.znodes}
                if event.last:
                    self.znodes.clear()
                    self.znodes |= self._reading
                    self._reading = {}
        return delivery

    @property
    def changes(self) -> list[ZnodeChange]:
        """The changes, in order."""
        return self.of(ZnodeChange)

    @property
    def snapshots(self) -> list[ZnodeSnapshot]:
        """The chunks of snapshots, in order."""
        return self.of(ZnodeSnapshot)

    @property
    def dead_letters(self) -> list[DeadLetter]:
        """The dead letters, in order."""
        return self.of(DeadLetter)

    def read(self, path: str, kind: type[C]) -> C:
        """The content of a znode, which is of a class."""
        content = self.znodes[path].content
        assert isinstance(content, kind)
        return content

    def levels(self) -> dict[FeatureName, FeatureLevel]:
        """The finalized levels of ``/feature``."""
        return dict(self.read("/feature", FeaturesZnode).levels)

    def versions(self) -> list[int]:
        """The version of the znode in each change, in order; no change is a deletion."""
        znodes = [change.znode for change in self.changes]
        assert None not in znodes
        return [znode.version for znode in znodes if znode is not None]


class Watched:
    """A running source and what it published."""

    def __init__(self, source: ZookeeperSource, sink: ZnodeSink) -> None:
        self.source = source
        self.sink = sink

    async def until(self, true: Callable[[], Any], timeout_s: float = 30) -> None:
        """Waits until something is so."""
        deadline = time.monotonic() + timeout_s
        while not true():
            if time.monotonic() > deadline:
                report = self.source.report()
                raise AssertionError(f"it is not so after {timeout_s} s; {report}")
            await asyncio.sleep(0.005)

    async def following(self) -> None:
        """Waits until the source follows."""
        await self.until(lambda: self.source.report().state is SourceState.FOLLOWING)

    async def stalled(self, *words: str) -> str:
        """Waits until the source is stalled with these words; gives the line."""
        await self.until(
            lambda: (
                self.source.report().state is SourceState.STALLED
                and all(word in self.source.report().detail for word in words)
            )
        )
        return self.source.report().detail

    @property
    def client(self) -> KazooClient:
        """The source's own client of its present session."""
        session = self.source._session
        assert session is not None
        return session._client

    async def holds(self, zk: KazooClient, root: str, *paths: str) -> None:
        """Waits until the source knows the newest version of each path, or that it is deleted."""

        def versions() -> dict[str, Any]:
            znodes = (self.sink.znodes.get(path) for path in paths)
            return {z.path: (z.czxid, z.version) for z in znodes if z is not None}

        stats = {path: await asyncio.to_thread(retrying, zk.exists, root + path) for path in paths}
        expected = {path: (s.czxid, s.version) for path, s in stats.items() if s is not None}
        await self.until(lambda: versions() == expected)


@contextlib.asynccontextmanager
async def watching(hosts: str, **settings: Any) -> AsyncIterator[Watched]:
    """A source that runs."""
    sink = ZnodeSink()
    source = ZookeeperSource(ZookeeperSettings(hosts, **settings), sink)
    async with running(source):
        yield Watched(source, sink)


@contextlib.contextmanager
def writer(hosts: str, **options: Any):
    """A client that writes."""
    client = KazooClient(hosts, timeout=30, **options)
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def retrying(call: Callable[..., Any], *arguments: Any) -> Any:
    """Calls again while the servers come and go."""
    deadline = time.monotonic() + 90
    while True:
        try:
            return call(*arguments)
        except KazooException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def register(zk: KazooClient, root: str, cluster: str = CLUSTER, brokers: int = 3) -> None:
    """Makes what a cluster has under its chroot: its id, features and some brokers."""
    zk.create(root + CLUSTER_ID, orjson.dumps({"version": "1", "id": cluster}), makepath=True)
    zk.ensure_path(f"{root}/brokers/ids")
    made = [zk.create_async(f"{root}/brokers/ids/{number}", broker(1)) for number in range(brokers)]
    for pending in made:
        pending.get()
    zk.create(f"{root}/feature", features(1))


def broker(highest: int) -> bytes:
    """A broker that supports one feature up to a level."""
    supported = {"group": {"min_version": 1, "max_version": highest}}
    content = {"version": 5, "endpoints": ["PLAINTEXT://a:1"], "timestamp": "1", "rack": None}
    return orjson.dumps(content | {"features": supported})


def features(level: int) -> bytes:
    """Finalized features, as released."""
    return orjson.dumps(
        {"version": 2, "status": 1, "features": {"group": {"max_version_level": level}}}
    )
