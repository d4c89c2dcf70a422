"""How frames reach a node and come back: a length of four bytes, then as many bytes.

It runs on asyncio, also in a command that sends one request: without an event loop such a command
would save 25 of 100 ms, and Kafka's tools take five times as long as it is (``bench.md``).
"""

import asyncio
import ssl
import struct
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

from featurewatch.kafka.address import Address

_CLOSE_S: Final = 1.0
_LENGTH: Final = struct.Struct(">i")


class Transport(Protocol):
    """An open connection that carries frames."""

    @property
    def closed(self) -> bool:
        """Whether it was closed from this side."""

    async def exchange(self, frame: bytes, timeout_s: float, max_bytes: int) -> bytes:
        """Sends a whole frame; returns the content of the next one, of up to ``max_bytes``.

        ``timeout_s`` is for all of it: a peer that sends a byte now and then has no longer.

        Raises:
            TimeoutError: It took longer.
            EOFError: The peer closed the connection.
            OSError: It broke, or the frame is too long or not Kafka's.
        """

    def close(self) -> None:
        """Closes it; never fails."""

    async def wait_closed(self) -> None:
        """Waits a moment until it is closed; never fails."""


Connect = Callable[[Address, ssl.SSLContext | None, float], Awaitable[Transport]]
"""Opens a transport to an address, with TLS if there is a context, within this many seconds."""


class AsyncioTransport:
    """A `Transport` over a reader and a writer; one exchange at a time, others wait."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._lock = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Whether it was closed from this side."""
        return self._writer.is_closing()

    @property
    def is_closed_by_peer(self) -> bool:
        """Whether the peer has closed it, and all that it sent is read."""
        return self._reader.at_eof()

    async def exchange(self, frame: bytes, timeout_s: float, max_bytes: int) -> bytes:
        """See `Transport.exchange`; closes the connection unless a whole frame comes.

        A late response would be taken for that of the next request, also after a cancellation.
        """
        async with self._lock:
            whole = False
            try:
                async with asyncio.timeout(timeout_s):
                    self._writer.write(frame)
                    await self._writer.drain()
                    size = _frame_size(await self._reader.readexactly(_LENGTH.size), max_bytes)
                    content = await self._reader.readexactly(size)
                whole = True
            finally:
                if not whole:
                    self._writer.close()
        return content

    def close(self) -> None:
        """Closes it; never fails."""
        self._writer.close()

    async def wait_closed(self) -> None:
        """Waits a moment until it is closed; never fails."""
        try:
            # Not `asyncio.wait_for`: until Python 3.12 it loses a cancellation that comes as its
            # awaitable ends, and what closes a connection could then not be stopped.
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            return


async def connect_asyncio(
    address: Address, tls: ssl.SSLContext | None, timeout_s: float
) -> AsyncioTransport:
    """The `Connect` of every client outside of tests."""
    name = address.host if tls else None
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(
            address.host, address.port, ssl=tls, server_hostname=name, limit=2**20
        )
    return AsyncioTransport(reader, writer)


def _frame_size(head: bytes, max_bytes: int) -> int:
    """How many bytes follow the head of a frame; raises `OSError` if it cannot be Kafka's."""
    (size,) = _LENGTH.unpack(head)
    if not 4 <= size <= max_bytes:
        raise OSError(
            f"a frame of {size} bytes where at most {max_bytes} are expected: this is no Kafka "
            "listener"
        )
    return int(size)
