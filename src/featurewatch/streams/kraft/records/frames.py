"""The careful way through a record of a batch: every part read, checked (``DefaultRecord``)."""

from struct import error as struct_error
from typing import Final, NamedTuple

from featurewatch.streams.kraft.errors import RecordDecodeError
from featurewatch.streams.kraft.records.varint import uvarint, varint

FAILURES: Final = (RecordDecodeError, IndexError, struct_error, UnicodeDecodeError)
"""The only exceptions that reading arbitrary bytes may raise here and in a generated decoder."""


class RecordFrame(NamedTuple):
    """The positions of a record's parts. ``key_start`` is -1 where it has no key."""

    key_start: int
    key_end: int
    start: int
    end: int


def reason_of(failure: Exception) -> str:
    """The reason in one of `FAILURES`, free of what was read."""
    match failure:
        case RecordDecodeError(reason=reason):
            return reason
        case UnicodeDecodeError():
            return "a text in it is not UTF-8"
        case _:
            return "it is cut off"


def record_end(buffer: bytes, at: int, batch_end: int) -> tuple[int, int]:
    """Where a record begins after its length, and where it ends.

    Raises one of `FAILURES` when the length cannot be true: then no later record can be found.
    """
    size, start = varint(buffer, at)
    if not 0 <= size <= batch_end - start:
        raise RecordDecodeError("its length does not fit the record batch")
    return start, start + size


def frame(buffer: bytes, at: int, end: int, delta: int) -> RecordFrame:
    """The parts of the record from ``at`` (after its length) to ``end``.

    ``delta`` is its index in the batch. Raises one of `FAILURES`.
    """
    if buffer[at] != 0:
        raise RecordDecodeError("it has attributes, which no metadata record has")
    # Kafka allows 64 bits here; metadata records have the batch's time (RecordsIterator).
    time_delta, at = varint(buffer, at + 1)
    offset_delta, at = varint(buffer, at)
    if time_delta != 0 or offset_delta != delta:
        raise RecordDecodeError("its time or offset does not follow from the record batch")
    size, at = varint(buffer, at)
    key_start, key_end = (at, at + size) if size >= 0 else (-1, -1)
    size, start = varint(buffer, max(at, key_end))
    value_end = start + size
    if size < 0 or value_end > end:
        raise RecordDecodeError("its value is missing or longer than the record")
    headers, at = uvarint(buffer, value_end)
    if headers != 0 or at != end:
        raise RecordDecodeError("it has headers or bytes after its value")
    return RecordFrame(key_start, key_end, start, value_end)
