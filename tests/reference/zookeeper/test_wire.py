"""The server responds in order, and an invalid request ends only its own connection."""

import asyncio
import logging
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.messages import ApiVersionsRequestV0
from featurewatch.reference.zookeeper.machines.requests import FeaturesResponse
from featurewatch.reference.zookeeper.machines.topics.results import (
    AlterPartitionRequest,
    AlterPartitionResult,
    RequestedIsr,
)
from featurewatch.reference.zookeeper.wire import responses
from featurewatch.reference.zookeeper.wire.api_keys import ApiDialect
from featurewatch.reference.zookeeper.wire.frames import WireRequest
from featurewatch.reference.zookeeper.wire.messages.to_controller import (
    alter_partition_request,
    alter_partition_response,
    read_alter_partition,
)
from featurewatch.reference.zookeeper.wire.server import (
    MAX_BROKER_REQUEST_BYTES,
    MAX_REQUEST_BYTES,
    WireServer,
)
from tests.reference.zookeeper.request_bytes import request_bytes

LOGGER = "featurewatch.reference.zookeeper"
SPEECH = ApiDialect.RELEASED
DEADLINE_S = 60.0


class Responder:
    """Responds to ApiVersions when the test permits it."""

    def __init__(self) -> None:
        self.permitted = asyncio.Event()
        self.permitted.set()
        self.correlation_ids: list[int] = []
        self.closes = False

    async def __call__(self, call: WireRequest) -> Any:
        """The response of a node without features."""
        self.correlation_ids.append(call.correlation_id)
        await self.permitted.wait()
        return None if self.closes else responses.api_versions(call, SPEECH, FeaturesResponse())


@pytest.fixture
def node() -> Responder:
    """The handler of the server."""
    return Responder()


@pytest.fixture
async def server(node: Responder) -> AsyncIterator[WireServer]:
    """A server on a separate port."""
    wire_server = WireServer(SPEECH, node)
    await wire_server.start()
    yield wire_server
    await wire_server.close()


