"""A reader of a mounted metadata log directory: the same outputs as the observer's, read only.

For clusters on which CLUSTER_ACTION cannot be granted. Segments are followed as they grow, roll and
are deleted; a snapshot file replaces deleted segments; a truncated log is noticed.
`streams.kraft.directory.commit_rule` decides which records are committed.
"""

import asyncio
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from featurewatch.kafka.shortage import local_shortage
from featurewatch.streams.kraft.directory import files
from featurewatch.streams.kraft.directory.commit_rule import SETTLE_MS, CommitRule
from featurewatch.streams.kraft.errors import MalformedLogError
from featurewatch.streams.kraft.observer.states import (
    CommittedBatches,
    LogProgress,
    MissingOffsets,
    ObserverOutput,
    SnapshotBytes,
)
from featurewatch.streams.kraft.observer.tail import UncommittedLog
from featurewatch.streams.kraft.records.batch import is_replaced
from featurewatch.streams.source import monotonic_ms
from featurewatch.streams.source_status import StallReason
from featurewatch.streams.types import (
    LOG_START,
    NO_CHECKSUM,
    NO_LEADER,
    OffsetAndEpoch,
)

POLL_MS: Final = 50
_ERROR_POLLS: Final = 20
_LIST_SNAPSHOTS_MS: Final = 1000
_ANY_EPOCH: Final = 2**31 - 1


