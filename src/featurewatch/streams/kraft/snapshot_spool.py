"""Keeps the bytes of a snapshot while they arrive: in memory, or in a temporary file.

The file has no name, so that nothing of it stays when the process ends, however it ends.
"""

import shutil
import tempfile
from typing import BinaryIO, Final, cast

from featurewatch.kafka.shortage import local_shortage
from featurewatch.streams.kraft.observer.states import SnapshotBytes

DEFAULT_MAX_SNAPSHOT_BYTES: Final = 2 << 30
"""The largest snapshot that is read, in bytes. A million partitions take some hundred MiB."""

MEMORY_BYTES: Final = 8 << 20
"""Snapshots up to this stay in memory while they arrive."""

RESERVED_BYTES: Final = 64 << 20
"""The part of the temporary directory that is left to others."""


class SnapshotRefusedError(Exception):
    """A snapshot is not read: one line that says why and what to do."""


class SnapshotSpool:
    """The bytes of one snapshot of an announced size. Close it when done.

    Raises `SnapshotRefusedError` for a size above ``max_bytes`` or above the room that is left, and
    where the temporary directory cannot be used.
    """

    def __init__(self, part: SnapshotBytes, max_bytes: int) -> None:
        self.snapshot = part.snapshot
        self._size_bytes = part.size_bytes
        if part.size_bytes > max_bytes:
            raise SnapshotRefusedError(
                f"the snapshot of offset {part.snapshot.offset} has {part.size_bytes} bytes, more "
                f"than max_snapshot_bytes={max_bytes}: raise it if the cluster is as large as that"
            )
        if part.size_bytes > MEMORY_BYTES:
            try:
                _check_room(part.size_bytes)
            except OSError as error:
                raise self._not_kept(error) from error
        self.file = cast("BinaryIO", tempfile.SpooledTemporaryFile(MEMORY_BYTES))  # noqa: SIM115

    def add(self, part: SnapshotBytes) -> None:
        """The next bytes; raises `SnapshotRefusedError` if they do not fit or cannot be kept."""
        end = part.position + len(part.data)
        if part.size_bytes != self._size_bytes or end > self._size_bytes:
            raise SnapshotRefusedError(
                f"the snapshot of offset {part.snapshot.offset} had {self._size_bytes} bytes and "
                f"now has {max(part.size_bytes, end)}: snapshots do not change"
            )
        try:
            self.file.write(part.data)
        except OSError as error:
            raise self._not_kept(error) from error

    def _not_kept(self, error: OSError) -> SnapshotRefusedError:
        reason = local_shortage(error) or error.strerror or str(error)
        return SnapshotRefusedError(
            f"the snapshot of offset {self.snapshot.offset} cannot be kept in the temporary "
            f"directory ({reason}): make room, or set TMPDIR"
        )

    def close(self) -> None:
        """Drops the bytes, and the file if there is one."""
        self.file.close()


def _check_room(size_bytes: int) -> None:
    directory = tempfile.gettempdir()
    free_bytes = shutil.disk_usage(directory).free
    if size_bytes + RESERVED_BYTES > free_bytes:
        raise SnapshotRefusedError(
            f"a snapshot of {size_bytes} bytes does not fit into {directory}, which has "
            f"{free_bytes} left: make room, or set TMPDIR"
        )
