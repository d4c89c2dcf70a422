"""A controller with a false log: the source stalls or says so, and nothing fills up."""

import asyncio
import hashlib
import os
import resource
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import (
    MAX_PAYLOAD_BYTES,
    DeadLetter,
    LogCommit,
    SnapshotChunk,
    SourceState,
)
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.kraft.records.decoder import MAX_UNKNOWN_KINDS
from featurewatch.streams.kraft.records.varint import write_uvarint
from featurewatch.streams.kraft.snapshot_spool import MEMORY_BYTES, RESERVED_BYTES
from featurewatch.streams.kraft.source import KraftSettings, KraftSource
from featurewatch.streams.topics import DEAD_LETTERS
from featurewatch.streams.types import ClusterId
from tests.hostile import answering, no_file_descriptors, serving
from tests.running import running
from tests.streams.dead_letters import decode_dead_letter
from tests.streams.kraft.encoding import data_batch, record_of, snapshot_batches
from tests.streams.kraft.hostile_controller import (
    FETCH,
    GRACE,
    LEVEL,
    HostileController,
)
from tests.streams.recording_sink import RecordingSink
from tests.waiting import until_async


@asynccontextmanager
async def following(
    controller: HostileController, sink: RecordingSink, **limits: Any
) -> AsyncIterator[KraftSource]:
    """A source on the controller, whose failure is the test's."""

    async def nothing() -> None:
        return None

    async with serving(answering(controller.answer)) as address:
        quorum = QuorumSettings("c", (address,), request_timeout_s=30)
        given = KraftSettings(
            ClusterId("c"), quorum=quorum, grace=GRACE, heartbeat_ms=100, **limits
        )
        source = KraftSource(given, sink, nothing)
        async with running(source):
            yield source


async def stalled(source: KraftSource) -> str:
    """Waits until the source is stalled; the reason."""
    await until_async(lambda: source.report().state is SourceState.STALLED)
    return source.report().detail


async def test_the_scripted_snapshot_is_read() -> None:
    """The baseline of the tests below: an honest snapshot is published."""
    content = b"".join(snapshot_batches([LEVEL] * 10))
    controller = HostileController(len(content), lambda at: content[at : at + 99])
    sink = RecordingSink()
    async with following(controller, sink):
        await until_async(lambda: bool(sink.of(SnapshotChunk)))
    assert len(sink.of(SnapshotChunk)[-1].records) == 11


async def test_a_snapshot_above_the_limit_is_refused_before_it_is_read() -> None:
    """2**60 bytes are announced: nothing is kept of it, and the setting is named."""
    controller, sink = HostileController(2**60), RecordingSink()
    async with following(controller, sink, max_snapshot_bytes=1 << 30) as source:
        assert "more than max_snapshot_bytes=1073741824: raise it" in await stalled(source)
    assert controller.sent <= 1 << 20


async def test_a_snapshot_that_does_not_fit_is_refused_before_it_is_read() -> None:
    """More than there is room in the temporary directory: said so, and not begun."""
    free = shutil.disk_usage(tempfile.gettempdir()).free
    controller, sink = HostileController(free - RESERVED_BYTES // 2), RecordingSink()
    async with following(controller, sink, max_snapshot_bytes=2**62) as source:
        assert "does not fit into" in await stalled(source)
    assert controller.sent <= 1 << 20


async def test_an_endless_snapshot_is_refused() -> None:
    """The announced size grows with each part."""
    controller, sink = HostileController(3 << 20, grows=1 << 20), RecordingSink()
    async with following(controller, sink) as source:
        assert "snapshots do not change" in await stalled(source)
    assert controller.sent <= 4 << 20


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """Writing more to a file fails, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def _open_temporary_files() -> list[str]:
    links = []
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            links.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sorted(link for link in links if link.startswith(f"{tempfile.gettempdir()}/#"))


async def test_a_full_disk_is_the_source_s_trouble_and_its_file_is_removed() -> None:
    """The write fails in the middle: stalled with what to do, and nothing is left."""
    controller, sink = HostileController(MEMORY_BYTES * 4), RecordingSink()
    before = _open_temporary_files()
    with files_of_at_most(MEMORY_BYTES + (1 << 20)):
        async with following(controller, sink) as source:
            reason = await stalled(source)
            assert _open_temporary_files() == before
    assert "cannot be kept in the temporary directory (File too large)" in reason
    assert "make room, or set TMPDIR" in reason


async def test_a_process_without_file_descriptors_is_no_controller_s_fault() -> None:
    """The reason is the process's own, and goes away with it."""
    controller, sink = HostileController(records=data_batch([LEVEL])), RecordingSink()
    async with serving(answering(controller.answer)) as address:
        quorum = QuorumSettings("c", (address,), request_timeout_s=30)
        limited = KraftSettings(ClusterId("c"), quorum=quorum, grace=GRACE)

        async def nothing() -> None:
            return None

        source = KraftSource(limited, sink, nothing)
        with no_file_descriptors():
            task = asyncio.ensure_future(source.run())
            assert "this process has no file descriptor left" in await stalled(source)
        await until_async(sink.following)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_commit_above_the_limit_of_the_bus_is_made_smaller() -> None:
    """12 MiB of topic names in one batch: the level in it is published, the names are counted."""
    topics = [
        record_of("TOPIC_RECORD", {"name": "\x01" * 30_000, "topicId": "A" * 22})
        for _ in range(400)
    ]
    controller, sink = HostileController(records=data_batch([*topics, LEVEL])), RecordingSink()
    controller.end = 401
    given = {"wanted": frozenset({"TOPIC_RECORD", "FEATURE_LEVEL_RECORD"})}
    async with following(controller, sink, **given):
        await until_async(lambda: bool(sink.of(LogCommit)), 60)
    (commit,) = sink.of(LogCommit)
    assert [record["type"] for record in commit.records] == ["FEATURE_LEVEL_RECORD"]
    assert commit.skipped == {"TOPIC_RECORD": 400}
    assert "at most 12582912 are published" in sink.of(DeadLetter)[0].reason


async def test_a_commit_that_stays_too_large_is_one_unreadable_record() -> None:
    """Levels with names of 30,000 characters: a stand-in with the reason takes their place."""
    name = "\x01" * 30_000
    levels = [record_of("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": 1})] * 100
    controller, sink = HostileController(records=data_batch(levels), end=100), RecordingSink()
    async with following(controller, sink):
        await until_async(lambda: bool(sink.of(LogCommit)), 60)
    (commit,) = sink.of(LogCommit)
    assert [record["type"] for record in commit.records] == ["UNREADABLE"]
    assert commit.skipped == {"FEATURE_LEVEL_RECORD": 100}


