"""Coroutines that run beside each other."""

import asyncio
from collections.abc import Iterable


async def run_all(running: Iterable[object]) -> None:
    """Runs coroutines until one fails, and raises what it raised; the others are cancelled.

    Each is cancelled once, and waited for: a second time would interrupt what it does to end.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in running]  # type: ignore[call-overload]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
