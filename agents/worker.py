"""Assembles and runs the worker: topics, publisher, app, agents and timers."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from confluent_kafka.admin import AclOperation

from featurewatch.agents.app import create_app
from featurewatch.agents.at_least_once import AtLeastOnceApp, OffsetTracker
from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.agents.input_agents import register_agent
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.processor import (
    EventProcessor,
    ending_run,
    exit_now,
    exit_on_failure,
)
from featurewatch.agents.resync_requests import ResyncRequester
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.timers import SilenceDetector, Watchdog, publish_states
from featurewatch.agents.topic_changes import TopicChanges, changed_topics, split_rows
from featurewatch.streams.bus.positions import partition_of
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.rights import READ, WRITE, check_rights
from featurewatch.streams.bus.topic_keeper import TopicIds, TopicKeeper
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.errors import TopicsChangedError
from featurewatch.streams.health import HealthServer, HealthViews
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.text import error_line
from featurewatch.streams.topics import INPUTS, OUTPUTS, RESYNC_REQUESTS, Topic
from featurewatch.streams.types import ClusterId
from featurewatch.tables.faust_table import changelog_topic, image_table
from featurewatch.tables.image.cluster import ClusterImage

LOG: Final = logging.getLogger("featurewatch.worker")

_END_S: Final = 15.0
"""How long a run may take to end before another begins, in seconds."""

_READY_LAG: Final = 100
"""The lag, in messages, up to which a worker counts as ready: new messages arrive all the time."""


class Worker:
    """A worker; ``await run()`` returns after `stop` and raises when something fails.

    ``clock_ms`` gives milliseconds since the Unix epoch, ``monotonic`` seconds of a clock that does
    not go back.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        clock_ms: Callable[[], int] = wall_clock_ms,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.settings = settings
        self._clock_ms = clock_ms
        self._monotonic = monotonic
        self.metrics = WorkerMetrics(settings.node_series, settings.max_series)
        self.ready = asyncio.Event()
        """Set once the tables are recovered."""
        self._stop = asyncio.Event()
        self._app: Any = None
        self._publisher: Publisher | None = None
        self._processor: EventProcessor | None = None

    def offset(self, cluster: ClusterId) -> int:
        """The last offset of a cluster's metadata log that is in the tables (-1: none)."""
        image = self.image(cluster)
        return image.log.provenance.offset if image is not None else -1

    def image(self, cluster: ClusterId) -> ClusterImage | None:
        """The image of a cluster (None: this worker has none)."""
        state = self._processor and self._processor.states.get(cluster)
        return state.image if state else None

    def stop(self) -> None:
        """Requests an orderly end: the current messages are processed and committed."""
        self._stop.set()

    def not_ready_reasons(self) -> list[str]:
        """The reasons why the worker is not ready yet, as text; an empty list: it is ready."""
        if not self.ready.is_set():
            return ["the tables are being recovered"]
        consumer = self._app.consumer
        error = self._publisher.error if self._publisher is not None else None
        reasons = [error] if error is not None else []
        for topic in INPUTS:
            name = self.settings.bus.topic(topic)
            for partition in sorted(tp for tp in consumer.assignment() if tp.topic == name):
                end, read = consumer.highwater(partition), consumer._read_offset[partition]
                lag = (end or 0) - (read + 1 if read is not None else 0)
                if end is None or lag > _READY_LAG:
                    reasons.append(f"{name} partition {partition.partition}: {lag} messages left")
        return reasons

    async def run(self) -> None:
        """Runs until it is stopped; begins anew when topics were made anew.

        Raises:
            streams.bus.BusError: The bus cannot be used as it is set up.
        """
        while not self._stop.is_set():
            try:
                await self._run_once()
            except TopicsChangedError as error:
                LOG.warning("the worker begins anew: %s", error)
                self.ready.clear()

    async def _run_once(self) -> None:
        settings = self.settings
        changelog = changelog_topic(settings.app_id)
        await asyncio.to_thread(ensure_topics, settings.bus, changelogs=[changelog])
        keeper = TopicKeeper(settings.bus, [changelog])
        ids = await asyncio.to_thread(keeper.check)
        both = [changelog, *(settings.bus.topic(topic) for topic in INPUTS)]
        operations: dict[str, tuple[AclOperation, ...]] = dict.fromkeys(both, (READ, WRITE))
        operations |= {settings.bus.topic(topic): (WRITE,) for topic in (*OUTPUTS, RESYNC_REQUESTS)}
        await asyncio.to_thread(check_rights, settings.bus, operations, settings.app_id)
        writer = ChangelogWriter(settings.bus, settings.app_id, changelog)
        async with Publisher(settings.bus, max_pause_s=settings.session_timeout_s / 2) as publisher:
            self._publisher = publisher

            async def flush() -> None:
                with exit_on_failure():
                    async with ending_run(app):
                        await publisher.flush()
                        await writer.commit()

            async def claim(partitions: Collection[int]) -> None:
                with exit_on_failure():
                    async with ending_run(app):
                        await writer.claim(partitions, publisher)

            app = self._app = create_app(settings, OffsetTracker(flush), claim)
            processor = EventProcessor(
                app,
                settings.bus,
                publisher,
                writer,
                self.metrics,
                self._monotonic,
                settings.limits,
            )
            self._processor = processor
            self.metrics.expose(processor.states)
            self._assemble(app, processor, publisher, ids)
            watching = asyncio.ensure_future(keeper.run(partial(_end_on_change, app, ids)))
            try:
                await self._until_end(app)
            finally:
                watching.cancel()
                await asyncio.gather(watching, return_exceptions=True)
                if app.ended.done():
                    await _stop_failed(app)
                else:
                    await app.stop()
                await writer.close()

    async def _until_end(self, app: Any) -> None:
        stopped = asyncio.ensure_future(self._stop.wait())
        running = asyncio.ensure_future(_run_app(app))
        try:
            await asyncio.wait({stopped, running, app.ended}, return_when=asyncio.FIRST_COMPLETED)
            if app.ended.done():
                app.ended.result()
            if running.done():
                running.result()
        finally:
            for task in (stopped, running):
                task.cancel()
            await asyncio.gather(stopped, running, return_exceptions=True)

    def _assemble(
        self, app: Any, processor: EventProcessor, publisher: Publisher, ids: TopicIds
    ) -> None:
        settings = self.settings
        table = image_table(app, settings.bus.partitions)
        for topic in INPUTS:
            register_agent(app, processor, topic, settings.bus.topic(topic), table)

        def owned(cluster: ClusterId) -> bool:
            partition = partition_of(cluster.encode(), settings.bus.partitions)
            return any(tp.partition == partition for tp in app.consumer.assignment())

        async def restart(topic: Topic, partition: int) -> None:
            await app.restart(settings.bus.topic(topic), partition)

        changes = TopicChanges(settings.bus, processor, ids, restart, self._clock_ms)

        async def recovered(*_: Any) -> None:
            rows, stored = split_rows(table.items())
            processor.restore(rows, owned)
            partitions = {tp.partition for tp in app.consumer.assignment()}
            with exit_on_failure():
                async with ending_run(app):
                    await changes.apply(stored, partitions)
            self.ready.set()

        table.on_recover(recovered)
        silence = SilenceDetector(processor, publisher, settings.silent_after_s)
        watchdog = Watchdog(lambda: app.consumer._committed_offset, settings.stuck_after_s)

        async def states() -> None:
            await publish_states(processor, settings.bus, publisher, self._clock_ms())

        requester = ResyncRequester(lambda: processor.states, publisher)

        async def watch() -> None:
            await silence.check(self._monotonic(), self._clock_ms())
            await requester.check(self._monotonic(), self._clock_ms())
            with exit_on_failure():
                async with ending_run(app):
                    await processor.end_lost_outputs(self._clock_ms())
            watchdog.check(dict(app.consumer._read_offset), self._monotonic())

        app.timer(settings.state_interval_s)(states)
        app.timer(2.0)(watch)


