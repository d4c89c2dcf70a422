"""A replica's disk: the metadata log in Kafka's own format, flushed where Raft needs it.

Segments ``<offset>.log``, snapshots ``<offset>-<epoch>.checkpoint`` (``KafkaMetadataLog``,
``FileRawSnapshotWriter``), and the files of `formats`. A reference, not for production: the log is
read into memory as a whole.
"""

import fcntl
import logging
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import IO, Final, NamedTuple
from uuid import UUID

from featurewatch.reference.kraft.formats import (
    EPOCHS,
    PARTITION,
    PARTITION_TEXT,
    QUORUM_STATE,
    DamagedStorageError,
    check_epochs,
    epochs_in,
    epochs_text,
    meta_properties_text,
    quorum_state_in,
    quorum_state_text,
    replace_durably,
    sync_directory,
)
from featurewatch.reference.kraft.machines.batches import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    Batch,
    InvalidBatchesError,
    control_types,
    of_scanned,
    read_batches,
)
from featurewatch.reference.kraft.machines.log import InvalidAppendError, Log
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
from featurewatch.reference.kraft.machines.replicas import VoterSet, uuid_of
from featurewatch.streams.kraft.directory.files import (
    META_PROPERTIES,
    PARTITION_DIRECTORY,
    read_meta,
    segments,
    snapshots,
)
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.snapshot import snapshot_name
from featurewatch.streams.types import LOG_START, OffsetAndEpoch

SEGMENT_BYTES: Final = 1 << 30
"""The default of ``metadata.log.segment.bytes``."""
_LOCK: Final = ".lock"
_log = logging.getLogger("featurewatch.reference.kraft")

Durable = Persist | Append | Truncate | Flush | WriteSnapshot | InstallSnapshot
"""The effects that a storage performs."""


class Identity(NamedTuple):
    """Whose directory it is."""

    cluster_id: str
    node_id: int
    directory_id: UUID


def format_directory(root: Path, identity: Identity, voters: bytes | None = None) -> None:
    """Makes an empty directory that of a replica, as ``kafka-storage format`` does.

    ``voters`` is the snapshot at offset 0 with the voters and the levels that the log begins with.

    Raises:
        DamagedStorageError: if it has a format already.
    """
    meta = root / META_PROPERTIES
    if meta.exists():
        raise DamagedStorageError(f"{root} is formatted already: give an empty directory")
    directory = root / PARTITION_DIRECTORY
    directory.mkdir(parents=True, exist_ok=True)
    if voters is not None:
        replace_durably(directory / snapshot_name(LOG_START), voters)
    replace_durably(directory / PARTITION, PARTITION_TEXT.encode())
    replace_durably(meta, meta_properties_text(*identity))


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
                    self._delete_segments_before(snapshot.offset)
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

    def _delete_segments_before(self, offset: int) -> None:
        """Deletes the segments that are wholly before an offset, the oldest first.

        The rest of the log before it goes with its segment, as in Kafka.
        """
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
        """Deletes all but the newest snapshot and that which the log needs at its start."""
        first = segments(self._directory)[0]
        needed = min(
            (one for one in snapshots(self._directory) if one.offset >= first > 0), default=newest
        )
        for snapshot in snapshots(self._directory):
            if snapshot not in (needed, newest):
                (self._directory / snapshot_name(snapshot)).unlink()


# -- opening ---------------------------------------------------------------------------------------


