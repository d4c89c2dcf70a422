"""Frames over asyncio's streams: the transport of everything that talks to several nodes at
once."""

import asyncio
import ssl
from collections.abc import Callable
from typing import TypeVar

from featurewatch.kafka.address import Address
from featurewatch.kafka.transport import Receive, Transport, frame_size

_RESULT = TypeVar("_RESULT")
_CLOSE_S = 1.0
_HEAD_BYTES = 4


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

    def start(self, frame: bytes, timeout_s: float, max_bytes: int) -> Receive:
        """See `Transport.start`; closes the connection unless a whole frame comes."""
        exchange = asyncio.ensure_future(self._exchange(frame, timeout_s, max_bytes))
        # Who closes the connection instead of receiving need not see the error.
        exchange.add_done_callback(lambda done: done.cancelled() or done.exception())
        return lambda: exchange

    async def _exchange(self, frame: bytes, timeout_s: float, max_bytes: int) -> bytes:
        """A late response would be taken for that of the next request; also after a
        cancellation."""
        async with self._lock:
            whole = False
            try:
                async with asyncio.timeout(timeout_s):
                    self._writer.write(frame)
                    await self._writer.drain()
                    size = frame_size(await self._reader.readexactly(_HEAD_BYTES), max_bytes)
                    content = await self._reader.readexactly(size)
                whole = True
            finally:
                if not whole:
                    self._writer.close()
        return content

    async def compute(self, work: Callable[[], _RESULT]) -> _RESULT:
        """See `Transport.compute`."""
        return await asyncio.to_thread(work)

    def close(self) -> None:
        """Closes it; never fails."""
        self._writer.close()

    async def wait_closed(self) -> None:
        """Waits a moment until it is closed; never fails."""
        try:
            await asyncio.wait_for(self._writer.wait_closed(), _CLOSE_S)
        except (OSError, TimeoutError):
            return


async def connect_asyncio(
    address: Address, tls: ssl.SSLContext | None, timeout_s: float
) -> Transport:
    """A `Connect` for an event loop."""
    name = address.host if tls else None
    async with asyncio.timeout(timeout_s):
        reader, writer = await asyncio.open_connection(
            address.host, address.port, ssl=tls, server_hostname=name, limit=2**20
        )
    return AsyncioTransport(reader, writer)
