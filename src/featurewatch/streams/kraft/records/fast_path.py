"""The fast path through a batch: recognizes records of the expected layout, and runs of them."""

from typing import Final

from featurewatch.streams.kraft.records.batch import RecordBatch
from featurewatch.streams.kraft.records.varint import write_varint

MOST_HEADS: Final = 1 << 15
"""Controllers put at most 10,000 records into a batch; what has more is read without such help."""

_heads_so_far: list[tuple[bytes, int]] = []


def record_heads(count: int) -> list[tuple[bytes, int]]:
    """The bytes between length and value of at least ``count`` records of a batch, and their size.

    No attributes, no time after the batch's, the record's index in the batch, no key.
    """
    for delta in range(len(_heads_so_far), count):
        head = b"\x00\x00" + write_varint(delta) + b"\x01"
        _heads_so_far.append((head, len(head)))
    return _heads_so_far


_WINDOW: Final = 128


def count_alike(batch: RecordBatch, at: int, size: int, start: int, delta: int) -> int:
    """How many records in a row, after the one at ``at``, have its size and its key.

    Where many partitions change at once, their records have a fixed distance: slices with that step
    show their lengths and keys without a loop. The value of the record at ``at`` begins at
    ``start``; ``delta`` is the index of the next record in the batch, and a run ends at the latest
    where indexes get one byte longer, which moves the value.
    """
    b, after = batch.buffer, at + size
    widens = 64 if delta < 64 else 8192 if delta < 8192 else MOST_HEADS
    room = (batch.end - after) // size
    run = min(_WINDOW, room, widens - delta, batch.record_count - delta)
    for byte in (at, at + 1, start, start + 1):
        bytes_in_row = b[byte + size : byte + size + run * size : size]
        run -= len(bytes_in_row.lstrip(b[byte : byte + 1]))
    return run
