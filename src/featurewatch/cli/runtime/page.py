"""Runs the page: reads the topics in threads, and serves what they hold.

The topics are read by assignment, without a consumer group, so any number of processes may serve
the page. While the bus is unreachable, the page shows the last known state and says since when.
"""

import asyncio
import logging
import random
import secrets
from collections.abc import Callable
from typing import Final

from confluent_kafka import Message

from featurewatch.cli.config.settings import Settings
from featurewatch.cli.runtime.supervisor import STEADY_BACKOFF, must_be_set_up, run_restarting
from featurewatch.common.http.errors import PortTakenError
from featurewatch.common.tasks import run_all
from featurewatch.common.text import error_line
from featurewatch.monitor.rows import StateRowError
from featurewatch.streams.bus.feed import FailureLog, TopicFeed, follow_feed
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.topics import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS, STATE
from featurewatch.streams.types import ClusterId
from featurewatch.tables.rows import WORKER_ROWS
from featurewatch.web.model import FleetModel
from featurewatch.web.server import PageServer
from featurewatch.web.worker_rows import WorkerRows

LOG: Final = logging.getLogger("featurewatch.web")


async def run_page(
    settings: Settings,
    announce: Callable[[str], None],
    topics_exist: asyncio.Event | None = None,
) -> None:
    """Serves the page until cancelled; ``announce`` gets its address once it listens.

    The topics are read once ``topics_exist`` is set, or at once.

    Raises:
        PortTakenError: The address cannot be listened on.
        UsageError: The bus' settings are wrong.
    """
    server = PageServer(
        settings.page_settings(),
        FleetModel(secrets.token_hex(4)),
        WorkerRows(settings.limits()),
        wall_clock_ms,
        random.random,
    )
    async with server.serving():
        announce(server.url)
        if topics_exist is not None:
            await topics_exist.wait()
        bus = settings.bus_settings()
        feeds = _Outputs(server, bus), _Rows(server), _Past(server, bus)
        await run_all(follow_feed(feed, bus, feed.topics) for feed in feeds)


async def run_page_beside(
    settings: Settings, announce: Callable[[str], None], topics_exist: asyncio.Event
) -> None:
    """As `run_page`, beside other work, which no failure of the page ends.

    Raises:
        UsageError: A setting of the page or of the bus is wrong.
    """

    async def run() -> None:
        try:
            await run_page(settings, announce, topics_exist)
        except PortTakenError as error:
            LOG.warning("there is no page: %s (web.page_port)", error)
            await asyncio.Event().wait()

    async def on_failure(error: Exception, wait_s: float) -> None:
        reason = error_line(error)
        LOG.error("the page failed and restarts in %g s (%s)", wait_s, reason, exc_info=error)

    await run_restarting(run, on_failure, must_be_set_up, STEADY_BACKOFF)


class _Outputs(TopicFeed):
    """Folds the output topics into the model."""

    topics: Final = (STATE, ALERTS, FEATURE_CHANGES)

    def __init__(self, server: PageServer, bus: BusSettings) -> None:
        super().__init__(FailureLog(LOG, "the page gets nothing new"))
        self._server = server
        self._model = server.model
        self._short_names = {bus.topic(topic): topic.short_name for topic in self.topics}

    def begin(self) -> None:
        self._model.begin_reading()

    def apply_message(self, message: Message) -> None:
        topic = self._short_names[str(message.topic())]
        self._model.apply(topic, message.key() or b"", message.value(), self._server.now_ms())

    def applied(self) -> None:
        self._server.notify()

    def end(self) -> None:
        self._model.end_reading(self._server.now_ms())
        self._server.notify()

    def report(self, error: str | None) -> None:
        super().report(error)
        if error == self._model.error:
            return
        self._model.error = error
        self._model.tick(self._server.now_ms())
        self._server.notify()


class _Rows(TopicFeed):
    """Stores the workers' rows, for readiness; the rest of the page works without."""

    topics: Final = (WORKER_ROWS,)

    def __init__(self, server: PageServer) -> None:
        super().__init__(FailureLog(LOG, "the page cannot assess readiness"))
        self._server = server
        self._rows = server.rows

    def begin(self) -> None:
        self._rows.begin_reading()

    def apply_message(self, message: Message) -> None:
        cluster = self._rows.apply(message.key() or b"", message.value())
        if cluster is not None and self._rows.is_complete:
            self._set_times(cluster)

    def applied(self) -> None:
        self._server.notify()

    def end(self) -> None:
        for cluster in self._rows.end_reading():
            self._set_times(cluster)
        self._server.notify()

    def _set_times(self, cluster: ClusterId) -> None:
        try:
            since_ms = self._rows.since_ms(cluster)
        except StateRowError as error:
            LOG.warning("%s", error)
            since_ms = {}
        self._server.model.set_times(cluster, since_ms, self._server.now_ms())


class _Past(TopicFeed):
    """Folds the topics of the history; the rest of the page does not wait for them."""

    topics: Final = (EPOCHS, OPERATIONS)

    def __init__(self, server: PageServer, bus: BusSettings) -> None:
        super().__init__(FailureLog(LOG, "the page has no history and no operations"))
        self._server = server
        self._history = server.model.history
        self._short_names = {bus.topic(topic): topic.short_name for topic in self.topics}

    def begin(self) -> None:
        self._history.begin_reading()

    def apply_message(self, message: Message) -> None:
        self._history.apply(self._short_names[str(message.topic())], message.value())

    def applied(self) -> None:
        self._server.notify()

    def end(self) -> None:
        self._history.end_reading()
        self._server.notify()

    def report(self, error: str | None) -> None:
        super().report(error)
        self._history.error = error
