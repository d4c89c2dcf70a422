"""Reads the batches of a file range, and continues after corrupt bytes."""

import os
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple

from featurewatch.pipeline.replay.batch_skipper import SkippedBatches, skip_batches
from featurewatch.pipeline.replay.log_format import (
    FORMATS,
    LARGEST_READ_BYTES,
    READ_BYTES,
    FileRange,
    batch_at,
    next_batch,
    only_zeros,
)
from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.types import LATEST_MS

_ANY: Final = -1


class CorruptRange(NamedTuple):
    """Bytes that are not batches. ``first`` and ``last`` are the offsets that are missing because
    of it.

    ``last`` is -1 if nothing follows in the file range, and below ``first`` if no offset is
    missing.
    """

    first: int
    last: int
    reason: str


class BatchReader:
    """Iterates over the batches of a file range, in order.

    ``expected`` is the offset of the first batch (-1: any). A corrupt batch is yielded like any
    other if the following batch shows where it ends; otherwise a `CorruptRange` covers the bytes up
    to the next batch with a correct checksum. A batch's checksum covers neither its offset nor its
    epoch, so an offset that does not fit the surrounding batches counts as corruption too.
    """

    def __init__(self, fd: int, file_range: FileRange, expected: int = _ANY) -> None:
        self._fd = fd
        self._file_range = file_range
        self._format = FORMATS[file_range.format]
        self._at = file_range.start
        self.expected = expected
        self.may_skip = False
        """Whether small batches without a wanted record may be skipped together."""

    def __iter__(self) -> Iterator[RecordBatch | SkippedBatches | CorruptRange]:
        size, end = READ_BYTES, self._file_range.end
        while self._at < end:
            data = os.pread(self._fd, min(size, end - self._at), self._at)
            start, is_last = self._at, self._at + len(data) >= end
            error = yield from self._through(data, is_last)
            if error is None or self._at > start:
                size = READ_BYTES
            elif error:
                yield from self._skip_corrupt(error)
            elif is_last or size >= LARGEST_READ_BYTES:
                yield from self._skip_corrupt("its last record batch is cut off")
            else:
                size = min(size * 8, LARGEST_READ_BYTES)

    def _through(
        self, data: bytes, is_last: bool
    ) -> Generator[RecordBatch | SkippedBatches | CorruptRange, None, str | None]:
        """Yields the batches of one read, up to one that is incomplete or unexpected.

        Returns why no more are found (empty: the end of the read), or None if it must be read
        again.
        """
        start, at = self._at, 0
        while at < len(data):
            if (
                self.may_skip
                and self.expected >= 0
                and (skipped := skip_batches(data, at, self.expected))
            ):
                at, self.expected = skipped.at, skipped.end
                self._at = start + at
                yield skipped
            scan = self._format.scan_some(data, at, is_last)
            for batch in scan.batches:
                if batch.error or batch.base_offset != self.expected:
                    self._at = start + at + batch.at
                    yield from self._unexpected(batch, batch.end - batch.at)
                    return None
                self.expected = batch.last_offset + 1
                yield batch if 0 <= batch.append_ms <= LATEST_MS else _without_time(batch)
            at += scan.consumed
            self._at = start + at
            if not scan.consumed:
                return scan.error
        return ""

    def _unexpected(self, batch: RecordBatch, size: int) -> Iterator[RecordBatch | CorruptRange]:
        """Yields a batch that is corrupt, or that does not begin where the previous one ended."""
        after = self._at + size
        following = batch_at(self._fd, self._file_range.format, after, self._file_range.end)
        is_at_end = after >= self._file_range.end
        expected = batch.base_offset if self.expected == _ANY else self.expected
        if batch.error:
            if following is None and not is_at_end:
                yield from self._skip_corrupt(batch.error, skip=1)
                return
            self._at = after
            self.expected = expected + 1 if following is None else following.base_offset
            yield _without_time(batch._replace(base_offset=expected, last_offset=expected))
            return
        self._at = after
        is_followed = (
            following is not None and following.base_offset == expected + batch.record_count
        )
        if batch.base_offset != expected and is_followed:
            error = f"its first offset is {batch.base_offset} and must be {expected}"
            self.expected = expected + batch.record_count
            yield batch._replace(error=error, base_offset=expected, last_offset=expected)
        elif batch.base_offset < expected:
            reason = f"a record batch of the offsets {batch.base_offset} to {batch.last_offset}"
            yield CorruptRange(
                expected, expected - 1, f"{reason} is where {expected} should follow"
            )
        else:
            if batch.base_offset > expected:
                yield CorruptRange(
                    expected, batch.base_offset - 1, "these offsets are missing in the file"
                )
            self.expected = batch.last_offset + 1
            yield batch if 0 <= batch.append_ms <= LATEST_MS else _without_time(batch)

    def _skip_corrupt(self, reason: str, skip: int = 0) -> Iterator[CorruptRange]:
        """Skips to the next readable batch, if there is one."""
        begin, end = self._at, self._file_range.end
        located = next_batch(self._fd, self._file_range.format, begin + max(skip, 1), end)
        if located is None:
            self._at = end
            if not only_zeros(self._fd, begin, end):
                description = f"bytes {begin} to {end - 1}: {reason}"
                yield CorruptRange(self.expected, -1, description)
            return
        self._at, batch = located
        first = batch.base_offset if self.expected == _ANY else self.expected
        yield CorruptRange(
            first, batch.base_offset - 1, f"bytes {begin} to {self._at - 1}: {reason}"
        )
        self.expected = max(batch.base_offset, first)


def _without_time(batch: RecordBatch) -> RecordBatch:
    """A batch whose time is invalid, without it."""
    return batch._replace(append_ms=-1)
