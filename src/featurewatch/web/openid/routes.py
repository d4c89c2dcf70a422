"""The two resources of a sign-in: one sends a browser to the provider, one takes it back."""

import base64
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol

from aiohttp import web

from featurewatch.common.http import openid
from featurewatch.common.http.access import CLIENT, AccessControl
from featurewatch.common.http.openid import FLOW_S, OpenIdConfig, SignIn
from featurewatch.common.http.problems import ProblemError
from featurewatch.common.text import quoted
from featurewatch.web.openid.errors import SignInError

if TYPE_CHECKING:
    from featurewatch.web.openid.provider import Provider

BEGIN: Final = "/openid-login"
CALLBACK: Final = "/openid-callback"
COOKIE: Final = "featurewatch_openid"

_LOG: Final = logging.getLogger("featurewatch.web")
_MAX_VIEW_CHARS: Final = 1_000


class Page(Protocol):
    """What a sign-in needs of the page's login (`LoginPage`)."""

    def form(self, view: str, error: str, status: HTTPStatus) -> web.Response:
        """The form, with an error."""

    def back_to(self, view: str) -> web.Response:
        """Sends a browser to a view of the page."""

    def session_cookie(self, request: web.Request, session: str, max_age_s: int) -> str:
        """The header with a session."""

    def cookie(
        self, request: web.Request, name: str, value: str, max_age_s: int, same_site: str
    ) -> str:
        """The header with any cookie."""


class OpenIdRoutes:
    """Serves both; ``wall_clock_s`` is the time of day."""

    def __init__(
        self,
        access: AccessControl,
        login: Page,
        wall_clock_s: Callable[[], float] = time.time,
    ) -> None:
        self._access = access
        self._login = login
        self._wall_clock_s = wall_clock_s
        self._provider: Provider | None = None

    def add_to(self, app: web.Application) -> None:
        """Adds the resources to an application."""
        app.router.add_get(BEGIN, self.begin, allow_head=False)
        app.router.add_get(CALLBACK, self.end, allow_head=False)

    async def begin(self, request: web.Request) -> web.Response:
        """Sends a browser to the provider, with a cookie that knows it again."""
        provider = self._current()
        view = request.query.get("view", "")[:_MAX_VIEW_CHARS]
        sign_in = SignIn(
            secrets.token_urlsafe(32), secrets.token_urlsafe(32), secrets.token_urlsafe(32), view
        )
        digest = hashlib.sha256(sign_in.verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        try:
            url = await provider.authorization_url(sign_in, challenge)
        except SignInError as error:
            return self._failed(request, view, str(error), HTTPStatus.BAD_GATEWAY)
        cookie = openid.begun(provider.config, sign_in, self._wall_clock_s())
        response = web.Response(status=HTTPStatus.SEE_OTHER, headers={"Location": url})
        # Lax: the provider's page sends the browser back.
        response.headers["Set-Cookie"] = self._login.cookie(request, COOKIE, cookie, FLOW_S, "Lax")
        return response

    async def end(self, request: web.Request) -> web.Response:
        """Exchanges the code that a browser brings back for a session."""
        provider = self._current()
        config, now_s = provider.config, self._wall_clock_s()
        sign_in = openid.sign_in_of(config, request.cookies.get(COOKIE, ""), now_s)
        code, state, error = (request.query.get(name, "") for name in ("code", "state", "error"))
        if sign_in is None or not hmac.compare_digest(sign_in.state.encode(), state.encode()):
            text = "This sign-in was not begun here, or took too long: sign in again."
            return self._failed(request, "", text, HTTPStatus.FORBIDDEN)
        if error or not code:
            text = f"The provider did not sign you in ({quoted(error) or 'no code'})."
            return self._failed(request, sign_in.view, text, HTTPStatus.FORBIDDEN)
        try:
            claims = await provider.claims(code, sign_in)
        except SignInError as failed:
            return self._failed(request, sign_in.view, str(failed), HTTPStatus.BAD_GATEWAY)
        if not provider.may_read(claims):
            text = "You are signed in, but in none of the groups that may read this page."
            return self._failed(request, sign_in.view, text, HTTPStatus.FORBIDDEN)
        return self._signed_in(request, config, sign_in, now_s)

    def _signed_in(
        self, request: web.Request, config: OpenIdConfig, sign_in: SignIn, now_s: float
    ) -> web.Response:
        session = openid.new_session(config, now_s)
        response = self._login.back_to(sign_in.view)
        lifetime_s = config.session_hours * 3600
        response.headers.add("Set-Cookie", self._login.session_cookie(request, session, lifetime_s))
        response.headers.add("Set-Cookie", self._login.cookie(request, COOKIE, "", 0, "Lax"))
        return response

    def _current(self) -> "Provider":
        """The provider of the file as it is now; raises `ProblemError`: there is none."""
        from featurewatch.web.openid.provider import Provider  # here: few pages need it

        config = self._access.rules.config.openid
        if config is None:
            raise ProblemError(HTTPStatus.NOT_FOUND, "There is no provider to sign in with.")
        if self._provider is None or self._provider.config != config:
            self._provider = Provider(config)
        return self._provider

    def _failed(
        self, request: web.Request, view: str, text: str, status: HTTPStatus
    ) -> web.Response:
        self._access.refusals.note("failed sign-ins", request[CLIENT])
        _LOG.info("a sign-in failed: %s", text)
        return self._login.form(view, text, status)
