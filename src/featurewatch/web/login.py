"""The login of a browser: it shows a bearer token once, or its user signs in with a provider, and
has a cookie until it logs out."""

import asyncio
import html
import re
from collections.abc import Mapping
from http import HTTPStatus
from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

from aiohttp import web

from featurewatch.common.http.access import HEALTH, SESSION_COOKIE, AccessControl
from featurewatch.common.http.problems import ProblemError
from featurewatch.common.http.tokens import SESSION_S
from featurewatch.web.openid.routes import BEGIN, CALLBACK, OpenIdRoutes
from featurewatch.web.settings import PageSettings

LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
METHODS: Final[Mapping[str, tuple[str, ...]]] = {LOGIN: ("GET", "HEAD", "POST"), LOGOUT: ("POST",)}
"""The methods of the only routes that are not read-only."""
OPEN_PATHS: Final = HEALTH | {LOGIN, LOGOUT, BEGIN, CALLBACK, "/static/{digest}/{path}"}
"""Routes without a login: the files of the page are those of the package."""

MAX_FORM_BYTES: Final = 4_096
FORM_S: Final = 5.0
_FORM: Final = "application/x-www-form-urlencoded"
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_APP: Final = b'<div id="app"'
_TOKEN_FORM: Final = re.compile("<form.*?</form>", re.DOTALL)


