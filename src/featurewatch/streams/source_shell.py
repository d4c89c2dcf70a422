"""The part of every source beside its protocol: run in rounds, publish, and report its state.

A source follows one cluster in one way. A subclass of `SourceShell` drives one protocol: it does a
round's input and output, publishes the events, and describes its progress. Everything that does not
depend on the protocol is here.
"""

import asyncio
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from featurewatch.common.service_state import STATE, Loop
from featurewatch.common.text import shortened
from featurewatch.streams.events import (
    DeadLetter,
    Event,
    SourceResync,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.source import Sink
from featurewatch.streams.source_status import GracePeriods, StallReason, StatusReporter
from featurewatch.streams.topics import DEAD_LETTERS, Topic
from featurewatch.streams.types import (
    NO_LEADER,
    NO_OFFSET,
    ClusterId,
    LastRecord,
    LeaderAndEpoch,
)

RESYNC_INTERVAL_MS: Final = 24 * 3600 * 1000
"""Between two publications of a source's whole state. It is much shorter than the retention of the
input topics, so a reader that begins anywhere has the whole state within a day."""


_ROUND_S: Final = 300.0
"""A round that takes longer is stuck if it publishes nothing meanwhile and the bus answers."""


@dataclass(frozen=True, slots=True)
class ProtocolState:
    """The state of a source's protocol after a round.

    ``cluster`` is None until it is known, ``last`` is the last offset that was processed.
    ``detail`` describes the progress of a source that is not stalled.
    """

    cluster: ClusterId | None
    caught_up: bool
    stall_reason: StallReason | None
    last: LastRecord = NO_OFFSET
    high_watermark: int = -1
    leader: LeaderAndEpoch = NO_LEADER
    detail: str = ""


class SourceShell(ABC):
    """Follows one cluster for as long as `run` runs.

    A round begins at least ``interval_s`` seconds after the one before it. ``clock_ms`` gives
    milliseconds since the Unix epoch, for ``seen_ms`` of events; ``monotonic_ms`` milliseconds of a
    clock that does not go back.
    """

    name: ClassVar[str]
    """The source's name in events and metrics."""

    topic: ClassVar[Topic]
    """Where its events go; dead letters go to `DEAD_LETTERS`."""

    def __init__(
        self,
        sink: Sink,
        grace: GracePeriods,
        heartbeat_ms: int,
        clock_ms: Callable[[], int],
        monotonic_ms: Callable[[], int],
        interval_s: float = 0,
    ) -> None:
        self.cluster_name = ""
        """The configured name of the cluster; empty: none is configured."""
        self.addresses = ""
        """The cluster's addresses in the configuration, for statuses."""
        self._sink = sink
        self._clock_ms = clock_ms
        self._monotonic_ms = monotonic_ms
        self._interval_s = interval_s
        self._status = StatusReporter(grace, heartbeat_ms, monotonic_ms())
        self._status_lock = asyncio.Lock()
        self._loop: Loop | None = None
        self._progress: ProtocolState | None = None
        self._published = self._dead_letters = 0
        self._resync_reason = ""
        self._resync_period = -1

    @abstractmethod
    def report(self) -> SourceReport:
        """The source's state, for metrics and health; cheap, never waits."""

    @abstractmethod
    async def _step(self) -> None:
        """One round of the protocol: its input and output, and `_publish` of its events."""

    @abstractmethod
    def _state(self) -> ProtocolState | None:
        """The state of the protocol after a round; None: nothing to report yet."""

    @abstractmethod
    async def _close(self) -> None:
        """Close connections and files."""

    @abstractmethod
    async def _resync(self, reason: str) -> None:
        """Begin to publish the whole state again."""

    async def _start(self) -> None:  # noqa: B027  # only a source that resumes needs it
        """Runs once, before the first round."""

    async def run(self) -> None:
        """Follow the cluster until cancelled.

        Raises what the bus cannot recover from: `streams.bus.BusError`, `streams.bus.PublishError`.
        """
        name = f"the source {self.name} of {self.cluster_name or self.addresses or 'a cluster'}"
        try:
            with STATE.loop(name, _ROUND_S, lambda: self._sink.error is not None) as self._loop:
                await self._start()
                while True:
                    due_ms = self._monotonic_ms() + self._interval_s * 1000
                    await self.round()
                    if (wait_ms := due_ms - self._monotonic_ms()) > 0:
                        await asyncio.sleep(wait_ms / 1000)
        finally:
            await self._close()

    async def round(self) -> None:
        """One round: do what is due, then publish the status if it changed or is due."""
        self._schedule_resync()
        if self._resync_reason and self._can_resync():
            reason, self._resync_reason = self._resync_reason, ""
            await self._resync(reason)
        await self._step()
        await self._publish_status()

    def request_resync(self, reason: str) -> None:
        """The source publishes its whole state again, beginning with its next round."""
        self._resync_reason = reason

    def _can_resync(self) -> bool:
        """Whether the source is following: one that still reads everything has not finished yet."""
        return self._status.state is SourceState.FOLLOWING

    def _schedule_resync(self) -> None:
        """Once a day, at a time of day that follows from the cluster's id.

        The time is the same after a restart, so that frequent restarts do not prevent it.
        """
        progress = self._progress
        if progress is None or progress.cluster is None:
            return
        phase_ms = zlib.crc32(progress.cluster.encode()) % RESYNC_INTERVAL_MS
        period = (self._clock_ms() - phase_ms) // RESYNC_INTERVAL_MS
        if period > self._resync_period >= 0:
            self.request_resync("once a day, the whole state")
        self._resync_period = period

    async def publish_stall(self, reason: str) -> None:
        """Publish that the source is stalled, with the progress of its last whole round."""
        self._status.state = SourceState.STALLED
        self._status.detail = self._status.last_error = reason
        if self._progress is not None and self._progress.cluster is not None:
            await self._publish_state(self._progress, self._progress.cluster)

    async def withdraw(self, reason: str) -> None:  # noqa: B027  # records of a log stay true
        """Takes back what it published, as its nodes are not this cluster's, or may not be.

        Called after `run` has ended.
        """

    def _note_progress(self) -> None:
        """Notes that the source is not stuck: something was published, or is waited for."""
        if self._loop is not None:
            self._loop.turn()

    async def _publish(self, event: Event | DeadLetter) -> None:
        self._note_progress()
        if isinstance(event, DeadLetter):
            await self._sink.publish(DEAD_LETTERS, event)
            self._dead_letters += 1
        else:
            await self._sink.publish(self.topic, event)
            self._published += 1

    async def _publish_resync(self, cluster: ClusterId, reason: str, *, finished: bool) -> None:
        now_ms = self._clock_ms()
        resync = SourceResync(cluster, self.name, finished, shortened(reason), now_ms)
        await self._sink.publish(self.topic, resync)

    async def _publish_status(self) -> None:
        """Publish the state if it is new, or as a heartbeat if one is due.

        A source whose rounds are long calls it during a round too.
        """
        self._note_progress()
        async with self._status_lock:
            progress = self._progress = self._state()
            if progress is None:
                return
            status, now_ms = self._status, self._monotonic_ms()
            state = status.due(progress.caught_up, progress.stall_reason, now_ms, progress.detail)
            if state is None:
                return
            if state is SourceState.FOLLOWING and status.state is not state:
                # `following` means that the bus has everything that came before it.
                await self._sink.flush()
            if progress.cluster is None:
                status.state = state
                return
            status.reported(state, now_ms)
            await self._publish_state(progress, progress.cluster)

    async def _publish_state(self, progress: ProtocolState, cluster: ClusterId) -> None:
        await self._sink.publish(
            self.topic,
            SourceStatus(
                cluster=cluster,
                source=self.name,
                state=self._status.state,
                offset=progress.last.offset,
                offset_epoch=progress.last.epoch,
                high_watermark=progress.high_watermark,
                leader_id=progress.leader.id,
                leader_epoch=progress.leader.epoch,
                detail=shortened(self._status.detail),
                seen_ms=self._clock_ms(),
                offset_checksum=progress.last.checksum,
                name=self.cluster_name,
                addresses=shortened(self.addresses),
            ),
        )

    def _report(
        self,
        cluster: str,
        *,
        offset: int = -1,
        high_watermark: int = -1,
        lag: int = -1,
        records_read: int = 0,
        records_skipped: int = 0,
    ) -> SourceReport:
        """A report with the counts given; while the bus accepts nothing, a source is stalled."""
        bus_error = self._sink.error
        return SourceReport(
            cluster=cluster,
            source=self.name,
            state=self._status.state if bus_error is None else SourceState.STALLED,
            offset=offset,
            high_watermark=high_watermark,
            lag=lag,
            records_read=records_read,
            records_skipped=records_skipped,
            published=self._published,
            dead_letters=self._dead_letters,
            last_error=self._status.last_error,
            detail=bus_error or self._status.detail,
        )
