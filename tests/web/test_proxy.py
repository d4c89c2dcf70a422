"""The page in Chromium behind a proxy with TLS and its own path, with each way to log in.

Needs Chromium on the PATH (Debian: chromium) and the group ``web``; left out without them.
"""

import base64
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, TCPConnector, web

from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.common.http.ports import OTHER_TOKEN, PASSWORD, TOKEN, Files, hashed
from tests.web.chromium import CHROMIUM, NO_CHROMIUM, NO_PLAYWRIGHT
from tests.web.rolls import ROLLED, publish, rolling
from tests.web.samples import alert_of, message_of, read_model, state_of

if CHROMIUM is None:
    pytest.skip(NO_CHROMIUM, allow_module_level=True)
playwright_api = pytest.importorskip("playwright.async_api", reason=NO_PLAYWRIGHT)
expect = playwright_api.expect
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

DEADLINE_MS = 60_000
PREFIX = "/ops/watch"
BASIC = "Basic " + base64.b64encode(f"ann:{PASSWORD}".encode()).decode()
LOGIN = {"http_credentials": {"username": "ann", "password": PASSWORD}}
HOP_BY_HOP = {"connection", "transfer-encoding", "content-encoding", "content-length", "keep-alive"}


def now_ms() -> int:
    """The wall clock."""
    return time.time_ns() // 1_000_000


class Proxy:
    """Strips its path, and passes everything else on; ``password`` is what it wants itself."""

    def __init__(self, client: ClientSession, password: str = "") -> None:
        self._client = client
        self._password = password

    async def forward(self, request: web.Request) -> web.StreamResponse:
        """One request and its response, as it comes."""
        if not request.raw_path.startswith(f"{PREFIX}/"):
            return web.Response(status=404)
        headers = request.headers.copy()
        if self._password and headers.pop("Authorization", "") != self._password:
            challenge = {"WWW-Authenticate": 'Basic realm="proxy"'}
            return web.Response(status=401, headers=challenge)
        headers["X-Forwarded-For"] = request.remote or ""
        headers["X-Forwarded-Proto"] = "https"
        del headers["Host"]
        async with self._client.request(
            request.method,
            request.raw_path.removeprefix(PREFIX),
            headers=headers,
            data=await request.read(),
            allow_redirects=False,
        ) as answer:
            passed = [item for item in answer.headers.items() if item[0].lower() not in HOP_BY_HOP]
            response = web.StreamResponse(status=answer.status)
            response.headers.extend(passed)
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            return response


@asynccontextmanager
async def listening(handler: Any, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serves every path by one handler; gives the address."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1, handler_cancellation=True)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        scheme = "http" if context is None else "https"
        yield f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Shown:
    """The page behind the proxy, a tab that is to show it, and what its console had."""

    def __init__(self, server: PageServer, url: str, page: Any) -> None:
        self.server = server
        self.url = url
        self.page = page
        self.console: list[str] = []
        page.on("console", lambda message: self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))

    async def shows_the_page_live(self) -> None:
        """The list, an alert that comes later, and a view of the cluster by its link."""
        row = self.page.locator(f"tr[data-cluster={ROLLED}]")
        await expect(row).to_be_visible(timeout=DEADLINE_MS)
        self.server.model.apply(*message_of(alert_of(ROLLED, 2, at_ms=now_ms())), now_ms())
        self.server.notify()
        await expect(row).to_contain_text("critical", timeout=DEADLINE_MS)
        await self.page.get_by_role("link", name=ROLLED).click()
        summary = self.page.get_by_text("Broker 2 must be upgraded.").first
        await expect(summary).to_be_visible(timeout=DEADLINE_MS)
        assert f"{PREFIX}/?" in self.page.url


@asynccontextmanager
async def proxied(
    browser: Any,
    files: Files,
    proxy_password: str = "",
    context: dict[str, Any] | None = None,
    **access: Any,
) -> AsyncIterator[Shown]:
    """A page with this access behind a proxy, and a tab."""
    settings = PageSettings(port=0, access=AccessSettings(proxies=("127.0.0.1",), **access))
    model, rows = read_model([state_of("other", at_ms=now_ms())]), WorkerRows()
    rows.end_reading()
    publish(rolling("4.0", "3.9", "3.9"), model, rows, now_ms())
    server = PageServer(settings, model, rows, now_ms, lambda: 0.0)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files.authority.issue_cert("127.0.0.1").configure_cert(own)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(server.serving())
        connector = TCPConnector(ssl=files.client_context("proxy"), limit=0)
        client = ClientSession(server.url, connector=connector, auto_decompress=True)
        await stack.enter_async_context(client)
        proxy = Proxy(client, proxy_password)
        url = await stack.enter_async_context(listening(proxy.forward, own))
        made = await browser.new_context(ignore_https_errors=True, **(context or {}))
        stack.push_async_callback(made.close)
        yield Shown(server, f"{url}{PREFIX}/", await made.new_page())


