"""Runs the sources and the worker until a signal."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator
from dataclasses import replace
from typing import Any, Final

from featurewatch.agents.membership import WorkerIdTakenError, own_worker_id
from featurewatch.agents.settings import WorkerSettings
from featurewatch.cli.config.settings import Settings, WebSection
from featurewatch.cli.errors import ExitCode, UsageError
from featurewatch.cli.output.live_printer import LivePrinter
from featurewatch.cli.output.terminal import print_error, print_notice
from featurewatch.cli.runtime.bus import wait_for_topics
from featurewatch.cli.runtime.notify.run import run_notify_beside
from featurewatch.cli.runtime.page import run_page_beside
from featurewatch.cli.runtime.service import Service
from featurewatch.cli.runtime.sources import SourceRunner
from featurewatch.cli.runtime.worker_supervisor import WorkerSupervisor, serve_health
from featurewatch.common.service_manager import take_service_manager
from featurewatch.common.tasks import run_all

LOG: Final = logging.getLogger("featurewatch.cli")

_END_S: Final = 8.0


def run_until_signal(
    work: Coroutine[Any, Any, None], required: Collection[str], read: Callable[[], Settings]
) -> None:
    """Runs a coroutine; SIGINT and SIGTERM cancel it, and it has time to end in order.

    After eight seconds, or at the second signal, the process ends as it is: what was begun and not
    committed is done again at the next start. The service manager learns when the ``required``
    parts are ready; SIGHUP reloads, and ``read`` reads the settings again.
    """
    service = Service(take_service_manager(), required, read)

    async def run() -> None:
        task = asyncio.ensure_future(work)
        with (
            service.reloading_on_hangup(),
            _cancelled_by_signals(task, service.stop),
            contextlib.suppress(asyncio.CancelledError),
        ):
            async with service.notifying():
                await task

    asyncio.run(run())


@contextlib.contextmanager
def _cancelled_by_signals(task: asyncio.Future[Any], on_end: Callable[[], None]) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    timer = threading.Timer(_END_S, _give_up, [f"not everything had ended after {_END_S:g} s"])
    timer.daemon = True

    def end() -> None:
        if timer.is_alive():
            _give_up("ended by a second signal")
        on_end()
        task.cancel()
        timer.start()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    # The timer outlives this context, because ending the event loop can take long, too.
    yield


def _give_up(why: str) -> None:
    print_error(f"{why}; unfinished work is done at the next start")
    logging.shutdown()
    sys.stderr.flush()
    os._exit(ExitCode.FAILED)


async def run_worker(settings: WorkerSettings, web: WebSection) -> None:
    """Runs a worker with its web views until cancelled; then what was begun is finished.

    Raises:
        UsageError: Another process has the worker's id, or its directory cannot be written.
    """
    directory = settings.data_directory
    with contextlib.ExitStack() as stack:
        own = own_worker_id(directory, socket.gethostname(), settings.worker_id)
        try:
            worker_id = stack.enter_context(own)
        except WorkerIdTakenError as error:
            raise UsageError(str(error)) from None
        except OSError as error:
            raise UsageError(
                f"{directory} cannot be written ({error.strerror}): set worker.data_directory"
            ) from None
        await _run_worker(replace(settings, worker_id=worker_id), web)


async def _run_worker(settings: WorkerSettings, web: WebSection) -> None:
    LOG.info("the worker's id is %s", settings.worker_id)
    worker = WorkerSupervisor(settings)
    async with serve_health(worker, web.host, web.worker_port, web.access()) as health:
        LOG.info("the worker's health and metrics: %s", health.url)
        running = asyncio.ensure_future(worker.run())
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            worker.stop()
            await running


async def run_watch(watch: SourceRunner) -> None:
    """Runs the sources until cancelled."""
    await watch.run()


async def run_everything(watch: SourceRunner, settings: Settings, *, as_json: bool) -> None:
    """Runs the sources, a worker, the page and the notifications, and prints their outputs, until
    cancelled or one fails."""
    topics_exist = asyncio.Event()
    notifies = settings.notify.is_configured
    settings.notify_settings()
    await run_all(
        [
            run_page_beside(settings, lambda url: print_notice(f"the page: {url}"), topics_exist),
            _run_monitor(watch, settings, topics_exist, as_json=as_json),
            *([run_notify_beside(settings, topics_exist)] if notifies else []),
        ]
    )


async def _run_monitor(
    watch: SourceRunner, settings: Settings, topics_exist: asyncio.Event, *, as_json: bool
) -> None:
    bus = settings.bus_settings()
    await wait_for_topics(bus)
    topics_exist.set()
    await run_all(
        [
            watch.run(),
            run_worker(settings.worker_settings(), settings.web),
            LivePrinter(bus, as_json=as_json).run(),
        ]
    )
