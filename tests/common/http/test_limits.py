"""What one client may use of a port: requests, connections, time and bytes."""

import asyncio
import logging
from pathlib import Path

import pytest
from aiohttp import ClientError
from hypothesis import given
from hypothesis import strategies as st

from featurewatch.common.http import access, listener, rate_limits
from featurewatch.common.http.access import BURST_S
from featurewatch.common.http.clients import ClientAddresses
from featurewatch.common.http.connections import ConnectionTable
from featurewatch.common.http.rate_limits import RateLimits, RefusalLog
from featurewatch.streams.health import HealthServer, HealthViews
from tests.common.http.ports import Files, client, served, status, until


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """The time that it was set to."""
        return self.now


@given(st.lists(st.floats(0, 3), max_size=60), st.floats(0.5, 20), st.integers(1, 30))
def test_a_client_gets_its_rate_and_its_burst(
    pauses: list[float], per_s: float, burst: int
) -> None:
    """Never more than both together, and what is refused passes after the time that is named."""
    clock = Clock()
    limits = RateLimits(per_s, burst, clock)
    passed = 0
    for pause in pauses:
        clock.now += pause
        wait_s = limits.take("a")
        passed += not wait_s
        assert passed <= burst + (clock.now - 100) * per_s + 1e-6
        if wait_s:
            assert limits.take("a") == wait_s
            clock.now += wait_s + 1e-9
            assert not limits.take("a")
            passed += 1
    assert not limits.take("b")


def test_the_table_of_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever came least recently is forgotten, and the others are still limited."""
    monkeypatch.setattr(rate_limits, "MAX_CLIENTS", 10)
    limits = RateLimits(1, 1, Clock())
    for number in range(1_000):
        limits.take("steady")
        limits.take(f"client-{number}")
        limits.give_back("client-0")
    assert len(limits) == 10
    assert limits.take("steady") > 0


def test_refusals_are_logged_once_in_a_period(caplog: pytest.LogCaptureFixture) -> None:
    """With their number and the client that had most, however many clients there were."""
    clock = Clock()
    log = RefusalLog(logging.getLogger("test"), clock, 60.0)
    for number in range(5_000):
        log.note("too much", f"client-{number}")
        log.note("too much", "worst")
        assert len(log._counts["too much"]) <= 1_000
    assert len(caplog.records) == 1
    clock.now += 60
    log.note("too much", "worst")
    assert len(caplog.records) == 2
    assert "from worst" in caplog.messages[1]
    assert "(5001)" in caplog.messages[1]


@pytest.mark.parametrize(
    ("peer", "forwarded", "found"),
    [
        ("192.0.2.1", [], "192.0.2.1"),
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.1, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["198.51.100.1", "203.0.113.9, 10.0.0.2"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.3, 10.0.0.2"], "10.0.0.3"),
        ("10.0.0.1", ["203.0.113.9, nonsense"], "10.0.0.1"),
        ("10.0.0.1", ["," * 5_000], "10.0.0.1"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["2001:db8:1:2:3::4"], "2001:db8:1:2::/64"),
        ("2001:db8:1:2::5", [], "2001:db8:1:2::/64"),
        ("fe80::1%eth0", [], "fe80::/64"),
        ("", [], ""),
    ],
)
def test_the_client_behind_a_proxy(peer: str, forwarded: list[str], found: str) -> None:
    """Proxies that are named are believed, and nobody else."""
    assert ClientAddresses(["10.0.0.0/8"]).client_of(peer, forwarded) == found


async def test_too_many_requests_are_refused_and_probes_are_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """429 with Retry-After for one client, while others behind the same proxy are served."""
    monkeypatch.setattr(access, "_HOLD_S", 0.0)
    async with (
        served(max_requests_per_s=0.01, proxies=("127.0.0.1",)) as server,
        client() as session,
    ):
        metrics = f"{server.url}/metrics"
        assert await status(metrics) == 200
        for _ in range(3):
            async with session.get(metrics) as response:
                assert response.status == 429
                assert 50 <= int(response.headers["Retry-After"]) <= 100
        assert await status(f"{server.url}/healthz") == 200
        assert await status(metrics, headers={"X-Forwarded-For": "203.0.113.9"}) == 200
    refusals = [line for line in caplog.messages if "requests a second" in line]
    assert len(refusals) == 1
    assert BURST_S * 0.01 < 1, "the burst is one request"


async def is_closed(reader: asyncio.StreamReader) -> bool:
    """Whether the server has closed a connection."""
    try:
        while await reader.read(65_536):
            pass
    except ConnectionError:
        pass
    return True


async def test_a_client_that_never_finishes_its_request_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Byte by byte or not at all; others are served meanwhile."""
    monkeypatch.setattr(listener, "IDLE_S", 0.5)
    async with served() as server:
        pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(20)]

        async def drip(writer: asyncio.StreamWriter) -> None:
            while not writer.is_closing():
                writer.write(b"x")
                await asyncio.sleep(0.05)

        for _, writer in pairs[1:]:
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nX-")
        dripping = [asyncio.ensure_future(drip(writer)) for _, writer in pairs[1:]]
        assert await status(f"{server.url}/metrics") == 200
        async with asyncio.timeout(60):
            assert all(await asyncio.gather(*(is_closed(reader) for reader, _ in pairs)))
        for task in dripping:
            task.cancel()
        await asyncio.gather(*dripping, return_exceptions=True)
        for _, writer in pairs:
            writer.close()


