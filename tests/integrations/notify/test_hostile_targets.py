"""Targets that answer as no server should: each is cut off, and its status counts."""

import asyncio
import contextlib
import time
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable

import orjson
import pytest
from aiohttp import web

from featurewatch.integrations.notify.alert_book import AlertBook
from featurewatch.integrations.notify.alertmanager import AlertmanagerMember
from featurewatch.integrations.notify.http_client import TargetClient, TargetResponse
from featurewatch.integrations.notify.metrics import NotifyMetrics
from featurewatch.integrations.notify.settings import NotifySettings
from tests.integrations.notify.receivers import receiver
from tests.waiting import until_async
from tests.web.samples import NOW_MS, alert_of

Script = Callable[[asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def server(script: Script) -> AsyncIterator[str]:
    """A server that reads a request and then writes what it likes; its address."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            await script(writer)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/hook"
    finally:
        listening.close()


async def post(url: str, timeout_s: float = 30.0) -> TargetResponse:
    """One request."""
    client = TargetClient(url, allow_private=True, timeout_s=timeout_s)
    try:
        return await client.post(b"[]", {})
    finally:
        await client.close()


async def write_forever(writer: asyncio.StreamWriter, part: bytes, pause_s: float = 0.0) -> None:
    """The same again and again, until the peer closes."""
    while True:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(pause_s)


HEAD_200 = b"HTTP/1.1 200 OK\r\nContent-Length: 9000000000\r\n\r\n"
HEAD_503 = b"HTTP/1.1 503 Busy\r\nRetry-After: 77\r\nContent-Length: 9000000000\r\n\r\n"


@pytest.mark.parametrize(("head", "status"), [(HEAD_200, 200), (HEAD_503, 503)])
async def test_gigabytes_are_not_read(head: bytes, status: int) -> None:
    """The status counts; the body is read in part, and the connection closed."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await write_forever(writer, b"x" * 1_000_000)

    tracemalloc.start()
    try:
        async with server(script) as url:
            response = await post(url)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert response.status == status
    assert len(response.reason) < 1000
    assert peak < 20_000_000


@pytest.mark.parametrize("body", [b"", b"x"])
async def test_a_body_that_stops_in_the_middle_leaves_the_status(body: bytes) -> None:
    """A 503 and its Retry-After count, whether the connection closes or hangs then."""

    async def close(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD_503 + body)
        await writer.drain()

    async def hang(writer: asyncio.StreamWriter) -> None:
        await close(writer)
        await asyncio.sleep(60)

    for script in (close, hang):
        async with server(script) as url:
            response = await post(url)
        assert (response.status, response.retry_after) == (503, "77")


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y" * 1000),
    ],
)
async def test_an_answer_without_end_is_cut_off(head: bytes, part: bytes) -> None:
    """The time of a request is bounded, and so is the size of its headers."""

    async def script(writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await write_forever(writer, part, 0.01)

    began = time.monotonic()
    async with server(script) as url:
        response = await post(url, timeout_s=1.0)
    assert response.status == 0
    assert response.reason
    assert time.monotonic() - began < 30


async def test_an_answer_byte_by_byte_counts() -> None:
    """A slow receiver is no failure as long as it is in time."""

    async def script(writer: asyncio.StreamWriter) -> None:
        for byte in b"HTTP/1.1 204 No Content\r\n\r\n":
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.005)

    async with server(script) as url:
        assert (await post(url)).status == 204


async def test_cookies_are_not_kept() -> None:
    """A target cannot make requests grow, or mark them."""
    cookies = []

    async def answer(request: web.Request) -> web.Response:
        cookies.append(request.headers.get("Cookie", ""))
        response = web.Response(status=204)
        response.set_cookie("mark", "x" * 3000)
        return response

    app = web.Application()
    app.router.add_post("/hook", answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        # A name, since cookies of addresses are not kept anyway.
        client = TargetClient(f"http://localhost:{runner.addresses[0][1]}/hook", allow_private=True)
        for _ in range(2):
            assert (await client.post(b"{}", {})).status == 204
        await client.close()
    finally:
        await runner.cleanup()
    assert cookies == ["", ""]


async def test_ten_thousand_alerts_go_in_batches() -> None:
    """Each arrives, in requests that a proxy takes, and what they are made of is not held."""
    count = 10_000
    book, metrics = AlertBook(), NotifyMetrics()
    evidence = {"nodes": list(range(1000))}
    sizes: list[int] = []
    nodes: set[str] = set()
    async with receiver(lambda _: web.Response(text="{}")) as received:
        settings = NotifySettings((f"http://127.0.0.1:{received.port}",))
        url = settings.alertmanagers[0]
        member = AlertmanagerMember(url, settings, book, metrics, lambda: NOW_MS)
        book.error = None
        book.begin_reading()
        for node in range(count):
            book.apply(alert_of(node=node, evidence=evidence), NOW_MS)
        book.end_reading(NOW_MS)

        def drain() -> bool:
            while received.bodies:
                body = received.bodies.pop()
                sizes.append(len(body))
                nodes.update(one["labels"].get("node", "") for one in orjson.loads(body))
            return len(nodes) > count  # the watchdog has none

        tracemalloc.start()
        running = asyncio.ensure_future(member.run())
        try:
            await until_async(drain)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert max(sizes) <= 501_000
    assert len(sizes) < 60
    assert peak < 32_000_000, f"{peak / 1e6:.0f} MB"
