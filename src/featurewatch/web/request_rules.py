"""Rules for every request: methods, the Host header, and the headers of every response."""

import logging
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from featurewatch.common.http.access import HEALTH, AccessControl
from featurewatch.common.text import quoted
from featurewatch.web.login import METHODS, OPEN_PATHS, LoginPage
from featurewatch.web.problems import ProblemError, method_not_allowed
from featurewatch.web.settings import PageSettings

_LOG: Final = logging.getLogger("featurewatch.web")
_READING: Final = ("GET", "HEAD")

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def request_rules(settings: PageSettings, access: AccessControl, login: LoginPage) -> Middleware:
    """The middleware; every refusal is a problem document."""

    @web.middleware
    async def apply(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            await access.limit(request)
            _check_method(request)
            _check_host(request, settings, has_login=access.rules.has_login)
            await access.authorize(request, OPEN_PATHS)
            return await handler(request)
        except ProblemError as problem:
            if problem.status is HTTPStatus.UNAUTHORIZED and login.is_for(request):
                return login.show(request, problem)
            return problem.response(request.path)
        except web.HTTPMethodNotAllowed:
            return method_not_allowed(_READING).response(request.path)
        except web.HTTPNotFound:
            missing = ProblemError(HTTPStatus.NOT_FOUND, "There is no such resource.")
            return missing.response(request.path)
        except Exception:
            _LOG.exception("%s %s failed", request.method, quoted(request.path))
            defect = ProblemError(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                "featurewatch failed to answer; its log has the reason.",
            )
            return defect.response(request.path)

    return apply


async def add_headers(_: web.Request, response: web.StreamResponse) -> None:
    """Adds the headers of every response; a signal handler for ``on_response_prepare``."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.pop("Server", None)


def _check_method(request: web.Request) -> None:
    allowed = METHODS.get(request.path, _READING)
    if request.method not in allowed:
        raise method_not_allowed(allowed)


def _check_host(request: web.Request, settings: PageSettings, *, has_login: bool) -> None:
    if request.path in HEALTH:  # probes come with the address of a pod
        return
    host = request.headers.get("Host", "")
    if not settings.accepts_host(host, has_login=has_login):
        raise ProblemError(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"This page does not answer to the name {quoted(host)}: set web.external_url to the "
            "address at which it can be reached.",
        )
