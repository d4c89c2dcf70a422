"""Replaces corrupt batches of one copy of a log by those of another copy.

Two copies with the same batch, by offset and epoch, have the same log before it (Raft's log
matching property), so the other copy's batches before the one that follows the corruption are the
missing ones.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from featurewatch.pipeline.replay.batch_reader import BatchReader, CorruptRange
from featurewatch.pipeline.replay.batch_skipper import SkippedBatches
from featurewatch.pipeline.replay.log_format import FileRange, batch_at, next_batch
from featurewatch.pipeline.replay.log_ranges import LogRange
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.types import OffsetAndEpoch

_MAX_PENDING: Final = 100
"""At most this many consecutive corrupt items are held until the next good batch."""

_NEAR_BYTES: Final = 1 << 20
_MISSING: Final = "these offsets are missing in the file"


class RepairedRange(NamedTuple):
    """States why the offsets from ``first`` to ``last`` come from another copy, named by ``label``.

    ``last`` is below ``first`` if the file range ends and another one continues.
    """

    first: int
    last: int
    reason: str
    label: str = ""

    def __str__(self) -> str:
        if self.last < self.first:
            return f"{self.reason}: another file continues at offset {self.first}"
        offsets = f"offsets {self.first} to {self.last}"
        return f"{self.reason}: {offsets} are taken from {self.label}"


Item = RecordBatch | SkippedBatches | CorruptRange | RepairedRange


def repaired(
    fd: int,
    file_range: FileRange,
    reader: BatchReader,
    others: Sequence[LogRange],
    continues_at: int = -1,
) -> Iterator[Item]:
    """Yields the items of a reader, with batches of ``others`` in place of corrupt ones.

    Corruption at the end is dropped if another file range ``continues_at`` the same offset (-1:
    none).
    """
    if not others and continues_at < 0:
        yield from reader
        return
    next_offset, corrupt = reader.expected, list[RecordBatch | CorruptRange]()
    for item in reader:
        if isinstance(item, CorruptRange) or (isinstance(item, RecordBatch) and item.error):
            corrupt.append(item)
            reader.may_skip = False  # its replacement may begin a transaction
            if len(corrupt) >= _MAX_PENDING:
                yield from corrupt
                next_offset, corrupt = reader.expected, []
            continue
        if corrupt:
            yield from _replacement(corrupt, next_offset, _begin(item), others)
            corrupt = []
        yield item
        next_offset = item.end if isinstance(item, SkippedBatches) else item.last_offset + 1
    following = batch_at(fd, file_range.format, file_range.end, os.fstat(fd).st_size)
    if following is not None and following.base_offset > next_offset:
        yield from _replacement(corrupt, next_offset, _begin(following), others)
    elif corrupt and next_offset == continues_at:
        yield RepairedRange(next_offset, next_offset - 1, _reason(corrupt))
    else:
        yield from corrupt


def _begin(item: RecordBatch | SkippedBatches) -> OffsetAndEpoch:
    if isinstance(item, SkippedBatches):
        return OffsetAndEpoch(item.end - item.records, item.first_epoch)
    return OffsetAndEpoch(item.base_offset, item.leader_epoch)


def _replacement(
    corrupt: Sequence[RecordBatch | CorruptRange],
    first: int,
    after: OffsetAndEpoch,
    others: Sequence[LogRange],
) -> Iterator[Item]:
    """The other copy's batches from ``first`` up to ``after``, or else the corrupt items."""
    if first < after.offset:
        for log_range in others:
            if not log_range.first <= first < after.offset < log_range.end:
                continue
            with suppress(OSError):
                fd = os.open(log_range.file_range.path, os.O_RDONLY)
                try:
                    begin = _position(fd, log_range.file_range, first)
                    if _joins(_intact(fd, begin, first), after):
                        label = log_range.file_range.label
                        yield RepairedRange(first, after.offset - 1, _reason(corrupt), label)
                        for batch in _intact(fd, begin, first):
                            if batch.base_offset >= after.offset:
                                return
                            yield batch
                finally:
                    os.close(fd)
    yield from corrupt


def _reason(corrupt: Sequence[RecordBatch | CorruptRange]) -> str:
    if not corrupt:
        return _MISSING
    return corrupt[0].reason if isinstance(corrupt[0], CorruptRange) else corrupt[0].error


def _joins(batches: Iterator[RecordBatch], after: OffsetAndEpoch) -> bool:
    """Whether the batches lead to exactly the batch that begins at ``after``."""
    later = (_begin(batch) for batch in batches if batch.base_offset >= after.offset)
    return next(later, None) == after


def _intact(fd: int, file_range: FileRange, first: int) -> Iterator[RecordBatch]:
    """The batches from offset ``first`` on, as long as they are intact and contiguous."""
    expected = first
    for item in BatchReader(fd, file_range):
        if isinstance(item, RecordBatch) and item.last_offset >= first:
            if item.error or item.base_offset != expected:
                return
            expected = item.last_offset + 1
            yield item


def _position(fd: int, file_range: FileRange, offset: int) -> FileRange:
    """The part of a file range that begins with a batch shortly before ``offset``."""
    low, high = file_range.start, file_range.end
    while high - low > _NEAR_BYTES:
        middle = (low + high) // 2
        located = next_batch(fd, file_range.format, middle, high)
        if located is None or located[1].base_offset > offset:
            high = middle
        else:
            low = located[0]
    return FileRange(file_range.format, file_range.path, low, file_range.end, file_range.label)
