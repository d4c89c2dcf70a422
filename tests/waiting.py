"""Waiting for a condition with a deadline."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")

DEADLINE_S = 120.0
"""Far above what anything takes: a condition is polled, so only a failure waits this long."""


def eventually(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> bool:
    """Whether it becomes true in time.

    A pause is twice as long as the attempt before it: a condition that starts a process, or asks a
    broker for all topics, would otherwise take the processors from what it waits for.
    """
    end = time.monotonic() + deadline_s
    while (began := time.monotonic()) < end:
        if condition():
            return True
        took_s = time.monotonic() - began
        time.sleep(min(max(0.02, 2 * took_s), 0.5))
    return False


async def until_async(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Returns once it is true, while the event loop runs; raises `TimeoutError`."""
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.02)


async def until_ended(task: "asyncio.Future[Result]", deadline_s: float = DEADLINE_S) -> Result:
    """The result of a task that must end on its own; raises `TimeoutError`.

    `asyncio.wait_for` cancels a task that is late and returns what it says then. A service ends in
    order when it is canceled, so that one which never ends on its own would pass.
    """
    await asyncio.wait({task}, timeout=deadline_s)
    if not task.done():
        raise TimeoutError(f"it did not end within {deadline_s} s")
    return await task
