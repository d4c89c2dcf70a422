"""Peers that send what no Kafka node or ZooKeeper server would, on real sockets of loopback."""

import asyncio
import contextlib
import resource
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from featurewatch.kafka.address import Address
from tests.kafka.handshake import V3_ANSWER, frame

API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE = 18, 17, 36

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Answer = Callable[[int, int, bytes], bytes]
"""The body that answers a request: its API key, its version, and what follows the client id."""


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[Address]:
    """A server on a free port; a client that leaves ends its connection alone."""

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ended = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)
        with contextlib.suppress(*ended):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(closing, "127.0.0.1", 0)
    try:
        yield Address("127.0.0.1", server.sockets[0].getsockname()[1])
    finally:
        server.close()


def answering(answer: Answer) -> Serve:
    """A Kafka node that answers each request with a body of the test's making."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            request = await reader.readexactly(length)
            key, version, correlation, name = struct.unpack(">hhih", request[:10])
            body = answer(key, version, request[10 + name :])
            writer.write(frame(struct.pack(">i", correlation) + body))
            await writer.drain()

    return serve


def scram_node(first: str, final: bytes) -> Serve:
    """A node whose messages of SCRAM are ``first`` after the nonce, and ``final``."""

    def answer(key: int, version: int, body: bytes) -> bytes:
        if key == API_VERSIONS:
            # As version 4, whose form is that of 3.
            return V3_ANSWER
        if key == SASL_HANDSHAKE:
            return struct.pack(">hi", 0, 0)
        message = body[4:]
        reply = final
        if message.startswith(b"n,,"):
            reply = f"r={message.decode().rpartition('r=')[2]}x,{first}".encode()
        return struct.pack(">hhi", 0, -1, len(reply)) + reply

    return answering(answer)


STAT = struct.pack("!qqqqiiiqiiq", 5, 5, 0, 0, 0, 0, 0, 0, 0, 0, 5)
ZK_EXISTS, ZK_GET, ZK_CHILDREN, ZK_SYNC, ZK_CLOSE, ZK_PING = 3, 4, 8, 9, -11, 11
_NO_NODE = -101


@dataclass
class HostileZookeeper:
    """A ZooKeeper server whose znodes and manners a test sets.

    ``quiet``: it answers pings and no reads.
    """

    znodes: dict[str, bytes] = field(
        default_factory=lambda: {"/cluster/id": b'{"version":"1","id":"hostile"}'}
    )
    children: dict[str, list[str]] = field(default_factory=lambda: {"/brokers/ids": []})
    session_ms: int = 1500
    quiet: bool = False
    on_connect: Serve | None = None
    """Takes the connection over after its next ping."""
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection."""
        self.connections += 1
        (length,) = struct.unpack("!i", await reader.readexactly(4))
        await reader.readexactly(length)
        writer.write(frame(struct.pack("!iiqi", 0, self.session_ms, 7, 16) + bytes(17)))
        while True:
            (length,) = struct.unpack("!i", await reader.readexactly(4))
            request = await reader.readexactly(length)
            xid, kind = struct.unpack("!ii", request[:8])
            if kind == ZK_PING:
                writer.write(frame(struct.pack("!iqi", -2, 9, 0)))
                if self.on_connect is not None:
                    await self.on_connect(reader, writer)
            elif not self.quiet:
                writer.write(frame(self._answer(xid, kind, request[8:])))
            await writer.drain()
            if kind == ZK_CLOSE:
                return

    def _answer(self, xid: int, kind: int, rest: bytes) -> bytes:
        good = struct.pack("!iqi", xid, 9, 0)
        if kind == ZK_CLOSE:
            return good
        (length,) = struct.unpack("!i", rest[:4])
        path = rest[4 : 4 + length].decode()
        if kind == ZK_SYNC:
            return good + _text(path)
        if kind == ZK_CHILDREN and path in self.children:
            names = self.children[path]
            return good + struct.pack("!i", len(names)) + b"".join(map(_text, names))
        if kind == ZK_GET and path in self.znodes:
            data = self.znodes[path]
            return good + struct.pack("!i", len(data)) + data + STAT
        if kind == ZK_EXISTS and path in self.znodes:
            return good + STAT
        return struct.pack("!iqi", xid, 9, _NO_NODE)


def _text(text: str) -> bytes:
    return struct.pack("!i", len(text.encode())) + text.encode()


@contextmanager
def no_file_descriptors() -> Iterator[None]:
    """Everything that opens a file or a socket fails as long as this lasts.

    A new descriptor must be below the limit, and those below 3 are the standard streams. So one
    that something else in this process closes meanwhile does not become available either.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