async def test_a_password_at_the_proxy(browser: Any, tmp_path: Path) -> None:
    """The page itself has no login, and listens on this machine alone."""
    async with proxied(browser, Files(tmp_path), BASIC, LOGIN) as shown:
        await shown.page.goto(shown.url)
        await shown.shows_the_page_live()
        assert shown.console == []


async def test_a_password_at_the_page(browser: Any, tmp_path: Path) -> None:
    """The proxy passes it on."""
    files = Files(tmp_path)
    config = files.write(basic_auth_users={"ann": hashed()})
    async with proxied(browser, files, context=LOGIN, config_file=config) as shown:
        await shown.page.goto(shown.url)
        await shown.shows_the_page_live()
        assert shown.console == []


async def test_a_certificate_of_the_proxy(browser: Any, tmp_path: Path) -> None:
    """The page speaks TLS itself, and lets the proxy in alone."""
    files = Files(tmp_path)
    tls = files.tls(
        client_ca_file="ca.pem",
        client_auth_type="RequireAndVerifyClientCert",
        client_allowed_sans=["proxy"],
    )
    config = files.write(tls_server_config=tls)
    async with proxied(browser, files, config_file=config) as shown:
        await shown.page.goto(shown.url)
        await shown.shows_the_page_live()
        assert shown.console == []


async def test_a_token_in_the_form(browser: Any, tmp_path: Path) -> None:
    """A wrong one shows the form again; the right one leads to the view that was opened.

    Afterwards a link of another site leads to the page at once, though it brings no cookie.
    """
    files = Files(tmp_path)
    tokens = files.write_tokens(TOKEN)
    async with proxied(browser, files, token_file=tokens) as shown:
        page = shown.page
        await page.goto(f"{shown.url}?view=alerts")
        await page.get_by_label("Token").fill("wrong" * 5)
        await page.get_by_role("button", name="Log in").click()
        await expect(page.get_by_role("alert")).to_have_text(
            "This token is not valid.", timeout=DEADLINE_MS
        )
        shown.console.clear()
        await page.get_by_label("Token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url("**/ops/watch/?view=alerts", timeout=DEADLINE_MS)
        (cookie,) = await page.context.cookies()
        assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == (PREFIX, True, "Strict")
        assert cookie["secure"]
        assert await page.evaluate("document.cookie") == ""
        await page.goto(shown.url)
        await shown.shows_the_page_live()
        assert shown.console == []

        async def link(_: web.Request) -> web.Response:
            text = f'<link rel="icon" href="data:,"><a href="{shown.url}?view=sources">alert</a>'
            return web.Response(text=text, content_type="text/html")

        async with listening(link) as elsewhere:
            await page.goto(elsewhere.replace("127.0.0.1", "localhost"))
            await page.get_by_role("link", name="alert").click()
            following = page.get_by_text("following").first
            await expect(following).to_be_visible(timeout=DEADLINE_MS)
            assert page.url == f"{shown.url}?view=sources"

        await page.get_by_role("button", name="Log out").click()
        await expect(page.get_by_label("Token")).to_be_visible(timeout=DEADLINE_MS)
        assert await page.context.cookies() == []


async def test_a_login_that_ends_while_the_page_is_open(browser: Any, tmp_path: Path) -> None:
    """The page says so and asks no more, and leads to the form and back."""
    files = Files(tmp_path)
    async with proxied(browser, files, token_file=files.write_tokens(TOKEN)) as shown:
        page = shown.page
        await page.goto(shown.url)
        await page.get_by_label("Token").fill(TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await shown.shows_the_page_live()
        view = page.url

        files.write_tokens(OTHER_TOKEN)
        again = page.get_by_role("button", name="log in again")
        await expect(again).to_be_visible(timeout=DEADLINE_MS)
        await expect(page.get_by_text("the login has ended")).to_be_visible()
        requests: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        await page.wait_for_timeout(5000)
        assert requests == []

        await again.click()
        await page.get_by_label("Token").fill(OTHER_TOKEN)
        await page.get_by_role("button", name="Log in").click()
        await page.wait_for_url(view, timeout=DEADLINE_MS)
        summary = page.get_by_text("Broker 2 must be upgraded.").first
        await expect(summary).to_be_visible(timeout=DEADLINE_MS)


async def test_nobody_reads_the_page_without_a_login(browser: Any, tmp_path: Path) -> None:
    """The form has no content of any cluster, and axe finds nothing in it."""
    axe = pytest.importorskip("axe_playwright_python.async_playwright")
    files = Files(tmp_path)
    async with proxied(browser, files, token_file=files.write_tokens(TOKEN)) as shown:
        response = await shown.page.goto(shown.url)
        assert response.status == 401
        await expect(shown.page.get_by_label("Token")).to_be_focused(timeout=DEADLINE_MS)
        assert ROLLED not in await shown.page.content()
        found = await axe.Axe().run(shown.page)
        assert found.violations_count == 0, found.generate_report()
