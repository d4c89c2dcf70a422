"""Decides which requests to an HTTP port are allowed, and how many."""

import asyncio
import base64
import binascii
import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from aiohttp import web

from featurewatch.common.http.access_rules import AccessRules, AccessSettings
from featurewatch.common.http.clients import ClientAddresses
from featurewatch.common.http.passwords import TooManyChecksError
from featurewatch.common.http.problems import ProblemError
from featurewatch.common.http.rate_limits import RateLimits, RefusalLog
from featurewatch.common.http.tls import is_client_allowed

_LOG: Final = logging.getLogger("featurewatch.http")

HEALTH: Final = frozenset({"/healthz", "/readyz"})
"""Routes of probes, which need no login."""

SESSION_COOKIE: Final = "featurewatch_session"
CLIENT: Final = web.RequestKey("client", str)
"""The key of the client that a request is counted for."""

BURST_S: Final = 5.0
"""A client may make the requests of this many seconds at once."""

MAX_FAILED_LOGINS: Final = 10
"""Wrong passwords of one client at once; then one in `_FAILED_LOGIN_S`."""

MAX_CHECKS_OF_CLIENT: Final = 2
"""Passwords of one client that are checked at once, so that other clients are not kept out."""

_FAILED_LOGIN_S: Final = 5.0
_HOLD_S: Final = 0.5
"""Delay of a response to a refused client: a connection can ask twice a second."""

_MAX_HELD: Final = 500
_MAX_AUTHORIZATION_CHARS: Final = 4_096
_SECRET_PARAMETERS: Final = frozenset(
    {"token", "access_token", "bearer", "api_key", "apikey", "authorization", "password"}
)


@dataclass(frozen=True, slots=True)
class Admission:
    """An accepted login; a long response ends when the login no longer ``holds``."""

    holds: Callable[[], bool]


ADMISSION: Final = web.RequestKey("admission", Admission)