async def test_a_client_that_begins_no_tls_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection is counted from its beginning, and has little time for the handshake."""
    monkeypatch.setattr(listener, "HANDSHAKE_S", 0.5)
    monkeypatch.setattr(listener, "MAX_CONNECTIONS_OF_CLIENT", 3)
    files = Files(tmp_path)
    async with served(config_file=files.write(tls_server_config=files.tls())) as server:
        pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(8)]
        async with asyncio.timeout(60):
            assert all(await asyncio.gather(*(is_closed(reader) for reader, _ in pairs)))
        for _, writer in pairs:
            writer.close()
        assert await status(f"{server.url}/metrics", files.client_context()) == 200


async def test_a_client_that_takes_no_response_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was rendered for it does not stay in memory."""
    monkeypatch.setattr(listener, "WRITE_S", 0.5)
    large = b"x" * 50_000_000
    views = HealthViews(lambda: lambda: large, lambda: (True, {}))
    async with HealthServer(views, port=0) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        open_connections = server._listener._connections
        await until(lambda: len(open_connections))
        await until(lambda: not len(open_connections))
        writer.transport.abort()


async def test_the_connections_of_one_client_are_bounded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """For one more the longest idle one is closed; another client has room."""
    monkeypatch.setattr(listener, "MAX_CONNECTIONS_OF_CLIENT", 5)
    async with served() as server:
        pairs = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(8)]
        async with asyncio.timeout(60):
            ended = [asyncio.ensure_future(is_closed(reader)) for reader, _ in pairs]
            await until(lambda: sum(task.done() for task in ended) == 3)
        assert [task.done() for task in ended] == [True] * 3 + [False] * 5
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.port, local_addr=("127.0.0.2", 0)
        )
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        async with asyncio.timeout(60):
            assert b" 200 " in await reader.readline()
        for _, each in [*pairs, (reader, writer)]:
            each.close()

        async def is_served() -> bool:
            try:
                return await status(f"{server.url}/healthz") == 200
            except (OSError, ClientError):
                return False

        await until(is_served)
        await asyncio.gather(*ended)
    assert "too many connections" in caplog.text


