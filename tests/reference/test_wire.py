"""The server: one answer after the other, and what is no request ends its own connection only."""

import asyncio
import logging
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kio.schema.api_versions.v0.request import ApiVersionsRequest

from featurewatch.reference.machines.requests import FeaturesResponse
from featurewatch.reference.wire import responses
from featurewatch.reference.wire.api_keys import ApiDialect
from featurewatch.reference.wire.frames import WireRequest
from featurewatch.reference.wire.server import MAX_REQUEST_BYTES, WireServer
from tests.reference.request_bytes import request_bytes

SPEECH = ApiDialect.RELEASED
DEADLINE_S = 10.0


class GatedNode:
    """Answers ApiVersions when it is let to."""

    def __init__(self) -> None:
        self.let = asyncio.Event()
        self.let.set()
        self.received: list[int] = []
        self.closes = False

    async def __call__(self, call: WireRequest) -> Any:
        """The answer of a node without features."""
        self.received.append(call.correlation_id)
        await self.let.wait()
        return None if self.closes else responses.api_versions(call, SPEECH, FeaturesResponse())


@pytest.fixture
def node() -> GatedNode:
    """What answers."""
    return GatedNode()


@pytest.fixture
async def server(node: GatedNode) -> AsyncIterator[WireServer]:
    """A server on a port of its own."""
    made = WireServer(SPEECH, node)
    await made.start()
    yield made
    await made.close()


class Peer:
    """A client of raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, *correlation_ids: int) -> None:
        """Sends requests, all at once."""
        self.write(
            b"".join(
                framed(request_bytes(ApiVersionsRequest(), correlation_id))
                for correlation_id in correlation_ids
            )
        )

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._writer.write(data)

    async def response_id(self) -> int | None:
        """The correlation id of the next answer; none: the connection is closed."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                (size,) = struct.unpack(">i", await self._reader.readexactly(4))
                answer = await self._reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
        return int(struct.unpack_from(">i", answer)[0])

    def close(self) -> None:
        """Hangs up."""
        self._writer.close()


async def peer(server: WireServer) -> Peer:
    """A new connection."""
    return Peer(*await asyncio.open_connection(server.host, server.port))


def framed(request: bytes) -> bytes:
    """With its length before it."""
    return struct.pack(">i", len(request)) + request


async def test_answers_come_in_the_order_of_the_requests(
    server: WireServer, node: GatedNode
) -> None:
    """Requests that are sent without waiting are answered one after the other."""
    node.let.clear()
    client = await peer(server)
    client.send(*range(50))
    other = await peer(server)
    async with asyncio.timeout(DEADLINE_S):
        while not node.received:
            await asyncio.sleep(0)
    assert node.received == [0]
    node.let.set()
    assert [await client.response_id() for _ in range(50)] == [*range(50)]
    other.send(99)
    assert await other.response_id() == 99


async def test_a_request_may_come_byte_by_byte(server: WireServer) -> None:
    """Where the network cuts a request does not matter."""
    client = await peer(server)
    whole = framed(request_bytes(ApiVersionsRequest(), 3))
    for place in range(len(whole)):
        client.write(whole[place : place + 1])
        await asyncio.sleep(0)
    assert await client.response_id() == 3


@pytest.mark.parametrize(
    ("garbage", "said"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "a request of 1195725856 bytes"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", "is it a Kafka client without TLS?"),
        (struct.pack(">i", -5), "a request of -5 bytes"),
        (struct.pack(">i", MAX_REQUEST_BYTES + 1), f"at most {MAX_REQUEST_BYTES} are taken"),
        (framed(b"abc"), "a request of 3 bytes is too short"),
        (framed(struct.pack(">hhih", 0, 3, 1, -1)), "API key 0 (produce) is not served here"),
        (framed(struct.pack(">hhihi", 3, 0, 1, -1, 2**31 - 1)), "items are said to follow"),
    ],
)
async def test_garbage_ends_its_connection_with_one_line(
    server: WireServer, caplog: pytest.LogCaptureFixture, garbage: bytes, said: str
) -> None:
    """The log says who sent what; requests before it are answered, other connections live on."""
    client, other = await peer(server), await peer(server)
    with caplog.at_level(logging.INFO):
        client.send(1)
        client.write(garbage)
        assert await client.response_id() == 1
        assert await client.response_id() is None
    (line,) = [record.getMessage() for record in caplog.records if record.name == "reference"]
    assert said in line
    assert "closing the connection of 127.0.0.1:" in line
    other.send(2)
    assert await other.response_id() == 2


async def test_who_hangs_up_in_the_middle_is_no_news(
    server: WireServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Half a request and then nothing is a client that went away."""
    client = await peer(server)
    with caplog.at_level(logging.INFO):
        client.write(b"\0\0\0\x10\0\x12")
        client.close()
        other = await peer(server)
        other.send(2)
        assert await other.response_id() == 2
        await server.close()
    assert not [record for record in caplog.records if record.name == "reference"]


async def test_a_node_that_has_ended_closes_the_connection(
    server: WireServer, node: GatedNode
) -> None:
    """No answer is better than a wrong one: the client takes the outcome for unknown."""
    node.closes = True
    client = await peer(server)
    client.send(1)
    assert await client.response_id() is None


async def test_closing_ends_requests_under_way(server: WireServer, node: GatedNode) -> None:
    """A server that closes does not wait for answers that may never come."""
    node.let.clear()
    client = await peer(server)
    client.send(1)
    async with asyncio.timeout(DEADLINE_S):
        while not node.received:
            await asyncio.sleep(0)
        await server.close()
    assert await client.response_id() is None
