"""Sends requests to targets: bounded in time and size, without redirects, to allowed addresses."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from featurewatch.common.text import quoted
from featurewatch.integrations.notify.settings import is_public_address

TIMEOUT_S: Final = 15.0
"""The longest time for a request, from the connection to the headers of the response."""

_REASON_BYTES: Final = 2048
"""Bytes that are read of a refusal, for its reason."""

_REASON_S: Final = 1.0
"""The longest wait for the beginning of a refusal's body."""


class TargetResponse(NamedTuple):
    """A response: its status, the reason in its body if it is a refusal, and ``Retry-After``.

    Without a response the status is 0, and the reason says why.
    """

    status: int
    reason: str = ""
    retry_after: str = ""


class _PublicResolver(AbstractResolver):
    """Resolves names to public addresses only, at each connection: a name cannot be pointed to the
    inside between a check and its use."""

    def __init__(self) -> None:
        self._resolver = ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        """The addresses of a name; raises `OSError` if one of them is private."""
        results = await self._resolver.resolve(host, port, family)  # type: ignore[arg-type]
        for result in results:
            check_public(host, result["host"])
        return results

    async def close(self) -> None:
        """Does nothing: the resolver holds no resources."""
        await self._resolver.close()


def check_public(host: str, address: str) -> None:
    """Raises `OSError` if an address is not on the public internet."""
    if not is_public_address(address):
        raise OSError(f"{host} has the private address {address}: set private: true to allow it")


class TargetClient:
    """A client of one target; use `post`, and `close` at the end."""

    def __init__(self, url: str, *, allow_private: bool, timeout_s: float = TIMEOUT_S) -> None:
        self._url = url
        self._allow_private = allow_private
        connector = (
            TCPConnector(limit=1)
            if allow_private
            else TCPConnector(limit=1, resolver=_PublicResolver(), use_dns_cache=False)
        )
        self._session = ClientSession(
            connector=connector,
            timeout=ClientTimeout(total=timeout_s),
            auto_decompress=False,
            cookie_jar=DummyCookieJar(),  # a target must not influence later requests
        )

    async def post(self, body: bytes, headers: Mapping[str, str]) -> TargetResponse:
        """Posts a body; a failure is a response of the status 0, never an exception."""
        try:
            self._check_literal()
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as response:
                return TargetResponse(
                    response.status,
                    await self._reason(response),
                    response.headers.get("Retry-After", ""),
                )
        except TimeoutError:
            return TargetResponse(0, "it did not answer in time")
        except (ClientError, OSError, ssl.SSLError, ValueError) as error:
            # The text of an error in a resolver is in its cause only.
            cause = error.os_error if isinstance(error, ClientConnectorError) else error
            return TargetResponse(0, quoted(str(cause) or type(error).__name__))

    async def close(self) -> None:
        """Closes its connections."""
        await self._session.close()

    async def _reason(self, response: ClientResponse) -> str:
        """The beginning of a refusal; the status counts, whatever becomes of the body."""
        if 200 <= response.status < 300:
            return ""
        try:
            async with asyncio.timeout(_REASON_S):
                content = await response.content.read(_REASON_BYTES)
        except (TimeoutError, ClientError, OSError):
            return ""
        return quoted(content.decode(errors="replace"))

    def _check_literal(self) -> None:
        """Addresses in the URL are not resolved, so they are checked here, as they are used: with
        the dots of other scripts as dots."""
        host = URL(self._url).raw_host or ""
        if not self._allow_private and (":" in host or host.replace(".", "").isdigit()):
            check_public(host, host)


async def sleep_or(event: asyncio.Event, seconds: float) -> bool:
    """Waits for an event; returns whether it came in time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
