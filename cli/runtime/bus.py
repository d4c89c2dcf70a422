"""Waits for the bus before work on it begins."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Final

from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.errors import BusUnavailableError

LOG: Final = logging.getLogger("featurewatch.cli")

_ATTEMPT_S: Final = 10.0
_PAUSE_S: Final = 0.5


async def wait_for_topics(bus: BusSettings) -> None:
    """Creates featurewatch's topics where they are missing; waits for the bus as long as it takes.

    Does not outlive its cancellation.

    Raises:
        streams.errors.BusSetupError: The bus cannot be used as it is set up.
    """
    reason = ""
    while True:
        try:
            await _in_daemon_thread(lambda: ensure_topics(bus, timeout_s=_ATTEMPT_S))
        except BusUnavailableError as error:
            if str(error) != reason:
                reason = str(error)
                LOG.warning("waiting for the bus: %s", reason)
            await asyncio.sleep(_PAUSE_S)
        else:
            return


async def _in_daemon_thread(work: Callable[[], None]) -> None:
    """Runs work that blocks. asyncio would wait for a thread of its own before the process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def settle(error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    def run() -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:
            failure = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, failure)

    threading.Thread(target=run, name="featurewatch-reach", daemon=True).start()
    await done
