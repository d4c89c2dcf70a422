"""Requests a token from an endpoint (RFC 6749), over HTTP/1.1.

The codes after which it is not repeated are those of Kafka.
"""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable
from typing import IO, Any, Final
from urllib.parse import urlsplit

import orjson

from featurewatch.common.text import quoted
from featurewatch.kafka.client_config.errors import SecurityError, TokenError
from featurewatch.kafka.client_config.oauth.proxy import open_tunnel, proxy_for
from featurewatch.kafka.client_config.oauth.request import TokenRequest, token_request
from featurewatch.kafka.client_config.oauth.settings import FetchLimits, TokenEndpoint
from featurewatch.kafka.client_config.tls import tls_context, tls_files

_OK: Final = (200, 201)
_LASTING: Final = frozenset(
    (400, 401, 402, 403, 404, 405, 406, 407, 409, 410, 411, 412, 413, 414, 415, 501, 505)
)
"""Codes that say the same at the next request, as in ``HttpJwtRetriever`` of Kafka."""
_REDIRECTS: Final = range(300, 400)


def granted_token(
    endpoint: TokenEndpoint,
    limits: FetchLimits,
    max_bytes: int,
    monotonic: Callable[[], float] = time.monotonic,
    clock: Callable[[], float] = time.time,
) -> str:
    """The token in the answer of the endpoint, not checked; raises `TokenError`."""
    request = token_request(endpoint, clock())
    status, content_type, location, body = _answer(endpoint, request, limits, max_bytes, monotonic)
    if status in _REDIRECTS:
        raise TokenError(
            f"{endpoint} redirects to {_shown(location)}, which is not followed: set "
            "sasl.oauthbearer.token.endpoint.url to where tokens are granted"
        )
    if len(body) > max_bytes:
        raise TokenError(f"{endpoint} answered with more than {max_bytes} bytes")
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if status not in _OK:
        reason = _reason(answer, request)
        proof = "secret" if endpoint.assertion is None else "assertion"
        advice = f": check the client's id, its {proof} and the scope" if status in _LASTING else ""
        raise TokenError(
            f"{endpoint} refused a token with code {status}{reason}{advice}",
            is_transient=status not in _LASTING,
        )
    if not isinstance(answer, dict):
        raise TokenError(
            f"{endpoint} answered with {quoted(content_type or 'something')} that is not a JSON "
            "object: is it the token endpoint?"
        )
    for name in ("access_token", "id_token"):  # the order of Kafka's JwtResponseParser
        if isinstance(text := answer.get(name), str) and text:
            return text
    raise TokenError(f"{endpoint} answered without an access_token{_reason(answer, request)}")


def _answer(
    endpoint: TokenEndpoint,
    request: TokenRequest,
    limits: FetchLimits,
    max_bytes: int,
    monotonic: Callable[[], float],
) -> tuple[int, str, str, bytes]:
    """Status, Content-Type, Location and at most one byte more than ``max_bytes`` of the body."""
    connection = _Connection(endpoint, limits, monotonic)
    try:
        connection.request("POST", endpoint.target, request.body, request.headers)
        response = connection.getresponse()
        return (
            response.status,
            response.getheader("Content-Type", ""),
            response.getheader("Location", ""),
            response.read(max_bytes + 1),
        )
    except TimeoutError:
        step, time_s, key = (
            ("answer", limits.read_s, "read")
            if connection.is_connected
            else ("accept a connection", limits.connect_s, "connect")
        )
        raise TokenError(
            f"{endpoint} did not {step} within {time_s:g} s (sasl.login.{key}.timeout.ms)",
            is_transient=True,
        ) from None
    except ssl.SSLError as error:
        if isinstance(error, ssl.SSLCertVerificationError):
            raise TokenError(
                f"{endpoint} has no certificate that is trusted ({quoted(error.verify_message)}): "
                "set ssl.truststore.location in sasl.jaas.config, or https.ca.location, to its "
                "authority"
            ) from None
        reason = quoted(str(error.reason or "the handshake failed"))
        raise TokenError(
            f"TLS with {endpoint} failed ({reason}): is it a listener for https?", is_transient=True
        ) from None
    except socket.gaierror as error:
        raise TokenError(
            f"{endpoint} cannot be resolved: {error.strerror}", is_transient=True
        ) from None
    except OSError as error:
        raise TokenError(
            f"{endpoint} cannot be reached: {error.strerror or type(error).__name__}",
            is_transient=True,
        ) from None
    except (http.client.HTTPException, ValueError, SecurityError) as error:
        reason = (
            str(error)
            if isinstance(error, SecurityError)
            else "its answer is not HTTP, or ended too early"
        )
        raise TokenError(f"{endpoint}: {quoted(reason)}", is_transient=True) from None
    finally:
        connection.end()


