"""A node that sends what no node would: it is its own trouble, and the others are followed on."""

import asyncio
import struct
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from featurewatch.kafka import sasl
from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import open_connection
from featurewatch.kafka.node_errors import NodeError
from featurewatch.kafka.security import from_properties
from featurewatch.streams.apiversions import ApiVersionsSettings, ApiVersionsSource
from featurewatch.streams.events import DeadLetter, NodeAnswer, NodeSilent, SourceState
from tests.hostile import answering, no_file_descriptors, scram_node, serving
from tests.streams.apiversions.scripted_node import ScriptedNode, listening
from tests.streams.recording_sink import RecordingSink

BAD_ADDRESSES = [
    Address("a..b", 9092),
    Address("a" * 64 + ".example", 9092),
    Address("a" * 300, 9092),
    Address("kafka", 70_000),
    Address("kafka", -1),
    Address("kafka", 0),
    Address("ka\0fka", 9092),
    Address("\x1b[2Jkafka", 9092),
    Address("é" * 70, 9092),
    Address("fe80::1%" + "x" * 40 + " ", 9092),
]


def source_of(nodes: Sequence[ScriptedNode], sink: RecordingSink) -> ApiVersionsSource:
    """A source that lists the nodes in each round."""
    given = ApiVersionsSettings(
        bootstrap_servers=(nodes[0].address,), timeout_s=0.5, listing_interval_s=1e-6
    )
    return ApiVersionsSource(given, sink, lambda: 1000)


@pytest.mark.parametrize("address", BAD_ADDRESSES, ids=repr)
async def test_an_invalid_advertised_address_is_that_node_s_trouble(address: Address) -> None:
    """The node is silent with the reason, and the others are asked as ever."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], RecordingSink()
    async with listening(nodes):
        for node in nodes:
            node.brokers.append((3, address))
        source = source_of(nodes, sink)
        for _ in range(4):
            await source.round()
        assert {answer.node_id for answer in sink.of(NodeAnswer)} == {1, 2}
        (silent,) = sink.of(NodeSilent)
        assert (silent.node_id, silent.gone) == (3, False)
        assert silent.address.isprintable()
        assert source.report().state is SourceState.FOLLOWING


async def test_names_that_fill_the_bus_are_left_out() -> None:
    """600 features with names of 30,000 bytes: refused, whatever the bus would have said."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], RecordingSink()
    nodes[1].supported = [(f"{number:03d}" + "x" * 30_000, 1, 1) for number in range(600)]
    async with listening(nodes):
        source = source_of(nodes, sink)
        for _ in range(3):
            await source.round()
        assert {answer.node_id for answer in sink.of(NodeAnswer)} == {1}
        nodes[1].supported = [("x" * 30_000, 1, 1), ("good", 1, 2), ("\x1b[31mred", 1, 1)]
        await source.round()
        assert sink.of(NodeAnswer)[-1].supported == {"good": (1, 2)}
        assert all(len(letter.reason) < 500 for letter in sink.of(DeadLetter))
        assert len(sink.of(DeadLetter)) == 2


async def test_an_invalid_cluster_id_is_not_taken() -> None:
    """It would be the key of every message, and be in every line of the log."""
    for cluster in ("x" * 30_000, "a\x1b]0;title\x07b"):
        node, sink = ScriptedNode(cluster=cluster), RecordingSink()
        async with listening([node]):
            source = source_of([node], sink)
            await source.round()
            assert source.report().state is SourceState.STALLED
            assert source.report().cluster == ""
            assert "\x1b" not in source.report().detail
            assert "cluster id" in source.report().detail


async def test_a_process_without_file_descriptors_says_nothing_about_nodes() -> None:
    """It is its own trouble and stalled at once; afterwards it continues as before."""
    nodes, sink = [ScriptedNode(), ScriptedNode()], RecordingSink()
    async with listening(nodes):
        source = source_of(nodes, sink)
        await source.round()
        await source._peers.retain(())  # the nodes were restarted: new connections are needed
        with no_file_descriptors():
            for _ in range(5):
                await source.round()
                assert source.report().state is SourceState.STALLED
        assert "no file descriptor" in source.report().detail
        assert sink.of(NodeSilent) == []
        await source.round()
        assert source.report().state is SourceState.FOLLOWING
        assert sink.of(NodeSilent) == []


async def longest_pause_s(work: asyncio.Future[Any]) -> float:
    """For how long the event loop did nothing else while ``work`` ran.

    Processor time of its thread: on a busy machine a thread waits for a core, too.
    """
    longest = 0.0
    while not work.done():
        began = time.thread_time()
        await asyncio.sleep(0.01)
        longest = max(longest, time.thread_time() - began)
    return longest