def open_storage(
    root: Path,
    static_voters: VoterSet,
    *,
    cluster_id: str | None = None,
    node_id: int | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> Storage:
    """Opens a replica's directory; a write that a crash tore at its end is cut off.

    Raises:
        DamagedStorageError: if it is not formatted, of another node or cluster, in use, or damaged.
        OSError: if it cannot be read.
    """
    identity = _identity(root, cluster_id, node_id)
    directory = root / PARTITION_DIRECTORY
    directory.mkdir(exist_ok=True)
    lock = _locked(root)
    try:
        for unfinished in directory.glob("*.tmp"):
            unfinished.unlink()
        state = quorum_state_in(directory / QUORUM_STATE)
        log = _load(directory, static_voters)
        check_epochs(directory / EPOCHS, epochs_in(directory / EPOCHS), log)
        return Storage(root, identity, lock, log, state, segment_bytes)
    except BaseException:
        lock.close()
        raise


def _identity(root: Path, cluster_id: str | None, node_id: int | None) -> Identity:
    path = root / META_PROPERTIES
    try:
        meta = read_meta(path)
    except (FileNotFoundError, NotADirectoryError):
        raise DamagedStorageError(f"{root} is not formatted: format it first") from None
    try:
        found = Identity(meta["cluster.id"], int(meta["node.id"]), _directory_id(meta))
    except (KeyError, ValueError) as error:
        raise DamagedStorageError(
            f"{path} is damaged ({error}): restore it, or format an empty directory"
        ) from None
    if cluster_id not in (None, found.cluster_id):
        raise DamagedStorageError(
            f"{root} is of cluster {found.cluster_id}, not {cluster_id}: give the directory of this"
            " cluster's node"
        )
    if node_id not in (None, found.node_id):
        raise DamagedStorageError(
            f"{root} is of node {found.node_id}, not {node_id}: give the directory of this node"
        )
    return found


def _directory_id(meta: dict[str, str]) -> UUID:
    found = uuid_of(meta["directory.id"])
    if found is None:
        raise ValueError("its directory.id is zero")
    return found


def _locked(root: Path) -> IO[bytes]:
    """Locks the directory as Kafka does (``FileLock``)."""
    lock = (root / _LOCK).open("ab")
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise DamagedStorageError(
            f"{root} is in use by another process: end that one, or give another directory"
        ) from None
    return lock


def _load(directory: Path, static_voters: VoterSet) -> Log:
    """The log: the newest snapshot, and the segments where they contain or continue it."""
    log = Log(static_voters)
    of_format = directory / snapshot_name(LOG_START)
    if of_format.exists():
        log.begin_with(_snapshot_content(of_format))
    found = {one: _snapshot_content(directory / snapshot_name(one)) for one in snapshots(directory)}
    bases = segments(directory)
    first = bases[0] if bases else 0
    start = min((one for one in found if one.offset >= first > 0), default=None)
    if start is not None:
        log.install(start, found[start])
    elif first > 0:
        raise DamagedStorageError(
            f"{directory} has no snapshot for the start of its log at offset {first}: replace"
            " this voter by one with an empty disk"
        )
    for batches in _segment_contents(directory, bases):
        try:
            log.append([batch for batch in batches if batch.base >= log.start.offset])
        except InvalidAppendError as error:
            raise DamagedStorageError(
                f"{directory} is damaged ({error}: a segment is missing or was cut off): replace"
                " this voter by one with an empty disk"
            ) from None
    newest = max(found, default=None)
    if newest is None:
        return log
    if newest.offset > log.end or log.epoch_at(newest.offset) != newest.epoch:
        # The process ended while it loaded a snapshot of the leader: the log is of no use.
        log.install(newest, found[newest])
        for base in reversed(bases):
            (directory / f"{base:020}.log").unlink()
    elif newest not in log.snapshots:
        log.add_snapshot(newest, found[newest], trims=False)
    log.high_watermark = max(log.high_watermark, newest.offset)
    return log


def _segment_contents(directory: Path, bases: list[int]) -> Iterator[list[Batch]]:
    for base in bases:
        path = directory / f"{base:020}.log"
        data = path.read_bytes()
        scan = scan_batches(data)
        damaged = next((batch for batch in scan.batches if batch.error), None)
        whole = [batch for batch in scan.batches if not batch.error]
        end = scan.consumed if damaged is None else damaged.at
        if end < len(data):
            is_torn = base == bases[-1] and not any(batch.at > end for batch in whole)
            if not is_torn:
                reason = scan.error or (damaged.error if damaged else "a batch is cut off")
                raise DamagedStorageError(
                    f"{path} is damaged at byte {end} ({reason}): replace this voter by one with an"
                    " empty disk"
                )
            _log.warning("%s: cut %d torn bytes off its end", path, len(data) - end)
            with path.open("r+b") as file:
                file.truncate(end)
                os.fsync(file.fileno())
        yield [of_scanned(batch) for batch in whole]


def _snapshot_content(path: Path) -> bytes:
    data = path.read_bytes()
    try:
        batches = read_batches(data)
    except InvalidBatchesError as error:
        raise DamagedStorageError(
            f"{path} is damaged ({error}): replace this voter by one with an empty disk"
        ) from None
    first, last = control_types(batches[:1]), control_types(batches[-1:])
    if first[:1] != [SNAPSHOT_HEADER] or last[-1:] != [SNAPSHOT_FOOTER]:
        raise DamagedStorageError(
            f"{path} is damaged (it has no header or no footer): replace this voter by one with an"
            " empty disk"
        )
    return data
