"""Record batches of the metadata log: format v2, checked with CRC-32C, records left as bytes."""

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from crc32c import crc32c

from featurewatch.streams.kraft.errors import MalformedLogError
from featurewatch.streams.types import NO_CHECKSUM, LastRecord

_HEADER: Final = Struct(">qiibIhiqqqhii")
"""Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, base and newest
timestamp, producer id, producer epoch, base sequence, number of records (``DefaultRecordBatch``).
"""

HEADER_BYTES: Final = _HEADER.size
_LENGTH_ENDS: Final = 12
_CRC_BEGINS: Final = 21
_SMALLEST_RECORD_BYTES: Final = 7
_COMPRESSION: Final = 0x07
_CONTROL: Final = 0x20

MAX_BATCH_BYTES: Final = 20 << 20
"""Controllers write batches of at most 8 MiB: a longer one is a length that cannot be true, and
waiting for the rest of it would last for ever."""


class RecordBatch(NamedTuple):
    """One record batch; its records are ``buffer[start:end]``.

    Offsets are inclusive. ``append_ms`` is when the leader appended it. Of a batch with a ``error``
    only the length and the first offset can be relied on, which the checksum does not cover:
    ``last_offset`` is then the first, and the records must not be read. ``checksum`` is the one in
    the header, a CRC-32C over what follows it (`NO_CHECKSUM`: not known).
    """

    buffer: bytes
    at: int
    start: int
    end: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    append_ms: int
    control: bool
    record_count: int
    error: str
    checksum: int = NO_CHECKSUM


class BatchScan(NamedTuple):
    """The batches that are whole in a read.

    ``consumed`` bytes are done with: what follows is the beginning of a batch of which the rest was
    not read, or, with a ``error``, bytes that are no batch, so that nothing after them can be
    found.
    """

    batches: list[RecordBatch]
    consumed: int
    error: str


def scan_batches(data: bytes | bytearray | memoryview, at: int = 0) -> BatchScan:
    """The batches in ``data`` from position ``at`` on. Nothing is raised on any content."""
    buffer = data if isinstance(data, bytes) else bytes(data)
    size = len(buffer)
    batches: list[RecordBatch] = []
    while size - at >= HEADER_BYTES:
        end = at + _LENGTH_ENDS + int.from_bytes(buffer[at + 8 : at + 12], "big", signed=True)
        if error := _no_batch(buffer, at, end):
            return BatchScan(batches, at, error)
        if end > size:
            break
        batches.append(_batch(buffer, at, end))
        at = end
    return BatchScan(batches, at, "")


def _no_batch(buffer: bytes, at: int, end: int) -> str:
    """Why no batch can begin here (empty: one can)."""
    if not HEADER_BYTES <= end - at <= MAX_BATCH_BYTES:
        return f"a record batch cannot have {end - at} bytes"
    if buffer[at + 16] != 2:
        return f"record batch format {buffer[at + 16]} is not known, only 2"
    return ""


def _batch(buffer: bytes, at: int, end: int) -> RecordBatch:
    (base, _, epoch, _, crc, attributes, delta, _, newest_ms, _, _, _, count) = _HEADER.unpack_from(
        buffer, at
    )
    start = at + HEADER_BYTES
    most = (end - start) // _SMALLEST_RECORD_BYTES
    error = ""
    if crc32c(memoryview(buffer)[at + _CRC_BEGINS : end]) != crc:
        error = "the checksum of the record batch does not match its content"
    elif attributes & _COMPRESSION:
        error = "the record batch is compressed, which the metadata log never is"
    elif not 0 < count <= most or count != delta + 1:
        error = f"the record batch cannot hold {count} records over {delta + 1} offsets"
    last = base if error else base + delta
    count = min(max(count, 0), most)
    control = bool(attributes & _CONTROL)
    return RecordBatch(
        buffer, at, start, end, base, last, epoch, newest_ms, control, count, error, crc
    )


def is_replaced(batches: Iterable[RecordBatch], last: LastRecord) -> bool:
    """Whether the log that ``batches`` are of has another batch where ``last`` was.

    All controllers of a quorum hold the same bytes, so a different checksum is another log. Bytes
    that are corrupt now prove nothing. Raises `MalformedLogError` if no batch holds the offset.
    """
    for batch in batches:
        if batch.base_offset <= last.offset and (batch.error or batch.last_offset >= last.offset):
            is_other = (batch.leader_epoch, batch.checksum) != (last.epoch, last.checksum)
            return is_other and not batch.error and last.checksum != NO_CHECKSUM
    raise MalformedLogError(f"no batch holds offset {last.offset}")
