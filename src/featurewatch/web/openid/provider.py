"""Requests to the OpenID provider. A shell: it owns the client, the metadata and the keys.

The provider is not trusted beyond its tokens: answers have a limit in bytes and time, redirects are
not followed, and endpoints are by https.
"""

import asyncio
import base64
import ssl
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus, urlencode

import aiohttp
import orjson

from featurewatch.common.http.openid import OpenIdConfig, SignIn, is_safe_url
from featurewatch.common.text import error_line, quoted
from featurewatch.web.openid.errors import SignInError, UnknownKeyError
from featurewatch.web.openid.held_answer import HeldAnswer
from featurewatch.web.openid.id_token import may_read, signing_keys, verified_claims

MAX_ANSWER_BYTES: Final = 256 * 1024
TIMEOUT_S: Final = 10.0
_METADATA_S: Final = 3600.0
_MIN_KEYS_S: Final = 60.0
"""Unknown keys make the provider's be read again, but not more often than this."""
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
_MAX_EXCHANGES: Final = 8
_MAX_CODE_CHARS: Final = 4_096


class Metadata(NamedTuple):
    """What the provider publishes (OpenID Connect Discovery 1.0), as far as it is used."""

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str


class Provider:
    """The provider of one configuration; ``monotonic`` gives seconds."""

    def __init__(
        self, config: OpenIdConfig, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.config = config
        self._exchanges = asyncio.Semaphore(_MAX_EXCHANGES)
        self._metadata: HeldAnswer[Metadata] = HeldAnswer(monotonic)
        self._keys: HeldAnswer[dict[str, Any]] = HeldAnswer(monotonic)

    async def authorization_url(self, sign_in: SignIn, challenge: str) -> str:
        """Where a browser is sent; ``challenge`` is that of PKCE (RFC 7636, S256).

        Raises `SignInError`.
        """
        metadata = await self._discovered()
        query = urlencode(
            {
                "response_type": "code",
                "client_id": self.config.client_id,
                "redirect_uri": self.config.redirect_uri,
                "scope": self.config.scopes,
                "state": sign_in.state,
                "nonce": sign_in.nonce,
                "code_challenge": challenge,
                "code_challenge_method": "S256",
            }
        )
        separator = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{separator}{query}"

    async def claims(self, code: str, sign_in: SignIn) -> dict[str, Any]:
        """The claims about the user who signed in, for the code that a browser brings back.

        Raises `SignInError`.
        """
        if len(code) > _MAX_CODE_CHARS:
            raise SignInError("the provider's code is too long")
        async with self._exchanges:
            metadata = await self._discovered()
            token = await self._id_token(metadata, code, sign_in)
            try:
                keys = await self._signing_keys(metadata)
                return verified_claims(token, keys, self.config, sign_in.nonce)
            except UnknownKeyError:
                keys = await self._signing_keys(metadata, _MIN_KEYS_S)
                return verified_claims(token, keys, self.config, sign_in.nonce)

    def may_read(self, claims: Mapping[str, Any]) -> bool:
        """Whether a user with these claims is in one of the allowed groups."""
        return may_read(claims, self.config)

    async def _id_token(self, metadata: Metadata, code: str, sign_in: SignIn) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.config.redirect_uri,
            "code_verifier": sign_in.verifier,
        }
        # RFC 6749, 2.3.1: both parts are encoded as in a form.
        client = f"{quote_plus(self.config.client_id)}:{quote_plus(self.config.client_secret)}"
        login = {"Authorization": f"Basic {base64.b64encode(client.encode()).decode()}"}
        answer = await self._answer("POST", metadata.token_endpoint, login, data=form)
        token = answer.get("id_token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise SignInError("the provider answered without an ID token: is openid in its scopes?")
        return token

    async def _discovered(self) -> Metadata:
        return await self._metadata.get(self._read_metadata, _METADATA_S)

    async def _read_metadata(self) -> Metadata:
        url = f"{self.config.issuer.rstrip('/')}/.well-known/openid-configuration"
        answer = await self._answer("GET", url)
        if not isinstance(answer, dict) or answer.get("issuer") != self.config.issuer:
            raise SignInError(
                "the provider names another issuer: write openid_connect.issuer as it does"
            )
        endpoints = [answer.get(name) for name in Metadata._fields]
        if not all(isinstance(each, str) and _is_safe_endpoint(each) for each in endpoints):
            raise SignInError("the provider's metadata have endpoints that are not by https")
        return Metadata(*map(str, endpoints))

    async def _signing_keys(
        self, metadata: Metadata, max_age_s: float = _METADATA_S
    ) -> dict[str, Any]:
        async def read() -> dict[str, Any]:
            return signing_keys(await self._answer("GET", metadata.jwks_uri))

        return await self._keys.get(read, max_age_s)

    async def _answer(
        self, method: str, url: str, headers: Mapping[str, str] = _NO_HEADERS, **content: Any
    ) -> Any:
        """The parsed JSON of an answer; raises `SignInError`."""
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        try:
            connector = aiohttp.TCPConnector(ssl=self._tls())
            async with (
                aiohttp.ClientSession(
                    connector=connector, timeout=timeout, trust_env=True
                ) as client,
                client.request(
                    method,
                    url,
                    allow_redirects=False,
                    headers={"Accept": "application/json", **headers},
                    **content,
                ) as response,
            ):
                body = await _body(response)
                return _parsed(response.status, body, url)
        except TimeoutError:
            raise SignInError(f"{_shown(url)} did not answer within {TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise SignInError(f"{_shown(url)} cannot be used: {_reason(error)}") from None

    def _tls(self) -> ssl.SSLContext | bool:
        ca_file = self.config.ca_file
        return True if ca_file is None else ssl.create_default_context(cafile=str(ca_file))


async def _body(response: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for part in response.content.iter_chunked(65_536):
        body += part
        if len(body) > MAX_ANSWER_BYTES:
            raise SignInError(
                f"{_shown(str(response.url))} answered with more than {MAX_ANSWER_BYTES:,} bytes"
            )
    return body


def _parsed(status: int, body: bytes, url: str) -> Any:
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        answer = None
    if status != 200 or answer is None:
        error = answer.get("error") if isinstance(answer, dict) else None
        reason = f" ({quoted(error)})" if isinstance(error, str) else ""
        kind = "" if answer is not None else " that is not JSON"
        raise SignInError(f"{_shown(url)} answered with code {status}{kind}{reason}")
    return answer


def _is_safe_endpoint(url: str) -> bool:
    return is_safe_url(url.partition("?")[0])


def _shown(url: str) -> str:
    return quoted(url.partition("?")[0])


def _reason(error: BaseException) -> str:
    return quoted(error_line(error))
