"""A connection to a node that sends what it should not, or in parts."""

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from featurewatch.kafka.address import Address
from featurewatch.kafka.connection import Connection, open_connection
from featurewatch.kafka.node_errors import NodeError, ResponseTimeoutError
from featurewatch.kafka.transport import AsyncioTransport
from tests.kafka.handshake import V0_UNSUPPORTED, V3_ANSWER, frame


@contextmanager
def listener(serve: Callable[[socket.socket], None]) -> Iterator[Address]:
    """A server for one client."""
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        connected, _ = server.accept()
        with connected:
            serve(connected)

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    with server:
        yield Address("127.0.0.1", server.getsockname()[1])
        thread.join(60)


def opened(address: Address, timeout_s: float = 5) -> Connection:
    """A connection, which was closed again."""

    async def work() -> Connection:
        connection = await open_connection(address, timeout_s=timeout_s)
        await connection.close()
        return connection

    return asyncio.run(work())


def test_a_response_may_come_in_parts() -> None:
    """A frame is read to its end; a node without version 4 is asked in version 3."""

    def serve(connected: socket.socket) -> None:
        for answer in (V0_UNSUPPORTED, V3_ANSWER):
            correlation_id = connected.recv(4096)[8:12]
            for byte in frame(correlation_id + answer):
                connected.sendall(bytes([byte]))
        connected.recv(1)

    with listener(serve) as address:
        connection = opened(address)
        assert connection.api_versions == {1: (0, 13), 18: (0, 3)}
        assert connection.closed


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "no Kafka listener"),
        (b"\0\0", "closed the connection.*set security.protocol"),
        (frame(b"\0\0\0\x09" + V3_ANSWER), "a response that was not asked for"),
        (frame(b"\0\0\0\x01\0\0\xff"), "sent an invalid"),
    ],
)
def test_an_invalid_response_is_one_line(content: bytes, error: str) -> None:
    """A stranger, a node that closes, another's response, and one that cannot be read."""

    def serve(connected: socket.socket) -> None:
        connected.recv(4096)
        connected.sendall(content)

    with listener(serve) as address, pytest.raises(NodeError, match=error):
        opened(address)


def test_a_silent_node_times_out() -> None:
    """It costs the timeout and no more."""

    def close_at_once(connected: socket.socket) -> None:
        connected.recv(4096)

    with listener(close_at_once) as address, pytest.raises(NodeError):
        opened(address)
    ended = threading.Event()

    def stay_silent(_: socket.socket) -> None:
        ended.wait(60)

    with listener(stay_silent) as address:
        with pytest.raises(ResponseTimeoutError, match=r"did not answer for 0\.1 s"):
            opened(address, 0.1)
        ended.set()


def test_a_refused_connection_is_one_line(closed_port: int) -> None:
    """The address and the system's reason."""
    address = Address("127.0.0.1", closed_port)
    with pytest.raises(NodeError, match=rf"nobody listens at {address} \(Connection refused\)"):
        opened(address)


class Writer:
    """A writer that is closed when a test says so."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    async def wait_closed(self) -> None:
        """Waits until it is."""
        await self.closed.wait()


@pytest.mark.parametrize("turns", range(5))
async def test_a_cancellation_while_it_closes_is_not_lost(turns: int) -> None:
    """Whenever it comes: what closes connections in a loop ends when it is cancelled."""
    writer = Writer()
    transport = AsyncioTransport(asyncio.StreamReader(), writer)  # type: ignore[arg-type]

    async def close_and_continue() -> None:
        await transport.wait_closed()
        await asyncio.sleep(60)

    task = asyncio.create_task(close_and_continue())
    await asyncio.sleep(0.01)
    writer.closed.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()
