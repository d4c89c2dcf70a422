"""Publishes for one small cluster: as a source that answers requests, and as steady traffic."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Self

from featurewatch.cli.runtime.resync import follow_resync_requests
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.events import LogCommit, SourceResync
from featurewatch.streams.topics import METADATA_LOG
from tests.agents.events import CLUSTER, following, levels, registration

FEATURE = "metadata.version"


class PublishingSource:
    """Publishes changes of a level; ``log`` is the cluster's whole metadata log."""

    name = "kraft"

    def __init__(self, publisher: Publisher) -> None:
        self.log: list[LogCommit] = []
        self.resyncs: list[str] = []
        self.source = self
        self._publisher = publisher
        self._lock = asyncio.Lock()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def last_offset(self) -> int:
        """The last offset of the log."""
        return len(self.log)

    @property
    def level(self) -> int:
        """The finalized level."""
        return 10 + self.last_offset % 7

    def report(self) -> Any:
        """The part of a report that names the cluster."""
        return SimpleNamespace(cluster=CLUSTER)

    async def start(self) -> None:
        """Publishes a broker that supports too little, and a level."""
        await self._append(registration(1, 1, (1, 5)))
        await self.change()

    async def change(self) -> None:
        """Another level, which every change differs in."""
        offset = self.last_offset + 1
        await self._append(levels(offset, {FEATURE: 10 + offset % 7}))

    async def _append(self, commit: LogCommit) -> None:
        async with self._lock:
            self.log.append(commit)
            await self._publisher.publish(METADATA_LOG, commit)
            await self._publisher.publish(METADATA_LOG, following(self.last_offset))

    async def heartbeat(self) -> None:
        """Publishes the status."""
        async with self._lock:
            await self._publisher.publish(METADATA_LOG, following(self.last_offset))

    async def delivered(self) -> None:
        """Waits until the bus has all that was published so far."""
        await self._publisher.flush()

    def request_resync(self, reason: str) -> None:
        """Publishes the whole log again."""
        self.resyncs.append(reason)
        self._tasks.append(asyncio.ensure_future(self._resync(reason)))

    async def _resync(self, reason: str) -> None:
        async with self._lock:
            now_ms = int(time.time() * 1000)
            begin = SourceResync(CLUSTER, self.name, False, reason, now_ms)
            await self._publisher.publish(METADATA_LOG, begin)
            for commit in self.log:
                await self._publisher.publish(METADATA_LOG, commit)
            await self._publisher.publish(METADATA_LOG, following(self.last_offset))


@asynccontextmanager
async def publishing(bus: BusSettings) -> AsyncIterator[PublishingSource]:
    """A source on a bus that follows the requests of workers, as `featurewatch watch` does."""
    async with Publisher(bus, max_in_flight=100_000) as publisher:
        source: Any = PublishingSource(publisher)
        requests = asyncio.ensure_future(follow_resync_requests(bus, lambda: [source]))
        try:
            yield source
        finally:
            requests.cancel()
            await asyncio.gather(requests, return_exceptions=True)


class LevelTraffic:
    """Publishes changes of a level, one after another, in a thread; ``sent`` is the last offset.

    ``interval_s`` is the time between two changes. With ``acknowledged`` each waits for the one
    before.
    """

    def __init__(
        self, bus: BusSettings, interval_s: float = 0.05, *, acknowledged: bool = False
    ) -> None:
        self.sent = 0
        self._bus = bus
        self._interval_s = interval_s
        self._acknowledged = acknowledged
        self._done = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._publish()))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    async def _publish(self) -> None:
        async with Publisher(self._bus) as publisher:
            while not self._done.is_set():
                offset = self.sent + 1
                event = levels(offset, {FEATURE: 10 + offset % 2})
                delivery = await publisher.publish(METADATA_LOG, event)
                if self._acknowledged:
                    await delivery
                self.sent = offset
                if offset == 1:
                    await publisher.publish(METADATA_LOG, following(1))
                await asyncio.sleep(self._interval_s)
