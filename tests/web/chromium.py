"""Chromium, as Debian has it, driven by Playwright of the dependency group ``web``."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser")
NO_CHROMIUM: Final = "there is no chromium on the PATH"
NO_PLAYWRIGHT: Final = "playwright is missing: install the dependency group web"
ARGUMENTS: Final = ("--no-sandbox",)
"""Without it Chromium does not run as root."""

_LAUNCH_MS: Final = 60_000


@asynccontextmanager
async def running_chromium() -> AsyncIterator[Any]:
    """A browser of Playwright's asynchronous API."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=[*ARGUMENTS], timeout=_LAUNCH_MS
        )
        yield browser
        await browser.close()
