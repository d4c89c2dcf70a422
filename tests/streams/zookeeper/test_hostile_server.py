"""A ZooKeeper server that is slow, endless or wrong: the source stalls, and then continues."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from featurewatch.kafka.address import Address
from featurewatch.streams.events import SourceState, ZnodeSnapshot
from featurewatch.streams.source_status import GracePeriods
from featurewatch.streams.zookeeper.bounded_socket import BoundedSocket
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.source import ZookeeperSource
from tests.hostile import HostileZookeeper, serving
from tests.running import running
from tests.streams.recording_sink import RecordingSink
from tests.waiting import until_async

GRACE = GracePeriods(transient_ms=300, permanent_ms=100, lag_ms=300)


@asynccontextmanager
async def following(
    server: HostileZookeeper, sink: RecordingSink, **limits: Any
) -> AsyncIterator[ZookeeperSource]:
    """A source on the server, whose failure is the test's."""
    async with serving(server.serve) as address:
        given = ZookeeperSettings(
            str(address), session_timeout_ms=3000, grace=GRACE, heartbeat_ms=100, **limits
        )
        source = ZookeeperSource(given, sink)
        async with running(source):
            yield source


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "a\0b"])
async def test_a_child_with_an_invalid_name_stalls_the_source_and_no_more(name: str) -> None:
    """No server lets such a znode be made: the reason names it, and it is not asked for."""
    server, sink = HostileZookeeper(), RecordingSink()
    server.children["/brokers/ids"] = ["1", name]
    async with following(server, sink) as source:
        await until_async(lambda: source.report().state is SourceState.STALLED)
        assert "child with an invalid name" in source.report().detail
        assert source.report().detail.isprintable()
        server.children["/brokers/ids"] = []
        await until_async(sink.following)


async def test_a_frame_that_trickles_in_is_not_following() -> None:
    """A byte each 100 ms inside an endless frame: after its time the connection ends."""
    server, sink = HostileZookeeper(), RecordingSink()

    async def trickle(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(struct.pack("!i", 1 << 20))
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.1)

    async with following(server, sink, answer_timeout_ms=500) as source:
        await until_async(sink.following)
        server.on_connect = trickle
        await until_async(lambda: "longer than 0.5 s" in source.report().last_error)
        await until_async(lambda: server.connections > 2)
        server.on_connect = None
        await until_async(lambda: source.report().state is SourceState.FOLLOWING)


@pytest.mark.parametrize("length", [2**31 - 1, -1, (1 << 20) + 1])
async def test_a_frame_that_is_too_long_is_not_read(length: int) -> None:
    """2 GiB are announced: the connection ends before they come, and the setting is named."""
    server, sink = HostileZookeeper(), RecordingSink()

    async def flood(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(struct.pack("!i", length))
        await writer.drain()

    async with following(server, sink, max_frame_bytes=1 << 20) as source:
        await until_async(sink.following)
        server.on_connect = flood
        await until_async(lambda: "max_zookeeper_frame_bytes" in source.report().last_error)
        server.on_connect = None
        await until_async(lambda: source.report().state is SourceState.FOLLOWING)


async def test_a_server_that_answers_pings_alone_is_left() -> None:
    """The session lives and no read is answered: stalled, with the reason, on new connections."""
    server, sink = HostileZookeeper(quiet=True), RecordingSink()
    async with following(server, sink, answer_timeout_ms=500) as source:
        await until_async(lambda: source.report().state is SourceState.STALLED)
        await until_async(lambda: server.connections > 2)
        server.quiet = False
        await until_async(lambda: source.report().state is SourceState.FOLLOWING)


async def test_a_session_for_days_is_not_taken() -> None:
    """A granted timeout of 24 days would hide that the server is silent for as long."""
    server, sink = HostileZookeeper(session_ms=2**31 - 1), RecordingSink()
    async with following(server, sink) as source:
        await until_async(lambda: source.report().state is SourceState.STALLED)
        assert "grants a session of 2147483647 ms" in source.report().last_error
        server.session_ms = 3000
        await until_async(sink.following)


async def test_a_snapshot_of_large_znodes_comes_in_chunks_that_the_bus_takes() -> None:
    """Four brokers of 2 MiB each: no chunk holds more than two of them."""
    server, sink = HostileZookeeper(), RecordingSink()
    rack = "x" * (2 << 20)
    broker = f'{{"version":5,"endpoints":[],"features":{{}},"rack":"{rack}"}}'.encode()
    server.children["/brokers/ids"] = ["1", "2", "3", "4"]
    server.znodes |= {f"/brokers/ids/{number}": broker for number in range(1, 5)}
    async with following(server, sink):
        await until_async(sink.following)
    chunks = sink.of(ZnodeSnapshot)
    assert max(len(chunk.znodes) for chunk in chunks) <= 3
    assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert sum(len(chunk.znodes) for chunk in chunks) == 5


class Pieces:
    """A socket that gives prepared bytes in pieces of a size."""

    def __init__(self, data: bytes, piece: int) -> None:
        self.data, self.piece = data, piece

    def recv(self, size: int) -> bytes:
        """The next piece."""
        taken = self.data[: min(size, self.piece)]
        self.data = self.data[len(taken) :]
        return taken


@pytest.mark.fuzz
@given(
    frames=st.lists(st.binary(max_size=40), max_size=6),
    piece=st.integers(1, 9),
    rest=st.binary(max_size=12),
)
@example(frames=[b""], piece=1, rest=b"\xff\xff\xff\xff")
@example(frames=[struct.pack("!ii", 0, 3000)], piece=3, rest=b"\x7f\xff\xff\xff")
@settings(max_examples=150)
def test_frames_are_followed_however_they_are_cut(
    frames: list[bytes], piece: int, rest: bytes
) -> None:
    """Every byte comes through until an invalid length, which raises and nothing else does."""
    good = b"".join(struct.pack("!i", len(content)) + content for content in frames)
    pieces: Any = Pieces(good + rest, piece)
    bounded = BoundedSocket(pieces, Address("zookeeper", 2181), 64, 5, lambda: 0)
    received = b""
    with suppress(OSError):
        while part := bounded.recv(5):
            received += part
        assert received == good + rest
    assert (good + rest).startswith(received)


@pytest.mark.fuzz
@given(garbage=st.binary(max_size=64), framed=st.booleans())
@example(garbage=b"", framed=True)
@example(garbage=struct.pack("!iqi", -1, 0, 0), framed=True)
@example(garbage=struct.pack("!iqi", 1, 0, -9999), framed=True)
@example(garbage=struct.pack("!iqii", 99, 1, 0, 2**31 - 1), framed=True)
@settings(
    max_examples=4,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
def test_no_frame_ends_the_source(garbage: bytes, framed: bool) -> None:
    """Whatever a server sends in its session: the source runs on, and follows again."""

    async def attack() -> None:
        server, sink = HostileZookeeper(), RecordingSink()

        async def send(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(struct.pack("!i", len(garbage)) + garbage if framed else garbage)
            await writer.drain()
            server.on_connect = None
            raise ConnectionError  # the end of the connection

        async with following(server, sink, answer_timeout_ms=500) as source:
            await until_async(sink.following)
            server.on_connect = send
            await until_async(lambda: server.on_connect is None)
            await until_async(lambda: source.report().state is SourceState.FOLLOWING)

    asyncio.run(attack())
