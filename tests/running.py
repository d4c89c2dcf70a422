"""A source that runs while a test looks at it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol


class Runnable(Protocol):
    """A task that runs until it is cancelled."""

    async def run(self) -> None:
        """Runs."""


@asynccontextmanager
async def running(source: Runnable) -> AsyncIterator[None]:
    """Runs a source in the background; it fails the test if it ends before the block does."""
    task = asyncio.ensure_future(source.run())
    try:
        yield
        assert not task.done(), task
    finally:
        task.cancel()
        await asyncio.wait([task])
