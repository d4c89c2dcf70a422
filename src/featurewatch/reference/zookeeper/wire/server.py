"""An asyncio server for Kafka's wire protocol.

As in Kafka, it reads the next request of a connection after responding to the previous one, and
closes a connection whose bytes it cannot decode.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from featurewatch.reference.zookeeper.wire.api_keys import ALTER_PARTITION, REPLICA_KEYS, ApiDialect
from featurewatch.reference.zookeeper.wire.frames import (
    MalformedRequestError,
    WireRequest,
    read_request,
    write_response,
)

MAX_REQUEST_BYTES: Final = 1 << 20
"""Larger requests are rejected; those of clients have some kilobytes."""
MAX_BROKER_REQUEST_BYTES: Final = 4 << 20
"""As much for AlterPartition, which has some 60 bytes for each partition that a broker leads."""

MAX_CONTROLLER_REQUEST_BYTES: Final = 16 << 20
"""And for what a controller sends to hosts of replicas: some 100 bytes for each partition."""

_LENGTH = struct.Struct(">i")
_KEY = struct.Struct(">h")
_CONTROLLER_LIMITS: Final = {ALTER_PARTITION: MAX_BROKER_REQUEST_BYTES}
_LIMITS: Final[Mapping[ApiDialect, Mapping[int, int]]] = {
    ApiDialect.CONTROLLER: _CONTROLLER_LIMITS,
    ApiDialect.CONTROLLER_AND_REPLICAS: {
        **_CONTROLLER_LIMITS,
        **dict.fromkeys(REPLICA_KEYS, MAX_CONTROLLER_REQUEST_BYTES),
    },
}
"""The size of requests that may be larger than others, by dialect and key."""
_log = logging.getLogger("featurewatch.reference.zookeeper")

Handler = Callable[[WireRequest], Awaitable[Any]]
"""Returns the response message to a request; None closes the connection."""


class WireServer:
    """Listens on ``host:port`` and calls ``handler`` for each request; ``port`` 0: a free port."""

    def __init__(
        self,
        api_dialect: ApiDialect,
        handler: Handler,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        name: str = "reference",
        limits: Mapping[int, int] | None = None,
    ) -> None:
        """``limits``: the size of requests that may be larger than others, by key.

        None: those of the dialect.
        """
        self._limits = _LIMITS.get(api_dialect, {}) if limits is None else limits
        self.host = host
        self.port = port
        self._api_dialect = api_dialect
        self._handler = handler
        self._name = name
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Opens the listener; `port` is its actual port then.

        Raises:
            OSError: if the port is not available.
        """
        self._server = await asyncio.start_server(
            self._connected, self.host, self.port, limit=MAX_REQUEST_BYTES
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Closes the listener and every connection."""
        if self._server is not None:
            self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        if self._server is not None:
            await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in a task
        self._connections.add(task)
        try:
            await self._serve(reader, writer)
        except asyncio.CancelledError:
            pass  # the server closes; only close() awaits this task
        except MalformedRequestError as error:
            peer = writer.get_extra_info("peername")
            _log.warning("%s: closing the connection of %s: %s", self._name, _text(peer), error)
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client closed the connection
        finally:
            self._connections.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = self.decode(await self._read_frame(reader))
            response = await self._handler(request)
            if response is None:
                return
            writer.write(write_response(request.correlation_id, response))
            await writer.drain()

    def decode(self, frame: bytes) -> WireRequest:
        """The request in a frame, which subclasses read by other tables.

        Raises:
            MalformedRequestError: if it is not served here, or unreadable.
        """
        return read_request(frame, self._api_dialect)

    async def _read_frame(self, reader: asyncio.StreamReader) -> bytes:
        size = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0]
        head, limit = b"", MAX_REQUEST_BYTES
        if limit < size <= max(self._limits.values(), default=0):
            head = await reader.readexactly(_KEY.size)
            limit = self._limits.get(_KEY.unpack(head)[0], limit)
        if not 0 <= size <= limit:
            raise MalformedRequestError(
                f"a request of {size} bytes, where at most {limit} are accepted: "
                "is it a Kafka client without TLS?"
            )
        return head + await reader.readexactly(size - len(head))


def _text(peer: Any) -> str:
    return f"{peer[0]}:{peer[1]}" if peer else "somebody"
