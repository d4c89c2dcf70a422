"""Snapshots: whole ones become chunks, others are refused."""

import hashlib
import io
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import DeadLetter, SnapshotChunk
from featurewatch.streams.kraft.errors import CorruptSnapshotError
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.kraft.records.decoder import FIRST_OF_KIND
from featurewatch.streams.kraft.snapshot import (
    CHUNK_BYTES,
    SnapshotOutput,
    SnapshotReader,
    parse_name,
    read_snapshot,
)
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId, OffsetAndEpoch
from tests.streams.kraft.encoding import batch_of, data_batch, framed, record_of, snapshot_batches

CLUSTER = ClusterId("a-cluster")
NAME = "00000000000000001234-0000000007.checkpoint"


def broker(number: int) -> bytes:
    """A registration of some size."""
    content: dict[str, Any] = {
        "brokerId": number,
        "incarnationId": "GHlH5OERRkutVAcVWWoDyA",
        "brokerEpoch": number,
        "endPoints": [{"name": "A", "host": "h" * 60, "port": 9092, "securityProtocol": 0}],
        "features": [
            {"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": 21}
        ],
        "rack": None,
        "fenced": True,
    }
    return record_of("REGISTER_BROKER_RECORD", content)


TOPIC = record_of("TOPIC_RECORD", {"name": "t", "topicId": "A" * 22})


def read(content: bytes) -> list[SnapshotOutput]:
    """A snapshot file, read."""
    return list(read_snapshot(io.BytesIO(content), CLUSTER, NAME, seen_ms=5))


def test_snapshot_becomes_one_chunk() -> None:
    """M-65: a small snapshot is one chunk, with its place, its time and what was skipped."""
    (chunk,) = read(b"".join(snapshot_batches([broker(1), TOPIC, broker(2)])))
    assert isinstance(chunk, SnapshotChunk)
    assert (chunk.end_offset, chunk.leader_epoch, chunk.append_ms) == (1234, 7, 1_700_000_000_000)
    assert (chunk.index, chunk.last, chunk.seen_ms) == (0, True, 5)
    assert [(r["offset"], r["type"]) for r in chunk.records] == [
        (1, "KRAFT_VERSION"),
        (2, "REGISTER_BROKER_RECORD"),
        (4, "REGISTER_BROKER_RECORD"),
    ]
    assert chunk.skipped == {"TOPIC_RECORD": 1, "SNAPSHOT_HEADER": 1, "SNAPSHOT_FOOTER": 1}


def test_large_snapshot_becomes_chunks_of_bounded_size() -> None:
    """No chunk is above its size, only the last is marked, and together they hold everything."""
    chunks = read(b"".join(snapshot_batches([broker(number) for number in range(3000)])))
    assert all(isinstance(chunk, SnapshotChunk) for chunk in chunks)
    snapshot_chunks = [chunk for chunk in chunks if isinstance(chunk, SnapshotChunk)]
    assert [chunk.index for chunk in snapshot_chunks] == list(range(len(snapshot_chunks)))
    assert [chunk.last for chunk in snapshot_chunks] == [False] * (len(snapshot_chunks) - 1) + [
        True
    ]
    assert len(snapshot_chunks) > 2
    assert all(len(orjson.dumps(chunk.records)) <= CHUNK_BYTES * 1.01 for chunk in snapshot_chunks)
    records = [record for chunk in snapshot_chunks for record in chunk.records]
    assert [r["data"]["brokerId"] for r in records[1:]] == list(range(3000))


def test_record_larger_than_a_chunk_has_its_own_chunk() -> None:
    """A single record above a chunk's size is not split, and takes no other with it."""
    big = record_of("FEATURE_LEVEL_RECORD", {"name": "x" * (CHUNK_BYTES + 1), "featureLevel": 1})
    chunks = read(b"".join(snapshot_batches([broker(1), big, broker(2)])))
    assert [len(c.records) for c in chunks if isinstance(c, SnapshotChunk)] == [2, 1, 1]


@settings(max_examples=50)
@given(cuts=st.lists(st.integers(0, 20_000), max_size=6))
def test_every_split_gives_the_same(cuts: list[int]) -> None:
    """However the bytes arrive, the chunks are the same."""
    content = b"".join(snapshot_batches([broker(number) for number in range(100)], batch_size=7))
    ends = [*sorted(cut % len(content) for cut in cuts), len(content)]
    reader = SnapshotReader(CLUSTER, OffsetAndEpoch(1234, 7))
    events: list[SnapshotOutput] = []
    for start, end in zip([0, *ends], ends, strict=False):
        events += reader.feed(content[start:end], 5)
    assert [*events, reader.finish(5)] == read(content)


