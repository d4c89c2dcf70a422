"""The files of a metadata log directory, opened for reading only."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from featurewatch.common.java_properties import properties_in
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.records.batch import (
    HEADER_BYTES,
    BatchScan,
    RecordBatch,
    scan_batches,
)
from featurewatch.streams.kraft.snapshot import parse_name, snapshot_name
from featurewatch.streams.types import OffsetAndEpoch

PARTITION_DIRECTORY: Final = "__cluster_metadata-0"
META_PROPERTIES: Final = "meta.properties"
_LARGEST_META_BYTES: Final = 1 << 16
READ_BYTES: Final = 1 << 20
_LARGEST_READ_BYTES: Final = 72 << 20
"""Room for a batch of the largest accepted size, and one more read."""


def metadata_directory(directory: Path) -> Path:
    """The log's own directory, given it or the ``metadata.log.dir`` that holds it."""
    inner = directory / PARTITION_DIRECTORY
    return inner if inner.is_dir() else directory


def read_meta(path: Path) -> dict[str, str]:
    """The properties in a ``meta.properties``. Raises `OSError`, and nothing on any content."""
    with path.open("rb") as file:
        return properties_in(file.read(_LARGEST_META_BYTES))


def cluster_id_of(directory: Path) -> str | None:
    """The cluster id in ``meta.properties`` beside the log; none where that is not mounted.

    Raises:
        OSError: it is there and cannot be read.
    """
    return cluster_id_in(meta_properties_paths(metadata_directory(directory)))


def meta_properties_paths(log: Path) -> Iterator[Path]:
    """Where the ``meta.properties`` of a log's own directory may be: beside it, also where it is a
    link or the working directory."""
    yield log.absolute().parent / META_PROPERTIES
    yield log.resolve().parent / META_PROPERTIES


def cluster_id_in(metas: Iterable[Path]) -> str | None:
    """The cluster id in the first ``meta.properties`` that is there and names one.

    Raises:
        OSError: one cannot be read.
    """
    for path in metas:
        try:
            cluster_id = read_meta(path).get("cluster.id")
        except (FileNotFoundError, NotADirectoryError):
            continue
        if cluster_id:
            return cluster_id
    return None


def segments(directory: Path) -> list[int]:
    """The base offsets of the segments, ascending."""
    names = (name.removesuffix(".log") for name in os.listdir(directory) if name.endswith(".log"))
    return sorted(int(name) for name in names if name.isdecimal())


def snapshots(directory: Path) -> list[OffsetAndEpoch]:
    """The snapshots that replace the log before them, ascending; without the bootstrap one."""
    named = []
    for name in os.listdir(directory):
        try:
            snapshot = parse_name(name)
        except CorruptSnapshotError:
            continue
        if snapshot.offset > 0:
            named.append(snapshot)
    return sorted(named)


def snapshot_path(directory: Path, snapshot: OffsetAndEpoch) -> Path:
    """The path of a snapshot."""
    return directory / snapshot_name(snapshot)


@dataclass(frozen=True, slots=True)
class _Mark:
    """A batch that was read, to check that it is unchanged."""

    at: int
    header: bytes


class LogSegment:
    """A segment file that is read forward.

    A batch is identified by its header: the offset and leader epoch in it name one batch in the
    history of the log, and, by Raft's log matching, all before it.
    """

    def __init__(self, directory: Path, base: int) -> None:
        self.base = base
        self._path = directory / f"{base:020}.log"
        self._fd = os.open(self._path, os.O_RDONLY)
        self._position = 0
        self._size = READ_BYTES
        self._mark: _Mark | None = None
        self._doubted = -1
        self._last_read = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    @property
    def intact(self) -> bool:
        """Whether the batch that was read last is still there."""
        mark = self._mark
        return mark is None or os.pread(self._fd, len(mark.header), mark.at) == mark.header

    @property
    def attached(self) -> bool:
        """Whether the file is still the one of its name: deleted ones are renamed first."""
        try:
            return self._path.stat().st_ino == os.fstat(self._fd).st_ino
        except FileNotFoundError:
            return False

    def read(self) -> BatchScan:
        """The whole batches that follow; none at the end of the file, and none of a torn write.

        A corrupt batch is returned only when it is the same a second time: it may be half written.
        """
        data = os.pread(self._fd, self._size, self._position)
        scan = scan_batches(data)
        if not scan.batches and not scan.error and len(data) == self._size:
            self._size = min(self._size * 8, _LARGEST_READ_BYTES)
        if scan.error and not any(data[scan.consumed :]):
            # A preallocated file ends in zeros.
            scan = scan._replace(error="")
        return self._advance(self._without_doubtful(scan))

    def seek(self, batch: RecordBatch) -> None:
        """Go back to ``batch``, which the last `read` returned."""
        self._position += batch.at - self._last_read
        self._mark = None

    def _advance(self, scan: BatchScan) -> BatchScan:
        self._last_read = scan.consumed
        if scan.batches:
            last = scan.batches[-1]
            header = last.buffer[last.at : last.at + HEADER_BYTES]
            self._mark = _Mark(self._position + last.at, header)
            self._size = READ_BYTES
        self._position += scan.consumed
        return scan

    def _without_doubtful(self, scan: BatchScan) -> BatchScan:
        for index, batch in enumerate(scan.batches):
            if batch.error and self._doubted != self._position + batch.at:
                self._doubted = self._position + batch.at
                return BatchScan(scan.batches[:index], batch.at, "")
        return scan

    def batches(self) -> Iterator[RecordBatch]:
        """All batches from the current position to the current end."""
        while (scan := self.read()).batches:
            yield from scan.batches
