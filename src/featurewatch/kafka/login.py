"""The SASL login of a connection, and its renewal while the connection stays open (KIP-368)."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from featurewatch.common.text import quoted
from featurewatch.kafka import messages
from featurewatch.kafka.address import Address
from featurewatch.kafka.client_config.errors import TokenError
from featurewatch.kafka.client_config.kerberos.settings import TicketError
from featurewatch.kafka.limits import response_limit
from featurewatch.kafka.messages import Message, Request, response_class
from featurewatch.kafka.node_errors import AuthenticationError, NoTokenError
from featurewatch.kafka.sasl import SaslError
from featurewatch.kafka.security import Security

if TYPE_CHECKING:
    from typing import TypeVar

    from featurewatch.kafka.sasl import Exchange

    _RESPONSE = TypeVar("_RESPONSE")

_AUTHENTICATE_KEY: Final = 36


class LoginConnection(Protocol):
    """What a login needs of a `Connection`."""

    address: Address

    def version_of(self, api_key: int, ours: tuple[int, int]) -> int | None:
        """The highest version of an API that both sides support, or None."""

    async def exchange(self, request: Message, timeout_s: float, max_bytes: int) -> memoryview:
        """Sends a request and returns the body of its response, whatever the login's state."""

    def parse(self, body: memoryview, form: "type[_RESPONSE]", max_items: int) -> "_RESPONSE":
        """The response in a body."""

    async def close(self) -> None:
        """Closes the connection; never fails."""


_WINDOW: Final = (0.85, 0.95)
"""The part of a session after which it is renewed, as ``SaslClientAuthenticator`` of Kafka does."""


async def authenticate(
    connection: LoginConnection,
    security: Security,
    timeout_s: float,
    monotonic: Callable[[], float] = time.monotonic,
) -> "LoginRenewal | None":
    """Logs a connection in, the first time or again; closes it if that fails.

    Returns when to do it again; None: the login lasts as long as the connection.

    Raises:
        AuthenticationError: The node refused; with its reason.
        NoTokenError: There is no token or ticket; a login before is not affected, and nothing was
            sent.
    """
    token = await _token(security, connection.address.host, timeout_s)
    begun = await _begun_by_ticket(security, connection.address.host, timeout_s)
    mechanism = str(security.mechanism)
    handshake = await _request(
        connection, messages.SaslHandshakeRequestV1(mechanism=mechanism), timeout_s
    )
    if handshake.error_code:
        offered = quoted(", ".join(handshake.mechanisms))
        await connection.close()
        if not offered:
            raise AuthenticationError(
                f"{connection.address} does not offer SASL {mechanism} (it offers: none): it is a "
                "listener without a login, so give the address of another"
            )
        raise AuthenticationError(
            f"{connection.address} does not offer SASL {mechanism} (it offers: {offered}): "
            "set sasl.mechanism to one of these"
        )
    exchange = begun or security.exchange(token)
    try:
        lifetime_ms = await _log_in(connection, exchange, timeout_s)
    except SaslError as error:
        await connection.close()
        advice = "check sasl.username and sasl.password"
        if security.tokens is not None:
            security.tokens.discard(token)
            advice = (
                f"check that {connection.address} accepts the issuer and the audience of tokens "
                f"from {security.tokens.login.source}"
            )
        elif security.tickets is not None:
            security.tickets.discard()
            advice = security.tickets.advice(connection.address)
        elif security.aws is not None:
            advice = (
                f"check that {security.aws.login.settings} is valid and allows "
                "kafka-cluster:Connect, and the clock of this machine"
            )
        text = str(error)
        raise AuthenticationError(
            f"{connection.address} refused the SASL login: {text}"
            + (f": {advice}" if isinstance(error, _RefusedError) else "")
        ) from error
    if lifetime_ms <= 0:
        return None
    return LoginRenewal(security, timeout_s, lifetime_ms / 1000, monotonic)