async def _run_app(app: Any) -> None:
    """Runs a Faust app until it stops or crashes; raises what it crashed of."""
    await app.start()
    await app.wait_until_stopped()
    if app.crash_reason is not None:
        raise app.crash_reason


def _end_on_change(app: AtLeastOnceApp, before: TopicIds, now: TopicIds) -> None:
    """Ends a run that began with other topics than there are now."""
    if names := changed_topics(before, now):
        app.end_run(TopicsChangedError(f"{', '.join(sorted(names))}: deleted and made anew"))


async def _stop_failed(app: Any) -> None:
    """Ends an app whose run has ended; the process, if the app does not end."""
    try:
        async with asyncio.timeout(_END_S):
            await app.stop()
    except TimeoutError:
        LOG.critical("stopping: the worker did not end within %g s to begin anew", _END_S)
        exit_now()
    except Exception as error:
        LOG.warning("the worker did not end in order to begin anew: %s", error_line(error))


def serve_health(worker: Worker, host: str, port: int) -> HealthServer:
    """Serves a worker's metrics and readiness; ready once it has read its topics to their end."""

    def readiness() -> tuple[bool, dict[str, Any]]:
        reasons = worker.not_ready_reasons()
        return not reasons, {"ready": not reasons, "waiting": reasons}

    views = HealthViews(worker.metrics.scrape, readiness)
    return HealthServer(views, port=port, host=host)
