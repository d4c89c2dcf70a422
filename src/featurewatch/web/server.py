"""The web application of the page and its API, and the server that listens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from http import HTTPStatus
from typing import Final

import orjson
from aiohttp import web

from featurewatch.common import tasks
from featurewatch.common.http.listener import HttpListener
from featurewatch.common.service_state import STATE
from featurewatch.common.tasks import start_background
from featurewatch.web.api import Api
from featurewatch.web.live import EventStreams
from featurewatch.web.login import LoginPage
from featurewatch.web.model import FleetModel
from featurewatch.web.problems import ProblemError
from featurewatch.web.request_rules import add_headers, request_rules
from featurewatch.web.settings import PageSettings
from featurewatch.web.static_files import StaticFile, StaticFiles
from featurewatch.web.worker_rows import WorkerRows

_TICK_S: Final = 1.0
_END_S: Final = 1.0
_OTHER_CONNECTIONS: Final = 300
_STORED: Final = "public, max-age=31536000, immutable"
_REVALIDATED: Final = "no-cache"


class PageServer:
    """Serves a model; what changes it calls `notify` afterwards.

    ``now_ms`` is the wall clock, ``jitter`` gives a number from 0 to 1. Use `serving` as a context.
    """

    def __init__(
        self,
        settings: PageSettings,
        model: FleetModel,
        rows: WorkerRows,
        now_ms: Callable[[], int],
        jitter: Callable[[], float],
    ) -> None:
        self.settings = settings
        self.model = model
        self.rows = rows
        self.now_ms = now_ms
        self.streams = EventStreams(
            model, settings.max_streams, settings.max_streams_per_client, now_ms, jitter
        )
        # Beside the streams there is room for as many requests as browsers make at once.
        self._listener = HttpListener(
            settings.host,
            settings.port,
            settings.access,
            settings.max_streams + _OTHER_CONNECTIONS,
            _END_S,
            settings.max_streams_per_client,
        )

    @property
    def url(self) -> str:
        """The address for people."""
        if self.settings.external_url:
            return self.settings.external_url
        host = f"[{self.settings.host}]" if ":" in self.settings.host else self.settings.host
        return f"{self._listener.scheme}://{host}:{self.port}/"

    @property
    def port(self) -> int:
        """The address on which it listens."""
        return self._listener.port

    def notify(self) -> None:
        """Sends the changes of the model to all clients."""
        self.model.count()
        self.streams.wake()

    def make_app(self) -> web.Application:
        """The application."""
        static, access = StaticFiles(), self._listener.access
        login = LoginPage(static.login.content, access, self.settings)
        app = web.Application(middlewares=[request_rules(self.settings, access, login)])
        app.on_response_prepare.extend((add_headers, access.add_headers))
        login.add_to(app)
        Api(self.model, self.rows, self.streams, self.now_ms).add_to(app)
        self._add_page(app, static, login)
        app.on_shutdown.append(self._end_streams)
        app.cleanup_ctx.append(self._ticking)
        return app

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Listens for as long as the context lasts; raises `PortTakenError`."""
        await self._listener.start(self.make_app())
        STATE.add_part("page", self._waiting, self._listener.reload)
        try:
            yield
        finally:
            STATE.remove_part("page")
            await self._listener.close()

    def _add_page(self, app: web.Application, static: StaticFiles, login: LoginPage) -> None:
        async def show_page(request: web.Request) -> web.Response:
            page = login.marked(static.index.content, request)
            return _file(static.index._replace(content=page), _REVALIDATED)

        async def show_file(request: web.Request) -> web.Response:
            file = static.get(request.match_info["digest"], request.match_info["path"])
            if file is None:
                raise ProblemError(HTTPStatus.NOT_FOUND, "There is no such file in this version.")
            return _file(file, _STORED)

        async def show_health(_: web.Request) -> web.Response:
            return _status(HTTPStatus.OK, {"status": "ok"})

        async def show_readiness(_: web.Request) -> web.Response:
            reasons = self._waiting()
            ready = not reasons
            body = {"ready": ready, "reason": "; ".join(reasons), **self._listener.warnings}
            return _status(HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE, body)

        app.router.add_get("/", show_page)
        app.router.add_get("/static/{digest}/{path:.+}", show_file)
        app.router.add_get("/healthz", show_health)
        app.router.add_get("/readyz", show_readiness)

    def _waiting(self) -> list[str]:
        """Why the page is not ready; empty if it is."""
        reasons = tasks.troubles()
        if not self.model.is_complete:
            reasons.insert(0, self.model.error or "the topics are being read")
        return reasons

    async def _end_streams(self, _: web.Application) -> None:
        self.streams.close()

    async def _ticking(self, _: web.Application) -> AsyncIterator[None]:
        async def tick() -> None:
            while True:
                await asyncio.sleep(_TICK_S)
                self.model.tick(self.now_ms())
                self.streams.wake()

        task = start_background("the page's clock", tick)
        yield
        await task.close()


def _file(file: StaticFile, stored: str) -> web.Response:
    return web.Response(
        body=file.content,
        content_type=file.content_type,
        charset="utf-8",
        headers={"Cache-Control": stored},
    )


def _status(status: HTTPStatus, body: Mapping[str, object]) -> web.Response:
    return web.Response(
        status=status.value, body=orjson.dumps(body), content_type="application/json"
    )
