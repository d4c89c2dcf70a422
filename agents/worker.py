"""The worker: topics, publisher, app, agents, timers, put together and run."""

import asyncio
import time
from typing import Any, Final

from prometheus_client import generate_latest

from featurewatch.agents.app import create_app
from featurewatch.agents.at_least_once import OffsetTracker
from featurewatch.agents.input_agents import register_agent
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.timers import SilenceDetector, Watchdog, publish_states
from featurewatch.streams.bus.positions import partition_of
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.health import HealthServer, HealthViews
from featurewatch.streams.topics import INPUTS
from featurewatch.streams.types import ClusterId
from featurewatch.tables.faust_table import changelog_topic, image_table
from featurewatch.tables.image.cluster import ClusterImage

_BEHIND: Final = 100
"""Messages that a worker may be behind and still be ready: they come in while it works."""


class Worker:
    """One worker process's work; ``await run()`` until `stop` is called or something fails."""

    def __init__(self, settings: WorkerSettings) -> None:
        self.settings = settings
        self.metrics = WorkerMetrics(settings.node_series)
        self.ready = asyncio.Event()
        """Set once the tables are recovered."""
        self._stop = asyncio.Event()
        self._app: Any = None
        self._publisher: Publisher | None = None
        self._processor: EventProcessor | None = None

    def offset(self, cluster: ClusterId) -> int:
        """The last offset of a cluster's metadata log that is in the tables (-1: none)."""
        image = self.image(cluster)
        return image.log.offset if image is not None else -1

    def image(self, cluster: ClusterId) -> ClusterImage | None:
        """What is known of a cluster (None: nothing)."""
        state = self._processor and self._processor.states.get(cluster)
        return state.image if state else None

    def stop(self) -> None:
        """Asks for an orderly end: what was begun is finished, and committed."""
        self._stop.set()

    def not_ready_reasons(self) -> list[str]:
        """What the worker has not got to yet, in words; nothing: it is ready."""
        if not self.ready.is_set():
            return ["the tables are being recovered"]
        consumer = self._app.consumer
        trouble = self._publisher.error if self._publisher is not None else None
        behind = [trouble] if trouble is not None else []
        for topic in INPUTS:
            name = self.settings.bus.topic(topic)
            for partition in sorted(tp for tp in consumer.assignment() if tp.topic == name):
                end, read = consumer.highwater(partition), consumer._read_offset[partition]
                left = (end or 0) - (read + 1 if read is not None else 0)
                if end is None or left > _BEHIND:
                    behind.append(f"{name} partition {partition.partition}: {left} messages left")
        return behind

    async def run(self) -> None:
        """Runs until it is stopped.

        Raises:
            streams.bus.BusError: The bus cannot be used as it is set up.
        """
        settings = self.settings
        changelog = changelog_topic(settings.app_id)
        await asyncio.to_thread(ensure_topics, settings.bus, changelogs=[changelog])
        async with Publisher(settings.bus) as publisher:
            self._publisher = publisher
            ledger = OffsetTracker(publisher.flush)
            app = self._app = create_app(settings, ledger)
            processor = EventProcessor(
                app,
                settings.bus,
                publisher,
                changelog,
                self.metrics,
                time.monotonic,
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
        silence = SilenceDetector(processor, publisher, settings.silent_after_s)
        watchdog = Watchdog(lambda: app.consumer._committed_offset, settings.stuck_after_s)

        async def states() -> None:
            await publish_states(processor, settings.bus, publisher, _now_ms())

        async def watch() -> None:
            await silence.check(time.monotonic(), _now_ms())
            watchdog.check(dict(app.consumer._read_offset), time.monotonic())

        app.timer(settings.state_interval_s)(states)
        app.timer(2.0)(watch)


def _now_ms() -> int:
    return int(time.time() * 1000)


def serve_health(worker: Worker, host: str, port: int) -> HealthServer:
    """Serves the views of a worker; ready once it has read its topics to their end."""

    def readiness() -> tuple[bool, dict[str, Any]]:
        waiting = worker.not_ready_reasons()
        return not waiting, {"ready": not waiting, "waiting": waiting}

    views = HealthViews(lambda: generate_latest(worker.metrics.registry), readiness)
    return HealthServer(views, port=port, host=host)
