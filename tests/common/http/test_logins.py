"""Logins of a port over real connections: passwords, tokens, certificates, and changed files."""

import asyncio
import base64
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import ClientConnectionError, ClientError, ClientSession, TCPConnector
from aiohttp.test_utils import make_mocked_request

from featurewatch.common.http import listener, passwords
from featurewatch.common.http.access import MAX_CHECKS_OF_CLIENT, AccessControl
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.http.errors import WebConfigError
from featurewatch.common.http.passwords import PasswordChecker, TooManyChecksError
from featurewatch.common.http.problems import ProblemError
from featurewatch.common.http.tls import is_client_allowed
from featurewatch.common.http.web_config import ClientAuth, TlsConfig
from featurewatch.common.tasks import start_background, troubles
from featurewatch.streams.health import HealthServer, HealthViews
from tests.common.http.ports import (
    DEADLINE_S,
    OTHER_TOKEN,
    PASSWORD,
    TOKEN,
    Files,
    client,
    hashed,
    served,
    status,
    until,
)


def basic(user: str, password: str = PASSWORD) -> dict[str, Any]:
    """The arguments of a request with a password."""
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"headers": {"Authorization": f"Basic {encoded}"}}


def bearer(token: str) -> dict[str, Any]:
    """The arguments of a request with a token."""
    return {"headers": {"Authorization": f"Bearer {token}"}}


async def test_passwords_and_tokens_open_the_metrics_and_health_needs_none(tmp_path: Path) -> None:
    """Either will do; without them 401 with both challenges."""
    files = Files(tmp_path)
    config = files.write(basic_auth_users={"ann": hashed()})
    tokens = files.write_tokens(TOKEN, OTHER_TOKEN)
    async with served(config_file=config, token_file=tokens) as server, client() as session:
        for path in ("/healthz", "/readyz"):
            assert await status(server.url + path) == 200
        metrics = f"{server.url}/metrics"
        assert await status(metrics, **basic("ann")) == 200
        assert await status(metrics, **bearer(TOKEN)) == 200
        assert await status(metrics, **bearer(OTHER_TOKEN)) == 200
        for wrong in (
            {},
            bearer(TOKEN + "x"),
            bearer(""),
            basic("ann", "wrong"),
            basic("nobody", PASSWORD),
            basic("ann", PASSWORD + "\0"),
            basic("ann", "x" * 100),
            {"headers": {"Authorization": "Basic !"}},
            {"headers": {"Authorization": "Basic " + base64.b64encode(b"\xff\xff").decode()}},
            {"headers": {"Authorization": "Digest x"}},
            {"headers": {"Authorization": "Bearer " + "x" * 5_000}},
            {"headers": {"Cookie": "featurewatch_session=1.2"}},
        ):
            assert await status(metrics, **wrong) == 401, wrong
        async with session.get(metrics) as response:
            challenge = response.headers["WWW-Authenticate"]
            assert challenge.startswith("Basic ")
            assert "Bearer " in challenge
            assert (await response.json())["status"] == 401


