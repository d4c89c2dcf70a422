"""The tasks of a process of the reference: they end together, and none fails unheard."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final

_LOG: Final = logging.getLogger("featurewatch.reference.kraft")


class TaskSet:
    """Tasks that run until they end or `close`.

    ``fail`` is called with the reason when one fails; ``owner`` says in the log whose it is.
    """

    def __init__(self, owner: str, fail: Callable[[str], None]) -> None:
        self._owner = owner
        self._fail = fail
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Runs a task in this event loop."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    async def close(self) -> None:
        """Cancels all tasks, and waits until they have ended."""
        for task in [*self._tasks]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _LOG.error("a task of %s failed", self._owner, exc_info=error)
            self._fail(f"a task failed: {error}")
