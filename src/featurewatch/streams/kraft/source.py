"""The source of ``metadata-log``: publishes the committed log that a reader gives, each event once.

The metadata log itself is the buffer. Nothing is read while the bus accepts nothing: `Sink.publish`
waits, and the source continues where it was. After a restart it continues after the last offset
that was published.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from featurewatch.streams.bus.errors import BusUnavailableError
from featurewatch.streams.bus.positions import last_log_position
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.events import DeadLetter, LogGap
from featurewatch.streams.kraft.commits import AssemblerEvent, CommitAssembler
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
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.kraft.records.selection import DEFAULT_RECORD_TYPES
from featurewatch.streams.kraft.snapshot import read_snapshot, snapshot_name
from featurewatch.streams.kraft.snapshot_spool import (
    DEFAULT_MAX_SNAPSHOT_BYTES,
    SnapshotRefusedError,
    SnapshotSpool,
)
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.node_addresses import NodeAddresses
from featurewatch.streams.source import Sink, monotonic_ms, wall_clock_ms
from featurewatch.streams.source_shell import ProtocolState, SourceShell
from featurewatch.streams.source_status import GracePeriods, StallReason
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import NO_OFFSET, ClusterId, LastRecord

LOG: Final = logging.getLogger("featurewatch.kraft")

_RETRY_S: Final = 1
REFUSED_RETRY_MS: Final = 30_000
"""Before a snapshot that was refused is fetched again: there may be room, or another snapshot."""

_IN_LOOP_BYTES: Final = 256 << 10
"""Larger batches are decoded beside the event loop, in which the other clusters are followed."""


@dataclass(frozen=True, slots=True)
class KraftSettings:
    """Which metadata log to follow, and how.

    Either ``quorum`` or ``log_directory`` (``__cluster_metadata-0`` or the directory that holds it)
    is given. ``read_settings`` are configuration names whose values are decoded, and published.
    ``addresses`` gets the addresses that the log has of the cluster's nodes, and is used where no
    configured one leads to the leader.
    """

    cluster: ClusterId
    quorum: QuorumSettings | None = None
    log_directory: Path | None = None
    log_directory_settle_ms: int = SETTLE_MS
    max_snapshot_bytes: int = DEFAULT_MAX_SNAPSHOT_BYTES
    wanted: Collection[str] = DEFAULT_RECORD_TYPES
    read_settings: Collection[str] = ()
    heartbeat_ms: int = 3000
    grace: GracePeriods = field(default_factory=GracePeriods)
    addresses: NodeAddresses = field(default_factory=NodeAddresses, compare=False)

    def open(self, last: LastRecord, monotonic_ms: Callable[[], int]) -> LogReader:
        """A reader of the log after ``last``; ``monotonic_ms`` is the source's clock."""
        if self.quorum is not None:
            return QuorumReader(
                self.quorum, last.next_position, monotonic_ms, last.checksum, self.addresses
            )
        if self.log_directory is not None:
            return LogDirectoryReader(
                self.log_directory,
                self.cluster,
                last.next_position,
                self.log_directory_settle_ms,
                monotonic_ms=monotonic_ms,
                checksum=last.checksum,
            )
        raise ValueError(f"neither controllers nor a log directory are given for {self.cluster}")