def test_snapshot_cut_off_anywhere_never_looks_whole() -> None:
    """Of a snapshot without its end no chunk is marked as the last, wherever it is cut."""
    content = b"".join(snapshot_batches([broker(1), broker(2)], batch_size=1))
    for size in range(len(content)):
        with pytest.raises(CorruptSnapshotError, match="it is cut off before its footer"):
            read(content[:size])


HEAD, BODY, FOOT = snapshot_batches([broker(1)])
FLIPPED = BODY[:80] + bytes([BODY[80] ^ 1]) + BODY[81:]


@pytest.mark.parametrize(
    ("content", "byte", "reason"),
    [
        (BODY + FOOT, 0, "it does not begin with a snapshot header"),
        (FOOT, 0, "a SNAPSHOT_FOOTER is in a wrong place"),
        (HEAD + HEAD + FOOT, len(HEAD), "a SNAPSHOT_HEADER is in a wrong place"),
        (HEAD + FOOT + BODY, len(HEAD) + len(FOOT), "it continues after its footer"),
        (
            HEAD + FLIPPED + FOOT,
            len(HEAD),
            "the checksum of the record batch does not match its content",
        ),
        (HEAD + b"\x7f" * 80, len(HEAD), "a record batch cannot have 2139062155 bytes"),
        (data_batch([TOPIC]) + FOOT, 0, "it does not begin with a snapshot header"),
    ],
)
def test_snapshot_that_cannot_be_trusted_is_refused(content: bytes, byte: int, reason: str) -> None:
    """A damaged or misplaced batch refuses the whole snapshot and says where."""
    with pytest.raises(CorruptSnapshotError) as refused:
        read(content)
    assert refused.value.reason == f"snapshot 1234-7 of cluster a-cluster, byte {byte}: {reason}"


def test_unreadable_record_goes_to_the_dead_letters() -> None:
    """One record that cannot be read keeps its place, its bytes apart; the rest is good."""
    dead_letter, chunk = read(b"".join(snapshot_batches([broker(1), b"\x01\x7e\x00", broker(2)])))
    assert isinstance(dead_letter, DeadLetter)
    assert dead_letter.location == "snapshot 1234-7 offset 3"
    digest = hashlib.sha256(b"\x01\x7e\x00").hexdigest()
    assert dead_letter.payload == b""
    expected = f"record type 126 is not known (version 0, 3 bytes, SHA-256 {digest})"
    assert dead_letter.reason == expected + FIRST_OF_KIND
    assert isinstance(chunk, SnapshotChunk)
    assert [record["type"] for record in chunk.records[1:]] == [
        "REGISTER_BROKER_RECORD",
        "UNREADABLE",
        "REGISTER_BROKER_RECORD",
    ]


def test_names() -> None:
    """A file name gives the end offset and the epoch; another name is refused."""
    assert parse_name(NAME) == (1234, 7)
    assert parse_name("bootstrap.checkpoint") == (0, 0)
    for other in ("1234-7.checkpoint", NAME + ".part", NAME + ".deleted", "x"):
        with pytest.raises(CorruptSnapshotError, match="is not the name of a metadata snapshot"):
            parse_name(other)


def test_pieces_are_all_that_is_held() -> None:
    """The bytes of batches that were read are not kept."""
    reader = SnapshotReader(CLUSTER, OffsetAndEpoch(1, 1))
    content = b"".join(snapshot_batches([TOPIC] * 5000))
    held = []
    for start in range(0, len(content), 1000):
        reader.feed(content[start : start + 1000], 5)
        held.append(len(reader._tail))
    batch = scan_batches(content).batches[1]
    assert max(held) < batch.end - batch.start + 1000
    reader.finish(5)


@pytest.mark.fuzz
@settings(max_examples=200)
@given(raw=st.binary(max_size=300), at=st.integers(0, 500), patch=st.binary(max_size=20))
def test_arbitrary_bytes_are_chunks_or_one_error(raw: bytes, at: int, patch: bytes) -> None:
    """Random bytes, and a snapshot that was written over: `CorruptSnapshotError` or its chunks."""
    whole = HEAD + BODY + FOOT
    for content in (raw, whole[:at] + patch + whole[at + len(patch) :], HEAD + raw + FOOT):
        try:
            *_, last = read(content)
        except CorruptSnapshotError:
            continue
        assert isinstance(last, SnapshotChunk)
        assert last.last


@pytest.mark.fuzz
@settings(max_examples=100)
@given(values=st.lists(st.binary(max_size=40), min_size=1, max_size=4), is_control=st.booleans())
def test_arbitrary_records_are_chunks_or_one_error(values: list[bytes], is_control: bool) -> None:
    """Batches with valid checksums, whatever their records are."""
    body = data_batch(values)
    if is_control:
        body = batch_of([framed(value, at) for at, value in enumerate(values)], control=True)
    for content in (body, HEAD + body + FOOT):
        try:
            encode(METADATA_LOG, read(content)[-1])
        except CorruptSnapshotError:
            continue
