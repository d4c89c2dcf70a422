"""Runs work and starts it again after a failure.

Data from a cluster's nodes may make its source fail, and must not affect the sources of others, so
each source restarts separately. An error of the bus, which all of them share, is raised to
`SourceRunner`, which restarts them all. Nothing ends because something else is unavailable.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from featurewatch.cli.errors import UsageError
from featurewatch.common.http.errors import PortTakenError
from featurewatch.common.log_subject import log_subject
from featurewatch.common.text import error_line
from featurewatch.streams.bus.errors import (
    BusError,
    BusSetupError,
    BusUnavailableError,
    EventTooLargeError,
)
from featurewatch.streams.events import SourceState
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.source_shell import SourceShell

LOG: Final = logging.getLogger("featurewatch.watch")

_SOURCE = TypeVar("_SOURCE", bound=SourceShell)


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """The waits before failed work is restarted, in seconds."""

    first_s: float = 1.0
    """The wait before the first restart; each further one waits twice as long."""

    max_s: float = 15.0
    """The longest wait: shorter than the 20 s after which a worker calls a source silent."""

    steady_s: float = 60.0
    """Work that ran for this long before it failed waits only `first_s` again."""


DEFAULT_BACKOFF: Final = RestartBackoff()
STEADY_BACKOFF: Final = RestartBackoff(first_s=15.0)


def must_be_set_up(error: Exception) -> bool:
    """Whether a person has to change something before work that never ran can run."""
    return isinstance(error, BusSetupError | PortTakenError | UsageError)


def is_bus_error(error: Exception) -> bool:
    """Whether the bus failed, and not what uses it."""
    return isinstance(error, BusError)


async def run_restarting(
    work: Callable[[], Awaitable[None]],
    on_failure: Callable[[Exception, float], Awaitable[None]],
    is_final: Callable[[Exception], bool],
    backoff: RestartBackoff = DEFAULT_BACKOFF,
    monotonic_s: Callable[[], float] = time.monotonic,
) -> None:
    """Runs ``work`` until it returns; restarts it when it fails.

    ``on_failure`` gets the error and the seconds until the restart. An error for which ``is_final``
    is true is raised. While the bus is unreachable, each attempt waits for it anyway, so the wait
    before the next attempt does not grow.
    """
    wait_s = backoff.first_s
    while True:
        began_s = monotonic_s()
        try:
            await work()
        except Exception as error:
            if is_final(error):
                raise
            is_away = isinstance(error, BusUnavailableError)
            if is_away or monotonic_s() - began_s >= backoff.steady_s:
                wait_s = backoff.first_s
            await on_failure(error, wait_s)
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, backoff.max_s)
        else:
            return


class SourceSupervisor(Generic[_SOURCE]):
    """One source; ``make`` gives a new one for each start, so that nothing of a failure stays.

    ``restart_count`` is how often the source was started again before, ``cluster_name`` what the
    configuration calls the cluster (empty: nothing), and ``addresses`` are the cluster's there.
    """

    def __init__(
        self,
        make: Callable[[], _SOURCE],
        backoff: RestartBackoff = DEFAULT_BACKOFF,
        restart_count: int = 0,
        cluster_name: str = "",
        addresses: str = "",
    ) -> None:
        self._make_source = make
        self._cluster_name = cluster_name
        self._addresses = addresses
        self._backoff = backoff
        self.restart_count = restart_count
        self._failure = ""
        self.source = self._make()
        """The source that runs now, or ran last."""

    def _make(self) -> _SOURCE:
        source = self._make_source()
        source.cluster_name = self._cluster_name
        source.addresses = self._addresses
        return source

    def report(self) -> SourceReport:
        """The source's report; between a failure and the restart it is stalled."""
        report = replace(self.source.report(), restarts=self.restart_count, name=self._cluster_name)
        if not self._failure:
            return report
        failure = self._failure
        return replace(report, state=SourceState.STALLED, detail=failure, last_error=failure)

    async def run(self) -> None:
        """Follows the cluster until cancelled; raises `BusError`."""
        with log_subject(lambda: self.source.report().cluster, self.source.name):
            await run_restarting(self._run_source, self._on_failure, is_bus_error, self._backoff)

    def note_failure(self, reason: str) -> None:
        """Reports the source as stalled: it has ended, and ``reason`` says when it restarts."""
        self._failure = reason

    async def _run_source(self) -> None:
        if self._failure:
            self.source = self._make()
            self.restart_count += 1
            self._failure = ""
        await self.source.run()

    async def _on_failure(self, error: Exception, wait_s: float) -> None:
        report = self.source.report()
        self._failure = f"the source failed and restarts in {wait_s:g} s ({error_line(error)})"
        LOG.error(
            "%s: %s: %s",
            report.cluster or "unknown cluster",
            report.source,
            self._failure,
            exc_info=None if isinstance(error, EventTooLargeError) else error,
        )
        try:
            await self.source.publish_stall(self._failure)
        except BusError:
            raise
        except Exception as second:
            LOG.error("its status was not published either: %s", error_line(second))