class _Connection(http.client.HTTPConnection):
    """A connection whose answer has a time for all of it, also if it comes byte by byte."""

    def __init__(
        self, endpoint: TokenEndpoint, limits: FetchLimits, monotonic: Callable[[], float]
    ) -> None:
        super().__init__(endpoint.host, endpoint.port)
        self._endpoint = endpoint
        self._limits = limits
        self._monotonic = monotonic
        self._socket: socket.socket | None = None
        self.is_connected = False

    def connect(self) -> None:
        """Connects within the time for it, TLS included."""
        limit = _TimeLimit(self._monotonic, self._limits.connect_s)
        proxy = proxy_for(self._endpoint.scheme, self.host, self._endpoint.port)
        address = (self.host, self._endpoint.port) if proxy is None else proxy[:2]
        self._socket = connected = socket.create_connection(address, self._limits.connect_s)
        if proxy is not None:
            limit.apply(connected)
            open_tunnel(connected, proxy, self.host, self._endpoint.port)
        if self._endpoint.scheme == "https":
            context = tls_context(tls_files(dict(self._endpoint.tls)))
            self._socket = connected = context.wrap_socket(
                connected, server_hostname=self._endpoint.host, do_handshake_on_connect=False
            )
            limit.apply(connected)
            connected.do_handshake()
        self.is_connected = True
        self.sock = _TimedSocket(connected, _TimeLimit(self._monotonic, self._limits.read_s))

    def end(self) -> None:
        """Closes the connection."""
        self.close()
        if self._socket is not None:
            self._socket.close()


class _TimedSocket:
    """What `http.client` needs of a socket, within a time."""

    def __init__(self, connected: socket.socket, limit: "_TimeLimit") -> None:
        self._socket = connected
        self._limit = limit

    def sendall(self, data: bytes) -> None:
        self._limit.apply(self._socket)
        self._socket.sendall(data)

    def makefile(self, _mode: str, *_arguments: Any) -> IO[bytes]:
        return io.BufferedReader(_TimedReader(self._socket, self._limit))

    def close(self) -> None:
        """Does nothing: the answer is read after `http.client` closed the connection."""


class _TimedReader(io.RawIOBase):
    def __init__(self, connected: socket.socket, limit: "_TimeLimit") -> None:
        self._socket = connected
        self._limit = limit

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._limit.apply(self._socket)
        return self._socket.recv_into(buffer)


class _TimeLimit:
    """The time for several operations on a socket, from now on."""

    def __init__(self, monotonic: Callable[[], float], seconds: float) -> None:
        self._monotonic = monotonic
        self._end_s = monotonic() + seconds

    def apply(self, connected: socket.socket) -> None:
        """Lets the next operation last until the end; raises `TimeoutError` after it."""
        remaining_s = self._end_s - self._monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        connected.settimeout(remaining_s)


def _reason(answer: Any, request: TokenRequest) -> str:
    """The error in an answer (RFC 6749, 5.2), without what must not be shown."""
    if not isinstance(answer, dict):
        return ""
    parts = [answer.get(name) for name in ("error", "error_description")]
    text = ", ".join(part for part in parts if isinstance(part, str) and part)
    for secret in request.secrets:
        text = text.replace(secret, "(the secret)")
    return f" ({quoted(text)})" if text else ""


def _shown(location: str) -> str:
    """A URL without its query, which may have a secret."""
    try:
        parts = urlsplit(location)
        return quoted(
            f"{parts.scheme}://{parts.hostname}{parts.path}" if parts.hostname else parts.path
        )
    except ValueError:
        return "another place"
