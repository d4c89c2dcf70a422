"""Whole record batches as they come off the wire, told apart by their headers alone."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from streams.kraft.requests import Place

_HEADER = struct.Struct(">qiib")
"""Base offset, length of the rest, partition leader epoch, magic."""

_LAST_OFFSET_DELTA = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT = 23
_LENGTH_FROM = 12
"""The batch's length field counts what follows this byte."""

_MIN_LENGTH = 49
"""A batch without records: the rest of its 61 header bytes."""

_MAGIC = 2


class MalformedLogError(ValueError):
    """Bytes that are no record batches, or not the ones that must follow."""


@dataclass(frozen=True, slots=True)
class RawBatch:
    """A batch's bytes and what its header says of them; offsets are inclusive."""

    first: int
    last: int
    epoch: int
    data: memoryview

    @property
    def end(self) -> Place:
        """The place after this batch."""
        return Place(self.last + 1, self.epoch)


def split_batches(records: bytes | memoryview) -> Iterator[RawBatch]:
    """Split records into whole batches; a cut-off batch at the end is left out.

    The checksum is not looked at: who decodes a batch does that. Raises `MalformedLogError`.
    """
    view = memoryview(records)
    at = 0
    while len(view) - at >= _HEADER.size:
        first, length, epoch, magic = _HEADER.unpack_from(view, at)
        if magic != _MAGIC or length < _MIN_LENGTH or first < 0:
            raise MalformedLogError(f"no record batch at byte {at} of {len(view)}")
        end = at + _LENGTH_FROM + length
        if end > len(view):
            return
        (delta,) = _LAST_OFFSET_DELTA.unpack_from(view, at + _LAST_OFFSET_DELTA_AT)
        if delta < 0:
            raise MalformedLogError(f"the batch at offset {first} ends before it begins")
        yield RawBatch(first, first + delta, epoch, view[at:end])
        at = end


class Tail:
    """What was fetched and may still be above the high watermark.

    ``committed`` is the place after the last batch that was released.
    """

    def __init__(self, committed: Place) -> None:
        self.committed = committed
        self.size_bytes = 0
        self._batches: list[RawBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def end(self) -> Place:
        """The place after the last batch held: where to fetch next."""
        return self._batches[-1].end if self._batches else self.committed

    def append(self, records: bytes, newest_epoch: int) -> int:
        """Hold the batches that follow `end`; gives how many did.

        Batches that lie wholly before `end` are passed over. Where offsets leave a hole, or an
        epoch goes back or is newer than ``newest_epoch``, `MalformedLogError` is raised and nothing
        is held.
        """
        held = []
        end = self.end
        for batch in split_batches(records):
            if batch.last < end.offset:
                continue
            if batch.first > end.offset:
                raise MalformedLogError(f"offsets {end.offset} to {batch.first - 1} are missing")
            if not end.epoch <= batch.epoch <= newest_epoch:
                raise MalformedLogError(
                    f"the batch at offset {batch.first} has epoch {batch.epoch} after epoch "
                    f"{end.epoch}, in the leader's epoch {newest_epoch}"
                )
            held.append(batch)
            end = batch.end
        self._batches += held
        self.size_bytes += sum(len(batch.data) for batch in held)
        return len(held)

    def release(self, high_watermark: int) -> tuple[RawBatch, ...]:
        """Give away the batches that lie wholly below ``high_watermark``."""
        count = 0
        for batch in self._batches:
            if batch.last >= high_watermark:
                break
            count += 1
        released = tuple(self._batches[:count])
        if released:
            del self._batches[:count]
            self.size_bytes -= sum(len(batch.data) for batch in released)
            self.committed = released[-1].end
        return released

    def truncate(self, diverging: Place) -> bool:
        """Drop what a leader says is not in its log; false: that reaches below `committed`.

        ``diverging`` is the end of the newest epoch, not above the one that was asked for, that the
        leader has (KafkaRaftClient, ReplicatedLog.truncateToEndOffset).
        """
        kept = [
            batch
            for batch in self._batches
            if batch.epoch <= diverging.epoch and batch.last < diverging.offset
        ]
        self._batches = kept
        self.size_bytes = sum(len(batch.data) for batch in kept)
        return diverging.epoch >= self.committed.epoch and diverging.offset >= self.committed.offset

    def drop(self) -> None:
        """Forget everything above `committed`."""
        self._batches = []
        self.size_bytes = 0

    def restart(self, place: Place) -> None:
        """Forget everything and hold on from ``place``."""
        self.drop()
        self.committed = place
