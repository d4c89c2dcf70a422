"""Skips small batches without records that a feature monitor reads.

An idle controller writes two of them per second, with one NoOpRecord each: most batches of a log
that is months old. Checksums and records are checked as by the decoder, but nothing is built from
them.
"""

from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from featurewatch.streams.kraft.records.batch import HEADER_BYTES
from featurewatch.streams.kraft.records.selection import (
    CONTROL_KEY,
    DEFAULT_RECORD_TYPES,
    TYPE_BY_KEY,
)
from featurewatch.streams.types import LATEST_MS

_HEADER: Final = Struct(">qiibIhi8xq14xi")
"""Base offset, length, epoch, magic, checksum, attributes, last offset delta, newest time, number
of records; the first time and the producer's fields are skipped."""

_CRC_BEGINS: Final = 21
_MOST_RECORDS: Final = 8
_MOST_BYTES: Final = 4096
_UNWANTED: Final = bytes(
    key < CONTROL_KEY
    and TYPE_BY_KEY.get(key, "") not in DEFAULT_RECORD_TYPES
    and key in TYPE_BY_KEY
    for key in range(256)
)


class SkippedBatches(NamedTuple):
    """Some skipped batches: the position after them (``at``), the offset after them (``end``), and
    what the statistics need."""

    at: int
    end: int
    records: int
    epoch: int
    newest_ms: int
    first_epoch: int
    first_ms: int


def skip_batches(data: bytes, at: int, expected: int) -> SkippedBatches | None:
    """Returns the small batches without wanted records from position ``at`` on (None: there are
    none).

    They begin with the offset ``expected`` and are contiguous. Skipping stops at anything that a
    controller does not write; the batch reader then examines it.
    """
    begin, first, size = at, expected, len(data)
    epoch = newest_ms = first_epoch = first_ms = -1
    view, unpack = memoryview(data), _HEADER.unpack_from
    while size - at >= HEADER_BYTES:
        base, length, leader, magic, crc, attributes, delta, time_ms, count = unpack(data, at)
        after = at + 12 + length
        if not (
            base == expected
            and HEADER_BYTES <= 12 + length <= _MOST_BYTES
            and after <= size
            and magic == 2
            and attributes == 0
            and 0 < count <= _MOST_RECORDS
            and count == delta + 1
            and 0 <= time_ms <= LATEST_MS
            and _unwanted(data, at + HEADER_BYTES, after, count)
            and crc32c(view[at + _CRC_BEGINS : after]) == crc
        ):
            break
        if at == begin:
            first_epoch, first_ms = leader, time_ms
        if time_ms > newest_ms:
            newest_ms = time_ms
        epoch = leader
        expected += count
        at = after
    if at == begin:
        return None
    return SkippedBatches(at, expected, expected - first, epoch, newest_ms, first_epoch, first_ms)


def _unwanted(b: bytes, p: int, end: int, count: int) -> bool:
    """Whether the records from ``p`` to ``end`` are well-formed and none of them is wanted."""
    if len(b) < end + 6:
        return False  # the last batch of a read: the bytes checked below may lie behind it
    for doubled in range(0, 2 * count, 2):
        size = b[p]
        at = p + 1
        if size > 127:
            size += (b[at] << 7) - 128
            at += 1
        p = at + (size >> 1)
        # No attributes, no time delta, the expected offset delta, no key.
        if size & 1 or p > end or b[at] or b[at + 1] or b[at + 2] != doubled or b[at + 3] != 1:
            return False
        start = at + (5 if p - at < 70 else 6)
        if p - start < 4 or b[start] != 1 or not _UNWANTED[b[start + 1]]:
            return False
    return p == end
