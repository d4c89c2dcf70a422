"""The source of ``zookeeper``: what the observer says of a cluster's znodes goes to the bus.

ZooKeeper itself is the buffer, of states and not of changes: while the bus takes nothing, nothing
is read, and what changed more than once meanwhile is told as missed. Nothing is ever written.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from featurewatch.streams.bus import Publisher
from featurewatch.streams.events import DeadLetter, SourceState, SourceStatus
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.source import Sink, monotonic_ms, wall_clock_ms
from featurewatch.streams.source_status import StatusReporter
from featurewatch.streams.topics import DEAD_LETTERS, ZOOKEEPER
from featurewatch.streams.types import ClusterId
from featurewatch.streams.zookeeper.event_queue import (
    EventQueue,
    ReadCompleted,
    SessionConnected,
    SessionDisconnected,
    SessionEvent,
    WatchTriggered,
)
from featurewatch.streams.zookeeper.session import ZookeeperSession
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.watcher.changes import WatcherEvent
from featurewatch.streams.zookeeper.watcher.watcher import ZnodeWatcher

LOG: Final = logging.getLogger("featurewatch.zookeeper")

SOURCE: Final = "zookeeper"

_TICK_S: Final = 0.2
_GATHER_S: Final = 0.005
_REFILL: Final = 32
"""Answers are taken so many at a time before more reads are sent."""

_REOPEN_MS: Final = 2_000
"""Before a client that gave up (its login was refused) is replaced."""

_CLOSE_S: Final = 3.0


class ZookeeperSource:
    """Follows one cluster's znodes for as long as `run` runs.

    It begins with a snapshot of everything each time: ZooKeeper keeps no changes to resume from.
    ``seen_ms`` of events comes from ``clock_ms``.
    """

    def __init__(
        self,
        settings: ZookeeperSettings,
        sink: Sink,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._settings = settings
        self._sink = sink
        self._clock_ms = clock_ms
        self._observer = ZnodeWatcher(
            settings.connect_string, settings.cluster, settings.wanted, settings.timing
        )
        self._link: ZookeeperSession | None = None
        self._down_since_ms: int | None = monotonic_ms()
        self._reopen_ms: int | None = None
        self._saying = StatusReporter(settings.grace, settings.heartbeat_ms, monotonic_ms())
        self._published = self._dead_letters = 0

    @classmethod
    def on_bus(cls, settings: ZookeeperSettings, publisher: Publisher) -> "ZookeeperSource":
        """A source that publishes to ``publisher``'s bus."""
        return cls(settings, publisher)

    @property
    def cluster(self) -> ClusterId | None:
        """The cluster's id, once it is known."""
        return self._observer.cluster

    def report(self) -> SourceReport:
        """How it stands now, for metrics and health."""
        trouble = self._sink.error
        return SourceReport(
            cluster=self._observer.cluster or self._settings.connect_string,
            source=SOURCE,
            state=self._saying.state if trouble is None else SourceState.STALLED,
            offset=self._observer.zxid or -1,
            high_watermark=self._observer.zxid or -1,
            records_read=self._observer.znodes_read,
            published=self._published,
            dead_letters=self._dead_letters,
            last_error=self._saying.last_error,
            detail=trouble or self._saying.detail,
        )

    async def run(self) -> None:
        """Follow the znodes until cancelled; raises `streams.bus.PublishError`."""
        inbox = EventQueue()
        try:
            while True:
                self._keep_open(inbox)
                await inbox.wait(_TICK_S)
                if self._observer.under_way > self._settings.window // 2:
                    # A sweep: one turn for many answers spares both threads the waking.
                    await asyncio.sleep(_GATHER_S)
                for number, item in enumerate(inbox.take(), start=1):
                    await self._take(item)
                    if number % _REFILL == 0:
                        self._send()
                        # A sweep must leave the other tasks of the loop their turn.
                        await asyncio.sleep(0)
                self._observer.tick(monotonic_ms())
                self._send()
                await self._say()
        finally:
            await self._close()

    # -- the session -------------------------------------------------------------------------

    def _keep_open(self, inbox: EventQueue) -> None:
        """Opens a session where there is none, or none that could come back."""
        now_ms = monotonic_ms()
        if self._link is not None and self._down_since_ms is not None:
            self._observer.on_disconnected(self._link.reason, now_ms)
            # By then the session has expired. A server that was made anew refuses clients that
            # saw more than it knows, for ever: only a new one learns what there is.
            worn_out = now_ms - self._down_since_ms > 3 * self._settings.session_timeout_ms
            if worn_out or (self._reopen_ms is not None and now_ms >= self._reopen_ms):
                self._link.close()
                self._link = None
        if self._link is None:
            self._down_since_ms, self._reopen_ms = now_ms, None
            self._link = ZookeeperSession(self._settings, inbox)
            self._link.open()

    async def _close(self) -> None:
        link, self._link = self._link, None
        if link is None:
            return
        done = link.close()
        deadline = monotonic_ms() + _CLOSE_S * 1000
        while not done.is_set() and monotonic_ms() < deadline:
            await asyncio.sleep(0.02)

    async def _take(self, item: SessionEvent) -> None:
        now_ms = monotonic_ms()
        match item:
            case ReadCompleted(token, outcome, zxid):
                for said in self._observer.on_response(
                    token, outcome, zxid, now_ms, self._clock_ms()
                ):
                    await self._publish(said)
            case WatchTriggered(generation, target):
                self._observer.on_watch(generation, target)
            case SessionConnected(session):
                self._down_since_ms = self._reopen_ms = None
                self._observer.on_connected(session)
            case SessionDisconnected(dead):
                if self._down_since_ms is None:
                    self._down_since_ms = now_ms
                if dead:
                    self._reopen_ms = now_ms + _REOPEN_MS
                reason = self._link.reason if self._link is not None else ""
                self._observer.on_disconnected(reason, now_ms)

    def _send(self) -> None:
        link, observer = self._link, self._observer
        while link is not None and observer.under_way < self._settings.window:
            ask = observer.next_request()
            if ask is None:
                return
            link.send(ask)

    # -- the bus -----------------------------------------------------------------------------

    async def _publish(self, event: WatcherEvent | SourceStatus) -> None:
        if isinstance(event, DeadLetter):
            LOG.warning("%s: %s", event.cluster or self._settings.connect_string, event.reason)
            await self._sink.publish(DEAD_LETTERS, event)
            self._dead_letters += 1
        else:
            await self._sink.publish(ZOOKEEPER, event)
            self._published += 1

    async def _say(self) -> None:
        """Publish the state where it changed, and as a heartbeat."""
        now_ms, observer, trouble = monotonic_ms(), self._observer, self._observer.stall_reason
        if trouble is not None and trouble.message != self._saying.last_error:
            LOG.warning("%s", trouble.message)
        state = self._saying.due(observer.caught_up, trouble, now_ms)
        if state is None:
            return
        if state is SourceState.FOLLOWING and self._saying.state is not state:
            # It is said only when the bus has everything that came before.
            await self._sink.flush()
        if observer.cluster is None:
            self._saying.state = state  # nobody knows yet of whom it is to be said
            return
        self._saying.reported(state, now_ms)
        await self._publish(self._status(observer.cluster))

    def _status(self, cluster: ClusterId) -> SourceStatus:
        zxid = self._observer.zxid or -1
        return SourceStatus(
            cluster=cluster,
            source=SOURCE,
            state=self._saying.state,
            offset=zxid,
            offset_epoch=-1,
            high_watermark=zxid,
            leader_id=-1,
            leader_epoch=-1,
            detail=self._saying.detail,
            seen_ms=self._clock_ms(),
        )
