"""Opens the directory of a replica, and reads what a crash has left."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from featurewatch.reference.kraft.formats import (
    EPOCHS,
    QUORUM_STATE,
    DamagedStorageError,
    check_epochs,
    epochs_in,
    quorum_state_in,
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
from featurewatch.reference.kraft.machines.replicas import VoterSet
from featurewatch.reference.kraft.storage.disk import Storage
from featurewatch.reference.kraft.storage.identity import locked, read_identity
from featurewatch.streams.kraft.directory.files import (
    PARTITION_DIRECTORY,
    segments,
    snapshots,
)
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.snapshot import snapshot_name
from featurewatch.streams.types import LOG_START

SEGMENT_BYTES: Final = 1 << 30
"""The default of ``metadata.log.segment.bytes``."""
_log = logging.getLogger("featurewatch.reference.kraft")


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
    identity = read_identity(root, cluster_id, node_id)
    directory = root / PARTITION_DIRECTORY
    directory.mkdir(exist_ok=True)
    lock = locked(root)
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
    contents = _segment_contents(directory, bases)
    for batches, following in zip(contents, [*bases[1:], None], strict=False):
        # A crash may leave a segment beside the copy of its end.
        own = (one for one in batches if following is None or one.base < following)
        try:
            log.append([batch for batch in own if batch.base >= log.start.offset])
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
    else:
        oldest = min(one for one in found if one >= log.start)
        for one in sorted({oldest, newest} - log.snapshots.keys()):
            log.add_snapshot(one, found[one], trims=False)
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