class LogDirectoryReader:
    """A `streams.kraft.reader.LogReader` over files.

    ``directory`` is ``__cluster_metadata-0`` or the ``metadata.log.dir`` that holds it;
    ``meta.properties`` there must name ``cluster_id``. ``checksum`` is that of the batch before
    ``next_position``.
    """

    def __init__(
        self,
        directory: Path,
        cluster_id: str,
        next_position: OffsetAndEpoch,
        settle_ms: int = SETTLE_MS,
        poll_ms: int = POLL_MS,
        monotonic_ms: Callable[[], int] = monotonic_ms,
        checksum: int = NO_CHECKSUM,
    ) -> None:
        self._high_watermark = -1
        self._caught_up = False
        self._stall_reason: StallReason | None = None
        self._monotonic_ms = monotonic_ms
        self._busy = threading.Lock()
        self._root = directory
        self._cluster_id = cluster_id
        self._settle_ms = settle_ms
        self._poll_ms = poll_ms
        self._rule = CommitRule(settle_ms)
        self._log = UncommittedLog(next_position, checksum)
        self._segment: files.LogSegment | None = None
        self._download: tuple[OffsetAndEpoch, BinaryIO, int] | None = None
        self._missing: MissingOffsets | None = None
        self._snapshot_end = -1
        self._snapshots_listed_ms: int | None = None

    @property
    def progress(self) -> LogProgress:
        """How far the log has been read, and what prevents more.

        The leader is that of the newest epoch in the log.
        """
        return LogProgress(
            self._log.committed,
            self._log.end,
            self._high_watermark,
            self._rule.leader,
            self._caught_up,
            self._stall_reason,
        )

    async def read(self) -> Sequence[ObserverOutput]:
        """Returns the next outputs of the files; waits a little if there is no output."""
        outputs, wait_ms = await asyncio.to_thread(self._step)
        if wait_ms:
            await asyncio.sleep(wait_ms / 1000)
        return outputs

    async def close(self) -> None:
        """Close the files, once a step that still runs in its thread is over."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._busy:
            self._close_segment()
            if self._download is not None:
                self._download[1].close()
                self._download = None

    def _step(self) -> tuple[Sequence[ObserverOutput], int]:
        """Outputs, and how many milliseconds to wait before the next step."""
        try:
            with self._busy:
                self._check_cluster()
                outputs, may_continue = self._advance()
        except _UnusableError as error:
            return (), self._fail(str(error), permanent=True)
        except MalformedLogError as error:
            return (), self._fail(f"{self._directory} cannot be read: {error}", permanent=False)
        except OSError as error:
            reason = local_shortage(error) or f"{error.strerror}: is the log mounted?"
            message = f"{error.filename or self._directory}: {reason}"
            return (), self._fail(message, permanent=True)
        if outputs or not may_continue:
            # Finding the position alone is no success: the records there may be unreadable again.
            self._stall_reason = None
        return outputs, 0 if may_continue else self._poll_ms

    def _fail(self, message: str, *, permanent: bool) -> int:
        now_ms = self._monotonic_ms()
        self._stall_reason = StallReason(
            message, permanent, self._stall_reason.since_ms if self._stall_reason else now_ms
        )
        self._caught_up = False
        self._close_segment()
        self._log.drop()
        return _ERROR_POLLS * self._poll_ms

    @property
    def _directory(self) -> Path:
        return files.metadata_directory(self._root)

    def _check_cluster(self) -> None:
        if self._segment is not None or self._download is not None:
            return
        cluster_id = files.cluster_id_of(self._root)
        if cluster_id is not None and cluster_id != self._cluster_id:
            raise _UnusableError(
                f"{self._root} belongs to cluster {cluster_id}, not {self._cluster_id}: check the "
                "directory and the cluster id"
            )

    def _advance(self) -> tuple[Sequence[ObserverOutput], bool]:
        """The next outputs, and whether there may be more at once."""
        if self._download is not None:
            return self._snapshot_part(), True
        if self._segment is None:
            return self._find_position(), True
        if not self._segment.intact:
            # Truncated below what was read: records that were not released yet are read again.
            self._close_segment()
            self._log.drop()
            return (), True
        scan = self._segment.read()
        for batch in self._log.append(scan, _ANY_EPOCH):
            self._rule.observe(batch)
        at_end = not scan.batches
        rolled = at_end and self._roll()
        self._list_snapshots()
        watermark = self._rule.high_watermark(self._log.batches, self._snapshot_end)
        self._high_watermark = max(self._high_watermark, watermark)
        released = self._log.release(self._high_watermark)
        if released:
            self._rule.forget_before(self._log.committed.epoch)
        self._caught_up = at_end and not rolled
        return ([CommittedBatches(released)] if released else ()), not self._caught_up

    def _roll(self) -> bool:
        """Continue with the next segment, if there is one."""
        segment, end = self._segment, self._log.end.offset
        if segment is None:
            return False
        following = None
        if end != segment.base:
            with suppress(FileNotFoundError):
                following = files.LogSegment(self._directory, end)
        if following is None and segment.attached:
            return False
        self._close_segment()
        self._segment = following
        if following is None:
            # The segment was deleted, by a truncation or with those after it: find the position
            # again.
            self._log.drop()
        return True

    def _list_snapshots(self) -> None:
        now_ms = self._monotonic_ms()
        if (
            self._snapshots_listed_ms is None
            or now_ms - self._snapshots_listed_ms >= _LIST_SNAPSHOTS_MS
        ):
            self._snapshots_listed_ms = now_ms
            snapshots = files.snapshots(self._directory)
            self._snapshot_end = snapshots[-1].offset if snapshots else -1

    # -- finding the position ----------------------------------------------------------------

    def _find_position(self) -> Sequence[ObserverOutput]:
        bases = files.segments(self._directory)
        if not bases:
            raise _UnusableError(
                f"{self._directory} holds no metadata log: give __cluster_metadata-0 or the "
                "metadata.log.dir of a controller or broker"
            )
        position = self._log.committed
        if position.offset < bases[0]:
            return self._begin_snapshot(bases[0])
        before = max(position.offset - 1, 0)
        base = bases[max(bisect_right(bases, before) - 1, 0)]
        segment = files.LogSegment(self._directory, base)
        valid_until = position.offset if position.offset == base else self._valid_until(segment)
        if valid_until == position.offset:
            self._segment = segment
            self._learn_voters(reversed(bases[: bases.index(base)]))
            return ()
        segment.close()
        self._log.restart(LOG_START)
        self._rule = CommitRule(self._settle_ms)
        self._high_watermark = -1
        reason = f"the log went backwards: it no longer has {position}"
        return [MissingOffsets(valid_until, position.offset - 1, reason, True)]

    def _valid_until(self, segment: files.LogSegment) -> int:
        """The next offset, if the record before it exists, with its epoch and in the same batch.

        Otherwise a lower offset, from which on the log is another one at the latest.
        ``segment`` is positioned at the batch with that record.
        """
        position = self._log.committed
        end = segment.base
        for batch in segment.batches():
            self._rule.observe(batch)
            end = batch.last_offset + 1
            if end >= position.offset:
                segment.seek(batch)
                is_same = (
                    batch.base_offset < position.offset
                    and batch.leader_epoch == position.epoch
                    and not is_replaced([batch], self._log.last_record)
                )
                return position.offset if is_same else min(batch.base_offset, position.offset - 1)
        return end

    def _learn_voters(self, older: Iterable[int]) -> None:
        """Read the first record of the current epoch: it has the number of voters."""
        for base in older:
            if self._rule.leader != NO_LEADER:
                return
            with files.LogSegment(self._directory, base) as segment:
                for batch in segment.batches():
                    self._rule.observe(batch)

    def _begin_snapshot(self, log_start: int) -> Sequence[ObserverOutput]:
        snapshots = files.snapshots(self._directory)
        if not snapshots or snapshots[-1].offset < log_start:
            raise _UnusableError(
                f"{self._directory} begins at offset {log_start} and has no snapshot of what was "
                "before: mount the whole directory"
            )
        snapshot, position = snapshots[-1], self._log.committed
        path = files.snapshot_path(self._directory, snapshot)
        file = path.open("rb")
        self._download = (snapshot, file, os.fstat(file.fileno()).st_size)
        if position != LOG_START:
            reason = "the log no longer has these records: its snapshot takes their place"
            self._missing = MissingOffsets(position.offset, snapshot.offset - 1, reason, False)
        return ()

    def _snapshot_part(self) -> Sequence[ObserverOutput]:
        if self._download is None:
            return ()
        snapshot, file, size = self._download
        position = file.tell()
        data = file.read(files.READ_BYTES)
        last = not data or position + len(data) >= size
        part = SnapshotBytes(snapshot, position, data, last, size)
        if not last:
            return [part]
        file.close()
        self._download = None
        self._log.restart(snapshot)
        self._rule = CommitRule(self._settle_ms)
        self._high_watermark = max(self._high_watermark, snapshot.offset)
        missing, self._missing = self._missing, None
        return [missing, part] if missing else [part]

    def _close_segment(self) -> None:
        if self._segment is not None:
            self._segment.close()
            self._segment = None


class _UnusableError(Exception):
    """The mounted directory is not the expected log; one line."""
