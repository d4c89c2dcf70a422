"""A person signs in with Chromium at mock-oauth2-server; left out without Chromium."""

import json
from pathlib import Path
from typing import Any

import pytest

from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.stack.java.jars import Cache
from featurewatch.web.server import PageServer
from featurewatch.web.settings import PageSettings
from featurewatch.web.worker_rows import WorkerRows
from tests.common.http.ports import Files
from tests.oidc_server import oidc_server
from tests.processes import free_port
from tests.web.chromium import CHROMIUM, NO_CHROMIUM, NO_PLAYWRIGHT
from tests.web.openid_section import section
from tests.web.samples import NOW_MS, read_model, state_of

if CHROMIUM is None:
    pytest.skip(NO_CHROMIUM, allow_module_level=True)
playwright_api = pytest.importorskip("playwright.async_api", reason=NO_PLAYWRIGHT)
pytestmark = [pytest.mark.stack, pytest.mark.asyncio(loop_scope="module")]

DEADLINE_MS = 30_000


async def test_a_person_signs_in_and_sees_the_view(
    browser: Any, stack_cache: Cache, tmp_path: Path
) -> None:
    """The link, the provider's form, and the page with the session that came with it."""
    port = free_port()
    own = f"http://127.0.0.1:{port}"
    with oidc_server(stack_cache) as provider:
        config = section(provider.issuer, tmp_path, allowed_groups=["upgraders"])
        config["redirect_uri"] = f"{own}/openid-callback"
        file = Files(tmp_path).write(openid_connect=config)
        settings = PageSettings(port=port, access=AccessSettings(config_file=file))
        model = read_model([state_of()])
        server = PageServer(settings, model, WorkerRows(), lambda: NOW_MS, lambda: 0.0)
        async with server.serving():
            shown = await browser.new_page()
            shown.set_default_timeout(DEADLINE_MS)
            await shown.goto(f"{own}/?view=alerts")
            await shown.get_by_role("link", name="Sign in with your organization").click()
            await shown.fill("[name=username]", "ann")
            await shown.fill("[name=claims]", json.dumps({"groups": ["upgraders"]}))
            await shown.locator("form").evaluate("form => form.submit()")
            await playwright_api.expect(shown.locator("#app")).to_be_visible(timeout=DEADLINE_MS)
            assert "view=alerts" in shown.url
            await shown.close()
