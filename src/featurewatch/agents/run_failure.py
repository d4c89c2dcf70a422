"""Ends a worker's run from wherever it fails, without Faust's orderly stop.

Faust acknowledges a message whose agent raised, continues after it, and commits while it stops.
Therefore a task that fails reports it here and waits until it is cancelled: nothing is processed
and nothing is committed after a failure, and the next run begins at the last commit.
"""

import asyncio
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

from featurewatch.agents.at_least_once import OffsetTracker
from featurewatch.streams.bus.errors import PublishError


class RunFailure:
    """The first failure of one run of a worker; it forbids further commits of ``tracker``.

    Must be made in the event loop of the run.
    """

    def __init__(self, tracker: OffsetTracker) -> None:
        self._tracker = tracker
        self._failed: asyncio.Future[NoReturn] = asyncio.get_running_loop().create_future()

    def report(self, error: Exception) -> None:
        """Reports a failure; `wait` raises the first one."""
        self._tracker.fail()
        if not self._failed.done():
            self._failed.set_exception(error)
            self._failed.exception()  # retrieved: the run may be ending for another reason

    async def end_run(self, error: Exception) -> NoReturn:
        """Reports a failure and does not return: what called this is cancelled with the run."""
        self.report(error)
        await asyncio.Future()
        raise error

    @asynccontextmanager
    async def ending_run(self) -> AsyncIterator[None]:
        """Ends the run if the bus accepts nothing more of this process."""
        try:
            yield
        except PublishError as error:
            await self.end_run(error)

    async def wait(self) -> NoReturn:
        """Waits for the first failure and raises it."""
        await asyncio.shield(self._failed)
        raise AssertionError("the future of a failure has no result")


def exit_now() -> NoReturn:
    """Ends the process at once, where a run that failed cannot be ended in it."""
    logging.shutdown()
    sys.stderr.flush()
    os._exit(70)  # EX_SOFTWARE
