"""Runs a worker, and replaces it by a new one after a failure."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Final

from featurewatch.agents.at_least_once import SkippedOffsetsError
from featurewatch.agents.membership import WorkerIdTakenError, find_member
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.timers import StuckCommitsError
from featurewatch.agents.worker import Worker
from featurewatch.cli.runtime.bus import wait_for_topics
from featurewatch.cli.runtime.supervisor import (
    DEFAULT_BACKOFF,
    RestartBackoff,
    must_be_set_up,
    run_restarting,
)
from featurewatch.common.http.access_rules import AccessSettings
from featurewatch.common.text import error_line
from featurewatch.monitor.rows import StateRowError
from featurewatch.streams.bus.errors import BusError, BusUnavailableError
from featurewatch.streams.health import HealthServer, HealthViews

LOG: Final = logging.getLogger("featurewatch.worker")

_CHECK_INTERVAL_S: Final = 5.0
"""Seconds between two checks of the worker's membership."""


class WorkerSupervisor:
    """Workers one after another, until `stop`; each begins at the last commit of the one before.

    ``make`` gives a new worker for each run, with the metrics that count for all of them.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        backoff: RestartBackoff = DEFAULT_BACKOFF,
        make: Callable[[WorkerSettings, WorkerMetrics], Worker] | None = None,
    ) -> None:
        self.metrics = WorkerMetrics(settings.node_series, settings.max_series)
        self._settings = settings
        self._backoff = backoff
        self._make = make or (lambda settings, metrics: Worker(settings, metrics=metrics))
        self._failure = ""
        self._task: asyncio.Future[None] | None = None
        self._has_run = self._has_been_ready = self._is_replaced = False
        self._worker = self._make(settings, self.metrics)

    def not_ready_reasons(self) -> list[str]:
        """The reasons why the worker is not ready, as text; empty if it is ready."""
        return [self._failure] if self._failure else self._worker.not_ready_reasons()

    async def run(self) -> None:
        """Runs until it is stopped.

        Raises:
            streams.bus.errors.BusSetupError: No worker has become ready, and waiting will not help.
            monitor.rows.StateRowError: The tables are those of another version.
        """
        self._task = asyncio.ensure_future(
            run_restarting(self._run_worker, self._on_failure, self._is_final, self._backoff)
        )
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def stop(self) -> None:
        """Requests an orderly end: the current messages are processed and committed."""
        self._worker.stop()
        if self._failure and self._task is not None:
            self._task.cancel()  # no worker runs

    async def _run_worker(self) -> None:
        settings = self._settings
        member_id = self._worker.lost_member_id
        if self._has_run:
            self._worker = self._make(settings, self.metrics)
        if not self._is_replaced:
            self._failure = f"waiting for the bus at {settings.bus.bootstrap_servers}"
        await wait_for_topics(settings.bus)
        if member_id:
            await self._wait_until_id_is_free(member_id)
        self._is_replaced = False
        self._failure = ""
        self._has_run = True
        try:
            await self._worker.run()
        finally:
            self._has_been_ready |= self._worker.ready.is_set()

    async def _wait_until_id_is_free(self, own_member_id: str) -> None:
        """Leaves the id to another process that has taken it, for as long as that one runs.

        ``own_member_id`` is what the consumer group called this process before its run ended.
        """
        settings = self._settings
        member = settings.bus, settings.app_id, settings.instance_id
        reason = ""
        while True:
            try:
                holder = await asyncio.to_thread(find_member, *member)
            except BusUnavailableError as error:
                if str(error) != reason:
                    reason = str(error)
                    LOG.warning("%s", reason)
            else:
                if holder is None or holder.member_id == own_member_id:
                    return
                if not self._is_replaced:
                    self._note_replaced(WorkerIdTakenError.by(holder, settings.worker_id))
            await asyncio.sleep(_CHECK_INTERVAL_S)

    def _note_replaced(self, error: WorkerIdTakenError) -> None:
        self._is_replaced = True
        self._failure = f"standing by: restarts once the other worker exits ({error_line(error)})"
        LOG.error("%s", self._failure)

    def _is_final(self, error: Exception) -> bool:
        is_foreign = isinstance(error, StateRowError)  # another version's tables
        return (must_be_set_up(error) or is_foreign) and not self._has_been_ready

    async def _on_failure(self, error: Exception, wait_s: float) -> None:
        self.metrics.count_restart()
        if isinstance(error, WorkerIdTakenError):
            self._note_replaced(error)
            return
        self._failure = f"the worker restarts in {wait_s:g} s ({error_line(error)})"
        is_expected = isinstance(error, BusError | StuckCommitsError | SkippedOffsetsError)
        LOG.error("%s", self._failure, exc_info=None if is_expected else error)


def serve_health(
    worker: WorkerSupervisor, host: str, port: int, access: AccessSettings
) -> HealthServer:
    """Serves a worker's metrics and readiness; ready once it has read its topics to their end."""

    def readiness() -> tuple[bool, dict[str, Any]]:
        reasons = worker.not_ready_reasons()
        return not reasons, {"ready": not reasons, "waiting": reasons}

    views = HealthViews(worker.metrics.scrape, readiness)
    return HealthServer(views, port=port, host=host, access=access, part="worker")
