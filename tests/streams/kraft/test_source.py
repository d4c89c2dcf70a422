"""The source between a scripted reader and a sink: order, dead letters, a bus that waits."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from featurewatch.streams.events import (
    DeadLetter,
    LogCommit,
    LogGap,
    SourceResync,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.kraft.observer.states import (
    CommittedBatches,
    LogProgress,
    MissingOffsets,
    ObserverOutput,
    SnapshotBytes,
)
from featurewatch.streams.kraft.reader import LogReader
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.source import KraftSettings, KraftSource
from featurewatch.streams.source_shell import RESYNC_INTERVAL_MS
from featurewatch.streams.types import (
    LOG_START,
    ClusterId,
    LastRecord,
    LeaderAndEpoch,
    OffsetAndEpoch,
)
from tests.streams.kraft.log_bytes import NOOP, batch
from tests.streams.recording_sink import RecordingSink

LEVEL = bytes([1, 12, 0]) + b"\x11metadata.version" + b"\x00\x15" + b"\0"
"""Frame version 1, FeatureLevelRecord version 0: metadata.version 21."""


class Reader:
    """Gives what a test has prepared, then nothing."""

    def __init__(self, outputs: Sequence[ObserverOutput]) -> None:
        self.left = list(outputs)
        self.reads = 0

    @property
    def progress(self) -> LogProgress:
        """It has caught up when nothing is left."""
        return LogProgress(LOG_START, LOG_START, 3, LeaderAndEpoch(1, 1), not self.left, None)

    async def read(self) -> Sequence[ObserverOutput]:
        """The next output."""
        self.reads += 1
        await asyncio.sleep(0)
        return [self.left.pop(0)] if self.left else []

    async def close(self) -> None:
        """Nothing to close."""


class Settings(KraftSettings):
    """Settings that open prepared readers."""

    def open(self, place: LastRecord, monotonic_ms: Callable[[], int]) -> LogReader:
        """The next reader; the place it was asked for is noted."""
        OPENED.append(place)
        return READERS[min(len(OPENED), len(READERS)) - 1]


OPENED: list[LastRecord] = []
READERS: list[Reader] = []


def commits(first: int, *values: bytes, damaged: bool = False) -> CommittedBatches:
    """A batch below the watermark."""
    data = bytearray(batch(first, list(values), 1))
    data[-1] ^= 0xFF if damaged else 0
    return CommittedBatches(tuple(scan_batches(bytes(data)).batches))


async def play(
    outputs: Sequence[ObserverOutput], sink: RecordingSink, turns: int = 60
) -> KraftSource:
    """Run a source over prepared outputs for some turns of the loop."""
    OPENED.clear()
    READERS[:] = [Reader(outputs)]

    async def nothing() -> None:
        return None

    source = KraftSource(Settings(ClusterId("c")), sink, nothing, lambda: 99)
    task = asyncio.create_task(source.run())
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return source


async def test_following_is_published_after_all_commits() -> None:
    """Commits come in order, NoOps make none, and `following` comes last with their offset."""
    sink = RecordingSink()
    outputs = [commits(0, LEVEL), commits(1, NOOP), commits(2, LEVEL), commits(3, NOOP)]
    await play(outputs, sink)
    spans = [(e.first_offset, e.last_offset) for e in sink.of(LogCommit)]
    assert spans == [(0, 0), (2, 2)]
    statuses = sink.of(SourceStatus)
    assert statuses[-1] is sink.events[-1]
    assert (statuses[-1].state, statuses[-1].offset, statuses[-1].seen_ms) == (
        SourceState.FOLLOWING,
        3,
        99,
    )


async def test_a_bus_that_takes_nothing_stops_the_reading() -> None:
    """While the bus is full nothing more is read, and afterwards nothing is missing."""
    sink = RecordingSink(room=2)
    outputs = [commits(offset, LEVEL) for offset in range(20)]
    await play(outputs, sink)
    assert len(sink.events) == 2
    assert READERS[0].reads <= 3


async def test_a_bad_checksum_is_a_dead_letter() -> None:
    """A damaged batch: its bytes and the reason to the dead letters, the next batch as ever."""
    sink = RecordingSink()
    source = await play([commits(0, LEVEL, damaged=True), commits(1, LEVEL)], sink)
    dead_letters = sink.of(DeadLetter)
    assert "checksum" in dead_letters[0].reason
    assert [e.first_offset for e in sink.of(LogCommit)] == [0, 1]
    assert source.report().dead_letters == 1


async def test_a_log_that_goes_backwards_is_published_again() -> None:
    """After a reset the same offsets are published once more."""
    sink = RecordingSink()
    reset = MissingOffsets(0, 1, "the log went backwards", True)
    await play([commits(0, LEVEL), commits(1, LEVEL), reset, commits(0, LEVEL)], sink)
    events = [e for e in sink.events if isinstance(e, LogCommit | LogGap)]
    assert [type(e) for e in events] == [LogCommit, LogCommit, LogGap, LogCommit]
    assert isinstance(events[-1], LogCommit)
    assert events[-1].first_offset == 0


async def test_a_damaged_snapshot_is_fetched_again_from_the_old_position() -> None:
    """Bytes that are no snapshot: a dead letter, and a new reader where we were."""
    sink = RecordingSink()
    source = await play(
        [commits(0, LEVEL), SnapshotBytes(OffsetAndEpoch(9, 1), 0, b"no snapshot" * 9, True, 99)],
        sink,
    )
    assert [type(e) for e in sink.events if not isinstance(e, SourceStatus)] == [
        LogCommit,
        DeadLetter,
    ]
    assert source.report().offset == 0
    assert source.report().last_error


async def test_a_bus_that_takes_nothing_is_not_following() -> None:
    """While the bus is down the report says stalled and why, whatever the log says."""
    sink = RecordingSink()
    source = await play([commits(0, LEVEL)], sink)
    assert source.report().state is SourceState.FOLLOWING
    sink.error = "the bus does not answer"
    report = source.report()
    assert (report.state, report.detail) == (SourceState.STALLED, "the bus does not answer")


async def test_a_requested_resync_reads_the_log_from_its_start():
    """It waits until the source follows; the same commits come again, and then `following`."""
    sink, position = RecordingSink(), LastRecord(0, 1)

    async def resume() -> LastRecord:
        return position

    OPENED.clear()
    READERS[:] = [Reader([commits(1, LEVEL)]), Reader([commits(0, LEVEL), commits(1, LEVEL)])]
    source = KraftSource(Settings(ClusterId("c")), sink, resume, lambda: 99)
    source.request_resync("messages were lost")
    task = asyncio.create_task(source.run())
    for _ in range(60):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert [place.next_position for place in OPENED] == [OffsetAndEpoch(1, 1), LOG_START]
    kinds = [
        (type(e), e.first_offset if isinstance(e, LogCommit) else None)
        for e in sink.events
        if isinstance(e, LogCommit | SourceResync)
    ]
    assert kinds == [(LogCommit, 1), (SourceResync, None), (LogCommit, 0), (LogCommit, 1)]
    assert sink.of(SourceResync)[0].reason == "messages were lost"
    assert isinstance(sink.events[-1], SourceStatus)
    assert sink.events[-1].state is SourceState.FOLLOWING


async def test_the_whole_state_is_published_once_a_day():
    """At a time of day that the cluster's id determines, so that restarts do not defer it."""
    now_ms = [0]

    async def nothing() -> None:
        return None

    async def instants(start_ms: int) -> list[int]:
        """The hours at which a source that starts then begins a resync, up to the third day."""
        sink, found = RecordingSink(), []
        OPENED.clear()
        READERS[:] = [Reader([commits(0, LEVEL)])]
        source = KraftSource(Settings(ClusterId("c")), sink, nothing, lambda: now_ms[0])
        for now_ms[0] in range(start_ms, 72 * 3_600_000, 3_600_000):
            before = len(sink.of(SourceResync))
            for _ in range(3):
                await source.round()
            if len(sink.of(SourceResync)) > before:
                found.append(now_ms[0] // 3_600_000)
        return found

    found = await instants(24 * 3_600_000)
    assert len(found) == 2
    assert found[1] - found[0] == 24
    assert await instants((found[0] + 2) * 3_600_000) == found[1:]
    assert RESYNC_INTERVAL_MS == 24 * 3_600_000