class LoginRenewal:
    """Renews the login of one connection before it ends: the node closes the connection then."""

    def __init__(
        self,
        security: Security,
        timeout_s: float,
        lifetime_s: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._security = security
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        low, high = _WINDOW
        now_s = monotonic()
        self._end_s = now_s + lifetime_s
        self._due_s = now_s + lifetime_s * random.uniform(low, high)

    async def renew_if_due(self, connection: LoginConnection) -> None:
        """Logs in again if it is time; requests that come meanwhile wait.

        Raises:
            NodeError: The node refused, or broke off. The connection is closed.
            NoTokenError: There is no token or ticket, and the login has ended.
        """
        if self._monotonic() < self._due_s:
            return
        async with self._lock:
            now_s = self._monotonic()
            if now_s < self._due_s:
                return
            try:
                renewal = await authenticate(
                    connection, self._security, self._timeout_s, self._monotonic
                )
            except NoTokenError:
                remaining_s = self._end_s - self._monotonic()
                if remaining_s <= 0:
                    await connection.close()
                    raise
                # The node still accepts requests: ask for a token again before it does not.
                self._due_s = now_s + min(remaining_s / 2, 1.0)
                return
            if renewal is None:
                self._due_s = float("inf")
            else:
                self._end_s, self._due_s = renewal._end_s, renewal._due_s


class _RefusedError(SaslError):
    """The node said no; the text is its reason."""


async def _token(security: Security, host: str, timeout_s: float) -> str:
    """The token, or the signed message, with which to log in; empty: the mechanism needs none."""
    try:
        if security.tokens is not None:
            return (await security.tokens.token(timeout_s)).text
        if security.aws is not None:
            return (await security.aws.payload(host, timeout_s)).decode()
        return ""
    except TokenError as error:
        raise NoTokenError(f"no login is possible: {error}") from None


async def _begun_by_ticket(security: Security, host: str, timeout_s: float) -> "Exchange | None":
    """The exchange of a login by Kerberos; None with other mechanisms."""
    if security.tickets is None:
        return None
    try:
        return await security.tickets.exchange(host, timeout_s)
    except TicketError as error:
        raise NoTokenError(f"no login is possible: {error}") from None


async def _log_in(connection: LoginConnection, exchange: "Exchange", timeout_s: float) -> int:
    """How many milliseconds the login lasts; 0: the node sets no end. Raises `SaslError`."""
    with_lifetime = connection.version_of(_AUTHENTICATE_KEY, (1, 1)) is not None
    lifetime_ms = 0
    message: bytes | None = next(exchange)
    while message is not None:
        if with_lifetime:
            response = await _request(
                connection, messages.SaslAuthenticateRequestV1(auth_bytes=message), timeout_s
            )
            code, reason, received = (
                response.error_code,
                response.error_message,
                response.auth_bytes,
            )
            lifetime_ms = response.session_lifetime_ms
        else:
            older = await _request(
                connection, messages.SaslAuthenticateRequestV0(auth_bytes=message), timeout_s
            )
            code, reason, received = older.error_code, older.error_message, older.auth_bytes
        if code:
            raise _RefusedError(quoted(reason or f"error {code}"))
        # A SCRAM login needs the CPU for long: in a thread, other connections continue.
        message = await asyncio.to_thread(_next_message, exchange, bytes(received))
    return lifetime_ms


async def _request(
    connection: LoginConnection, request: "Request[_RESPONSE]", timeout_s: float
) -> "_RESPONSE":
    """As `Connection.request`, which would wait for this login."""
    limit = response_limit(request.__api_key__)
    body = await connection.exchange(request, timeout_s, limit.max_bytes)
    return connection.parse(body, response_class(request), limit.max_items)


def _next_message(exchange: "Exchange", received: bytes) -> bytes | None:
    """The next message of a login; None: it is over."""
    try:
        return exchange.send(received)
    except StopIteration:
        return None
