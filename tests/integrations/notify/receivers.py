"""Receivers of webhooks on this machine: real HTTP servers that answer as they are told to."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import orjson
from aiohttp import web

from featurewatch.integrations.notify.settings import WebhookTarget

SECRETS = (bytes(range(32)),)
Answer = Callable[[int], web.Response]
"""A response by the number of the request, from 0."""


@dataclass
class Receiver:
    """The requests that came: their headers and bodies."""

    port: int = 0
    ids: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}/hook"

    def target(self, name: str = "oncall") -> WebhookTarget:
        """A target that may be at a private address."""
        return WebhookTarget(name, self.url, SECRETS, allow_private=True)

    def nodes(self) -> list[int]:
        """The nodes of the alerts that came, in order."""
        return [orjson.loads(body)["data"]["subject"]["node"] for body in self.bodies]


def accept(_: int) -> web.Response:
    """204."""
    return web.Response(status=204)


@contextlib.asynccontextmanager
async def receiver(answer: Answer | None = accept) -> AsyncIterator[Receiver]:
    """A receiver; None: it never answers."""
    received = Receiver()
    is_over = asyncio.Event()

    async def handle(request: web.Request) -> web.Response:
        received.paths.append(request.path)
        received.ids.append(request.headers.get("webhook-id", ""))
        received.headers.append(dict(request.headers))
        received.bodies.append(await request.read())
        if answer is None:
            await is_over.wait()
            return web.Response(status=500)
        return answer(len(received.bodies) - 1)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        received.port = runner.addresses[0][1]
        yield received
    finally:
        is_over.set()
        await runner.cleanup()