@pytest.mark.parametrize(
    "header",
    [
        b"Authorization: Bearer \xff\xfe",
        b"Authorization: Basic \xff\xfe",
        b"Authorization: \xff",
        b"Cookie: featurewatch_session=9999999999.\xff; \xfe=\xff",
        b"X-Forwarded-For: \xff, 203.0.113.9",
    ],
)
async def test_bytes_that_are_not_text_are_refused(
    tmp_path: Path, header: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """401 or 400, and no defect."""
    tokens = Files(tmp_path).write_tokens(TOKEN)
    config = Files(tmp_path).write(basic_auth_users={"ann": hashed()})
    proxies = ("127.0.0.1",)
    async with served(token_file=tokens, config_file=config, proxies=proxies) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n" + header + b"\r\n\r\n")
        async with asyncio.timeout(60):
            first = await reader.readline()
        assert b" 401 " in first or b" 400 " in first
        writer.close()
    assert not [record for record in caplog.records if record.exc_info]


async def test_a_token_in_the_address_is_refused_and_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is right or not, and on paths without a login too."""
    tokens = Files(tmp_path).write_tokens(TOKEN)
    async with served(token_file=tokens) as server:
        for path in ("/metrics", "/healthz", "/nothing"):
            for name in ("token", "access_token", "Authorization", "%74oken"):
                url = f"{server.url}{path}?x=1&{name}={TOKEN}"
                assert await status(url, **bearer(TOKEN)) == 400
    assert TOKEN not in caplog.text


async def test_certificates_of_clients(tmp_path: Path) -> None:
    """Only an allowed name of the right authority; probes need none."""
    files = Files(tmp_path)
    config = files.write(
        tls_server_config=files.tls(
            client_ca_file="ca.pem",
            client_auth_type="RequireAndVerifyClientCert",
            client_allowed_sans=["prometheus"],
        )
    )
    async with served(config_file=config) as server:
        assert server.url.startswith("https://")
        metrics = f"{server.url}/metrics"
        assert await status(metrics, files.client_context("prometheus")) == 200
        assert await status(metrics, files.client_context("other")) == 403
        assert await status(metrics, files.client_context()) == 403
        assert await status(f"{server.url}/healthz", files.client_context()) == 200
        foreign = files.client_context("prometheus", trustme.CA())
        with pytest.raises(ClientError):
            await status(metrics, foreign)


async def test_a_replaced_authority_reaches_the_connections_that_exist(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has a certificate of the old one is served no more, however long he was connected; what
    is being served is served to its end."""
    monkeypatch.setattr(listener, "IDLE_S", 3600.0)
    files, rendering = Files(tmp_path), threading.Event()
    section = files.tls(client_ca_file="clients.pem", client_auth_type="RequireAndVerifyClientCert")
    old, new = trustme.CA(), trustme.CA()
    old.cert_pem.write_to_path(tmp_path / "clients.pem")

    def render() -> bytes:
        assert rendering.wait(DEADLINE_S)
        return b"metric 1\n"

    views = HealthViews(lambda: render, lambda: (True, {}))
    settings = AccessSettings(config_file=files.write(tls_server_config=section))
    async with HealthServer(views, port=0, access=settings) as server:
        metrics = f"{server.url}/metrics"
        connector = TCPConnector(
            ssl=files.client_context("prometheus", old), keepalive_timeout=3600
        )
        async with ClientSession(connector=connector) as session:
            running = asyncio.ensure_future(session.get(metrics))
            async with session.get(f"{server.url}/healthz") as response:
                assert response.status == 200
            connections = server._listener._connections
            assert len(connections) == 2
            new.cert_pem.write_to_path(tmp_path / "clients.pem")
            await until(lambda: len(connections) == 1)
            rendering.set()
            assert (await running).status == 200
            await until(lambda: not len(connections))
            with pytest.raises(ClientError):
                await session.get(metrics)
        assert await status(metrics, files.client_context("prometheus", new)) == 200


def test_a_certificate_that_has_expired_since_is_refused(tmp_path: Path) -> None:
    """A connection may be older than the day on which its client's certificate ends."""
    tls = TlsConfig(tmp_path / "a", tmp_path / "b", client_auth=ClientAuth.REQUIRED)
    certificate = {"notAfter": "Jan  5 09:34:43 2018 GMT"}
    end_s = ssl.cert_time_to_seconds(certificate["notAfter"])
    assert is_client_allowed(tls, certificate, end_s)
    assert not is_client_allowed(tls, certificate, end_s + 1)


async def test_what_is_no_tls_ends_nothing_and_is_not_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Plain HTTP, an old version, noise, and a client that goes away in the middle."""
    files = Files(tmp_path)
    config = files.write(tls_server_config=files.tls(min_version="TLS13"))
    async with served(config_file=config) as server:
        plain = server.url.replace("https", "http")
        with pytest.raises(ClientConnectionError):
            await status(f"{plain}/metrics")
        old = files.client_context()
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(ClientError):
            await status(f"{server.url}/metrics", old)
        for data in (b"", b"\x16\x03\x01\xff\xff" + b"x" * 1_000, b"\x00" * 10):
            _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(data)
            writer.transport.abort()
        assert await status(f"{server.url}/metrics", files.client_context()) == 200
    assert caplog.text == ""


async def test_changed_files_hold_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A new certificate, new users and new tokens; what cannot be used leaves all as it was."""
    files = Files(tmp_path)
    config = files.write(tls_server_config=files.tls(), basic_auth_users={"ann": hashed()})
    tokens = files.write_tokens(TOKEN)
    async with served(config_file=config, token_file=tokens) as server:
        metrics, before = f"{server.url}/metrics", files.client_context()
        assert await status(metrics, before, **basic("ann")) == 200
        files.write_tokens(OTHER_TOKEN)
        await until(lambda: _has_status(401, metrics, before, **bearer(TOKEN)))
        assert await status(metrics, before, **bearer(OTHER_TOKEN)) == 200

        files.write(tls_server_config=files.tls(), basic_auth_user={})
        await until(lambda: "stay as they were" in caplog.text)
        assert "the key basic_auth_user is unknown: did you mean basic_auth_users?" in caplog.text
        assert await status(metrics, before, **basic("ann")) == 200

        files.authority = trustme.CA()
        files.write(tls_server_config=files.tls("renewed"), basic_auth_users={})
        await until(lambda: _has_status(401, metrics, files.client_context(), **basic("ann")))
        with pytest.raises(ClientError):
            await status(metrics, before)
        (tmp_path / "renewed.pem").write_text("no certificate")
        await until(lambda: "renewed.pem with the key" in caplog.text)
        assert await status(metrics, files.client_context(), **bearer(OTHER_TOKEN)) == 200


async def test_files_that_nobody_foresaw_end_no_reading(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a value of a wrong type nor a defect: the repaired files hold, and meanwhile
    `/readyz` and a metric say that older ones do."""
    files = Files(tmp_path)
    config, tokens = files.write(), files.write_tokens(TOKEN)
    async with served(config_file=config, token_file=tokens) as server, client() as session:
        metrics = f"{server.url}/metrics"

        async def shown(token: str) -> tuple[int, list[str], str]:
            async with session.get(f"{server.url}/readyz") as response:
                warnings = (await response.json()).get("warnings", [])
                ready = response.status
            async with session.get(metrics, **bearer(token)) as response:
                lines = (await response.text()).splitlines()
            (value,) = (it for it in lines if it.startswith("featurewatch_web_config_failed "))
            return ready, warnings, value.split()[1]

        assert await shown(TOKEN) == (200, [], "0.0")
        files.write(tls_server_config=files.tls(min_version=["TLS12"]))
        await until(lambda: "min_version must be one of" in caplog.text)
        ready, (warning,), failed = await shown(TOKEN)
        assert (ready, failed) == (200, "1.0")
        assert "min_version must be one of" in warning
        files.write()
        files.write_tokens(OTHER_TOKEN)
        await until(lambda: _has_status(401, metrics, **bearer(TOKEN)))
        assert await shown(OTHER_TOKEN) == (200, [], "0.0")

        with monkeypatch.context() as patched:
            patched.setattr("featurewatch.common.http.access_rules.read_tokens", len)
            files.write_tokens(TOKEN, OTHER_TOKEN)
            await until(lambda: "has no len()" in caplog.text)
            assert (await shown(OTHER_TOKEN))[2] == "1.0"
        files.write_tokens(TOKEN)
        await until(lambda: _has_status(200, metrics, **bearer(TOKEN)))
        assert await status(metrics, **bearer(OTHER_TOKEN)) == 401


async def test_a_background_task_that_fails_is_on_readyz_and_counted() -> None:
    """Whichever task of the process it is: work that does not run is not ready."""

    async def fail() -> None:
        raise RuntimeError("out of luck")

    async with served() as server, client() as session:
        task = start_background("a task of this test", fail)
        try:
            await until(troubles)
            async with session.get(f"{server.url}/readyz") as response:
                assert response.status == 503
                expected = "a task of this test failed (RuntimeError: out of luck)"
                assert (await response.json())["tasks"] == [expected]
            async with session.get(f"{server.url}/metrics") as response:
                expected = 'featurewatch_task_failures_total{task="a task of this test"} 1.0'
                assert expected in await response.text()
        finally:
            await task.close()
        assert await status(f"{server.url}/readyz") == 200


async def _has_status(expected: int, *arguments: Any, **more: Any) -> bool:
    try:
        return await status(*arguments, **more) == expected
    except ClientError:
        return False


async def test_a_port_that_must_have_a_login_never_loses_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither at the start nor by a changed file."""
    files = Files(tmp_path)
    config = files.write(tls_server_config=files.tls())
    with pytest.raises(WebConfigError, match="has no login"):
        async with served(config_file=config, must_have_login=True):
            pass
    files.write(basic_auth_users={"ann": hashed()})
    async with served(config_file=config, must_have_login=True) as server:
        files.write(basic_auth_users={})
        await until(lambda: "has no login" in caplog.text)
        assert await status(f"{server.url}/metrics") == 401


async def test_the_headers_of_the_file_are_sent(tmp_path: Path) -> None:
    """With every response; a blank one is left out."""
    headers = {"X-Frame-Options": "deny", "Strict-Transport-Security": ""}
    config = Files(tmp_path).write(http_server_config={"headers": headers})
    async with served(config_file=config) as server, client() as session:
        for path in ("/metrics", "/healthz"):
            async with session.get(server.url + path) as response:
                assert response.headers["X-Frame-Options"] == "deny"
                assert "Strict-Transport-Security" not in response.headers


async def test_a_password_is_checked_once_and_few_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A page asks for its files with one password at the same time; a flood of others waits."""
    checks: list[bytes] = []
    running = {"now": 0, "most": 0}
    genuine = passwords._matches

    def counted(password: bytes, stored: bytes) -> bool:
        running["now"] += 1
        running["most"] = max(running["most"], running["now"])
        checks.append(password)
        try:
            return genuine(password, stored)
        finally:
            running["now"] -= 1

    monkeypatch.setattr(passwords, "_matches", counted)
    checker = PasswordChecker({"ann": hashed().encode()})
    assert all(await asyncio.gather(*(checker.check("ann", PASSWORD) for _ in range(50))))
    assert await checker.check("ann", PASSWORD)
    assert checks == [PASSWORD.encode()]
    guesses = await asyncio.gather(
        *(checker.check("nobody", str(number)) for number in range(100)), return_exceptions=True
    )
    refused = [guess for guess in guesses if isinstance(guess, TooManyChecksError)]
    assert guesses.count(False) == passwords.MAX_WAITING
    assert len(refused) == 100 - passwords.MAX_WAITING
    assert running["most"] <= passwords.MAX_CHECKS
    assert len(checks) == 1 + passwords.MAX_WAITING


async def test_guessing_is_slowed_down(tmp_path: Path) -> None:
    """After ten wrong passwords 429; who knows the password and was in before still gets in."""
    config = Files(tmp_path).write(basic_auth_users={"ann": hashed()})
    async with served(config_file=config) as server:
        metrics = f"{server.url}/metrics"
        assert await status(metrics, **basic("ann")) == 200
        found = [await status(metrics, **basic("ann", f"x{i}")) for i in range(20)]
        assert set(found) == {401, 429}
        assert found[:10] == [401] * 10
        assert await status(metrics, **basic("ann")) == 200


async def test_guesses_in_parallel_are_counted_like_others(tmp_path: Path) -> None:
    """Ten of a client at first, then none before 5 s have passed, however many come at once; at
    most two are checked at a time, and many requests with one password are one check."""
    config = Files(tmp_path).write(basic_auth_users={"ann": hashed()})
    clock = [0.0]
    access = AccessControl(AccessSettings(config, max_requests_per_s=1e9), lambda: clock[0])

    async def admitted(password: str) -> int:
        request = make_mocked_request("GET", "/metrics", headers=basic("ann", password)["headers"])
        try:
            await access.admit(request)
        except ProblemError as problem:
            return problem.status
        return 200

    async def guess(name: str) -> list[int]:
        return await asyncio.gather(*(admitted(f"{name}{number}") for number in range(32)))

    assert set(await asyncio.gather(*(admitted(PASSWORD) for _ in range(50)))) == {200}
    found = [status for number in range(8) for status in await guess(f"{number}-")]
    assert found[:32].count(401) == MAX_CHECKS_OF_CLIENT
    assert (found.count(401), found.count(429)) == (10, 8 * 32 - 10)
    for number in range(3):
        clock[0] += 5.2
        assert (await guess(f"later {number}-")).count(401) == 1
    assert await admitted(PASSWORD) == 200
