"""``/metrics``, ``/healthz`` and ``/readyz`` of a process."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Final, Self

import orjson
from aiohttp import web
from aiohttp.typedefs import Handler

from featurewatch.common import tasks
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.http.clients import is_loopback
from featurewatch.common.http.hosts import is_inner_name, is_own_name
from featurewatch.common.http.listener import HttpListener
from featurewatch.common.http.problems import ProblemError
from featurewatch.common.service_state import STATE, reasons_of
from featurewatch.common.text import quoted
from featurewatch.streams import metrics
from featurewatch.streams.events import SourceState
from featurewatch.streams.metrics import SourceReport, SourceReporter

Sources = Callable[[], Iterable[SourceReporter]]

LOOPBACK: Final = "127.0.0.1"
_MAX_CONNECTIONS: Final = 200
_END_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class SourceReadiness:
    """Whether every source follows its cluster, and which do not and why."""

    ready: bool
    waiting: tuple[dict[str, str], ...]


def source_readiness(reports: Iterable[SourceReport]) -> SourceReadiness:
    """Ready if there are sources and all of them follow: unknown is not ready."""
    reports = tuple(reports)
    waiting = tuple(
        {
            "cluster": report.cluster,
            "source": report.source,
            "state": str(report.state),
            "reason": report.detail or report.last_error or "no reason was given",
        }
        for report in reports
        if report.state is not SourceState.FOLLOWING
    )
    return SourceReadiness(bool(reports) and not waiting, waiting)


@dataclass(frozen=True, slots=True)
class HealthViews:
    """The metrics as Prometheus' text, and whether all sources are ready with a JSON body.

    ``metrics`` copies what they are rendered from, in the event loop, and returns the rendering,
    which runs in a thread.
    """

    metrics: Callable[[], Callable[[], bytes]]
    readiness: Callable[[], tuple[bool, dict[str, Any]]]


def source_views(sources: Sources) -> HealthViews:
    """The views over the sources that are there at each request."""

    def ready() -> tuple[bool, dict[str, Any]]:
        state = source_readiness(source.report() for source in sources())
        body: dict[str, Any] = {"ready": state.ready, "waiting": state.waiting}
        if not state.ready and not state.waiting:
            body["reason"] = "no source runs: configure at least one cluster"
        return state.ready, body

    def scrape() -> Callable[[], bytes]:
        reports = [source.report() for source in sources()]
        return lambda: metrics.exposition(reports)

    return HealthViews(scrape, ready)


def readiness_of(views: HealthViews) -> tuple[bool, dict[str, Any]]:
    """Whether a process is ready, and the body of ``/readyz``; its background tasks count too."""
    ready, body = views.readiness()
    if troubles := tasks.troubles():
        return False, body | {"ready": False, "tasks": troubles}
    return ready, body


class _SharedRendering:
    """Renders the metrics in a thread, once at a time: scrapes that come meanwhile share it."""

    def __init__(self, scrape: Callable[[], Callable[[], bytes]]) -> None:
        self._scrape = scrape
        self._running: asyncio.Future[bytes] | None = None

    async def text(self) -> bytes:
        if self._running is None or self._running.done():
            self._running = asyncio.ensure_future(asyncio.to_thread(self._scrape()))
        return await asyncio.shield(self._running)


def make_app(views: HealthViews, listener: HttpListener) -> web.Application:
    """The web application of the three views; only the metrics may need a login.

    Background tasks of the process that fail make it unready, whichever view it has.
    """
    access = listener.access
    rendering = _SharedRendering(views.metrics)

    async def show_metrics(_: web.Request) -> web.Response:
        text = await rendering.text()
        text += metrics.process_exposition(has_old_rules=bool(listener.rules_error))
        return web.Response(body=text, headers={"Content-Type": metrics.CONTENT_TYPE})

    async def show_health(_: web.Request) -> web.Response:
        return _json({"status": "ok"})

    async def show_readiness(_: web.Request) -> web.Response:
        ready, body = readiness_of(views)
        return _json(body | listener.warnings, status=200 if ready else 503)

    @web.middleware
    async def admit(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            await access.limit(request)
            _check_host(request, listener.host)
            await access.authorize(request)
            return await handler(request)
        except ProblemError as problem:
            return problem.response(request.path)

    app = web.Application(middlewares=[admit])
    app.on_response_prepare.extend((_add_headers, access.add_headers))
    app.router.add_get("/metrics", show_metrics)
    app.router.add_get("/healthz", show_health)
    app.router.add_get("/readyz", show_readiness)
    return app


def _check_host(request: web.Request, listened_on: str) -> None:
    """Refuses the name of a site that a browser shows; what listens elsewhere has many names."""
    host = request.headers.get("Host", "")
    if request.path == "/healthz" or not is_loopback(listened_on):
        return
    if not (is_own_name(host, listened_on) or is_inner_name(host)):
        raise ProblemError(
            HTTPStatus.MISDIRECTED_REQUEST,
            f"This port does not answer to the name {quoted(host)}: request it by the address on "
            "which it listens.",
        )


async def _add_headers(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.pop("Server", None)


def _json(body: object, status: int = 200) -> web.Response:
    return web.Response(
        body=orjson.dumps(body) + b"\n", status=status, content_type="application/json"
    )


class HealthServer:
    """Serves the views; use as ``async with HealthServer(views, port=9584) as server``.

    ``port`` 0 takes any free one, which `port` then is. Binds to loopback by default:
    without ``access`` the views have no login. ``part`` is what the service manager calls what they
    show; without one it does not learn of them.

    Raises:
        WebConfigError: TLS or logins cannot be used as they are set up.
    """

    def __init__(
        self,
        views: HealthViews,
        *,
        port: int,
        host: str = LOOPBACK,
        access: AccessSettings = AccessSettings(),  # noqa: B008 - it is frozen
        part: str = "",
    ) -> None:
        self.host = host
        self._views = views
        self._part = part
        self._listener = HttpListener(host, port, access, _MAX_CONNECTIONS, _END_S)
        self._app = make_app(views, self._listener)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._listener.port

    @property
    def url(self) -> str:
        """The address for people."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._listener.scheme}://{host}:{self.port}"

    async def start(self) -> None:
        """Begins to listen; raises `PortTakenError`."""
        await self._listener.start(self._app)
        if self._part:
            STATE.add_part(self._part, self._reasons, self._listener.reload)

    async def close(self) -> None:
        """Stops listening."""
        STATE.remove_part(self._part)
        await self._listener.close()

    def _reasons(self) -> list[str]:
        ready, body = readiness_of(self._views)
        return [] if ready else reasons_of(body)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
