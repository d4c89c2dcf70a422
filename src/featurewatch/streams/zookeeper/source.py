"""The source of ``zookeeper``: publishes what the watcher reads of a cluster's znodes.

ZooKeeper itself is the buffer, of states and not of changes: while the bus accepts nothing, nothing
is read, and versions that were overwritten meanwhile are published as missed. Nothing is ever
written.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from featurewatch.streams.events import DeadLetter, Event
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.source import Sink, monotonic_ms, wall_clock_ms
from featurewatch.streams.source_shell import ProtocolState, SourceShell
from featurewatch.streams.source_status import RecentTexts
from featurewatch.streams.topics import ZOOKEEPER
from featurewatch.streams.types import ClusterId, LastRecord
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
from featurewatch.streams.zookeeper.watcher.watcher import ZnodeWatcher

LOG: Final = logging.getLogger("featurewatch.zookeeper")

_TICK_S: Final = 0.2
_SWEEP_PAUSE_S: Final = 0.005
_REFILL: Final = 32
"""Maximum number of responses that are processed before more reads are sent."""

_REOPEN_MS: Final = 2_000
"""Before a client that stopped trying (its login was rejected) is replaced."""

_CLOSE_S: Final = 3.0


class ZookeeperSource(SourceShell):
    """Follows one cluster's znodes for as long as `run` runs.

    Each run begins with a snapshot of everything: ZooKeeper keeps no changes to resume from.
    """

    name = ZOOKEEPER.source
    topic = ZOOKEEPER

    def __init__(
        self,
        settings: ZookeeperSettings,
        sink: Sink,
        clock_ms: Callable[[], int] = wall_clock_ms,
        monotonic_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        super().__init__(sink, settings.grace, settings.heartbeat_ms, clock_ms, monotonic_ms)
        self._settings = settings
        self._watcher = ZnodeWatcher(
            settings.connect_string, settings.cluster, settings.wanted, settings.timing
        )
        self._queue: EventQueue | None = None
        self._session: ZookeeperSession | None = None
        self._down_since_ms: int | None = monotonic_ms()
        self._reopen_ms: int | None = None
        self._answered_ms = monotonic_ms()
        self._warned = RecentTexts()

    @property
    def cluster(self) -> ClusterId | None:
        """The cluster's id, once it is known."""
        return self._watcher.cluster

    def report(self) -> SourceReport:
        """The source's state now, for metrics and health."""
        zxid = self._watcher.zxid or -1
        return self._report(
            self._watcher.cluster or self._settings.connect_string,
            offset=zxid,
            high_watermark=zxid,
            records_read=self._watcher.znodes_read,
        )

    def _state(self) -> ProtocolState:
        watcher, zxid = self._watcher, self._watcher.zxid or -1
        return ProtocolState(
            watcher.cluster,
            watcher.caught_up,
            watcher.stall_reason,
            LastRecord(zxid, -1),
            high_watermark=zxid,
        )

    async def _resync(self, reason: str) -> None:
        self._watcher.resync(reason)

    async def _step(self) -> None:
        queue = self._queue = self._queue or EventQueue()
        self._keep_open(queue)
        await queue.wait(_TICK_S)
        if self._watcher.under_way > self._settings.window // 2:
            # During a sweep: one turn for many responses wakes both threads less often.
            await asyncio.sleep(_SWEEP_PAUSE_S)
        for count, event in enumerate(queue.take(), start=1):
            await self._on_event(event)
            if count % _REFILL == 0:
                self._send()
                # During a sweep the other tasks of the loop must run too.
                await asyncio.sleep(0)
        self._check_answers()
        self._watcher.tick(self._monotonic_ms())
        self._send()
        reason = self._watcher.stall_reason
        if reason is not None and self._warned.is_new(reason.message, self._monotonic_ms()):
            LOG.warning("%s", reason.message)

    def _keep_open(self, queue: EventQueue) -> None:
        """Opens a session if none is open, or if it cannot recover."""
        now_ms = self._monotonic_ms()
        if self._session is not None and self._down_since_ms is not None:
            self._watcher.on_disconnected(self._session.reason, now_ms)
            # By then the session has expired. A server that was recreated rejects for ever a client
            # that saw newer transactions than it has: only a new client can connect.
            has_expired = now_ms - self._down_since_ms > 3 * self._settings.session_timeout_ms
            if has_expired or (self._reopen_ms is not None and now_ms >= self._reopen_ms):
                self._session.close()
                self._session = None
        if self._session is None:
            self._down_since_ms, self._reopen_ms = now_ms, None
            self._session = ZookeeperSession(self._settings, queue)
            self._session.open()

    def _check_answers(self) -> None:
        """Leave a server that keeps the session alive and does not answer reads."""
        session, now_ms = self._session, self._monotonic_ms()
        if not self._watcher.under_way:
            self._answered_ms = now_ms
        if session is None or now_ms - self._answered_ms <= self._settings.answer_timeout_ms:
            return
        session.close()
        self._session = None
        self._down_since_ms = self._answered_ms = now_ms
        seconds = self._settings.answer_timeout_ms / 1000
        where = self._settings.connect_string
        reason = f"ZooKeeper at {where} answered no read for {seconds:g} s: is it overloaded?"
        self._watcher.on_disconnected(reason, now_ms)

    async def _close(self) -> None:
        session, self._session, self._queue = self._session, None, None
        if session is None:
            return
        done = session.close()
        deadline_ms = self._monotonic_ms() + _CLOSE_S * 1000
        while not done.is_set() and self._monotonic_ms() < deadline_ms:
            await asyncio.sleep(0.02)

    async def _on_event(self, event: SessionEvent) -> None:
        now_ms = self._monotonic_ms()
        match event:
            case ReadCompleted(token, outcome, zxid):
                self._answered_ms = now_ms
                events = self._watcher.on_response(token, outcome, zxid, now_ms, self._clock_ms())
                for published in events:
                    await self._publish(published)
            case WatchTriggered(generation, target):
                self._watcher.on_watch(generation, target)
            case SessionConnected(session):
                self._down_since_ms = self._reopen_ms = None
                self._watcher.on_connected(session)
            case SessionDisconnected(is_permanent):
                if self._down_since_ms is None:
                    self._down_since_ms = now_ms
                if is_permanent:
                    self._reopen_ms = now_ms + _REOPEN_MS
                reason = self._session.reason if self._session is not None else ""
                self._watcher.on_disconnected(reason, now_ms)

    def _send(self) -> None:
        session, watcher = self._session, self._watcher
        while session is not None and watcher.under_way < self._settings.window:
            request = watcher.next_request()
            if request is None:
                return
            session.send(request)

    async def _publish(self, event: Event | DeadLetter) -> None:
        if isinstance(event, DeadLetter):
            LOG.warning("%s: %s", event.cluster or self._settings.connect_string, event.reason)
        await super()._publish(event)
