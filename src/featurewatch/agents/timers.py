"""The worker's periodic work: publishing states, detecting silent sources, the watchdog.

Clock readings are arguments: ``now_ms`` is milliseconds since the Unix epoch, ``now_s``
seconds on the monotonic clock.
"""

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from featurewatch.agents.processor import EventProcessor
from featurewatch.common.limited_log import LimitedLog
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.monitor.rules.sources import is_critical
from featurewatch.monitor.snapshot import snapshot
from featurewatch.monitor.step import MonitorState
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import MAX_EVENT_BYTES, BusSettings
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import encode_state
from featurewatch.streams.events import SourceState, SourceStatus
from featurewatch.streams.topics import (
    INPUT_OF_SOURCE,
    INPUTS,
    STATE,
)
from featurewatch.streams.types import ClusterId
from featurewatch.tables.image.cluster import ClusterImage

LOG: Final = logging.getLogger("featurewatch.worker")
_TOO_LARGE_LOG: Final = LimitedLog(LOG)


async def publish_states(
    processor: EventProcessor, bus: BusSettings, publisher: Publisher, now_ms: int
) -> None:
    """Publishes the newest state of each cluster that changed since the last call, and a message
    without a value for one that is forgotten.

    Not after each event: the cost of a snapshot follows the size of the cluster.
    """
    clusters, processor.dirty = processor.dirty, set()
    for cluster in clusters:
        state = processor.states.get(cluster)
        if state is None:
            continue
        if state.image.forgotten:
            await publisher.send(bus.topic(STATE), Message(cluster.encode(), None, []))
            continue
        message = encode_state(snapshot(state.image, now_ms))
        if message.size > MAX_EVENT_BYTES:
            text = "the state of %s is not published: it is too large for the bus"
            _TOO_LARGE_LOG.note(cluster, text, cluster)
        else:
            await publisher.send(bus.topic(STATE), message)


class SilenceDetector:
    """Publishes a SILENT status of each silent source, as an event on the source's topic.

    It is an event and not an alert, so that replaying the topic leads to the same alerts.
    ``unread`` gives the partitions, by full topic name and number, that the worker could not read
    just now: what a source published there is not known, so it does not count as silent.
    """

    def __init__(
        self,
        processor: EventProcessor,
        publisher: Publisher,
        silent_after_s: float,
        unread: Callable[[], Collection[tuple[str, int]]],
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._processor = processor
        self._publisher = publisher
        self._silent_after_s = silent_after_s
        self._limits = limits
        self._unread = unread
        self._pending: dict[tuple[ClusterId, str], float] = {}

    async def check(self, now_s: float, now_ms: int) -> None:
        """Checks each source of each cluster once: monotonic seconds, and epoch milliseconds."""
        self._restart_unread(now_s)
        states = self._processor.states
        self._pending = {key: it for key, it in self._pending.items() if key[0] in states}
        for state in list(self._processor.states.values()):
            silent_s = self._silent_s(state.image, now_s)
            for status in silent_statuses(state, silent_s, now_ms, self._limits):
                source = status.cluster, status.source
                last_seen_s = self._last_seen_s(*source, now_s)
                # Once for each silence, however long the bus takes to bring the status back.
                if self._pending.get(source) != last_seen_s:
                    self._pending[source] = last_seen_s
                    await self._publisher.publish(INPUT_OF_SOURCE[status.source], status)

    def _restart_unread(self, now_s: float) -> None:
        """Restarts the silence of sources whose topic cannot be read."""
        unread = self._unread()
        for cluster in self._processor.states if unread else ():
            for topic in INPUTS:
                if self._processor.partition(topic, cluster) in unread:
                    self._processor.last_seen[cluster, topic.short_name] = now_s

    def _last_seen_s(self, cluster: ClusterId, source: str, now_s: float) -> float:
        topic = INPUT_OF_SOURCE[source].short_name
        return self._processor.last_seen.get((cluster, topic), now_s)

    def _silent_s(self, image: ClusterImage, now_s: float) -> dict[str, float]:
        """The seconds of silence of each source that was silent for too long, by source."""
        silent = {}
        for name in INPUT_OF_SOURCE.keys() & image.sources.statuses.keys():
            seconds = now_s - self._last_seen_s(image.cluster, name, now_s)
            if seconds >= self._silent_after_s:
                silent[name] = seconds
        return silent


def source_status(
    cluster: ClusterId, source: str, state: SourceState, detail: str, now_ms: int
) -> SourceStatus:
    """The status of a source that does not report it itself: no position and no leader."""
    return SourceStatus(
        cluster=cluster,
        source=source,
        state=state,
        offset=-1,
        offset_epoch=-1,
        high_watermark=-1,
        leader_id=-1,
        leader_epoch=-1,
        detail=detail,
        seen_ms=now_ms,
    )


def silent_statuses(
    state: MonitorState,
    silent_s: Mapping[str, float],
    now_ms: int,
    limits: Limits = DEFAULT_LIMITS,
) -> list[SourceStatus]:
    """The SILENT statuses of a cluster's sources.

    ``silent_s`` holds the seconds of silence by source. A source whose status is SILENT gets
    another one only when its alert is to become critical: nothing else of it would come.
    """
    return [
        source_status(
            state.image.cluster,
            name,
            SourceState.SILENT,
            f"it has not reported for {silent_s[name]:.0f} s; is its process running?",
            now_ms,
        )
        for name, status in state.image.sources.statuses.items()
        if name in silent_s
        and (
            status.state is not SourceState.SILENT
            or (now_ms - status.seen_ms >= limits.source_ms and not is_critical(state.firing, name))
        )
    ]


class StuckCommitsError(RuntimeError):
    """Messages are read and their offsets are not committed, and the bus is not the reason."""


class Watchdog:
    """Finds that messages are read and their offsets are not committed.

    Faust can get into a state in which it never commits again; the run that replaces this one
    continues from the last commit. ``stuck_after_s`` is in seconds. While ``is_bus_away`` is true
    nobody can commit, and no time is counted.
    """

    def __init__(
        self,
        committed: Callable[[], Mapping[Any, int | None]],
        is_bus_away: Callable[[], bool],
        stuck_after_s: float,
    ) -> None:
        self._committed = committed
        self._is_bus_away = is_bus_away
        self._stuck_after_s = stuck_after_s
        self._last: dict[Any, tuple[int | None, float]] = {}

    def check(self, read: Mapping[Any, int | None], now_s: float) -> None:
        """Compares the last read offset of each partition with its committed offset.

        Raises:
            StuckCommitsError: A partition was read and not committed for too long.
        """
        committed = self._committed()
        is_bus_away = self._is_bus_away()
        for partition, offset in read.items():
            committed_offset = committed.get(partition)
            last_offset, since_s = self._last.get(partition, (None, now_s))
            is_behind = offset is not None and (
                committed_offset is None or committed_offset <= offset
            )
            if not is_behind or is_bus_away or committed_offset != last_offset:
                self._last[partition] = (committed_offset, now_s)
            elif now_s - since_s > self._stuck_after_s:
                raise StuckCommitsError(
                    f"{partition} was read to {offset} and is committed to {committed_offset} for "
                    f"{now_s - since_s:.0f} s"
                )
            else:
                self._last[partition] = (last_offset, since_s)