class LoginPage:
    """The form, and what it is sent to; ``page`` is its HTML."""

    def __init__(self, page: bytes, access: AccessControl, settings: PageSettings) -> None:
        self._page = page.decode()
        self._access = access
        self._settings = settings

    def add_to(self, app: web.Application) -> None:
        """Adds the resources to an application."""
        app.router.add_get(LOGIN, self.show_form)
        app.router.add_post(LOGIN, self.log_in)
        app.router.add_post(LOGOUT, self.log_out)
        OpenIdRoutes(self._access, self).add_to(app)

    def marked(self, index: bytes, request: web.Request) -> bytes:
        """The page for a browser, which shows a way to log out if there is a session to end."""
        if not self._access.has_session(request):
            return index
        return index.replace(_APP, _APP + b" data-session", 1)

    def is_for(self, request: web.Request) -> bool:
        """Whether a browser without a login asks for the page, which is answered with the form."""
        accepts_html = "text/html" in request.headers.get("Accept", "")
        return self._has_form and request.path == "/" and accepts_html

    @property
    def _has_form(self) -> bool:
        rules = self._access.rules
        return bool(rules.tokens) or rules.config.openid is not None

    def show(self, request: web.Request, problem: ProblemError) -> web.Response:
        """The form in place of the page; after the login the browser comes back to it."""
        response = self.form(request.rel_url.raw_query_string, "", problem.status)
        response.headers.update(problem.headers)
        return response

    async def show_form(self, request: web.Request) -> web.Response:
        """The form; 204 to a HEAD of a browser that has a session, for the script of the form."""
        self._require_form()
        if request.method == "HEAD" and self._access.has_session(request):
            return web.Response(status=HTTPStatus.NO_CONTENT)
        return self.form("", "", HTTPStatus.OK)

    async def log_in(self, request: web.Request) -> web.Response:
        """Exchanges a token for a cookie.

        Raises:
            ProblemError: It is no form, too large, or sent by a page of another site.
        """
        self._require_tokens()
        self._refuse_other_sites(request)
        fields = await _fields(request)
        session = self._access.new_session(request, fields.get("token", ""))
        view = fields.get("view", "")
        if session is None:
            return self.form(view, "This token is not valid.", HTTPStatus.FORBIDDEN)
        response = self.back_to(view)
        response.headers["Set-Cookie"] = self.session_cookie(request, session, SESSION_S)
        return response

    async def log_out(self, request: web.Request) -> web.Response:
        """Takes the cookie from the browser.

        Raises:
            ProblemError: It is sent by a page of another site.
        """
        self._require_form()
        self._refuse_other_sites(request)
        headers = {"Set-Cookie": self.session_cookie(request, "", 0)}
        return web.Response(status=HTTPStatus.NO_CONTENT, headers=headers)

    def _require_tokens(self) -> None:
        if not self._access.rules.tokens:
            raise ProblemError(HTTPStatus.NOT_FOUND, "There are no tokens to log in with.")

    def _require_form(self) -> None:
        if not self._has_form:
            raise ProblemError(HTTPStatus.NOT_FOUND, "There is nothing to log in with.")

    @staticmethod
    def back_to(view: str) -> web.Response:
        """Sends a browser to the page, and the view that it was opened for."""
        is_query = view.isascii() and view.isprintable() and " " not in view
        return web.Response(
            status=HTTPStatus.SEE_OTHER,
            # Relative: it holds under any path that a proxy puts before it.
            headers={"Location": f"./?{view}" if view and is_query else "./"},
        )

    def form(self, view: str, error: str, status: HTTPStatus) -> web.Response:
        """The form for a token, and the way to the provider, as far as there are any."""
        rules, text = self._access.rules, self._page
        if not rules.tokens:
            text = _TOKEN_FORM.sub("", text, count=1)
        if rules.config.openid is not None:
            link = f".{BEGIN}?{urlencode({'view': view})}" if view else f".{BEGIN}"
            link = f'<p><a href="{html.escape(link)}">Sign in with your organization</a></p>'
            text = text.replace("<!-- openid -->", link, 1)
        text = text.replace('value="VIEW"', f'value="{html.escape(view)}"', 1)
        text = text.replace("<!-- error -->", html.escape(error), 1)
        return web.Response(
            status=status,
            text=text,
            content_type="text/html",
            headers={"Content-Security-Policy": _POLICY, "Cache-Control": "no-store"},
        )

    def _refuse_other_sites(self, request: web.Request) -> None:
        """A page of another site must not log a browser in, since it would know what is looked at,
        and not out.

        Browsers send ``Sec-Fetch-Site`` where they trust the address, and ``Origin`` everywhere;
        other clients send neither.
        """
        site = request.headers.get("Sec-Fetch-Site")
        origin = request.headers.get("Origin")
        if site is not None:
            is_own = site in ("same-origin", "none")
        else:
            own = {request.host, urlsplit(self._settings.external_url).netloc}
            is_own = origin is None or urlsplit(origin).netloc in own - {""}
        if not is_own:
            raise ProblemError(HTTPStatus.FORBIDDEN, "A page of another site sent this.")

    def session_cookie(self, request: web.Request, session: str, max_age_s: int) -> str:
        """The header with a session."""
        return self.cookie(request, SESSION_COOKIE, session, max_age_s, "Strict")

    def cookie(
        self, request: web.Request, name: str, value: str, max_age_s: int, same_site: str
    ) -> str:
        """The header; without ``Path`` the cookie belongs to the folder that the browser sees."""
        cookie = SimpleCookie({name: value})[name]
        cookie["max-age"] = str(max_age_s)
        cookie["httponly"] = True
        cookie["samesite"] = same_site
        proxy_scheme = request.headers.get("X-Forwarded-Proto", "")
        outside = urlsplit(self._settings.external_url).scheme
        cookie["secure"] = "https" in (request.scheme, outside, proxy_scheme.lower())
        return cookie.OutputString()


async def _fields(request: web.Request) -> dict[str, str]:
    if request.content_type != _FORM:
        raise ProblemError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"A login is sent as {_FORM}.")
    body = b""
    try:
        async with asyncio.timeout(FORM_S):
            while not request.content.at_eof() and len(body) <= MAX_FORM_BYTES:
                body += await request.content.read(MAX_FORM_BYTES + 1 - len(body))
    except TimeoutError:
        raise ProblemError(
            HTTPStatus.REQUEST_TIMEOUT, f"A login is read for {FORM_S:g} s."
        ) from None
    if len(body) > MAX_FORM_BYTES:
        raise ProblemError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"A login has at most {MAX_FORM_BYTES} bytes."
        )
    found = parse_qs(body.decode("ascii", "replace"))
    return {name: values[0] for name, values in found.items()}