class KraftSource(SourceShell):
    """Follows one cluster's metadata log for as long as `run` runs.

    ``resume`` gives the last record that was published (None: nothing was).
    """

    name = METADATA_LOG.source
    topic = METADATA_LOG

    def __init__(
        self,
        settings: KraftSettings,
        sink: Sink,
        resume: Callable[[], Awaitable[LastRecord | None]],
        clock_ms: Callable[[], int] = wall_clock_ms,
        monotonic_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        super().__init__(sink, settings.grace, settings.heartbeat_ms, clock_ms, monotonic_ms)
        self._settings = settings
        self._resume = resume
        self._assembler = CommitAssembler(
            settings.cluster, settings.wanted, settings=settings.read_settings
        )
        self._spool: SnapshotSpool | None = None
        self._refused: StallReason | None = None
        self._retry_ms = 0
        self._reader: LogReader | None = None

    @classmethod
    def on_bus(cls, settings: KraftSettings, publisher: Publisher) -> "KraftSource":
        """A source that resumes from and publishes to ``publisher``'s bus."""
        return cls(settings, publisher, lambda: last_log_position(publisher.bus, settings.cluster))

    def report(self) -> SourceReport:
        """The source's state now, for metrics and health."""
        progress = self._reader.progress if self._reader else None
        high_watermark = progress.high_watermark if progress else -1
        lag = -1
        if progress and high_watermark >= 0:
            lag = max(0, high_watermark - progress.next_position.offset)
        return self._report(
            self._settings.cluster,
            offset=self._assembler.position.offset,
            high_watermark=high_watermark,
            lag=lag,
            records_read=self._assembler.records_read,
            records_skipped=self._assembler.records_skipped,
        )

    def _state(self) -> ProtocolState | None:
        cluster, position = self._settings.cluster, self._assembler.position
        if self._refused is not None:
            return ProtocolState(cluster, False, self._refused, position)
        if self._reader is None:
            return None
        progress = self._reader.progress
        return ProtocolState(
            cluster,
            progress.caught_up,
            progress.stall_reason,
            position,
            progress.high_watermark,
            progress.leader,
        )

    async def _start(self) -> None:
        self._assembler.reset(await self._last_position())

    async def _last_position(self) -> LastRecord:
        while True:
            try:
                last = await self._resume()
            except BusUnavailableError as error:
                self._status.detail = self._status.last_error = str(error)
                self._note_progress()
                await asyncio.sleep(_RETRY_S)
                continue
            self._status.detail = ""
            return last or NO_OFFSET

    async def _step(self) -> None:
        if self._reader is None and self._monotonic_ms() < self._retry_ms:
            await asyncio.sleep(_RETRY_S)
            return
        reader = self._reader = self._reader or self._open_reader()
        for output in await reader.read():
            await self._pass_on(output)

    async def _resync(self, reason: str) -> None:
        """Read the log again from its beginning, or from its newest snapshot."""
        await self._close()
        self._assembler.reset(NO_OFFSET)
        await self._publish_resync(self._settings.cluster, reason, finished=False)
        self._status.fell_behind()

    def _open_reader(self) -> LogReader:
        return self._settings.open(self._assembler.position, self._monotonic_ms)

    async def _close(self) -> None:
        self._drop_spool()
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    def _drop_spool(self) -> None:
        spool, self._spool = self._spool, None
        if spool is not None:
            spool.close()

    async def _pass_on(self, output: ObserverOutput) -> None:
        match output:
            case CommittedBatches(batches):
                seen_ms = self._clock_ms()
                self._refused = None
                for batch in batches:
                    for event in await self._decode(batch, seen_ms):
                        await self._publish(event)
                        self._settings.addresses.apply(event)
                # During a long catch-up the other tasks of the loop must run too.
                await asyncio.sleep(0)
            case SnapshotBytes():
                await self._add_snapshot_bytes(output)
            case MissingOffsets(first, last, reason, reset):
                # Where the log starts again, so does the assembler; a snapshot resets it itself.
                if reset:
                    self._assembler.reset(NO_OFFSET)
                self._status.last_error = reason
                gap = LogGap(self._settings.cluster, first, last, reason, reset, self._clock_ms())
                await self._publish(gap)
                self._settings.addresses.apply(gap)
                self._status.fell_behind()

    async def _decode(self, batch: RecordBatch, seen_ms: int) -> list[AssemblerEvent]:
        if batch.end - batch.start <= _IN_LOOP_BYTES:
            return self._assembler.add(batch, seen_ms)
        return await asyncio.to_thread(self._assembler.add, batch, seen_ms)

    async def _add_snapshot_bytes(self, part: SnapshotBytes) -> None:
        """Collect a snapshot's bytes; publish its chunks once it is complete."""
        try:
            if part.position == 0:
                self._drop_spool()
            self._spool = self._spool or SnapshotSpool(part, self._settings.max_snapshot_bytes)
            self._spool.add(part)
        except SnapshotRefusedError as error:
            await self._refuse_snapshot(str(error))
            return
        if not part.last:
            return
        self._refused = None
        name = snapshot_name(part.snapshot)
        file = self._spool.file
        file.seek(0)
        settings, seen_ms = self._settings, self._clock_ms()
        wanted, values = settings.wanted, settings.read_settings
        kinds = self._assembler.unknown_kinds
        try:
            for event in read_snapshot(
                file, settings.cluster, name, seen_ms, wanted, values, kinds
            ):
                await self._publish(event)
                settings.addresses.apply(event)
        except CorruptSnapshotError as error:
            await self._reject_snapshot(name, str(error))
            return
        finally:
            self._drop_spool()
        self._assembler.reset(LastRecord(part.snapshot.offset - 1, part.snapshot.epoch))

    async def _refuse_snapshot(self, reason: str) -> None:
        """Stall, and fetch from the old position after a while."""
        now_ms = self._monotonic_ms()
        since_ms = self._refused.since_ms if self._refused is not None else now_ms
        self._refused = StallReason(reason, True, since_ms)
        self._retry_ms = now_ms + REFUSED_RETRY_MS
        LOG.error("%s: %s", self._settings.cluster, reason)
        await self._close()

    async def _reject_snapshot(self, name: str, reason: str) -> None:
        """Publish that a snapshot is corrupt; the next round fetches from the old position."""
        self._status.last_error = reason
        seen_ms = self._clock_ms()
        await self._publish(DeadLetter(self._settings.cluster, name, reason, b"", seen_ms))
        await self._close()
        await asyncio.sleep(_RETRY_S)
