"""What is damaged in one copy of a log comes from another, where that has it whole.

Two copies that have the same batch, by its offset and epoch, have the same log before it (Raft's
log matching): what stands in another copy before the batch that follows a damage stood there.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from featurewatch.pipeline.replay.batch_reader import BatchReader, CorruptRange
from featurewatch.pipeline.replay.batch_skipper import SkippedBatches
from featurewatch.pipeline.replay.log_format import FileRange, batch_at, next_batch
from featurewatch.pipeline.replay.plan import LogRange
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.types import OffsetAndEpoch

_MOST_DAMAGES: Final = 100
"""So many that follow each other are held until it is known what follows them."""

_NEAR_BYTES: Final = 1 << 20
_MISSING: Final = "these offsets are missing in the file"


class RepairedRange(NamedTuple):
    """Says why what follows, up to the offset ``last``, is of another copy, known as ``place``.

    ``last`` is below ``first`` where the stretch ends, and another goes on.
    """

    first: int
    last: int
    reason: str
    place: str = ""

    def __str__(self) -> str:
        if self.last < self.first:
            return f"{self.reason}: another file goes on at offset {self.first}"
        offsets = f"offsets {self.first} to {self.last}"
        return f"{self.reason}: {offsets} are taken from {self.place}"


Item = RecordBatch | SkippedBatches | CorruptRange | RepairedRange


def repaired(
    fd: int, stretch: FileRange, walk: BatchReader, others: Sequence[LogRange], goes_on: int = -1
) -> Iterator[Item]:
    """What a walk through a stretch gives, with batches of ``others`` in place of damaged ones.

    What is damaged at its end is nothing where another stretch ``goes_on`` from its offset.
    """
    if not others and goes_on < 0:
        yield from walk
        return
    at, bad = walk.expected, list[RecordBatch | CorruptRange]()
    for found in walk:
        if isinstance(found, CorruptRange) or (isinstance(found, RecordBatch) and found.error):
            bad.append(found)
            walk.may_skip = False  # what comes in its place may begin a transaction
            if len(bad) >= _MOST_DAMAGES:
                yield from bad
                at, bad = walk.expected, []
            continue
        if bad:
            yield from _instead(bad, at, _begin(found), others)
            bad = []
        yield found
        at = found.end if isinstance(found, SkippedBatches) else found.last_offset + 1
    after = batch_at(fd, stretch.form, stretch.end, os.fstat(fd).st_size)
    if after is not None and after.base_offset > at:
        yield from _instead(bad, at, _begin(after), others)
    elif bad and at == goes_on:
        yield RepairedRange(at, at - 1, _reason(bad))
    else:
        yield from bad


def _begin(found: RecordBatch | SkippedBatches) -> OffsetAndEpoch:
    if isinstance(found, SkippedBatches):
        return OffsetAndEpoch(found.end - found.records, found.first_epoch)
    return OffsetAndEpoch(found.base_offset, found.leader_epoch)


def _instead(
    bad: Sequence[RecordBatch | CorruptRange],
    first: int,
    after: OffsetAndEpoch,
    others: Sequence[LogRange],
) -> Iterator[Item]:
    """The batches from ``first`` to the one that begins ``after``, or else what was damaged."""
    if first < after.offset:
        for part in others:
            if not part.first <= first < after.offset < part.end:
                continue
            with suppress(OSError):
                fd = os.open(part.stretch.path, os.O_RDONLY)
                try:
                    begin = _position(fd, part.stretch, first)
                    if _joins(_whole(fd, begin, first), after):
                        place = part.stretch.place
                        yield RepairedRange(first, after.offset - 1, _reason(bad), place)
                        for batch in _whole(fd, begin, first):
                            if batch.base_offset >= after.offset:
                                return
                            yield batch
                finally:
                    os.close(fd)
    yield from bad


def _reason(bad: Sequence[RecordBatch | CorruptRange]) -> str:
    if not bad:
        return _MISSING
    return bad[0].reason if isinstance(bad[0], CorruptRange) else bad[0].error


def _joins(batches: Iterator[RecordBatch], after: OffsetAndEpoch) -> bool:
    """Whether batches go on to the very one that begins ``after``."""
    later = (_begin(batch) for batch in batches if batch.base_offset >= after.offset)
    return next(later, None) == after


def _whole(fd: int, stretch: FileRange, first: int) -> Iterator[RecordBatch]:
    """Batches from the offset ``first`` on, as far as they are whole and follow each other."""
    expected = first
    for found in BatchReader(fd, stretch):
        if isinstance(found, RecordBatch) and found.last_offset >= first:
            if found.error or found.base_offset != expected:
                return
            expected = found.last_offset + 1
            yield found


def _position(fd: int, stretch: FileRange, offset: int) -> FileRange:
    """What of a stretch begins with a batch that is not far before ``offset``."""
    low, high = stretch.start, stretch.end
    while high - low > _NEAR_BYTES:
        middle = (low + high) // 2
        found = next_batch(fd, stretch.form, middle, high)
        if found is None or found[1].base_offset > offset:
            high = middle
        else:
            low = found[0]
    return FileRange(stretch.form, stretch.path, low, stretch.end, stretch.place)
