"""A client of the page's API: GET alone, bounded in time and size, without redirects."""

import ssl
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector
from yarl import URL

from featurewatch.common.text import quoted

TIMEOUT_S: Final = 30.0
MAX_BODY_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class PageResponse:
    """A response: its status (0: there was none), its JSON, or why there is none.

    ``challenge`` is the header ``WWW-Authenticate`` of a 401.
    """

    status: int
    content: Any = None
    reason: str = ""
    challenge: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether there is content."""
        return self.status == 200


@dataclass(slots=True)
class PageClient:
    """A client of the page at ``address``; `close` it at the end.

    ``context`` checks the page's certificate; None: by the system's authorities.
    """

    address: str
    context: ssl.SSLContext | None = None
    _session: ClientSession | None = field(default=None, init=False)

    async def get(self, path: str, authorization: str | None) -> PageResponse:
        """Gets a resource, with the header ``Authorization`` of whoever asks; never raises."""
        headers = {"Accept": "application/json"}
        if authorization is not None:
            headers["Authorization"] = authorization
        # Encoded: no part of an argument becomes another path.
        url = URL(f"{self.address.rstrip('/')}/{path}", encoded=True)
        try:
            async with self._opened().get(url, headers=headers, allow_redirects=False) as response:
                body = b""
                async for part in response.content.iter_chunked(1 << 16):
                    body += part
                    if len(body) > MAX_BODY_BYTES:
                        return PageResponse(0, reason="the page's answer is too large")
                challenge = response.headers.get("WWW-Authenticate", "")
                return _response(response.status, body, challenge)
        except TimeoutError:
            return PageResponse(0, reason=f"the page did not answer within {TIMEOUT_S:g} s")
        except (ClientError, OSError, ValueError) as error:
            text = quoted(str(error) or type(error).__name__)
            return PageResponse(0, reason=f"the page at {self.address} cannot be reached: {text}")

    async def close(self) -> None:
        """Closes its connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> ClientSession:
        if self._session is None:
            self._session = ClientSession(
                connector=TCPConnector(
                    limit=10, ssl=True if self.context is None else self.context
                ),
                timeout=ClientTimeout(total=TIMEOUT_S),
                cookie_jar=DummyCookieJar(),  # nobody's session is another's
            )
        return self._session


def _response(status: int, body: bytes, challenge: str) -> PageResponse:
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return PageResponse(status if status != 200 else 0, None, "no JSON came", challenge)
    if status == 200:
        return PageResponse(status, content)
    detail = content.get("detail") if isinstance(content, dict) else None
    reason = quoted(str(detail)) if detail else f"status {status}"
    return PageResponse(status, None, reason, challenge)
