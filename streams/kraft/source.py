"""The source of ``metadata-log``: what a reader gives becomes events on the bus, each once.

The metadata log itself is the buffer. Nothing is read while the bus takes nothing: `Sink.publish`
waits, and the source goes on where it was. After a restart it goes on after what was published
last.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final, cast

from featurewatch.streams.bus import BusUnavailableError, Publisher, last_log_position
from featurewatch.streams.events import DeadLetter, Event, LogGap, SourceState, SourceStatus
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.directory.commit_rule import SETTLE_MS
from featurewatch.streams.kraft.directory.reader import LogDirectoryReader
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.observer.quorum_reader import QuorumReader, QuorumSettings
from featurewatch.streams.kraft.observer.states import (
    CommittedBatches,
    MissingOffsets,
    ObserverOutput,
    SnapshotBytes,
)
from featurewatch.streams.kraft.reader import LogReader
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES
from featurewatch.streams.kraft.snapshot import read_snapshot
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.source import Sink, monotonic_ms, wall_clock_ms
from featurewatch.streams.source_status import GracePeriods, StatusReporter
from featurewatch.streams.topics import DEAD_LETTERS, METADATA_LOG
from featurewatch.streams.types import LOG_START, ClusterId, OffsetAndEpoch

SOURCE: Final = "kraft"
_SPOOL_BYTES: Final = 8 << 20
"""Snapshots up to this stay in memory while they arrive, larger ones go to a temporary file."""


@dataclass(frozen=True, slots=True)
class KraftSettings:
    """What to follow, and how to speak of it.

    Either ``quorum`` or ``log_directory`` (``__cluster_metadata-0`` or the directory that holds it)
    is given.
    """

    cluster: ClusterId
    quorum: QuorumSettings | None = None
    log_directory: Path | None = None
    log_directory_settle_ms: int = SETTLE_MS
    wanted: Collection[str] = DEFAULT_RECORD_TYPES
    heartbeat_ms: int = 3000
    grace: GracePeriods = field(default_factory=GracePeriods)

    def open(self, place: OffsetAndEpoch) -> LogReader:
        """A reader of the log from ``next_position`` on."""
        if self.quorum is not None:
            return QuorumReader(self.quorum, place)
        if self.log_directory is not None:
            return LogDirectoryReader(
                self.log_directory, self.cluster, place, self.log_directory_settle_ms
            )
        raise ValueError(f"neither controllers nor a log directory are given for {self.cluster}")


class KraftSource:
    """Follows one cluster's metadata log for as long as `run` runs.

    ``resume`` says what was published last (none: nothing). ``seen_ms`` of events comes from
    ``clock_ms``.
    """

    def __init__(
        self,
        settings: KraftSettings,
        sink: Sink,
        resume: Callable[[], Awaitable[OffsetAndEpoch | None]],
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._settings = settings
        self._sink = sink
        self._resume = resume
        self._clock_ms = clock_ms
        self._assembler = CommitAssembler(settings.cluster, settings.wanted)
        self._spool: BinaryIO | None = None
        self._reader: LogReader | None = None
        self._saying = StatusReporter(settings.grace, settings.heartbeat_ms, monotonic_ms())
        self._published = 0
        self._dead_letters = 0

    @classmethod
    def on_bus(cls, settings: KraftSettings, publisher: Publisher) -> "KraftSource":
        """A source that resumes from and publishes to ``publisher``'s bus."""
        return cls(
            settings, publisher, lambda: last_log_position(publisher.bus, settings.cluster, SOURCE)
        )

    def report(self) -> SourceReport:
        """How it stands now, for metrics and health."""
        reader, position = self._reader, self._assembler.position
        watermark = reader.high_watermark if reader else -1
        trouble = self._sink.error
        return SourceReport(
            cluster=self._settings.cluster,
            source=SOURCE,
            state=self._saying.state if trouble is None else SourceState.STALLED,
            offset=position.offset,
            high_watermark=watermark,
            lag=max(0, watermark - reader.next_position.offset)
            if reader and watermark >= 0
            else -1,
            records_read=self._assembler.records_read,
            records_skipped=self._assembler.records_skipped,
            published=self._published,
            dead_letters=self._dead_letters,
            last_error=self._saying.last_error,
            detail=trouble or self._saying.detail,
        )

    @property
    def fetched_offset(self) -> int:
        """The offset that is read next; what lies above the high watermark is held, not given."""
        return self._reader.fetch_position.offset if self._reader else 0

    async def run(self) -> None:
        """Follow the log until cancelled.

        Raises what the bus cannot mend: `streams.bus.BusError` and `streams.bus.PublishError`.
        """
        self._assembler.reset(await self._last_position())
        try:
            while True:
                reader = self._reader = self._reader or self._open_reader()
                for output in await reader.read():
                    await self._pass_on(output)
                await self._say()
        finally:
            await self._close_reader()

    async def _last_position(self) -> OffsetAndEpoch:
        while True:
            try:
                last = await self._resume()
            except BusUnavailableError as error:
                self._saying.detail = self._saying.last_error = str(error)
                await asyncio.sleep(1)
                continue
            self._saying.detail = ""
            return OffsetAndEpoch(last.offset, last.epoch) if last else OffsetAndEpoch(-1, -1)

    def _open_reader(self) -> LogReader:
        last = self._assembler.position
        place = OffsetAndEpoch(last.offset + 1, last.epoch) if last.offset >= 0 else LOG_START
        return self._settings.open(place)

    async def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    async def _pass_on(self, output: ObserverOutput) -> None:
        match output:
            case CommittedBatches(batches):
                seen_ms = self._clock_ms()
                for batch in batches:
                    for event in self._assembler.add(batch, seen_ms):
                        await self._publish(event)
                # A long catching up must leave the other tasks of the loop their turn.
                await asyncio.sleep(0)
            case SnapshotBytes():
                await self._take_snapshot(output)
            case MissingOffsets(first, last, reason, reset):
                # Where the log begins anew, so does what we know of it; a snapshot says so itself.
                if reset:
                    self._assembler.reset(OffsetAndEpoch(-1, -1))
                self._saying.last_error = reason
                gap = LogGap(self._settings.cluster, first, last, reason, reset, self._clock_ms())
                await self._publish(gap)
                self._saying.fell_behind()

    async def _take_snapshot(self, part: SnapshotBytes) -> None:
        """Gather a snapshot's bytes; publish its chunks once it is whole."""
        if part.position == 0 and self._spool is not None:
            self._spool.close()
            self._spool = None
        if self._spool is None:
            self._spool = cast("BinaryIO", tempfile.SpooledTemporaryFile(_SPOOL_BYTES))  # noqa: SIM115
        self._spool.write(part.data)
        if not part.last:
            return
        spool, self._spool = self._spool, None
        end, epoch = part.snapshot.offset, part.snapshot.epoch
        name = f"{end:020}-{epoch:010}.checkpoint"
        with spool:
            spool.seek(0)
            cluster, wanted = self._settings.cluster, self._settings.wanted
            try:
                for event in read_snapshot(spool, cluster, name, self._clock_ms(), wanted):
                    await self._publish(event)
            except CorruptSnapshotError as error:
                await self._refuse_snapshot(name, str(error))
                return
        self._assembler.reset(OffsetAndEpoch(end - 1, epoch))

    async def _refuse_snapshot(self, name: str, reason: str) -> None:
        """Say that a snapshot is damaged, and ask again from where we were."""
        self._saying.last_error = reason
        seen_ms = self._clock_ms()
        await self._publish(DeadLetter(self._settings.cluster, name, reason, b"", seen_ms))
        await self._close_reader()
        await asyncio.sleep(1)

    async def _publish(self, event: Event | DeadLetter) -> None:
        topic = DEAD_LETTERS if isinstance(event, DeadLetter) else METADATA_LOG
        await self._sink.publish(topic, event)
        if isinstance(event, DeadLetter):
            self._dead_letters += 1
        else:
            self._published += 1

    async def _say(self) -> None:
        """Publish the state where it changed, and as a heartbeat."""
        reader = self._reader
        if reader is None:
            return
        now_ms = monotonic_ms()
        state = self._saying.due(reader.caught_up, reader.stall_reason, now_ms)
        if state is None:
            return
        if state is SourceState.FOLLOWING and self._saying.state is not state:
            # It is said only when the bus has everything that came before.
            await self._sink.flush()
        self._saying.reported(state, now_ms)
        await self._publish(self._status(reader))

    def _status(self, reader: LogReader) -> SourceStatus:
        position = self._assembler.position
        return SourceStatus(
            cluster=self._settings.cluster,
            source=SOURCE,
            state=self._saying.state,
            offset=position.offset,
            offset_epoch=position.epoch,
            high_watermark=reader.high_watermark,
            leader_id=reader.leader.id,
            leader_epoch=reader.leader.epoch,
            detail=self._saying.detail,
            seen_ms=self._clock_ms(),
        )