def many_apis(size: int) -> bytes:
    """An ApiVersions response of version 4 with about ``size`` bytes of APIs."""
    count = size // 7
    length = count + 1
    varint = bytearray()
    while length >= 0x80:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    varint.append(length)
    api = struct.pack(">hhh", 1, 0, 13) + b"\0"
    return struct.pack(">h", 0) + bytes(varint) + api * count + struct.pack(">i", 0) + b"\0"


@pytest.mark.parametrize("size", [1 << 19, 8 << 20], ids=["items", "bytes"])
async def test_a_giant_answer_before_the_login_holds_nobody_up(size: int) -> None:
    """ApiVersions of half a MiB has too many items, one of 8 MiB is not even read."""
    async with serving(answering(lambda *_: many_apis(size))) as address:
        work = asyncio.ensure_future(open_connection(address, timeout_s=90))
        assert await longest_pause_s(work) < 1
        with pytest.raises(NodeError, match=r"(frame of|items)"):
            await work


async def test_a_gigabyte_is_not_waited_for() -> None:
    """A length of 200 MiB ends the connection at once, and not after the timeout."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(struct.pack(">i", 200 << 20))
        await reader.read()

    async with serving(serve) as address:
        async with asyncio.timeout(60):
            with pytest.raises(NodeError, match="at most 1048576 are expected"):
                await open_connection(address, timeout_s=90)


async def test_a_trickle_has_no_longer_than_a_silence() -> None:
    """One byte now and then does not begin the timeout again."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        writer.write(struct.pack(">i", 1000))
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with serving(serve) as address:
        async with asyncio.timeout(60):
            with pytest.raises(NodeError, match=r"did not answer for 0\.5 s"):
                await open_connection(address, timeout_s=0.5)


SCRAM = from_properties(
    {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "u",
        "sasl.password": "p",
    }
)


@pytest.mark.parametrize(
    ("first", "final", "reason"),
    [
        ("s=c2FsdA==,i=4096", "v=é".encode(), "does not know the password"),
        ("s=é,i=4096", b"", "cannot be read"),
        ("s=c2FsdA==,i=4096", b"\xff", "not text"),
        ("s=c2FsdA==,i=4096", b"e=\x1b[2J" + b"x" * 9000, "refuses the login"),
        ("s=c2FsdA==,i=1000000", b"", "asks for 1000000 SCRAM iterations: allowed are 4096 to"),
    ],
)
async def test_a_scram_server_of_any_kind_is_refused(first: str, final: bytes, reason: str) -> None:
    """Whatever its messages are, the error is one line about the node."""
    async with serving(scram_node(first, final)) as address:
        with pytest.raises(NodeError, match=reason) as refused:
            await open_connection(address, SCRAM)
        assert str(refused.value).isprintable()
        assert len(str(refused.value)) < 400


async def test_the_rounds_of_a_password_do_not_hold_the_loop() -> None:
    """A hundred thousand iterations, twenty times at once: the loop keeps running meanwhile."""
    async with serving(scram_node("s=c2FsdA==,i=100000", b"v=AAAA")) as address:
        work = asyncio.gather(
            *(open_connection(address, SCRAM, timeout_s=90) for _ in range(20)),
            return_exceptions=True,
        )
        assert await longest_pause_s(work) < 0.5
        assert all("does not know the password" in str(error) for error in await work)


@pytest.mark.fuzz
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=3), st.booleans())
@example(["v=é".encode()], True)
@example([b"r=nn,s=AAAA,i=4096,r=\xc3\xa9"], False)
@example([b"r=nn,s=AAAA,i=" + b"9" * 5000], False)
@example([b"r=nn,s=A,i=4096"], False)
@example([b""], True)
@settings(max_examples=60)
def test_no_scram_message_raises_anything_else(messages: list[bytes], is_begun: bool) -> None:
    """Whatever a server sends: the login continues, is over, or fails with `SaslError`."""
    exchange = sasl.scram("SCRAM-SHA-256", "u", "p", lambda: "n")
    next(exchange)
    try:
        if is_begun:
            exchange.send(b"r=nn,s=AAAA,i=4096")
        for message in messages:
            exchange.send(message)
    except (sasl.SaslError, StopIteration):
        return


@pytest.mark.fuzz
@given(st.binary(max_size=80), st.booleans())
@example(b"", True)
@example(b"\xff" * 4, False)
@example(b"\0\0\0\4", False)
@example(struct.pack(">h", 35), True)
@example(struct.pack(">h", 0) + b"\xff\xff\xff\xff\x0f", True)
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_no_frame_raises_anything_but_a_line_about_the_node(content: bytes, framed: bool) -> None:
    """Whatever comes in answer to ApiVersions: a connection, or one printable line."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(4)
        body = struct.pack(">i", 1) + content
        writer.write(struct.pack(">i", len(body)) + body if framed else content)
        await writer.drain()

    async def attack() -> None:
        async with serving(serve) as address:
            try:
                await (await open_connection(address, timeout_s=2)).close()
            except NodeError as error:
                assert str(error).isprintable()

    asyncio.run(attack())
