"""Runs what runs for long: until a signal asks for the end."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any

from agents.settings import WorkerSettings
from agents.web import serve
from agents.worker import Worker
from cli.settings import Settings, Web
from cli.watching import Watch, run_all


def run_until_signal(work: Coroutine[Any, Any, None]) -> None:
    """Runs a coroutine; SIGINT and SIGTERM cancel it, and it has time to end in order."""

    async def run() -> None:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await task

    asyncio.run(run())


async def run_worker(settings: WorkerSettings, web: Web) -> None:
    """Runs a worker with its web views until cancelled; then what was begun is finished."""
    worker = Worker(settings)
    async with serve(worker, web.host, web.worker_port):
        running = asyncio.ensure_future(worker.run())
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.stop()
            await running


async def run_everything(watch: Watch, settings: Settings) -> None:
    """Runs the sources and a worker until cancelled, or until one of them fails."""
    await run_all([watch.run(), run_worker(settings.worker_settings(), settings.web)])
