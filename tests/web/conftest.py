"""The browser of a file's tests."""

from collections.abc import AsyncIterator
from typing import Any

import pytest_asyncio

from tests.web.chromium import running_chromium


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Any]:
    """One Chromium for all tests of a file; without Chromium the file is skipped."""
    async with running_chromium() as running:
        yield running
