"""A served page, and a client of its API."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientResponse, ClientSession
from yarl import URL

from featurewatch.web.model import FleetModel
from featurewatch.web.openapi import ROOT
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.web.samples import NOW_MS, message_of, read_model, state_of


class Site:
    """A served model, and a client of it."""

    def __init__(self, server: PageServer, client: ClientSession) -> None:
        self.server = server
        self.client = client

    async def get(self, path: str, **headers: str) -> ClientResponse:
        """A response of the API."""
        return await self.client.get(URL(ROOT + path, encoded=True), headers=headers)

    async def body(self, path: str) -> Any:
        """The JSON of a successful response."""
        response = await self.get(path)
        assert response.status == 200, await response.text()
        return await response.json()

    def apply(self, *outputs: Any) -> None:
        """New messages, as the feed applies them."""
        for output in outputs:
            self.server.model.apply(*message_of(output), NOW_MS)
        self.server.notify()


def client_of(server: PageServer) -> ClientSession:
    """A client of a server that listens."""
    return ClientSession(base_url=f"http://127.0.0.1:{server.port}/")


@asynccontextmanager
async def site(model: FleetModel | None = None, **settings: Any) -> AsyncIterator[Site]:
    """Serves a model on loopback."""
    rows = WorkerRows()
    model = read_model([state_of()]) if model is None else model
    server = PageServer(PageSettings(port=0, **settings), model, rows, lambda: NOW_MS, lambda: 0.0)
    async with server.serving(), client_of(server) as client:
        yield Site(server, client)
