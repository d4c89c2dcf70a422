"""Through the batches of a stretch, and on behind what is damaged in it."""

import os
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from featurewatch.pipeline.replay.batch_skipper import SkippedBatches, skip_batches
from featurewatch.pipeline.replay.log_format import (
    LARGEST_READ_BYTES,
    READ_BYTES,
    WAYS,
    FileRange,
    batch_at,
    next_batch,
    only_zeros,
)
from featurewatch.streams.codec.cloudevents import LATEST_MS
from featurewatch.streams.kraft.records.batch import RecordBatch

_ANY: Final = -1


class CorruptRange(NamedTuple):
    """Bytes that are no batches. ``first`` and ``last`` are the offsets that are missing for it.

    ``last`` is -1 where nothing follows in the stretch, and below ``first`` where no offset is
    missing. ``bad`` says whether something was there that cannot be read (else: nothing was).
    """

    first: int
    last: int
    reason: str
    bad: bool = True


class BatchReader:
    """The batches of a stretch, in order, from its begin on.

    ``expected`` is the offset that must come first (-1: whichever there is). A damaged batch is
    given like any other, as far as it can be told from what follows where it ends; what cannot is a
    `CorruptRange` up to the next batch whose checksum is right. Neither the offset nor the epoch of
    a batch is covered by its checksum: an offset that does not fit to the batches before and after
    is a damage too.
    """

    def __init__(self, fd: int, stretch: FileRange, expected: int = _ANY) -> None:
        self._fd = fd
        self._stretch = stretch
        self._ways = WAYS[stretch.form]
        self._at = stretch.start
        self.expected = expected
        self.may_skip = False
        """Whether small batches without a wanted record may be passed in one go."""

    def __iter__(self) -> Iterator[RecordBatch | SkippedBatches | CorruptRange]:
        size, end = READ_BYTES, self._stretch.end
        while self._at < end:
            data = os.pread(self._fd, min(size, end - self._at), self._at)
            begin, whole = self._at, self._at + len(data) >= end
            fault = yield from self._through(data, whole)
            if fault is None or self._at > begin:
                size = READ_BYTES
            elif fault:
                yield from self._lost(fault)
            elif whole or size >= LARGEST_READ_BYTES:
                yield from self._lost("its last record batch is cut off")
            else:
                size = min(size * 8, LARGEST_READ_BYTES)

    def _through(
        self, data: bytes, whole: bool
    ) -> Generator[RecordBatch | SkippedBatches | CorruptRange, None, str | None]:
        """What stands in a read, up to a batch that is cut off in it, or to one that is odd.

        Returns why nothing more is found (empty: the read ends), or None: it must be read anew.
        """
        begin, at = self._at, 0
        while at < len(data):
            if (
                self.may_skip
                and self.expected >= 0
                and (passed := skip_batches(data, at, self.expected))
            ):
                at, self.expected = passed.at, passed.end
                self._at = begin + at
                yield passed
            found = self._ways.scan_some(data, at, whole)
            for batch in found.batches:
                if batch.error or batch.base_offset != self.expected:
                    self._at = begin + at + batch.at
                    yield from self._odd(batch, batch.end - batch.at)
                    return None
                self.expected = batch.last_offset + 1
                yield batch if 0 <= batch.append_ms <= LATEST_MS else _timeless(batch)
            at += found.consumed
            self._at = begin + at
            if not found.consumed:
                return found.error
        return ""

    def _odd(self, batch: RecordBatch, size: int) -> Iterator[RecordBatch | CorruptRange]:
        """A batch that is damaged, or that does not begin where the one before ended."""
        after = self._at + size
        follows = batch_at(self._fd, self._stretch.form, after, self._stretch.end)
        at_end = after >= self._stretch.end
        expected = batch.base_offset if self.expected == _ANY else self.expected
        if batch.error:
            if follows is None and not at_end:
                yield from self._lost(batch.error, skip=1)
                return
            self._at = after
            self.expected = expected + 1 if follows is None else follows.base_offset
            yield _timeless(batch._replace(base_offset=expected, last_offset=expected))
            return
        self._at = after
        fits = follows is not None and follows.base_offset == expected + batch.record_count
        if batch.base_offset != expected and fits:
            fault = f"its first offset is {batch.base_offset} and must be {expected}"
            self.expected = expected + batch.record_count
            yield batch._replace(error=fault, base_offset=expected, last_offset=expected)
        elif batch.base_offset < expected:
            reason = f"a record batch of the offsets {batch.base_offset} to {batch.last_offset}"
            yield CorruptRange(
                expected, expected - 1, f"{reason} stands where {expected} must follow"
            )
        else:
            if batch.base_offset > expected:
                yield CorruptRange(
                    expected, batch.base_offset - 1, "these offsets are missing in the file"
                )
            self.expected = batch.last_offset + 1
            yield batch if 0 <= batch.append_ms <= LATEST_MS else _timeless(batch)

    def _lost(self, reason: str, skip: int = 0) -> Iterator[CorruptRange]:
        """Goes to the next batch that can be read; there may be none."""
        begin, end = self._at, self._stretch.end
        found = next_batch(self._fd, self._stretch.form, begin + max(skip, 1), end)
        if found is None:
            self._at = end
            if not only_zeros(self._fd, begin, end):
                where = f"bytes {begin} to {end - 1}: {reason}"
                yield CorruptRange(self.expected, -1, where)
            return
        self._at, batch = found
        first = batch.base_offset if self.expected == _ANY else self.expected
        yield CorruptRange(
            first, batch.base_offset - 1, f"bytes {begin} to {self._at - 1}: {reason}"
        )
        self.expected = max(batch.base_offset, first)


def _timeless(batch: RecordBatch) -> RecordBatch:
    """A batch without a time: what it says of it cannot be one."""
    return batch._replace(append_ms=-1)