async def test_idle_connections_keep_no_probe_out() -> None:
    """Two addresses hold as many as there may be, and make new ones whenever some are closed: a
    client that serves health is asked from a third, and gets its response at once."""
    async with served() as server:
        count = listener.MAX_CONNECTIONS_OF_CLIENT

        async def open_from(address: str) -> asyncio.StreamWriter:
            pair = await asyncio.open_connection("127.0.0.1", server.port, local_addr=(address, 0))
            return pair[1]

        writers = [
            await open_from(address) for _ in range(count) for address in ("127.0.0.2", "127.0.0.3")
        ]
        for address in ("127.0.0.2", "127.0.0.3", "127.0.0.2"):
            assert await status(f"{server.url}/healthz") == 200
            writers += [await open_from(address) for _ in range(5)]
        assert len(server._listener._connections) <= 2 * count
        for writer in writers:
            writer.close()


class Held:
    """A connection that serves a request or does not."""

    def __init__(self, *, is_idle: bool = True) -> None:
        self.is_idle = is_idle
        self.is_aborted = False

    def abort(self) -> None:
        """Ends it."""
        self.is_aborted = True


def test_the_longest_idle_connection_of_the_largest_client_makes_room() -> None:
    """One that serves a request is never ended; where all do, there is no room."""
    full: list[tuple[str, str]] = []
    table: ConnectionTable[Held] = ConnectionTable(4, 3, lambda *about: full.append(about))
    busy, first, second = Held(is_idle=False), Held(), Held()
    other, probe = Held(), Held(is_idle=False)
    for connection, owner in ((busy, "a"), (first, "a"), (second, "a"), (other, "b")):
        assert table.add(connection, owner, is_proxy=False)
    table.use(first, "a")
    assert table.add(probe, "c", is_proxy=False)
    assert [each.is_aborted for each in (busy, first, second, other)] == [0, 0, 1, 0]
    assert full == [("too many connections of all clients", "c")]
    table.remove(second, "a")
    assert len(table) == 4
    first.is_idle = other.is_idle = False
    assert not table.add(Held(), "d", is_proxy=True)
    for connection, owner in ((busy, "a"), (first, "a"), (other, "b"), (probe, "c")):
        table.remove(connection, owner)
    assert not len(table)


@pytest.mark.parametrize(
    ("host", "expected"),
    [("evil.example:9584", 421), ("localhost:9584", 200), ("10.0.0.1", 200), ("worker", 200)],
)
async def test_health_on_loopback_answers_to_no_foreign_name(host: str, expected: int) -> None:
    """A site in a browser could read the metrics, and the reasons on ``/readyz``, through a name of
    its own. ``/healthz`` says nothing of this process."""
    async with served() as server, client() as session:
        for path in ("metrics", "readyz", "healthz"):
            async with session.get(f"{server.url}/{path}", headers={"Host": host}) as response:
                assert response.status == (200 if path == "healthz" else expected)
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Cache-Control"] == "no-store"
                assert "Server" not in response.headers


@pytest.mark.parametrize(
    "request_line",
    [
        "GET /metrics?" + "x" * 9_000 + " HTTP/1.1\r\nHost: a",
        "GET /metrics HTTP/1.1\r\nHost: a\r\nX-Large: " + "x" * 9_000,
        "GET /metrics HTTP/1.1\r\nHost: a\r\n" + "x" * 9_000 + ": y",
        "GET /metrics HTTP/1.1\r\nHost: a" + "".join(f"\r\nx-{i}: y" for i in range(100)),
        "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        "GET /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: -1",
    ],
    ids=["address", "value", "name", "headers", "two lengths", "negative length"],
)
async def test_what_is_too_large_or_ambiguous_is_refused(
    request_line: str, caplog: pytest.LogCaptureFixture
) -> None:
    """400, and the connection ends."""
    async with served() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"{request_line}\r\n\r\n".encode())
        async with asyncio.timeout(60):
            assert b" 400 " in await reader.readline()
            assert await is_closed(reader)
        writer.close()
    assert caplog.text == ""
