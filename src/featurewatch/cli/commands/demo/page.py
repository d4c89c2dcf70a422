"""The page, run in a thread of this process while the demo lasts."""

import asyncio
import contextlib
from collections.abc import Iterator
from threading import Thread
from typing import Final

from featurewatch.cli.config.settings import Settings
from featurewatch.cli.runtime.page import run_page

_START_S: Final = 20.0
_END_S: Final = 5.0


@contextlib.contextmanager
def demo_page(settings: Settings) -> Iterator[str]:
    """Serves the page for as long as the context lasts; yields its address.

    Raises:
        TimeoutError: It did not listen in time.
    """
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="featurewatch-demo-page", daemon=True)
    thread.start()
    listening: asyncio.Future[str] = loop.create_future()
    serving = asyncio.run_coroutine_threadsafe(run_page(settings, listening.set_result), loop)

    async def address() -> str:
        return await listening

    try:
        yield asyncio.run_coroutine_threadsafe(address(), loop).result(_START_S)
    finally:
        serving.cancel()
        loop.call_soon_threadsafe(_stop_when_idle, loop)
        thread.join(_END_S)


def _stop_when_idle(loop: asyncio.AbstractEventLoop) -> None:
    """Stops a loop once its tasks, which were cancelled, have ended."""

    async def wait() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others, timeout=_END_S) if others else None
        loop.stop()

    loop.create_task(wait())
