"""Assembles and runs the worker: topics, publisher, app, agents and timers."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from confluent_kafka.admin import AclOperation

from featurewatch.agents.app import create_app
from featurewatch.agents.at_least_once import OffsetTracker
from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.agents.input_agents import register_agent
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.processor import EventProcessor, exit_on_failure
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.timers import SilenceDetector, Watchdog, publish_states
from featurewatch.streams.bus.positions import partition_of
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.rights import READ, WRITE, check_rights
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.health import HealthServer, HealthViews
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.topics import INPUTS, OUTPUTS
from featurewatch.streams.types import ClusterId
from featurewatch.tables.faust_table import changelog_topic, image_table
from featurewatch.tables.image.cluster import ClusterImage

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
        """Runs until it is stopped.

        Raises:
            streams.bus.BusError: The bus cannot be used as it is set up.
        """
        settings = self.settings
        changelog = changelog_topic(settings.app_id)
        await asyncio.to_thread(ensure_topics, settings.bus, changelogs=[changelog])
        both = [changelog, *(settings.bus.topic(topic) for topic in INPUTS)]
        operations: dict[str, tuple[AclOperation, ...]] = dict.fromkeys(both, (READ, WRITE))
        operations |= {settings.bus.topic(topic): (WRITE,) for topic in OUTPUTS}
        await asyncio.to_thread(check_rights, settings.bus, operations, settings.app_id)
        writer = ChangelogWriter(settings.bus, settings.app_id, changelog)
        async with Publisher(settings.bus, max_pause_s=settings.session_timeout_s / 2) as publisher:
            self._publisher = publisher

            async def flush() -> None:
                with exit_on_failure():
                    await publisher.flush()
                    await writer.commit()

            async def claim(partitions: Collection[int]) -> None:
                with exit_on_failure():
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
            self._assemble(app, processor, publisher)
            await app.start()
            try:
                await self._until_end(app)
            finally:
                await app.stop()
                await writer.close()

    async def _until_end(self, app: Any) -> None:
        stopped = asyncio.ensure_future(self._stop.wait())
        ended = asyncio.ensure_future(app.wait_until_stopped())
        await asyncio.wait({stopped, ended}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if app.crash_reason is not None:
            raise app.crash_reason

    def _assemble(self, app: Any, processor: EventProcessor, publisher: Publisher) -> None:
        settings = self.settings
        table = image_table(app, settings.bus.partitions)
        for topic in INPUTS:
            register_agent(app, processor, topic, settings.bus.topic(topic), table)

        def owned(cluster: ClusterId) -> bool:
            partition = partition_of(cluster.encode(), settings.bus.partitions)
            return any(tp.partition == partition for tp in app.consumer.assignment())

        async def recovered(*_: Any) -> None:
            processor.restore(table.items(), owned)
            self.ready.set()

        table.on_recover(recovered)
        silence = SilenceDetector(processor, publisher, settings.silent_after_s, settings.limits)
        watchdog = Watchdog(lambda: app.consumer._committed_offset, settings.stuck_after_s)

        async def states() -> None:
            await publish_states(processor, settings.bus, publisher, self._clock_ms())

        async def watch() -> None:
            await silence.check(self._monotonic(), self._clock_ms())
            watchdog.check(dict(app.consumer._read_offset), self._monotonic())

        app.timer(settings.state_interval_s)(states)
        app.timer(2.0)(watch)


def serve_health(worker: Worker, host: str, port: int) -> HealthServer:
    """Serves a worker's metrics and readiness; ready once it has read its topics to their end."""

    def readiness() -> tuple[bool, dict[str, Any]]:
        reasons = worker.not_ready_reasons()
        return not reasons, {"ready": not reasons, "waiting": reasons}

    views = HealthViews(worker.metrics.scrape, readiness)
    return HealthServer(views, port=port, host=host)
