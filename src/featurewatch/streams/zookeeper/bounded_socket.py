"""A socket to a ZooKeeper server that ends the connection where a frame is too long or too slow.

kazoo believes the length of a frame, and its timeout begins again with each byte. It reads a frame
from its socket in turn, length and content, so the frames can be followed here.
"""

import errno
import socket
import ssl
import time
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from featurewatch.kafka.address import Address
from featurewatch.kafka.failures import tls_failure

DEFAULT_MAX_FRAME_BYTES: Final = 4 << 20
"""The largest frame, in bytes: ``jute.maxbuffer`` of the servers is 1 MiB unless it was raised."""

MAX_SESSION_MS: Final = 120_000
"""The longest session that a server may grant, in milliseconds; a server's usual maximum is 40 s.
Silence is noticed after two thirds of it."""

_LENGTH: Final = Struct("!i")
_GRANTED: Final = Struct("!ii")
"""How the first frame begins: the protocol's version, and the session's timeout."""


class BoundedSocket:
    """A connected socket, with TLS or without; all that is not here is the socket's own.

    A frame may have ``max_bytes`` and take ``timeout_s`` seconds from its first byte on. Otherwise
    `recv` raises `OSError`, whose text says what to do; ``server`` is named in it.
    """

    def __init__(
        self,
        connected: socket.socket,
        server: Address,
        max_bytes: int,
        timeout_s: float,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = connected
        self._server = server
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._monotonic_s = monotonic_s
        self._head = b""
        self._left_bytes = 0
        self._began_s: float | None = None
        self._granted: bytes | None = b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)

    def recv(self, size: int) -> bytes:
        """At most ``size`` bytes."""
        now_s = self._monotonic_s()
        if self._began_s is not None and now_s - self._began_s > self._timeout_s:
            raise OSError(
                errno.ETIMEDOUT, f"one answer took longer than {self._timeout_s:g} s: is it slow?"
            )
        try:
            data = self._socket.recv(size)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:  # TLS 1.3 refuses a certificate after the handshake
            raise OSError(errno.EPROTO, tls_failure(self._server, error)) from error
        if self._granted is None and not self._head and len(data) == _LENGTH.size:
            self._begin(data, now_s)
        elif self._granted is None and data and len(data) == self._left_bytes:
            self._end()
        else:
            self._follow(memoryview(data), now_s)
        return data

    # kazoo asks for a length, and then for a content: nearly all that comes is one of the two.

    def _begin(self, head: bytes, now_s: float) -> None:
        self._head = head
        self._left_bytes = self._checked_length()
        self._began_s = now_s
        if not self._left_bytes:
            self._end()

    def _end(self) -> None:
        self._head, self._left_bytes, self._began_s = b"", 0, None

    def _follow(self, data: memoryview, now_s: float) -> None:
        while data:
            if self._began_s is None:
                self._began_s = now_s
            if len(self._head) < _LENGTH.size:
                missing = _LENGTH.size - len(self._head)
                self._head += bytes(data[:missing])
                data = data[missing:]
                if len(self._head) == _LENGTH.size:
                    self._left_bytes = self._checked_length()
            else:
                content, data = data[: self._left_bytes], data[self._left_bytes :]
                self._left_bytes -= len(content)
                self._check_session(content)
            if len(self._head) == _LENGTH.size and not self._left_bytes:
                self._end()

    def _checked_length(self) -> int:
        (length,) = _LENGTH.unpack(self._head)
        if not 0 <= length <= self._max_bytes:
            raise OSError(
                errno.EMSGSIZE,
                f"a frame of {length} bytes, and max_zookeeper_frame_bytes is {self._max_bytes}: "
                "raise it if jute.maxbuffer of the servers is higher",
            )
        return int(length)

    def _check_session(self, content: memoryview) -> None:
        if self._granted is None:
            return
        self._granted += bytes(content[: _GRANTED.size - len(self._granted)])
        if len(self._granted) < _GRANTED.size:
            return
        _, timeout_ms = _GRANTED.unpack(self._granted)
        self._granted = None
        if timeout_ms > MAX_SESSION_MS:
            raise OSError(
                errno.EPROTO,
                f"it grants a session of {timeout_ms} ms, and more than {MAX_SESSION_MS} would "
                "hide its silence: lower minSessionTimeout",
            )
