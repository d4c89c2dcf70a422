"""Coroutines that run concurrently, and background tasks of a process.

A task that nobody awaits could end without anybody noticing. Such tasks are started by
`start_background` only: it logs each failure, counts it for ``/metrics``, shows it on ``/readyz``
and starts the task again.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final

from featurewatch.common.text import error_line

_LOG: Final = logging.getLogger("featurewatch.tasks")

_FIRST_WAIT_S: Final = 1.0
_MAX_WAIT_S: Final = 60.0
"""Each restart waits twice as long as the one before, up to this."""

_STEADY_S: Final = 60.0
"""A task that has run this long without a failure has recovered."""

_running: Final[set["BackgroundTask"]] = set()
_failures: Final[Counter[str]] = Counter()


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


class BackgroundTask:
    """A task that runs until `close`; use `start_background`."""

    def __init__(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        monotonic_s: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._name = name
        self._run = run
        self._monotonic_s = monotonic_s
        self._sleep = sleep
        self._started_s = monotonic_s()
        self._failure = ""
        self._is_waiting = False
        self._task = asyncio.ensure_future(self._run_restarting())
        _running.add(self)

    @property
    def trouble(self) -> str:
        """Why the task does not run, or failed less than a minute ago; empty if it is healthy."""
        return "" if self._is_steady() else self._failure

    async def close(self) -> None:
        """Ends the task, and waits until it has ended."""
        _running.discard(self)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _is_steady(self) -> bool:
        return not self._is_waiting and self._monotonic_s() - self._started_s >= _STEADY_S

    async def _run_restarting(self) -> None:
        wait_s = _FIRST_WAIT_S
        while True:
            self._started_s = self._monotonic_s()
            error: Exception | None = None
            try:
                await self._run()
            except Exception as failure:
                error = failure
            if self._is_steady():
                wait_s = _FIRST_WAIT_S
            self._note(error, wait_s)
            self._is_waiting = True
            await self._sleep(wait_s)
            self._is_waiting = False
            wait_s = min(wait_s * 2, _MAX_WAIT_S)

    def _note(self, error: Exception | None, wait_s: float) -> None:
        _failures[self._name] += 1
        reason = "it returned" if error is None else error_line(error)
        failure = f"{self._name} failed ({reason})"
        is_new, self._failure = failure != self._failure, failure
        # The stack of a failure that repeats is in the log already.
        _LOG.error(
            "%s; starting it again in %g s", failure, wait_s, exc_info=error if is_new else None
        )


def start_background(
    name: str,
    run: Callable[[], Awaitable[None]],
    monotonic_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> BackgroundTask:
    """Starts a task in this event loop, which the caller closes.

    ``name`` says what it does, as in "reading the login files". ``run`` is called again whenever it
    raises or returns.
    """
    _failures[name] += 0
    return BackgroundTask(name, run, monotonic_s, sleep)


def troubles() -> list[str]:
    """Returns why background tasks of this process do not run, one line for each such task."""
    return sorted(filter(None, (task.trouble for task in _running)))


def failure_counts() -> Mapping[str, int]:
    """Returns how often each background task of this process has failed, by name."""
    return dict(_failures)