class AccessControl:
    """Admits requests; `rules` are replaced when their files have changed.

    ``clock`` gives seconds of a clock that never goes back, ``wall_clock_s`` the time of day.
    """

    def __init__(
        self,
        settings: AccessSettings,
        clock: Callable[[], float] = time.monotonic,
        wall_clock_s: Callable[[], float] = time.time,
    ) -> None:
        per_s = settings.max_requests_per_s
        self.rules: AccessRules = settings.files.read()
        self.addresses = ClientAddresses(settings.proxies)
        self.refusals = RefusalLog(_LOG, clock)
        self._wall_clock_s = wall_clock_s
        self._max_per_s = per_s
        self._requests = RateLimits(per_s, max(per_s * BURST_S, 1), clock)
        self._failed_logins = RateLimits(1 / _FAILED_LOGIN_S, MAX_FAILED_LOGINS, clock)
        self._checks: Counter[str] = Counter()
        self._held = 0

    async def admit(self, request: web.Request, open_paths: Set[str] = HEALTH) -> None:
        """Lets a request pass; ``open_paths`` are the routes that need no login.

        Raises:
            ProblemError: It comes too early, has a secret in its address, or has no valid login.
        """
        await self.limit(request)
        await self.authorize(request, open_paths)

    async def limit(self, request: web.Request) -> None:
        """Counts a request of its client; raises `ProblemError` if it comes too early."""
        client = self.client_of(request)
        request[CLIENT] = client
        # A flood of requests to the page must not delay the response to a probe.
        await self._limit(client + " probes" if _route(request) in HEALTH else client)

    async def authorize(self, request: web.Request, open_paths: Set[str] = HEALTH) -> None:
        """Checks the login of a request, as `admit` does."""
        _refuse_secrets(request)
        if _route(request) not in open_paths:
            rules = self.rules
            await self._check_login(request, rules, request[CLIENT])
            by_session = rules.needs_credentials and "Authorization" not in request.headers
            request[ADMISSION] = Admission(
                lambda: (
                    self.rules is rules
                    and self._is_certified(request, rules)
                    and (not by_session or self.has_session(request))
                )
            )

    async def add_headers(self, _: web.Request, response: web.StreamResponse) -> None:
        """Adds the headers of the file; a signal handler for ``on_response_prepare``."""
        for name, value in self.rules.config.headers.items():
            if value:
                response.headers[name] = value

    def client_of(self, request: web.Request) -> str:
        """The key of the client."""
        forwarded = request.headers.getall("X-Forwarded-For", [])
        return self.addresses.client_of(request.remote or "", forwarded)

    def new_session(self, request: web.Request, token: str) -> str | None:
        """The session for a token that a browser sends, or None for an unknown token."""
        found = self.rules.tokens.find(token)
        if found is None:
            self.refusals.note("wrong logins", self.client_of(request))
            return None
        return self.rules.tokens.new_session(found, self._wall_clock_s())

    def has_session(self, request: web.Request) -> bool:
        """Whether a browser has sent a token, or its user signed in, before."""
        session = request.cookies.get(SESSION_COOKIE, "")
        return self.rules.accepts_session(session, self._wall_clock_s())

    async def _limit(self, client: str) -> None:
        wait_s = self._requests.take(client)
        if not wait_s:
            return
        self.refusals.note(f"more than {self._max_per_s:g} requests a second", client)
        if self._held < _MAX_HELD:
            self._held += 1
            try:
                await asyncio.sleep(_HOLD_S)
            finally:
                self._held -= 1
        raise _too_many(
            f"More than {self._max_per_s:g} requests a second come from your address: "
            "web.max_requests_per_s allows no more.",
            wait_s,
        )

    async def _check_login(self, request: web.Request, rules: AccessRules, client: str) -> None:
        if not self._is_certified(request, rules):
            self.refusals.note("no certificate that is allowed", client)
            raise ProblemError(
                HTTPStatus.FORBIDDEN,
                "Your client has sent no certificate that is allowed here.",
            )
        if rules.needs_credentials and not await self._has_credentials(request, rules, client):
            raise ProblemError(
                HTTPStatus.UNAUTHORIZED,
                "A login is needed here: a user with a password, or a bearer token. A browser "
                "gets it from the page: reload the page.",
                headers={"WWW-Authenticate": rules.challenge},
            )

    def _is_certified(self, request: web.Request, rules: AccessRules) -> bool:
        """Whether the client has a certificate as it is required, at this moment."""
        if rules.config.tls is None:
            return True
        transport = request.transport
        certificate = None if transport is None else transport.get_extra_info("peercert")
        return is_client_allowed(rules.config.tls, certificate, self._wall_clock_s())

    async def _has_credentials(self, request: web.Request, rules: AccessRules, client: str) -> bool:
        authorization = request.headers.get("Authorization")
        if authorization is None:
            return self.has_session(request)
        scheme, _, value = authorization.partition(" ")
        if len(authorization) > _MAX_AUTHORIZATION_CHARS:
            return False
        if scheme.lower() == "bearer":
            is_valid = rules.tokens.find(value.strip()) is not None
        else:
            is_valid = scheme.lower() == "basic" and await self._is_password(value, rules, client)
        if not is_valid:
            self.refusals.note("wrong logins", client)
        return is_valid

    async def _is_password(self, encoded: str, rules: AccessRules, client: str) -> bool:
        try:
            text = base64.b64decode(encoded.strip(), validate=True).decode()
        except (binascii.Error, ValueError):
            return False
        user, _, password = text.partition(":")
        if not rules.config.users:
            return False
        if rules.passwords.is_verified(user, password):
            return True
        if rules.passwords.is_running(user, password):
            return await rules.passwords.check(user, password)
        if self._checks[client] >= MAX_CHECKS_OF_CLIENT:
            raise _too_many("Other passwords of your address are being checked.", 1)
        # Before the check: guesses that are made in parallel are counted like others.
        if wait_s := self._failed_logins.take(client):
            raise _too_many("Too many wrong passwords come from your address.", wait_s)
        self._checks[client] += 1
        try:
            is_right = await rules.passwords.check(user, password)
        except TooManyChecksError:
            self._failed_logins.give_back(client)
            raise ProblemError(
                HTTPStatus.SERVICE_UNAVAILABLE,
                "Too many passwords are being checked: try again.",
                headers={"Retry-After": "5"},
            ) from None
        finally:
            self._checks[client] -= 1
            if not self._checks[client]:
                del self._checks[client]
        if is_right:
            self._failed_logins.give_back(client)
        return is_right


def _route(request: web.Request) -> str:
    """The path of a route, with the names of its parts; empty if no route matches."""
    resource = request.match_info.route.resource
    return "" if resource is None else resource.canonical


def _too_many(detail: str, wait_s: float) -> ProblemError:
    return ProblemError(
        HTTPStatus.TOO_MANY_REQUESTS,
        detail,
        headers={"Retry-After": str(max(1, math.ceil(wait_s)))},
    )


def _refuse_secrets(request: web.Request) -> None:
    """Refuses a secret in the address, which proxies, histories and logs would keep."""
    if "?" not in request.raw_path:
        return
    for name, _ in parse_qsl(request.query_string, keep_blank_values=True):
        if name.lower() in _SECRET_PARAMETERS:
            raise ProblemError(
                HTTPStatus.BAD_REQUEST,
                "A secret does not belong in an address, where others can read it: send it as "
                "Authorization: Bearer, and replace this one.",
                errors={name: "is not accepted in an address."},
            )
