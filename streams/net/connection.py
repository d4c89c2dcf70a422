"""A connection to one Kafka node: frames, the ApiVersions handshake, TLS and SASL.

One request is under way at a time. Codecs are kio's: a request names its key, version and header,
and its response class is beside it.
"""

import asyncio
import io
import ssl
import struct
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from kio.schema.api_versions.v0 import ApiVersionsResponse as ApiVersionsResponseV0
from kio.schema.api_versions.v3 import ApiVersionsRequest as ApiVersionsRequestV3
from kio.schema.api_versions.v3 import ApiVersionsResponse as ApiVersionsResponseV3
from kio.schema.api_versions.v4 import ApiVersionsRequest as ApiVersionsRequestV4
from kio.schema.api_versions.v4 import ApiVersionsResponse as ApiVersionsResponseV4
from kio.schema.errors import ErrorCode
from kio.schema.sasl_authenticate.v0 import SaslAuthenticateRequest, SaslAuthenticateResponse
from kio.schema.sasl_handshake.v1 import SaslHandshakeRequest, SaslHandshakeResponse
from kio.serial import entity_writer
from kio.static.primitive import i32
from kio.static.protocol import Payload

from featurewatch.streams.net.address import Address
from featurewatch.streams.net.decode import DecodeError, read_entity, skip_tags
from featurewatch.streams.net.sasl import SaslError
from featurewatch.streams.net.security import PLAINTEXT, Security

CLIENT_ID: Final = "featurewatch"
CLIENT_VERSION: Final = "0.1"
MAX_FRAME_BYTES: Final = 256 * 1024 * 1024
"""Longer responses are not Kafka's: any other server's first bytes would be read as a length."""

API_VERSIONS_KEY: Final = 18

_LENGTH = struct.Struct(">i")
_RESPONSE = TypeVar("_RESPONSE", bound=Payload)

ApiVersionsResponse = ApiVersionsResponseV0 | ApiVersionsResponseV3 | ApiVersionsResponseV4


class NodeError(ConnectionError):
    """The node could not be reached, broke off, or is not a Kafka node: one line, for people."""


class AuthenticationError(NodeError):
    """TLS or SASL did not accept us, or we not them: a matter of configuration."""


class ResponseTimeoutError(NodeError):
    """No response in time; the connection is closed."""


class Connection:
    """An open connection. Make one with `open_connection`; close it when done."""

    def __init__(
        self,
        address: Address,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        client_id: str = CLIENT_ID,
    ) -> None:
        self.address = address
        self.api_versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
        self.last_api_versions: ApiVersionsResponse | None = None
        self.hint = ""
        """What it may mean if the node hangs up on the next request."""
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._correlation_id = 0
        self._lock = asyncio.Lock()

    @property
    def closed(self) -> bool:
        """Whether requests are of no use any more."""
        return self._writer.is_closing()

    def version_of(self, api_key: int, ours: tuple[int, int]) -> int | None:
        """The highest version of an API that both sides support; None: there is none."""
        theirs = self.api_versions.get(api_key)
        if theirs is None:
            return None
        highest = min(ours[1], theirs[1])
        return highest if highest >= max(ours[0], theirs[0]) else None

    async def request(
        self, request: Payload, answer: type[_RESPONSE], timeout_s: float
    ) -> _RESPONSE:
        """Send ``request`` and read its response, of the class ``response_class``.

        Raises `NodeError` (and `ResponseTimeoutError`); the connection is closed then.
        """
        body = await self._exchange(request, timeout_s)
        return self._parse(body, answer)

    async def request_api_versions(self, timeout_s: float) -> ApiVersionsResponse:
        """The node's API versions and features, by the highest version that it offers."""
        sent = ApiVersionsRequestV4(
            client_software_name=CLIENT_ID, client_software_version=CLIENT_VERSION
        )
        body = await self._exchange(sent, timeout_s)
        form: type[ApiVersionsResponse] = ApiVersionsResponseV4
        # A node that does not support the version responds in version 0 (KIP-511).
        if _error_of(body) == ErrorCode.unsupported_version:
            older = ApiVersionsRequestV3(
                client_software_name=CLIENT_ID, client_software_version=CLIENT_VERSION
            )
            body = await self._exchange(older, timeout_s)
            refused = _error_of(body) == ErrorCode.unsupported_version
            form = ApiVersionsResponseV0 if refused else ApiVersionsResponseV3
        answer = cast("ApiVersionsResponse", self._parse(body, cast("type[Payload]", form)))
        self.api_versions = MappingProxyType(
            {int(k.api_key): (int(k.min_version), int(k.max_version)) for k in answer.api_keys}
        )
        self.last_api_versions = answer
        return answer

    async def authenticate(self, security: Security, timeout_s: float) -> None:
        """Go through SASL; raises `AuthenticationError` with the server's message."""
        mechanism = str(security.mechanism)
        offered = await self.request(
            SaslHandshakeRequest(mechanism=mechanism), SaslHandshakeResponse, timeout_s
        )
        if offered.error_code is not ErrorCode.none:
            mechanisms = ", ".join(offered.mechanisms) or "none"
            await self.close()
            raise AuthenticationError(
                f"{self.address} does not offer SASL {mechanism} (it offers: {mechanisms}): "
                "set sasl.mechanism to one of these"
            )
        exchange = security.exchange()
        try:
            message = next(exchange)
            while True:
                answer = await self.request(
                    SaslAuthenticateRequest(auth_bytes=message), SaslAuthenticateResponse, timeout_s
                )
                if answer.error_code is not ErrorCode.none:
                    reason = answer.error_message or answer.error_code.name
                    raise SaslError(f"{reason}: check sasl.username and sasl.password")
                message = exchange.send(answer.auth_bytes)
        except StopIteration:
            return
        except SaslError as error:
            await self.close()
            raise AuthenticationError(f"{self.address} refused the SASL login: {error}") from error

    async def close(self) -> None:
        """Close the connection; never fails."""
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), 1)
        except (OSError, TimeoutError):
            return

    async def _exchange(self, request: Payload, timeout_s: float) -> memoryview:
        async with self._lock:
            self._correlation_id += 1
            frame = _encode(request, self._correlation_id, self._client_id)
            whole = False
            try:
                async with asyncio.timeout(timeout_s):
                    self._writer.write(frame)
                    await self._writer.drain()
                    body = await self._read_frame()
                whole, self.hint = True, ""
            except TimeoutError:
                raise ResponseTimeoutError(
                    f"{self.address} did not answer for {timeout_s:g} s"
                ) from None
            except asyncio.IncompleteReadError:
                raise NodeError(f"{self.address} closed the connection{self.hint}") from None
            except ssl.SSLError as error:
                raise AuthenticationError(
                    f"{self.address}: TLS failed: {error.reason or error}"
                ) from error
            except OSError as error:
                raise NodeError(f"{self.address}: {error.strerror or error}") from error
            finally:
                # A late response would be read as the next request's; also after a cancellation.
                if not whole:
                    self._writer.close()
        return self._without_header(request, body)

    async def _read_frame(self) -> bytes:
        (length,) = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        if not 4 <= length <= MAX_FRAME_BYTES:
            raise OSError(f"a frame of {length} bytes: this is no Kafka listener")
        return await self._reader.readexactly(length)

    def _without_header(self, request: Payload, body: bytes) -> memoryview:
        (correlation_id,) = _LENGTH.unpack_from(body)
        if correlation_id != self._correlation_id:
            self._writer.close()
            raise NodeError(f"{self.address} answered something that was not asked")
        key = request.__api_key__
        # ApiVersions responses always have the old header; others a tag section if flexible.
        flexible = request.__flexible__ and key != API_VERSIONS_KEY
        start = _LENGTH.size
        if flexible:
            try:
                start = skip_tags(body, start)
            except DecodeError as error:
                self._writer.close()
                raise NodeError(f"{self.address} sent a header that is none: {error}") from error
        return memoryview(body)[start:]

    def _parse(self, body: memoryview, answer: type[_RESPONSE]) -> _RESPONSE:
        try:
            return cast("_RESPONSE", read_entity(answer, body)[0])
        except DecodeError as error:
            self._writer.close()
            name = answer.__name__
            raise NodeError(f"{self.address} sent a {name} that is none: {error}") from error


