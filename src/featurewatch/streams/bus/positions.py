"""Where a source resumes: what it published last for a cluster, read back from the bus."""

import asyncio
import contextlib
from typing import Final

from featurewatch.streams.bus.partitions import partition_of
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import MalformedEventError, decode_log_event
from featurewatch.streams.events import (
    LogCommit,
    LogGap,
    SnapshotChunk,
    SourceResync,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import NO_OFFSET, ClusterId, LastRecord

_FIRST_WINDOW: Final = 64
_GROWTH: Final = 4
_SETTLE_S: Final = 5.0
"""How long a topic that was just created may be unknown to the broker that is asked."""


async def last_log_position(
    bus: BusSettings, cluster: ClusterId, timeout_s: float = 30
) -> LastRecord | None:
    """Returns what a source published last for a cluster on ``metadata-log``; None: nothing.

    A commit, a finished snapshot and the source's own status with an offset have a position; a
    reset, a resync or the source's retirement means that the log is read from its start. Messages
    without one are skipped: the chunks of a snapshot whose last chunk is missing, the worker's
    status of a silent source, unreadable bytes.

    Raises `BusUnavailableError` if the bus does not respond for ``timeout_s`` seconds,
    `BusError` if the topic is missing or may not be read.
    """
    return await asyncio.to_thread(_find_position, bus, cluster.encode(), timeout_s)


def position_in_message(value: bytes | None, key: bytes | None) -> LastRecord | None:
    """The position in one message; offset -1: the log starts again; None: it has none."""
    try:
        event = decode_log_event(value, key)
    except MalformedEventError:
        return None
    match event:
        case LogCommit():
            return LastRecord(event.last_offset, event.leader_epoch, event.checksum)
        case SnapshotChunk(last=True) if event.end_offset > 0:
            return LastRecord(event.end_offset - 1, event.leader_epoch)
        case LogGap(reset=True):
            return NO_OFFSET
        case SourceResync():
            return NO_OFFSET
        case SourceStatus(state=SourceState.RETIRED):
            return NO_OFFSET  # the worker may have forgotten the cluster
        case SourceStatus() if event.state is not SourceState.SILENT:
            if event.offset >= 0 and event.offset_epoch >= 0:
                return LastRecord(event.offset, event.offset_epoch, event.offset_checksum)
    return None


def _find_position(bus: BusSettings, key: bytes, timeout_s: float) -> LastRecord | None:
    """The last position on the partition of a key; None if it has no position, or after a reset."""
    name = bus.topic(METADATA_LOG)
    reader = TopicReader(
        bus,
        METADATA_LOG,
        partitions=(),
        answer_s=timeout_s,
        settle_s=_SETTLE_S,
        timeout_s=timeout_s,
        group="positions",
        log=None,
        queued_max_messages_kbytes=16 * 1024,
        # The defaults wait at the end of the log and a whole second after each full queue, which is
        # most of what a long scan would take.
        fetch_wait_max_ms=10,
        fetch_queue_backoff_ms=10,
    )
    with contextlib.closing(reader):
        partition = partition_of(key, reader.partition_counts[name])
        low, end = reader.offsets(name, partition)
        window = _FIRST_WINDOW
        last: LastRecord | None = None
        # Backwards in growing windows: an active cluster is found in the first one, and a cluster
        # without recent messages costs one pass over the partition.
        while last is None and end > low:
            start = max(low, end - window)
            for message in reader.read_between(name, partition, start, end):
                if message.key() == key:
                    last = position_in_message(message.value(), key) or last
            end, window = start, window * _GROWTH
        return None if last == NO_OFFSET else last
