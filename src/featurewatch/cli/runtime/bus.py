"""Waits for the bus before work on it begins."""

import asyncio
import logging
from typing import Final

from featurewatch.common.threads import start_in_thread
from featurewatch.streams.bus.errors import BusUnavailableError
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics

LOG: Final = logging.getLogger("featurewatch.cli")

_ATTEMPT_S: Final = 10.0
_PAUSE_S: Final = 0.5


async def wait_for_topics(bus: BusSettings) -> None:
    """Creates featurewatch's topics where they are missing; waits for the bus as long as it takes.

    Does not outlive its cancellation.

    Raises:
        streams.bus.errors.BusSetupError: The bus cannot be used as it is set up.
    """
    reason = ""
    while True:
        try:
            await start_in_thread(
                lambda: ensure_topics(bus, timeout_s=_ATTEMPT_S), "featurewatch-reach"
            )
        except BusUnavailableError as error:
            if str(error) != reason:
                reason = str(error)
                LOG.warning("waiting for the bus: %s", reason)
            await asyncio.sleep(_PAUSE_S)
        else:
            return