async def open_connection(
    address: Address,
    security: Security = PLAINTEXT,
    *,
    timeout_s: float = 5.0,
    client_id: str = CLIENT_ID,
) -> Connection:
    """Connect, request the node's API versions, authenticate.

    Raises `NodeError`: unreachable, broken off, no Kafka; `AuthenticationError`: TLS or SASL. Each
    step has ``timeout_s`` seconds.
    """
    connection = await _connect(address, security, timeout_s, client_id)
    try:
        await connection.request_api_versions(timeout_s)
        if security.mechanism is not None:
            await connection.authenticate(security, timeout_s)
        else:
            # A listener with SASL responds to ApiVersions before authentication, and to nothing
            # else.
            connection.hint = ": if it wants a login, set security.protocol and sasl.mechanism"
    except ResponseTimeoutError as error:
        await connection.close()
        raise ResponseTimeoutError(f"{error}: {_is_it_tls(security)}") from error
    except AuthenticationError:
        raise
    except NodeError as error:
        await connection.close()
        raise NodeError(f"{error} during the handshake: {_is_it_tls(security)}") from error
    except BaseException:
        await connection.close()
        raise
    return connection


def _is_it_tls(security: Security) -> str:
    if security.tls is None:
        return "if it is a TLS listener, set security.protocol"
    return "is it a TLS listener that takes our certificate?"


async def _connect(
    address: Address, security: Security, timeout_s: float, client_id: str
) -> Connection:
    name = address.host if security.tls else None
    try:
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(
                address.host, address.port, ssl=security.tls, server_hostname=name, limit=2**20
            )
    except TimeoutError:
        raise ResponseTimeoutError(
            f"{address} did not accept a connection in {timeout_s:g} s"
        ) from None
    except ssl.SSLCertVerificationError as error:
        raise AuthenticationError(
            f"{address}: its certificate is not trusted ({error.verify_message}): "
            "set ssl.ca.location"
        ) from error
    except ssl.SSLError as error:
        raise AuthenticationError(
            f"{address}: TLS failed ({error.reason or error}): is it a TLS listener?"
        ) from error
    except OSError as error:
        if security.tls is not None and isinstance(error, (ConnectionResetError, BrokenPipeError)):
            raise NodeError(
                f"{address} closed the connection in the TLS handshake: is it a TLS listener?"
            ) from error
        reason = error.strerror or str(error)
        raise NodeError(f"nobody listens at {address} ({reason}): check the address") from error
    return Connection(address, reader, writer, client_id)


def _encode(request: Payload, correlation_id: int, client_id: str) -> bytes:
    header_class = cast("Any", request.__header_schema__)
    header = header_class(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    buffer = io.BytesIO(b"\0\0\0\0")
    buffer.seek(_LENGTH.size)
    entity_writer(header_class)(buffer, header)
    entity_writer(type(request))(buffer, request)
    frame = buffer.getbuffer()
    _LENGTH.pack_into(frame, 0, len(frame) - _LENGTH.size)
    return bytes(frame)


def _error_of(body: memoryview) -> int:
    return int.from_bytes(body[:2], signed=True)
