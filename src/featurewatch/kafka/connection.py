"""The client of one Kafka node: the ApiVersions handshake, the login, one request at a time.

A request is a message of `kafka.messages`, whose type names that of its response.
"""

import ssl
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn, TypeVar, cast

from featurewatch.kafka import messages
from featurewatch.kafka.address import Address
from featurewatch.kafka.decode import DecodeError, read_entity, skip_tags
from featurewatch.kafka.encode import write_entity
from featurewatch.kafka.failures import (
    KnownListeners,
    Listener,
    silence_advice,
    tls_failure,
    unreachable,
)
from featurewatch.kafka.limits import LOGIN_FRAME_BYTES, ResponseLimit, response_limit
from featurewatch.kafka.messages import Message, Request, response_class
from featurewatch.kafka.node_errors import (
    AuthenticationError,
    LocalResourceError,
    NodeError,
    NoTokenError,
    OtherNodeError,
    ResponseTimeoutError,
)
from featurewatch.kafka.security import PLAINTEXT, Security
from featurewatch.kafka.shortage import local_shortage
from featurewatch.kafka.transport import Connect, Transport, connect_asyncio

if TYPE_CHECKING:
    from featurewatch.kafka.login import LoginRenewal
    from featurewatch.kafka.messages import (
        ApiVersionsResponseV0,
        ApiVersionsResponseV3,
        ApiVersionsResponseV4,
        ApiVersionsResponseV5,
        Kip778ApiVersionsResponseV4,
    )

    AnyApiVersionsResponse = (
        ApiVersionsResponseV0
        | ApiVersionsResponseV3
        | ApiVersionsResponseV4
        | ApiVersionsResponseV5
        | Kip778ApiVersionsResponseV4
    )

# Classes of messages are built by what first names them, so they are named where they are used.

CLIENT_ID: Final = "featurewatch"
CLIENT_VERSION: Final = "0.1"
API_VERSIONS_KEY: Final = 18

_UNSUPPORTED_VERSION: Final = 35
_REBOOTSTRAP_REQUIRED: Final = 129
_LENGTH = struct.Struct(">i")
_HEADER = struct.Struct(">hhih")
_KNOWN: Final = KnownListeners()
"""A setting that worked is not what an outage is about, whoever connects."""
_RESPONSE = TypeVar("_RESPONSE")


class ExpectedNode(NamedTuple):
    """The broker that should listen at an address, by its cluster's id and its own.

    Brokers of 4.4 and later refuse the request if one of them is wrong (KIP-1242); controllers do
    not compare them.
    """

    cluster: str
    node_id: int


