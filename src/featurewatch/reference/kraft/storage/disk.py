"""Performs the effects of a machine on the open directory of a replica."""

import os
from itertools import pairwise
from pathlib import Path
from typing import IO

from featurewatch.reference.kraft.formats import (
    EPOCHS,
    QUORUM_STATE,
    epochs_in,
    epochs_text,
    quorum_state_text,
    replace_durably,
    sync_directory,
)
from featurewatch.reference.kraft.machines.batches import (
    Batch,
)
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    Append,
    Effect,
    Flush,
    InstallSnapshot,
    Persist,
    QuorumState,
    Truncate,
    WriteSnapshot,
)
from featurewatch.reference.kraft.storage.identity import Identity
from featurewatch.streams.kraft.directory.files import (
    PARTITION_DIRECTORY,
    segments,
    snapshots,
)
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.snapshot import snapshot_name
from featurewatch.streams.types import OffsetAndEpoch

Durable = Persist | Append | Truncate | Flush | WriteSnapshot | InstallSnapshot
"""The effects that a storage performs."""


class Storage:
    """The open directory of one replica; `perform` does what a machine asks for.

    Another process that opens it is refused. What `open_storage` returns is not safe for use by
    several threads at a time.
    """

    def __init__(
        self,
        root: Path,
        identity: Identity,
        lock: IO[bytes],
        log: Log,
        state: QuorumState,
        segment_bytes: int,
    ) -> None:
        self.identity = identity
        self.log = log
        """The log as it was when it was opened; the machine owns it from then on."""
        self.state = state
        self._lock = lock
        self._directory = root / PARTITION_DIRECTORY
        self._segment_bytes = segment_bytes
        self._index: list[tuple[int, int, int]] = []
        """The base offset, epoch and position of each batch of the last segment."""
        # Those of batches that a crash has lost are forgotten.
        written = epochs_in(self._directory / EPOCHS)
        self._epochs_written = tuple(row for row in written if row[1] < log.end)
        bases = segments(self._directory)
        self._base = bases[-1] if bases else log.start.offset
        self._file = self._open_segment(self._base)

    def perform(self, effect: Effect, log: Log) -> bool:
        """Performs an effect if it is one of a disk; ``log`` is that of the machine."""
        match effect:
            case Persist(state):
                content = quorum_state_text(state, log)
                replace_durably(self._directory / QUORUM_STATE, content)
            case Append(batches):
                self._append(batches)
            case Truncate(offset):
                self._truncate(offset)
            case Flush():
                self._flush()
            case WriteSnapshot(snapshot, data, trims):
                self._write_snapshot(snapshot, data)
                if trims:
                    self._delete_log_before(snapshot.offset)
                self._delete_snapshots(snapshot)
            case InstallSnapshot(snapshot, data):
                self._write_snapshot(snapshot, data)
                self._begin_at(snapshot.offset)
                self._delete_snapshots(snapshot)
            case _:
                return False
        return True

    def close(self) -> None:
        """Flushes the log and releases the directory."""
        self._flush()
        self._file.close()
        self._lock.close()

    # -- the log -----------------------------------------------------------------------------------

    def _path(self, base: int) -> Path:
        return self._directory / f"{base:020}.log"

    def _open_segment(self, base: int) -> IO[bytes]:
        path = self._path(base)
        is_new = not path.exists()
        file = path.open("ab", buffering=0)
        if is_new:
            sync_directory(self._directory)
        scan = scan_batches(path.read_bytes())
        self._index = [(one.base_offset, one.leader_epoch, one.at) for one in scan.batches]
        return file

    def _append(self, batches: tuple[Batch, ...]) -> None:
        for batch in batches:
            position = self._file.tell()
            if position and position + len(batch.data) > self._segment_bytes:
                self._roll(batch.base)
                position = 0
            self._file.write(batch.data)
            self._index.append((batch.base, batch.epoch, position))

    def _roll(self, base: int) -> None:
        self._flush()
        self._file.close()
        self._base = base
        self._file = self._open_segment(base)

    def _flush(self) -> None:
        os.fdatasync(self._file.fileno())
        self._write_epochs()

    def _write_epochs(self) -> None:
        """Writes the epochs that have begun since they were written, after the log has them."""
        newest = self._epochs_written[-1][0] if self._epochs_written else -1
        begun = list(self._epochs_written)
        for base, epoch, _ in self._index:
            if epoch > newest:
                begun.append((epoch, base))
                newest = epoch
        if len(begun) > len(self._epochs_written):
            self._set_epochs(begun)

    def _set_epochs(self, epochs: list[tuple[int, int]]) -> None:
        self._epochs_written = tuple(epochs)
        replace_durably(self._directory / EPOCHS, epochs_text(self._epochs_written))

    def _truncate(self, offset: int) -> None:
        """Cuts the log off; what was cut off must not return, so it is durable at once."""
        while self._base > offset:
            self._file.close()
            self._path(self._base).unlink()
            sync_directory(self._directory)
            self._base = segments(self._directory)[-1]
            self._file = self._open_segment(self._base)
        kept = [row for row in self._index if row[0] < offset]
        if len(kept) < len(self._index):
            os.ftruncate(self._file.fileno(), self._index[len(kept)][2])
            self._file.seek(0, os.SEEK_END)
            self._index = kept
        os.fsync(self._file.fileno())
        self._set_epochs([row for row in self._epochs_written if row[1] < offset])

    # -- snapshots ---------------------------------------------------------------------------------

    def _write_snapshot(self, snapshot: OffsetAndEpoch, data: bytes) -> None:
        self._flush()
        replace_durably(self._directory / snapshot_name(snapshot), data)

    def _delete_log_before(self, offset: int) -> None:
        """Deletes the log before an offset, the oldest segments first.

        What the open segment has after it is copied into a new one, so that older software that
        starts here finds nothing of a level that was lowered.
        """
        if self._base < offset:
            at = next((position for base, _, position in self._index if base >= offset), None)
            data = self._path(self._base).read_bytes()
            replace_durably(self._path(offset), data[len(data) if at is None else at :])
            self._file.close()
            self._base = offset
            self._file = self._open_segment(offset)
        bases = segments(self._directory)
        for base, following in pairwise(bases):
            if following <= offset:
                self._path(base).unlink()
                sync_directory(self._directory)

    def _begin_at(self, offset: int) -> None:
        """Replaces all segments by an empty one.

        The newest is deleted first: what a crash leaves over is the start of the old log, which
        `open_storage` can tell from the log after the snapshot.
        """
        self._file.close()
        for base in reversed(segments(self._directory)):
            self._path(base).unlink()
            sync_directory(self._directory)
        self._base = offset
        self._file = self._open_segment(offset)
        self._set_epochs([])

    def _delete_snapshots(self, newest: OffsetAndEpoch) -> None:
        """Deletes all but the newest snapshot and the oldest one from the start of the log on."""
        first = segments(self._directory)[0]
        needed = min(
            (one for one in snapshots(self._directory) if one.offset >= first), default=newest
        )
        for snapshot in snapshots(self._directory):
            if snapshot not in (needed, newest):
                (self._directory / snapshot_name(snapshot)).unlink()