class Peer:
    """A client of raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def send(self, *correlation_ids: int) -> None:
        """Sends requests, all at once."""
        self.write(
            b"".join(
                framed(request_bytes(ApiVersionsRequestV0(), correlation_id))
                for correlation_id in correlation_ids
            )
        )

    def write(self, data: bytes) -> None:
        """Sends bytes."""
        self._writer.write(data)

    async def response(self) -> int | None:
        """The correlation id of the next response; None if the connection is closed."""
        async with asyncio.timeout(DEADLINE_S):
            try:
                (size,) = struct.unpack(">i", await self._reader.readexactly(4))
                content = await self._reader.readexactly(size)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
        return int(struct.unpack_from(">i", content)[0])

    def close(self) -> None:
        """Closes the connection."""
        self._writer.close()


async def peer(server: WireServer) -> Peer:
    """A new connection."""
    return Peer(*await asyncio.open_connection(server.host, server.port))


def framed(request: bytes) -> bytes:
    """The bytes with their length first."""
    return struct.pack(">i", len(request)) + request


async def test_responses_come_in_the_order_of_the_requests(
    server: WireServer, node: Responder
) -> None:
    """Pipelined requests get their responses one after the other."""
    node.permitted.clear()
    client = await peer(server)
    client.send(*range(50))
    second = await peer(server)
    async with asyncio.timeout(DEADLINE_S):
        while not node.correlation_ids:
            await asyncio.sleep(0)
    assert node.correlation_ids == [0]
    node.permitted.set()
    assert [await client.response() for _ in range(50)] == [*range(50)]
    second.send(99)
    assert await second.response() == 99


async def test_a_request_may_come_byte_by_byte(server: WireServer) -> None:
    """The network may split a request anywhere."""
    client = await peer(server)
    data = framed(request_bytes(ApiVersionsRequestV0(), 3))
    for index in range(len(data)):
        client.write(data[index : index + 1])
        await asyncio.sleep(0)
    assert await client.response() == 3


@pytest.mark.parametrize(
    ("garbage", "message"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", "a request of 1195725856 bytes"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", "is it a Kafka client without TLS?"),
        (struct.pack(">i", -5), "a request of -5 bytes"),
        (struct.pack(">i", MAX_REQUEST_BYTES + 1), f"at most {MAX_REQUEST_BYTES} are accepted"),
        (framed(b"abc"), "a request of 3 bytes is too short"),
        (framed(struct.pack(">hhih", 0, 3, 1, -1)), "API key 0 is not served here"),
        (framed(struct.pack(">hhihi", 3, 0, 1, -1, 2**31 - 1)), "items should follow"),
    ],
)
async def test_garbage_ends_its_connection_with_one_line(
    server: WireServer, caplog: pytest.LogCaptureFixture, garbage: bytes, message: str
) -> None:
    """The log names the sender and the problem; earlier requests get responses, other connections
    stay."""
    client, second = await peer(server), await peer(server)
    with caplog.at_level(logging.INFO):
        client.send(1)
        client.write(garbage)
        assert await client.response() == 1
        assert await client.response() is None
    (line,) = [record.getMessage() for record in caplog.records if record.name == LOGGER]
    assert message in line
    assert "closing the connection of 127.0.0.1:" in line
    second.send(2)
    assert await second.response() == 2


async def test_a_client_that_disconnects_is_not_logged(
    server: WireServer, caplog: pytest.LogCaptureFixture
) -> None:
    """A partial request at the end of a connection is a client that went away."""
    client = await peer(server)
    with caplog.at_level(logging.INFO):
        client.write(b"\0\0\0\x10\0\x12")
        client.close()
        second = await peer(server)
        second.send(2)
        assert await second.response() == 2
        await server.close()
    assert not [record for record in caplog.records if record.name == LOGGER]


async def test_a_node_that_has_ended_closes_the_connection(
    server: WireServer, node: Responder
) -> None:
    """The client then treats the outcome as unknown, which is better than a wrong response."""
    node.closes = True
    client = await peer(server)
    client.send(1)
    assert await client.response() is None


async def test_closing_ends_requests_in_flight(server: WireServer, node: Responder) -> None:
    """A server that closes does not wait for responses that may never come."""
    node.permitted.clear()
    client = await peer(server)
    client.send(1)
    async with asyncio.timeout(DEADLINE_S):
        while not node.correlation_ids:
            await asyncio.sleep(0)
        await server.close()
    assert await client.response() is None


def alter_partition_frame(partition_count: int) -> bytes:
    """A leader's AlterPartition of version 3 for this many partitions of three members."""
    partitions = {
        TopicPartition("t", number): RequestedIsr((1, 2, 3), 4, 5)
        for number in range(partition_count)
    }
    message = alter_partition_request(AlterPartitionRequest(1, 9, partitions, 3), {})
    return framed(struct.pack(">hhih", 56, 3, 8, -1) + b"\0" + write_entity(message))


async def test_only_alter_partition_may_be_large() -> None:
    """A broker sends the ISRs of all partitions that it leads at once; clients send little."""
    partition_counts = []

    async def respond(request: WireRequest) -> Any:
        received = read_alter_partition(request.body, request.version, lambda _: "t")
        partition_counts.append(len(received.request.partitions))
        return alter_partition_response(received, AlterPartitionResult())

    large = alter_partition_frame(22_000)
    assert len(large) > MAX_REQUEST_BYTES
    wire_server = WireServer(ApiDialect.CONTROLLER, respond)
    await wire_server.start()
    client, second, third = [await peer(wire_server) for _ in range(3)]
    client.write(large)
    assert await client.response() == 8
    assert partition_counts == [22_000]
    second.write(struct.pack(">ih", MAX_REQUEST_BYTES + 1, 3))
    assert await second.response() is None
    third.write(struct.pack(">i", MAX_BROKER_REQUEST_BYTES + 1))
    assert await third.response() is None
    await wire_server.close()
