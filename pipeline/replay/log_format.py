"""The two forms in which a stretch of a metadata log may lie: its own bytes, and printed text.

Of both, batches are known one by one, and the next one can be found from any place: what begins in
the middle of a file, or behind damage, begins with a batch that is whole and checked.
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
from featurewatch.streams.types import ClusterId, OffsetAndEpoch

READ_BYTES: Final = 4 << 20
LARGEST_READ_BYTES: Final = MAX_BATCH_BYTES + READ_BYTES

_NO_PRODUCER: Final = b"\xff" * 14
"""Producer id, producer epoch and base sequence of every batch of the metadata log: none."""

_NO_PRODUCER_AT: Final = 43
_MAGIC_AT: Final = 16


class LogFormat(StrEnum):
    """How a stretch is written."""

    BYTES = "bytes"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class FileRange:
    """Batches that follow each other in a file: its bytes from ``start`` to ``end``.

    ``place`` is how people know it.
    """

    form: LogFormat
    path: str
    start: int
    end: int
    place: str


@dataclass(frozen=True, slots=True)
class FormatOps:
    """What is done differently with the two forms.

    ``scan_batches`` takes bytes and whether the stretch ends with them; ``scan_some`` gives of them
    what is found in one go from a position on, with places that are relative to it. ``candidate``
    gives the first place at or after a position at which a batch may begin (-1: none).
    """

    scan: Callable[[bytes, bool], BatchScan]
    scan_some: Callable[[bytes, int, bool], BatchScan]
    candidate: Callable[[bytes, int], int]
    assembler: Callable[[ClusterId, OffsetAndEpoch], CommitAssembler]


def _scan_bytes(data: bytes, whole: bool) -> BatchScan:  # noqa: ARG001 - the other form asks
    return scan_batches(data)


def _scan_one(data: bytes, at: int, whole: bool) -> BatchScan:  # noqa: ARG001 - the other form asks
    """The one batch at ``at``: what follows may be passed in another way."""
    length = int.from_bytes(data[at + 8 : at + 12], "big", signed=True)
    end = at + max(12 + length, HEADER_BYTES)
    return scan_batches(data[at:end] if end <= len(data) else data[at : at + HEADER_BYTES])


def _candidate_in_bytes(data: bytes, at: int) -> int:
    found = data.find(_NO_PRODUCER, at + _NO_PRODUCER_AT)
    while found >= 0:
        begin = found - _NO_PRODUCER_AT
        size = int.from_bytes(data[begin + 8 : begin + 12], "big", signed=True) + 12
        if data[begin + _MAGIC_AT] == 2 and HEADER_BYTES <= size <= MAX_BATCH_BYTES:
            return begin
        found = data.find(_NO_PRODUCER, found + 1)
    return -1


def _candidate_in_text(data: bytes, at: int) -> int:
    found = data.find(b"\n" + dump_log.BATCH, max(at - 1, 0))
    return found + 1 if found >= 0 else -1


WAYS: Final = {
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


def batch_at(fd: int, form: LogFormat, at: int, end: int) -> RecordBatch | None:
    """The batch that begins at ``at``, if there is one whose checksum is right.

    Its ``at`` is relative to what was read.
    """
    size = 64 << 10
    while True:
        data = os.pread(fd, min(size, end - at), at)
        found = WAYS[form].scan(data, at + len(data) >= end)
        if found.batches:
            first = found.batches[0]
            return first if first.at == 0 and not first.error else None
        if found.error or len(data) < size or size >= LARGEST_READ_BYTES:
            return None
        size = min(size * 16, LARGEST_READ_BYTES)


def next_batch(fd: int, form: LogFormat, at: int, end: int) -> tuple[int, RecordBatch] | None:
    """The first place from ``at`` on at which a checked batch begins, and the batch.

    The bytes are not those of a batch by chance: its checksum is over all of it.
    """
    overlap = HEADER_BYTES
    while at < end:
        data = os.pread(fd, min(READ_BYTES, end - at), at)
        seen = 0
        while (found := WAYS[form].candidate(data, seen)) >= 0:
            batch = batch_at(fd, form, at + found, end)
            if batch is not None:
                return at + found, batch
            seen = found + 1
        if len(data) <= overlap:
            return None
        at += len(data) - overlap
    return None


def only_zeros(fd: int, at: int, end: int) -> bool:
    """Whether nothing was ever written there: a preallocated file ends in zeros."""
    while at < end:
        data = os.pread(fd, min(READ_BYTES, end - at), at)
        if not data or any(data):
            return not data
        at += len(data)
    return True
