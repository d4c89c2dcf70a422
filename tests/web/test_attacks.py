"""Attacks on the page and its API over real connections: floods, and requests made by hand."""

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, TCPConnector

from featurewatch.common.http.access import BURST_S
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.web import live
from featurewatch.web.openapi import ROOT
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.common.http.ports import TOKEN, Files, until
from tests.web.samples import NOW_MS, read_model, state_of
from tests.web.served_page import memory_mb, served_page

PER_S = 20.0
BATCH = 200
CONNECTIONS = 50
ENOUGH = 20_000
REQUEST = f"GET {ROOT}/clusters HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
LINE = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Flood:
    """Sends many requests at once, on many connections, as fast as the server takes them."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sent = 0
        self.statuses: Counter[bytes] = Counter()
        self.has_retry_after = True

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        await asyncio.gather(*(self._attack() for _ in range(CONNECTIONS)))

    async def _attack(self) -> None:
        while True:
            with contextlib.suppress(OSError, TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
                async with asyncio.timeout(0.7):
                    writer.write(REQUEST * BATCH)
                    self.sent += BATCH
                    await self._count(reader)
                writer.transport.abort()
            await asyncio.sleep(0)

    async def _count(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(65_536):
            found = LINE.findall(data)
            self.statuses.update(found)
            if b"429" in found:
                self.has_retry_after &= b"Retry-After: " in data


async def test_a_flood_of_one_client_leaves_the_others_served() -> None:
    """Tens of thousands of requests from one address: it gets 429, others their answers."""
    with served_page(100, PER_S) as (port, pid):
        before_mb = memory_mb(pid, "VmRSS")
        flood = Flood(port)
        began = time.monotonic()
        attack = asyncio.ensure_future(flood.run())
        slowest_s, count = 0.0, 0
        connector = TCPConnector(local_addr=("127.0.0.2", 0), force_close=True)
        async with ClientSession(f"http://127.0.0.1:{port}", connector=connector) as other:
            while flood.sent < ENOUGH or flood.statuses[b"429"] < 10 or count < 10:
                asked = time.monotonic()
                async with other.get(f"{ROOT}/clusters") as response:
                    assert response.status == 200
                    assert len((await response.json())["items"]) == 100
                slowest_s = max(slowest_s, time.monotonic() - asked)
                count += 1
                assert time.monotonic() - began < 120, (flood.sent, flood.statuses)
                await asyncio.sleep(0.2)
        lasted_s = time.monotonic() - began
        attack.cancel()
        await asyncio.gather(attack, return_exceptions=True)
        grown_mb = memory_mb(pid, "VmHWM") - before_mb
    assert slowest_s < 15
    assert flood.has_retry_after
    assert flood.statuses[b"200"] <= PER_S * (BURST_S + lasted_s)
    assert grown_mb < 100


@asynccontextmanager
async def page(**settings: Any) -> AsyncIterator[PageServer]:
    """A page of one cluster."""
    made = PageSettings(port=0, **settings)
    server = PageServer(made, read_model([state_of()]), WorkerRows(), lambda: NOW_MS, lambda: 0.0)
    async with server.serving():
        yield server


async def raw(server: PageServer, head: str) -> tuple[int, str]:
    """The status and the rest of the response to a request made by hand."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode())
    async with asyncio.timeout(60):
        text = (await reader.read()).decode(errors="replace")
    writer.close()
    return int(text.split(" ")[1]), text


CLIMBING = [
    "/../../etc/passwd",
    "/static/../../etc/passwd",
    "/static/..%2f..%2fetc%2fpasswd",
    "/static/%2e%2e/%2e%2e/etc/passwd",
    "/static/DIGEST/../../../etc/passwd",
    "/static/DIGEST/%2e%2e%2f%2e%2e%2fserver.py",
    "/static/DIGEST/..%5c..%5cserver.py",
    "/static/DIGEST/%252e%252e/server.py",
    "/static/DIGEST//etc/passwd",
    "/static/DIGEST/app.js%00.css",
    f"{ROOT}/schemas/..%2f..%2fpyproject",
    f"{ROOT}/clusters/%2e%2e%2f%2e%2e",
    f"//evil.example{ROOT}/fleet",
]


