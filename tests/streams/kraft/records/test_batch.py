"""Record batches: a whole one is found, a damaged one is reported, one that is cut off waits."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.streams.kraft.records.batch import HEADER_BYTES, MAX_BATCH_BYTES, scan_batches
from tests.streams.kraft.encoding import batch_of, data_batch, framed, record_of

NO_OP = record_of("NO_OP_RECORD")
LOG = [
    data_batch([NO_OP] * 3, base_offset=0, leader_epoch=1),
    batch_of([framed(NO_OP, 0)], base_offset=3, leader_epoch=2, control=True),
    data_batch([NO_OP], base_offset=4, leader_epoch=2, append_ms=1_700_000_000_001),
]


def test_header_is_read() -> None:
    """Offsets, epoch, append time and kind of each batch come from its header."""
    scan = scan_batches(b"".join(LOG))
    assert (scan.consumed, scan.error) == (sum(map(len, LOG)), "")
    assert [
        (b.base_offset, b.last_offset, b.leader_epoch, b.control, b.record_count, b.error)
        for b in scan.batches
    ] == [(0, 2, 1, False, 3, ""), (3, 3, 2, True, 1, ""), (4, 4, 2, False, 1, "")]
    assert [b.append_ms for b in scan.batches] == [1_700_000_000_000] * 2 + [1_700_000_000_001]


def test_any_buffer_will_do() -> None:
    """Bytes, a bytearray and a memoryview of the log give the same batches."""
    log = b"".join(LOG)
    assert scan_batches(log) == scan_batches(bytearray(log)) == scan_batches(memoryview(log))


def test_cut_off_tail_is_left() -> None:
    """Of a read that ends anywhere, the whole batches are given and the rest is not consumed."""
    log = b"".join(LOG)
    ends = [0, len(LOG[0]), len(LOG[0]) + len(LOG[1]), len(log)]
    for size in range(len(log) + 1):
        scan = scan_batches(log[:size])
        assert scan.error == ""
        assert scan.consumed == max(end for end in ends if end <= size)
        assert len(scan.batches) == ends.index(scan.consumed)
    assert [b.base_offset for b in scan_batches(log, ends[1]).batches] == [3, 4]


@pytest.mark.parametrize("at", range(17, len(LOG[0])))
def test_each_damaged_byte_is_noticed(at: int) -> None:
    """A bit that flips anywhere behind the format makes that batch faulty, and no other one."""
    damaged = bytearray(b"".join(LOG))
    damaged[at] ^= 0x10
    first, *others = scan_batches(bytes(damaged)).batches
    assert first.error == "the checksum of the record batch does not match its content"
    assert (first.base_offset, first.last_offset) == (0, 0)
    assert [b.error for b in others] == ["", ""]


@pytest.mark.parametrize(
    ("length", "fault"),
    [
        (HEADER_BYTES - 13, "a record batch cannot have 60 bytes"),
        (-1, "a record batch cannot have 11 bytes"),
        (MAX_BATCH_BYTES, f"a record batch cannot have {MAX_BATCH_BYTES + 12} bytes"),
    ],
)
def test_impossible_length_ends_the_scan(length: int, fault: str) -> None:
    """Behind a length that cannot be true nothing can be found: what came before is given."""
    impossible = LOG[1][:8] + struct.pack(">i", length) + LOG[1][12:]
    scan = scan_batches(LOG[0] + impossible)
    assert (len(scan.batches), scan.consumed, scan.error) == (1, len(LOG[0]), fault)


def test_other_format_ends_the_scan() -> None:
    """A batch of another format is told, by its number."""
    scan = scan_batches(LOG[0][:16] + b"\x01" + LOG[0][17:])
    assert (scan.batches, scan.error) == ([], "record batch format 1 is not known, only 2")


def test_longest_batch_passes() -> None:
    """A batch as long as controllers may write them is read."""
    value = record_of("TOPIC_RECORD", {"name": "x" * (8 << 20), "topicId": "A" * 22})
    (batch,) = scan_batches(data_batch([value])).batches
    assert batch.error == ""


def test_compressed_batch_is_faulty() -> None:
    """The metadata log is never compressed."""
    (batch,) = scan_batches(batch_of([framed(NO_OP, 0)], attributes=4)).batches
    assert batch.error == "the record batch is compressed, which the metadata log never is"


@pytest.mark.parametrize(("count", "delta"), [(0, -1), (-5, 0), (1000, 999), (1, 1), (2, 0)])
def test_impossible_number_of_records_is_faulty(count: int, delta: int) -> None:
    """A batch whose number of records cannot be, or is not that of its offsets, is faulty."""
    from crc32c import crc32c

    batch = LOG[2]
    content = batch[21:23] + struct.pack(">i", delta) + batch[27:57] + struct.pack(">i", count)
    content += batch[61:]
    (scanned,) = scan_batches(batch[:17] + struct.pack(">I", crc32c(content)) + content).batches
    assert scanned.error == f"the record batch cannot hold {count} records over {delta + 1} offsets"


@pytest.mark.fuzz
@settings(max_examples=300)
@given(raw=st.binary(max_size=300), at=st.integers(0, 250), patch=st.binary(max_size=20))
def test_arbitrary_bytes_raise_nothing(raw: bytes, at: int, patch: bytes) -> None:
    """Neither random bytes nor a log that was written over make the scan raise or go astray."""
    log = b"".join(LOG)
    for data in (raw, log[:at] + patch + log[at + len(patch) :]):
        scan = scan_batches(data)
        assert 0 <= scan.consumed <= len(data)
        assert scan.consumed == (scan.batches[-1].end if scan.batches else 0)
