"""A blocking connection to a Kafka node: one request at a time, encoded and decoded by kio."""

import io
import socket
import struct
from types import TracebackType
from typing import Any, Self, TypeVar

from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from featurewatch.stack.errors import RefusedError, WireError

CLIENT_ID = "featurewatch-stack"
Response = TypeVar("Response")

_LENGTH = struct.Struct(">i")


class BlockingConnection:
    """One plaintext TCP connection; not thread-safe."""

    def __init__(self, host: str, port: int, timeout_s: float = 5.0) -> None:
        """Connects; ``timeout_s`` also limits each later read and write.

        Raises:
            WireError: if the address cannot be reached in time.
        """
        self.peer = f"{host}:{port}"
        self._correlation = 0
        try:
            self._socket = socket.create_connection((host, port), timeout_s)
        except OSError as error:
            raise WireError(f"{self.peer} cannot be reached: {error}") from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def request(self, request: Any, response_type: type[Response]) -> Response:
        """Sends a kio request; the response, of kio's class for the same API version.

        Raises:
            WireError: if the connection breaks, times out, or the response is unreadable.
        """
        self._correlation += 1
        try:
            self._socket.sendall(_encode(request, self._correlation))
            size = _LENGTH.unpack(self._read(_LENGTH.size))[0]
            frame = self._read(size)
        except OSError as error:
            raise WireError(f"{self.peer} did not respond: {error or 'timed out'}") from error
        return _decode(frame, response_type, self._correlation, self.peer)

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0:
            part = self._socket.recv(min(size, 1 << 20))
            if not part:
                raise OSError("the node closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def check(what: str, error_code: Any, message: str | None = None) -> None:
    """Checks a response's error code; ``what`` names the request in the error's text.

    Raises:
        RefusedError: if the code is not 0.
    """
    code = ErrorCode(error_code)
    if code is not ErrorCode.none:
        raise RefusedError(what, int(code.value), code.name.upper(), message or "")


def _encode(request: Any, correlation: int) -> bytes:
    header_type = request.__header_schema__
    buffer = io.BytesIO()
    buffer.write(b"\0\0\0\0")
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation,
        client_id=CLIENT_ID,
    )
    entity_writer(header_type)(buffer, header)
    entity_writer(type(request))(buffer, request)
    frame = buffer.getbuffer()
    _LENGTH.pack_into(frame, 0, len(frame) - _LENGTH.size)
    return bytes(frame)


def _decode(frame: bytes, response_type: type[Response], correlation: int, peer: str) -> Response:
    kind: Any = response_type
    try:
        header, size = entity_reader(kind.__header_schema__)(frame, 0)
        response: Response = entity_reader(kind)(frame, size)[0]
    except Exception as error:  # kio's decoder raises whatever the bytes provoke
        raise WireError(f"{peer} sent an unreadable response: {error}") from error
    if header.correlation_id != correlation:
        raise WireError(f"{peer} sent the response of another request")
    return response