async def test_a_damaged_batch_of_13_mib_is_a_small_dead_letter() -> None:
    """Of its bytes the first are kept, with the length and the digest of all."""
    topic = record_of("TOPIC_RECORD", {"name": "x" * 30_000, "topicId": "A" * 22})
    batch = bytearray(data_batch([topic] * 430))
    batch[30] ^= 1
    controller, sink = HostileController(records=bytes(batch)), RecordingSink()
    async with following(controller, sink):
        await until_async(lambda: bool(sink.of(DeadLetter)), 60)
    damaged = sink.of(DeadLetter)[0]
    assert "checksum" in damaged.reason
    kept = decode_dead_letter(encode(DEAD_LETTERS, damaged).value)
    assert len(kept.payload) == MAX_PAYLOAD_BYTES < kept.payload_bytes
    assert kept.payload_sha256 == hashlib.sha256(damaged.payload).hexdigest()


async def test_a_credential_of_a_later_release_does_not_leak() -> None:
    """Of a record of an unknown type: its type, version, length and digest, and no byte."""
    secret = b"\x01\x63\x02" + b"hunter2-stored-key"
    controller = HostileController(records=data_batch([LEVEL, secret]), end=2)
    sink = RecordingSink()
    async with following(controller, sink):
        await until_async(lambda: bool(sink.of(LogCommit)))
    (letter,) = sink.of(DeadLetter)
    assert letter.payload == b""
    assert letter.reason.startswith("record type 99 is not known (version 2, 21 bytes, SHA-256 ")
    assert "hunter2" not in repr(sink.events)


@pytest.mark.parametrize(
    ("values", "letters"),
    [
        ([b"\x01\x63\x00"] * 5_000, 1),  # of one unknown type
        # of ever other types, as in random bytes
        (
            [b"\x01" + write_uvarint(200 + number) + b"\x00" for number in range(5_000)],
            MAX_UNKNOWN_KINDS,
        ),
        ([b"\x01\x0c\x00"] * 5_000, 101),  # of a known type, cut off
    ],
)
async def test_a_batch_of_many_unreadable_records_is_few_dead_letters(
    values: list[bytes], letters: int
) -> None:
    """Thousands of records do not become as many dead letters."""
    controller, sink = HostileController(records=data_batch(values), end=5_000), RecordingSink()
    async with following(controller, sink):
        await until_async(lambda: bool(sink.of(LogCommit)))
    assert len(sink.of(DeadLetter)) == letters
    if letters == 101:
        assert "4900 more of its records" in sink.of(DeadLetter)[-1].reason


@pytest.mark.fuzz
@given(st.binary(max_size=120), st.booleans())
@example(b"", False)
@example(b"\0", False)
@example(b"\0" + bytes(8) + b"\xff\xff\xff\xff\x0f", False)
@example(b"\xff\xff\xff\xff\x0f", True)
@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
def test_no_answer_ends_the_source(raw: bytes, has_snapshot: bool) -> None:
    """Whatever a controller answers to Fetch: the source runs on, and follows afterwards."""

    async def attack() -> None:
        size = 10 if has_snapshot else None
        controller, sink = HostileController(size, raw=raw), RecordingSink()
        async with following(controller, sink):
            await until_async(lambda: controller.asked.count(FETCH) >= 1)
            controller.raw, controller.size = None, None
            controller.records = data_batch([LEVEL])
            await until_async(sink.following)

    asyncio.run(attack())