class Connection:
    """An open connection. Make one with `open_connection`; close it when done."""

    def __init__(self, address: Address, transport: Transport, client_id: str = CLIENT_ID) -> None:
        self.address = address
        self.api_versions: Mapping[int, tuple[int, int]] = MappingProxyType({})
        self.last_api_versions: AnyApiVersionsResponse | None = None
        self.hint = ""
        """A hint that explains why the node may close the connection on the next request."""
        self.is_kip_778 = False
        """Whether version 4 of ApiVersions is that of KIP-778 as written, without a minimum."""
        self.is_open = False
        """Whether the login, if any, is complete; until then only short responses are read."""
        self.on_first_response: Callable[[], None] | None = None
        """Called once, when the first request after the login is answered."""
        self._transport = transport
        self._client_id = client_id
        self._correlation_id = 0
        self._renewal: LoginRenewal | None = None
        """When the login ends, and how it is renewed; None: it lasts as long as the connection."""

    @property
    def closed(self) -> bool:
        """Whether the connection can no longer take requests."""
        return self._transport.closed

    def version_of(self, api_key: int, ours: tuple[int, int]) -> int | None:
        """The highest version of an API that both sides support, or None."""
        theirs = self.api_versions.get(api_key)
        if theirs is None:
            return None
        highest = min(ours[1], theirs[1])
        return highest if highest >= max(ours[0], theirs[0]) else None

    async def request(
        self,
        request: Request[_RESPONSE],
        timeout_s: float,
        limit: ResponseLimit | None = None,
    ) -> _RESPONSE:
        """Sends ``request`` and reads its response.

        ``limit`` is what the response may be, where it may be larger than others of its API.
        Raises `NodeError` (and `ResponseTimeoutError`); the connection is closed then.
        """
        limit = limit or response_limit(request.__api_key__)
        body = await self._exchange(request, timeout_s, limit.max_bytes)
        return self.parse(body, response_class(request), limit.max_items)

    async def request_api_versions(
        self, timeout_s: float, expected: ExpectedNode | None = None
    ) -> "AnyApiVersionsResponse":
        """Requests the node's APIs and features, by the highest version that it has.

        Raises:
            OtherNodeError: The node is not the ``expected`` one. Older nodes do not say so.
        """
        client = {"client_software_name": CLIENT_ID, "client_software_version": CLIENT_VERSION}
        if expected is not None and await self._has_compared(expected, client, timeout_s):
            assert self.last_api_versions is not None  # noqa: S101 - it was compared by that
            return self.last_api_versions
        body = await self._exchange(messages.ApiVersionsRequestV4(**client), timeout_s)
        form: type[AnyApiVersionsResponse] = (
            messages.Kip778ApiVersionsResponseV4
            if self.is_kip_778
            else messages.ApiVersionsResponseV4
        )
        # A node that does not know the version answers in the form of version 0 (KIP-511).
        if _error_of(body) == _UNSUPPORTED_VERSION:
            body = await self._exchange(messages.ApiVersionsRequestV3(**client), timeout_s)
            is_refused = _error_of(body) == _UNSUPPORTED_VERSION
            form = messages.ApiVersionsResponseV0 if is_refused else messages.ApiVersionsResponseV3
        return self._with_api_versions(body, form)

    async def _has_compared(
        self, expected: ExpectedNode, client: Mapping[str, str], timeout_s: float
    ) -> bool:
        """Whether the node has version 5, which was requested then; raises `OtherNodeError`."""
        if self.api_versions and self.version_of(API_VERSIONS_KEY, (5, 5)) is None:
            return False
        request = messages.ApiVersionsRequestV5(
            **client, cluster_id=expected.cluster, node_id=expected.node_id
        )
        body = await self._exchange(request, timeout_s)
        code = _error_of(body)
        if code == _REBOOTSTRAP_REQUIRED:
            await self.close()
            raise OtherNodeError(
                f"{self.address} is not broker {expected.node_id} of cluster {expected.cluster}: "
                "another node or cluster listens there, so correct what advertises the address"
            )
        if code == _UNSUPPORTED_VERSION:
            return False
        self._with_api_versions(body, messages.ApiVersionsResponseV5)
        return True

    def _with_api_versions(
        self, body: memoryview, form: "type[AnyApiVersionsResponse]"
    ) -> "AnyApiVersionsResponse":
        limit = response_limit(API_VERSIONS_KEY)
        response: AnyApiVersionsResponse = self.parse(body, form, limit.max_items)
        self.api_versions = MappingProxyType(
            {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        )
        self.last_api_versions = response
        return response

    async def authenticate(self, security: Security, timeout_s: float) -> None:
        """Logs in by SASL.

        Raises:
            AuthenticationError: The node refused; with its reason.
            NoTokenError: There is no token for a login that needs one.
        """
        from featurewatch.kafka import login

        self._renewal = await login.authenticate(self, security, timeout_s)

    def abort(self) -> None:
        """Closes the connection at once; a request in flight fails. `close` may follow."""
        self._transport.close()

    async def close(self) -> None:
        """Closes the connection; never fails."""
        self._transport.close()
        await self._transport.wait_closed()

    async def _exchange(
        self, request: Message, timeout_s: float, max_bytes: int = LOGIN_FRAME_BYTES
    ) -> memoryview:
        if self.is_open and self._renewal is not None:
            await self._renewal.renew_if_due(self)
        return await self.exchange(request, timeout_s, max_bytes)

    async def exchange(
        self, request: Message, timeout_s: float, max_bytes: int = LOGIN_FRAME_BYTES
    ) -> memoryview:
        """Sends a request and returns the body of its response, whatever the login's state."""
        self._correlation_id += 1
        correlation_id = self._correlation_id
        frame = request_frame(request, correlation_id, self._client_id)
        if not self.is_open:
            max_bytes = min(max_bytes, LOGIN_FRAME_BYTES)
        with self._closed_on_failure(timeout_s):
            body = await self._transport.exchange(frame, timeout_s, max_bytes)
        self.hint = ""
        if self.is_open and self.on_first_response is not None:
            self.on_first_response()
            self.on_first_response = None
        return self._without_header(request, body, correlation_id)

    @contextmanager
    def _closed_on_failure(self, timeout_s: float) -> Iterator[None]:
        """Closes the connection at an error of the transport, and raises what it means."""
        try:
            yield
        except TimeoutError:
            self._transport.close()
            raise ResponseTimeoutError(
                f"{self.address} did not answer for {timeout_s:g} s"
            ) from None
        except EOFError:
            self._transport.close()
            raise NodeError(f"{self.address} closed the connection{self.hint}") from None
        except OSError as error:
            self._transport.close()
            if isinstance(error, ssl.SSLError):
                raise AuthenticationError(tls_failure(self.address, error)) from error
            raise NodeError(f"{self.address}: {error.strerror or error}") from error

    def _without_header(self, request: Message, body: bytes, correlation_id: int) -> memoryview:
        if _LENGTH.unpack_from(body)[0] != correlation_id:
            self._transport.close()
            raise NodeError(f"{self.address} sent a response that was not asked for")
        start = _LENGTH.size
        # ApiVersions responses always have the old header; others a tag section if flexible.
        if request.__flexible__ and request.__api_key__ != API_VERSIONS_KEY:
            try:
                start = skip_tags(body, start)
            except DecodeError as error:
                self._transport.close()
                reason = f"{self.address} sent an invalid response header: {error}"
                raise NodeError(reason) from error
        return memoryview(body)[start:]

    def parse(self, body: memoryview, form: type[_RESPONSE], max_items: int) -> _RESPONSE:
        """A response of this form; raises `NodeError`, and closes the connection, if it is not."""
        try:
            return cast("_RESPONSE", read_entity(form, body, max_items=max_items)[0])
        except DecodeError as error:
            self._transport.close()
            name = form.__name__
            raise NodeError(f"{self.address} sent an invalid {name}: {error}") from error


async def open_connection(
    address: Address,
    security: Security = PLAINTEXT,
    *,
    timeout_s: float = 5.0,
    client_id: str = CLIENT_ID,
    connect: Connect = connect_asyncio,
    expected: ExpectedNode | None = None,
    is_kip_778: bool = False,
) -> Connection:
    """Connects, requests the node's API versions, and logs in.

    Each step may take ``timeout_s`` seconds. ``connect`` opens the transport. ``expected`` is the
    broker that should listen there. ``is_kip_778`` as in `Connection`.

    Raises:
        NodeError: The node is unreachable, closed the connection, or is not Kafka.
        OtherNodeError: It is not the expected one.
        AuthenticationError: TLS or SASL failed.
        LocalResourceError: This process is out of file descriptors or memory.
        NoTokenError: It has no token for the login.
    """
    if (problem := address.problem()) is not None:
        raise NodeError(f"{address} is not an address, {problem}: correct what advertises it")
    connection = await _connect(address, security, timeout_s, client_id, connect)
    connection.is_kip_778 = is_kip_778
    worked = _KNOWN.has(*_listener(address, security))
    advice = silence_advice(uses_tls=security.tls is not None, worked=worked)
    try:
        await connection.request_api_versions(timeout_s, expected)
        if security.mechanism is not None:
            await connection.authenticate(security, timeout_s)
        elif not worked:
            # A listener with SASL responds to ApiVersions before authentication, and to nothing
            # else.
            connection.hint = ": if it wants a login, set security.protocol and sasl.mechanism"
        connection.is_open = True
        connection.on_first_response = partial(_KNOWN.add, *_listener(address, security))
    except ResponseTimeoutError as error:
        await connection.close()
        raise ResponseTimeoutError(f"{error}: {advice}") from error
    except (AuthenticationError, OtherNodeError, NoTokenError):
        await connection.close()
        raise
    except NodeError as error:
        await connection.close()
        raise NodeError(f"{error} during the handshake: {advice}") from error
    except BaseException:
        await connection.close()
        raise
    return connection


def _listener(address: Address, security: Security) -> Listener:
    return address, security.tls is not None, security.mechanism


async def _connect(
    address: Address,
    security: Security,
    timeout_s: float,
    client_id: str,
    connect: Connect,
) -> Connection:
    try:
        transport = await connect(address, security.tls, timeout_s)
    except TimeoutError:
        raise ResponseTimeoutError(
            f"{address} did not accept a connection in {timeout_s:g} s"
        ) from None
    except OSError as error:
        _raise_not_connected(address, security, error)
    except (ValueError, OverflowError) as error:
        raise NodeError(f"{address} is not an address that can be resolved: {error}") from error
    return Connection(address, transport, client_id)


def _raise_not_connected(address: Address, security: Security, error: OSError) -> NoReturn:
    """Raises what an error of the system means for the person who gave the address."""
    if (shortage := local_shortage(error)) is not None:
        raise LocalResourceError(f"{address} cannot be connected to: {shortage}") from error
    if isinstance(error, ssl.SSLError):
        raise AuthenticationError(tls_failure(address, error)) from error
    worked = _KNOWN.has(*_listener(address, security))
    if security.tls is not None and isinstance(error, (ConnectionResetError, BrokenPipeError)):
        advice = silence_advice(uses_tls=True, worked=True) if worked else "is it a TLS listener?"
        raise NodeError(
            f"{address} closed the connection in the TLS handshake: {advice}"
        ) from error
    raise NodeError(unreachable(address, error, worked=worked)) from error


def request_frame(request: Message, correlation_id: int, client_id: str) -> bytes:
    """A request as a frame: length, header of version 1 or 2, body."""
    client = client_id.encode()
    header = _HEADER.pack(request.__api_key__, request.__version__, correlation_id, len(client))
    # The client id keeps its old form in the flexible header, which tags follow (KIP-482).
    tags = b"\0" if request.__flexible__ else b""
    frame = b"".join((header, client, tags, write_entity(request)))
    return _LENGTH.pack(len(frame)) + frame


def _error_of(body: memoryview) -> int:
    return int.from_bytes(body[:2], signed=True)
