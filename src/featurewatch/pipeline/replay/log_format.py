"""The two formats of a file range of a metadata log: binary, and the text of kafka-dump-log.

In both, batches can be found from any position: reading from the middle of a file, or after corrupt
bytes, resumes at the next complete batch with a correct checksum.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from featurewatch.streams.kraft import dump_log
from featurewatch.streams.kraft.commits import CommitAssembler
from featurewatch.streams.kraft.records.batch import (
    HEADER_BYTES,
    MAX_BATCH_BYTES,
    BatchScan,
    RecordBatch,
    scan_batches,
)
from featurewatch.streams.types import ClusterId, LastRecord

READ_BYTES: Final = 4 << 20
LARGEST_READ_BYTES: Final = MAX_BATCH_BYTES + READ_BYTES

_NO_PRODUCER: Final = b"\xff" * 14
"""Producer id, producer epoch and base sequence of every batch of the metadata log: none."""

_NO_PRODUCER_AT: Final = 43
_MAGIC_AT: Final = 16


class LogFormat(StrEnum):
    """The format of a file range."""

    BYTES = "bytes"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class FileRange:
    """Consecutive batches in a file: its bytes from ``start`` to ``end``.

    ``label`` names the file in messages.
    """

    format: LogFormat
    path: str
    start: int
    end: int
    label: str


@dataclass(frozen=True, slots=True)
class FormatOps:
    """The operations that differ between the formats.

    ``scan`` takes bytes, and whether the file range ends with them. ``scan_some`` returns the first
    batches from a position on, with positions relative to it. ``candidate`` returns the first
    position at or after a given one at which a batch may begin (-1: none).
    """

    scan: Callable[[bytes, bool], BatchScan]
    scan_some: Callable[[bytes, int, bool], BatchScan]
    candidate: Callable[[bytes, int], int]
    assembler: Callable[[ClusterId, LastRecord], CommitAssembler]


def _scan_bytes(data: bytes, whole: bool) -> BatchScan:  # noqa: ARG001 - the text format needs it
    return scan_batches(data)


def _scan_one(data: bytes, at: int, whole: bool) -> BatchScan:  # noqa: ARG001 - as above
    """Scans only the batch at ``at``, since the following ones may be skipped."""
    length = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
    end = at + max(12 + length, HEADER_BYTES)
    return scan_batches(data[at:end] if end <= len(data) else data[at : at + HEADER_BYTES])


def _candidate_in_bytes(data: bytes, at: int) -> int:
    match = data.find(_NO_PRODUCER, at + _NO_PRODUCER_AT)
    while match >= 0:
        start = match - _NO_PRODUCER_AT
        size = int.from_bytes(data[start + 8 : start + 12], "big", signed=True) + 12
        if data[start + _MAGIC_AT] == 2 and HEADER_BYTES <= size <= MAX_BATCH_BYTES:
            return start
        match = data.find(_NO_PRODUCER, match + 1)
    return -1


def _candidate_in_text(data: bytes, at: int) -> int:
    match = data.find(b"\n" + dump_log.BATCH, max(at - 1, 0))
    return match + 1 if match >= 0 else -1


FORMATS: Final = {
    LogFormat.BYTES: FormatOps(
        scan=_scan_bytes,
        scan_some=_scan_one,
        candidate=_candidate_in_bytes,
        assembler=lambda cluster, at: CommitAssembler(cluster, position=at),
    ),
    LogFormat.TEXT: FormatOps(
        scan=lambda data, whole: dump_log.scan_text(data, whole=whole),
        scan_some=lambda data, at, whole: dump_log.scan_text(data[at:], whole=whole),
        candidate=_candidate_in_text,
        assembler=lambda cluster, at: dump_log.DumpLogAssembler(cluster, position=at),
    ),
}


def batch_at(fd: int, log_format: LogFormat, at: int, end: int) -> RecordBatch | None:
    """Returns the batch at position ``at``; None if none with a correct checksum begins there.

    Its own ``at`` is relative to the position.
    """
    size = 64 << 10
    while True:
        data = os.pread(fd, min(size, end - at), at)
        scan = FORMATS[log_format].scan(data, at + len(data) >= end)
        if scan.batches:
            first = scan.batches[0]
            return first if first.at == 0 and not first.error else None
        if scan.error or len(data) < size or size >= LARGEST_READ_BYTES:
            return None
        size = min(size * 16, LARGEST_READ_BYTES)


def next_batch(fd: int, log_format: LogFormat, at: int, end: int) -> tuple[int, RecordBatch] | None:
    """Returns the first batch with a correct checksum at or after ``at``, with its position.

    The checksum covers the batch, so other bytes cannot be mistaken for one.
    """
    overlap = HEADER_BYTES
    while at < end:
        data = os.pread(fd, min(READ_BYTES, end - at), at)
        searched = 0
        while (candidate := FORMATS[log_format].candidate(data, searched)) >= 0:
            batch = batch_at(fd, log_format, at + candidate, end)
            if batch is not None:
                return at + candidate, batch
            searched = candidate + 1
        if len(data) <= overlap:
            return None
        at += len(data) - overlap
    return None


def only_zeros(fd: int, at: int, end: int) -> bool:
    """Whether a range holds only zeros, as the end of a preallocated file does."""
    while at < end:
        data = os.pread(fd, min(READ_BYTES, end - at), at)
        if not data or any(data):
            return not data
        at += len(data)
    return True
