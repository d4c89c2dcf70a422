"""How frames reach a node and come back; the blocking way, which needs no event loop.

`kafka.asyncio_transport` is the other way. A client's coroutines run over either: over this
one they never wait, so `run_blocking` can run them, and a command that sends one or two requests
need not import asyncio.
"""

import socket
import struct
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from featurewatch.kafka.address import Address

if TYPE_CHECKING:
    import ssl

_RESULT = TypeVar("_RESULT")
_LENGTH: Final = struct.Struct(">i")


Receive = Callable[[], Awaitable[bytes]]
"""Waits for a response."""


class Transport(Protocol):
    """An open connection that carries frames: a length of four bytes, then as many bytes."""

    @property
    def closed(self) -> bool:
        """Whether it was closed from this side."""

    def start(self, frame: bytes, timeout_s: float, max_bytes: int) -> Receive:
        """Sends a whole frame; what it returns gives the content of the next one, of up to
        ``max_bytes``, and is to be called before anything else is sent.

        ``timeout_s`` is for all of it: a peer that sends a byte now and then has no longer.

        Raises (as does what it returns):
            TimeoutError: It took longer.
            EOFError: The peer closed the connection.
            OSError: It broke, or the frame is too long or not Kafka's.
        """

    async def compute(self, work: Callable[[], _RESULT]) -> _RESULT:
        """The result of work that takes the processor for long; other connections go on."""

    def close(self) -> None:
        """Closes it; never fails."""

    async def wait_closed(self) -> None:
        """Waits a moment until it is closed; never fails."""


Connect = Callable[[Address, "ssl.SSLContext | None", float], Awaitable[Transport]]
"""Opens a transport to an address, with TLS if there is a context, within so many seconds."""


def frame_size(head: bytes, max_bytes: int) -> int:
    """How many bytes follow the head of a frame; raises `OSError` if it cannot be Kafka's."""
    (size,) = _LENGTH.unpack(head)
    if not 4 <= size <= max_bytes:
        raise OSError(
            f"a frame of {size} bytes where at most {max_bytes} are expected: this is no Kafka "
            "listener"
        )
    return int(size)


class BlockingTransport:
    """A `Transport` over a socket whose methods block."""

    def __init__(
        self, connected: socket.socket, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._socket = connected
        self._monotonic = monotonic
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it was closed from this side."""
        return self._closed

    def start(self, frame: bytes, timeout_s: float, max_bytes: int) -> Receive:
        """See `Transport.start`."""
        deadline = self._monotonic() + timeout_s
        self._socket.settimeout(timeout_s)
        self._socket.sendall(frame)

        async def receive() -> bytes:
            size = frame_size(self._receive(_LENGTH.size, deadline), max_bytes)
            return self._receive(size, deadline)

        return receive

    async def compute(self, work: Callable[[], _RESULT]) -> _RESULT:
        """See `Transport.compute`: nothing else waits here."""
        return work()

    def close(self) -> None:
        """Closes it; never fails."""
        self._closed = True
        self._socket.close()

    async def wait_closed(self) -> None:
        """It is closed by `close`."""

    def _receive(self, size: int, deadline: float) -> bytes:
        content = bytearray()
        while len(content) < size:
            left_s = deadline - self._monotonic()
            if left_s <= 0:
                raise TimeoutError
            self._socket.settimeout(left_s)
            part = self._socket.recv(size - len(content))
            if not part:
                raise EOFError
            content += part
        return bytes(content)


async def connect_blocking(
    address: Address,
    tls: "ssl.SSLContext | None",
    timeout_s: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> Transport:
    """A `Connect` for `run_blocking`."""
    deadline = monotonic() + timeout_s
    connected = socket.create_connection((address.host, address.port), timeout_s)
    try:
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls is not None:
            connected.settimeout(max(deadline - monotonic(), 0.001))
            connected = tls.wrap_socket(connected, server_hostname=address.host)
    except BaseException:
        connected.close()
        raise
    return BlockingTransport(connected, monotonic)


def run_blocking(work: Coroutine[Any, Any, _RESULT]) -> _RESULT:
    """The result of a coroutine that awaits nothing but a blocking transport."""
    try:
        work.send(None)
    except StopIteration as end:
        result: _RESULT = end.value
        return result
    work.close()
    raise RuntimeError("the coroutine waits for an event loop")
