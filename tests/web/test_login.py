"""The page's login with a token, and the page behind each other kind of login."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, DummyCookieJar

from featurewatch.common.http.access import SESSION_COOKIE
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.http.tokens import SESSION_S
from featurewatch.web.login import MAX_FORM_BYTES
from featurewatch.web.openapi import ROOT
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.common.http.ports import OTHER_TOKEN, TOKEN, Files, hashed, until
from tests.web.samples import NOW_MS, read_model, state_of

HTML = {"Accept": "text/html,application/xhtml+xml"}
FLEET = f"{ROOT}/fleet"


@asynccontextmanager
async def page(external_url: str = "", **access: Any) -> AsyncIterator[ClientSession]:
    """A served page, and a client that keeps no cookies."""
    settings = PageSettings(port=0, external_url=external_url, access=AccessSettings(**access))
    model = read_model([state_of()])
    server = PageServer(settings, model, WorkerRows(), lambda: NOW_MS, lambda: 0.0)
    scheme = "https" if "config_file" in access and "token_file" in access else "http"
    async with (
        server.serving(),
        ClientSession(
            f"{scheme}://127.0.0.1:{server.port}/", cookie_jar=DummyCookieJar()
        ) as client,
    ):
        yield client


async def log_in(
    client: ClientSession, token: str = TOKEN, headers: dict[str, str] | None = None, view: str = ""
) -> ClientResponse:
    """Sends the form."""
    form = {"token": token, "view": view}
    return await client.post("/login", data=form, headers=headers or {}, allow_redirects=False)


def session_of(response: ClientResponse) -> str:
    """The value of the cookie that a response sets."""
    return SimpleCookie(response.headers["Set-Cookie"])[SESSION_COOKIE].value


async def status_with(client: ClientSession, session: str) -> int:
    """The status of the API for a browser with a session."""
    response = await client.get(FLEET, headers={"Cookie": f"{SESSION_COOKIE}={session}"})
    return response.status


async def test_a_browser_exchanges_a_token_for_a_cookie(tmp_path: Path) -> None:
    """The page shows the form, and after the login the view that it was opened for."""
    files = Files(tmp_path)
    async with page(token_file=files.write_tokens(TOKEN)) as client:
        form = await client.get("/?view=alerts&q=%22%3E%3Cb%3E", headers=HTML)
        text = await form.text()
        assert (form.status, form.content_type) == (401, "text/html")
        assert form.headers["WWW-Authenticate"] == 'Bearer realm="featurewatch"'
        assert "form-action 'self'" in form.headers["Content-Security-Policy"]
        assert 'value="view=alerts&amp;q=%22%3E%3Cb%3E"' in text
        assert (await client.get("/")).content_type == "application/problem+json"
        assert (await client.get(FLEET, headers=HTML)).status == 401

        response = await log_in(client, view="view=alerts&q=%22%3E")
        assert (response.status, response.headers["Location"]) == (303, "./?view=alerts&q=%22%3E")
        cookie = response.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=Strict", f"Max-Age={SESSION_S}"} <= set(cookie.split("; "))
        assert "Secure" not in cookie
        assert "Path" not in cookie
        assert TOKEN not in cookie
        session = session_of(response)
        assert await status_with(client, session) == 200
        assert await status_with(client, session[:-1] + "0") in (401, 200 * session.endswith("0"))

        files.write_tokens(OTHER_TOKEN)

        async def has_ended() -> bool:
            return await status_with(client, session) == 401

        await until(has_ended)


async def test_a_browser_logs_out(tmp_path: Path) -> None:
    """It loses its cookie; the page shows the way out to those alone who came in by one."""
    async with page(token_file=Files(tmp_path).write_tokens(TOKEN)) as client:
        assert (await client.get("/logout")).status == 405
        foreign = {"Sec-Fetch-Site": "cross-site"}
        assert (await client.post("/logout", headers=foreign)).status == 403
        session = session_of(await log_in(client))
        by_cookie = {"Cookie": f"{SESSION_COOKIE}={session}"}
        by_token = {"Authorization": f"Bearer {TOKEN}"}
        assert "data-session" in await (await client.get("/", headers=by_cookie)).text()
        assert "data-session" not in await (await client.get("/", headers=by_token)).text()

        response = await client.post("/logout", headers=by_cookie)
        assert response.status == 204
        assert session_of(response) == ""
        assert "Max-Age=0" in response.headers["Set-Cookie"].split("; ")
    async with page() as client:
        assert (await client.post("/logout")).status == 404


@pytest.mark.parametrize("way", ["token", "cookie"])
async def test_a_stream_ends_with_its_login(tmp_path: Path, way: str) -> None:
    """Removing the token from its file ends its stream; a valid login continues from there."""
    files = Files(tmp_path)
    async with page(token_file=files.write_tokens(TOKEN)) as client:
        header = {"Authorization": f"Bearer {TOKEN}"}
        if way == "cookie":
            header = {"Cookie": f"{SESSION_COOKIE}={session_of(await log_in(client))}"}
        stream = await client.get(f"{ROOT}/events", headers=header)
        assert stream.status == 200
        files.write_tokens(OTHER_TOKEN)
        async with asyncio.timeout(60):
            text = await stream.text()
        assert "event: bye" in text
        assert (await client.get(f"{ROOT}/events", headers=header)).status == 401


@pytest.mark.parametrize("view", ["//evil.example", "x\r\nSet-Cookie: a=b", "ä", "a b", ""])
async def test_a_login_leads_to_the_page_alone(tmp_path: Path, view: str) -> None:
    """Whatever the form says: relative to the folder of the page, and one line."""
    async with page(token_file=Files(tmp_path).write_tokens(TOKEN)) as client:
        response = await log_in(client, view=view)
        assert response.status == 303
        assert response.headers["Location"] in ("./", f"./?{view}")
        assert len(response.headers.getall("Set-Cookie")) == 1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "https://proxied.example.org"}, 303),
        ({"Origin": "https://page.example.org"}, 303),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://page.example.org"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_another_site_cannot_log_a_browser_in(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    """By what browsers say of where a form comes from."""
    tokens = Files(tmp_path).write_tokens(TOKEN)
    async with page("https://page.example.org/watch/", token_file=tokens) as client:
        response = await log_in(client, headers=headers)
        assert response.status == status
        assert ("Set-Cookie" in response.headers) is (status == 303)


async def test_the_cookie_is_secure_where_the_browser_speaks_tls(tmp_path: Path) -> None:
    """With its own TLS, with an external address that has it, or a proxy that says so."""
    files = Files(tmp_path)
    tokens = files.write_tokens(TOKEN)
    async with page("https://page.example.org/", token_file=tokens) as client:
        assert "Secure" in (await log_in(client)).headers["Set-Cookie"]
    async with page(token_file=tokens) as client:
        response = await log_in(client, headers={"X-Forwarded-Proto": "https"})
        assert "Secure" in response.headers["Set-Cookie"]
    config = files.write(tls_server_config=files.tls())
    context = files.client_context()
    async with page(config_file=config, token_file=tokens) as client:
        form = {"token": TOKEN}
        response = await client.post("/login", data=form, allow_redirects=False, ssl=context)
        assert "Secure" in response.headers["Set-Cookie"]


async def test_what_is_no_login_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A wrong token, JSON, too much, another method; the log never has what was sent."""
    async with page(token_file=Files(tmp_path).write_tokens(TOKEN)) as client:
        wrong = await log_in(client, OTHER_TOKEN)
        assert (wrong.status, "not valid" in await wrong.text()) == (403, True)
        assert OTHER_TOKEN not in await wrong.text()
        assert (await client.post("/login", json={"token": TOKEN})).status == 415
        large = {"token": "x" * MAX_FORM_BYTES}
        assert (await client.post("/login", data=large)).status == 413
        refused = await client.put("/login")
        assert (refused.status, refused.headers["Allow"]) == (405, "GET, HEAD, POST")
        assert (await client.post("/", data={"token": TOKEN})).status == 405
        assert (await client.get("/login")).status == 200
    assert "wrong logins" in caplog.text
    assert OTHER_TOKEN not in caplog.text
    async with page() as client:
        assert (await client.get("/login")).status == 404
        assert (await log_in(client)).status == 404


async def test_a_user_of_the_file_reads_the_page_and_the_api(tmp_path: Path) -> None:
    """With Basic everywhere; the files of the package and probes need none."""
    config = Files(tmp_path).write(basic_auth_users={"ann": hashed("word")})
    async with page(config_file=config) as client:
        for path, status in (("/", 401), (FLEET, 401), (f"{ROOT}/events", 401), ("/x", 401)):
            response = await client.get(path, headers=HTML)
            assert (response.status, response.content_type) == (status, "application/problem+json")
        assert (await client.get("/healthz")).status == 200
        assert (await client.get("/static/x/page.css")).status == 404
        for path in ("/", FLEET):
            header = {"Authorization": "Basic YW5uOndvcmQ="}
            assert (await client.get(path, headers=header)).status == 200