async def test_a_path_that_climbs_finds_nothing() -> None:
    """In every spelling; with a digest that is right, too."""
    async with page() as server:
        _, index = await raw(server, "GET / HTTP/1.1\r\nHost: localhost")
        found = re.search(r"static/([0-9a-f]{16})/", index)
        assert found is not None
        for path in CLIMBING:
            target = path.replace("DIGEST", found[1])
            status, text = await raw(server, f"GET {target} HTTP/1.1\r\nHost: localhost")
            assert status in (400, 404), (path, text)
            assert "root:" not in text
            assert "PageServer" not in text


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (f"GET {ROOT}/fleet HTTP/1.1\r\nHost: evil.example", 421),
        (f"GET http://evil.example{ROOT}/fleet HTTP/1.1\r\nHost: evil.example", 421),
        (f"GET {ROOT}/fleet HTTP/1.1\r\nHost: localhost\r\nHost: evil.example", 400),
        (f"GET {ROOT}/fleet HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-Host: evil.example", 200),
        (f"GET {ROOT}/fleet HTTP/1.0", 421),
        ("CONNECT evil.example:443 HTTP/1.1\r\nHost: localhost", 405),
        ("OPTIONS * HTTP/1.1\r\nHost: localhost", 405),
        (f"GET {ROOT}/fleet?token=abc HTTP/1.1\r\nHost: localhost", 400),
        (f"GET {ROOT}/fleet?Access_Token=abc HTTP/1.1\r\nHost: localhost", 400),
        (f"GET {ROOT}/clusters?cursor={'A' * 3_000} HTTP/1.1\r\nHost: localhost", 400),
        (f"GET {ROOT}/clusters?q={'x' * 9_000} HTTP/1.1\r\nHost: localhost", 400),
    ],
)
async def test_a_request_made_by_hand(head: str, status: int) -> None:
    """Forged names, foreign targets, secrets in the address, too much of anything."""
    async with page() as server:
        found, text = await raw(server, head)
        assert found == status, text
        assert "abc" not in text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example:9780", 421),
        ("127.0.0.1.evil.example", 421),
        ("a..b", 421),
        ("", 421),
        ("localhost:9780", 200),
        ("127.0.0.1:9780", 200),
        ("10.1.2.3:9780", 200),
        ("[fd00::1]:9780", 200),
        ("featurewatch-web:9780", 200),
        ("ops.example.org", 200),
    ],
)
async def test_a_page_without_a_login_answers_to_no_foreign_name(
    host: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it listens: its port may be published on a loopback address, as by the compose file,
    where a site in a browser can reach it through its own name. With a login any name will do,
    and health answers to any."""
    # As if it listened on all addresses, of which tests use this machine's own alone.
    monkeypatch.setattr(PageSettings, "is_local", False)
    head = f"GET {ROOT}/fleet HTTP/1.1\r\nHost: {host}"
    async with page(external_url="https://ops.example.org/") as server:
        assert (await raw(server, head))[0] == status
        assert (await raw(server, f"GET /healthz HTTP/1.1\r\nHost: {host}"))[0] == 200
    access = AccessSettings(token_file=Files(tmp_path).write_tokens(TOKEN))
    async with page(access=access) as server:
        assert (await raw(server, head))[0] == 401


@pytest.mark.parametrize("position", ["x" * 8_000, "boot.1\x00", "-1", "boot." + "9" * 400, "💥"])
async def test_a_nonsense_position_is_a_reset_or_refused(position: str) -> None:
    """Whatever a client sends as the last event that it had."""
    async with page() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = f"GET {ROOT}/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {position}\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(60):
            first = await reader.readline()
            if b" 200 " in first:
                await reader.readuntil(b"event: reset\n")
            else:
                assert b" 400 " in first
        writer.close()
        assert server.streams.count <= 1


async def test_a_quiet_stream_is_kept_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a line that is no event, though the server looks for changes all the time."""
    monkeypatch.setattr(live, "PING_S", 0.3)
    async with (
        page() as server,
        ClientSession(f"http://127.0.0.1:{server.port}") as client,
        client.get(f"{ROOT}/events") as stream,
    ):

        async def wake() -> None:
            while True:
                server.streams.wake()
                await asyncio.sleep(0.05)

        waking = asyncio.ensure_future(wake())
        async with asyncio.timeout(60):
            for _ in range(3):
                await stream.content.readuntil(b"\n:\n")
        waking.cancel()


async def test_the_streams_of_one_client_are_bounded() -> None:
    """One more gets 429; another client has one, also behind a proxy, and room comes back."""
    access = AccessSettings(proxies=("127.0.0.1",))
    async with (
        page(max_streams_per_client=2, access=access) as server,
        ClientSession(f"http://127.0.0.1:{server.port}") as client,
    ):
        events = f"{ROOT}/events"
        streams = [await client.get(events) for _ in range(2)]
        refused = await client.get(events)
        assert refused.status == 429
        assert int(refused.headers["Retry-After"]) > 0
        other = await client.get(events, headers={"X-Forwarded-For": "203.0.113.9"})
        assert other.status == 200
        other.close()
        for stream in streams:
            stream.close()

        async def has_room() -> bool:
            server.notify()
            stream = await client.get(events)
            stream.close()
            return stream.status == 200

        await until(has_room)
