"""Reads the ends of files of a log, and cuts files into pieces."""

import os
from dataclasses import dataclass
from typing import Final

from featurewatch.pipeline.replay.batch_reader import BatchReader
from featurewatch.pipeline.replay.discovery import SEGMENT
from featurewatch.pipeline.replay.log_format import FileRange, next_batch
from featurewatch.streams.kraft.records.batch import RecordBatch

_LAST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class LogRange:
    """A file range with the offsets, epochs and times (ms) of its two ends."""

    file_range: FileRange
    first: int
    end: int
    first_epoch: int
    last_epoch: int
    first_ms: int
    last_ms: int


def inspect_range(file_range: FileRange, problems: list[str]) -> LogRange | None:
    """Reads the two ends of a file range; None, with a line in ``problems``, if it has no batch."""
    if file_range.start == file_range.end:
        return None
    try:
        fd = os.open(file_range.path, os.O_RDONLY)
    except OSError as error:
        problems.append(f"{file_range.label} cannot be read: {error.strerror}")
        return None
    try:
        first_located = next_batch(fd, file_range.format, file_range.start, file_range.end)
        if first_located is None:
            problems.append(f"{file_range.label} holds no record batch that can be read")
            return None
        first = first_located[1]
        last = _last_batch(fd, file_range, first)
    finally:
        os.close(fd)
    end = max(last.last_offset, first.last_offset) + 1
    ends = (first.leader_epoch, last.leader_epoch, first.append_ms, last.append_ms)
    base = first.base_offset
    name = os.path.basename(file_range.path)
    if first_located[0] > file_range.start and SEGMENT.fullmatch(name) and int(name[:20]) < base:
        base = int(name[:20])  # its first batches are corrupt, and their offsets are missing
    return LogRange(file_range, base, end, *ends)


def _last_batch(fd: int, file_range: FileRange, first: RecordBatch) -> RecordBatch:
    """The last batch with a correct checksum."""
    window = _LAST_BYTES
    while True:
        start = max(file_range.start, file_range.end - window)
        located = next_batch(fd, file_range.format, start, file_range.end)
        if located is not None:
            tail = FileRange(
                file_range.format, file_range.path, located[0], file_range.end, file_range.label
            )
            intact = (
                b for b in BatchReader(fd, tail) if isinstance(b, RecordBatch) and not b.error
            )
            *_, last = (first, *intact)
            return last
        if start == file_range.start:
            return first
        window *= 8


def cut(file_range: FileRange, size: int) -> list[tuple[FileRange, int]]:
    """Cuts a file range into pieces of about ``size`` bytes.

    Returns each piece with its first offset (-1 for the first piece, whose offset is not read).
    Pieces begin with batches and depend on the content alone.
    """
    if file_range.end - file_range.start <= size:
        return [(file_range, -1)]
    fd = os.open(file_range.path, os.O_RDONLY)
    try:
        starts = [(file_range.start, -1)]
        at = file_range.start + size
        while at < file_range.end:
            located = next_batch(fd, file_range.format, at, file_range.end)
            if located is None:
                break
            starts.append((located[0], located[1].base_offset))
            at = max(located[0] + 1, at + size)
    finally:
        os.close(fd)
    ends = [at for at, _ in starts[1:]] + [file_range.end]
    return [
        (FileRange(file_range.format, file_range.path, at, end, file_range.label), first)
        for (at, first), end in zip(starts, ends, strict=True)
    ]
