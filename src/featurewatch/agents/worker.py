"""Assembles and runs the worker: topics, publisher, app, agents and timers."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any, Final

from confluent_kafka.admin import AclOperation

from featurewatch.agents.app import create_app, register_agent
from featurewatch.agents.at_least_once import OffsetTracker, RevokedError
from featurewatch.agents.changelog import ChangelogWriter
from featurewatch.agents.consumer_thread import Freshness
from featurewatch.agents.membership import WorkerIdTakenError, find_member
from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.resync_requests import ResyncRequester
from featurewatch.agents.run_failure import RunFailure, exit_now
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.timers import (
    SilenceDetector,
    StuckCommitsError,
    Watchdog,
    publish_states,
)
from featurewatch.agents.topic_changes import TopicChanges, changed_topics, judges, split_rows
from featurewatch.agents.unread_records import free_unread_records
from featurewatch.common.service_state import STATE, Loop
from featurewatch.common.tasks import start_background
from featurewatch.common.text import error_line
from featurewatch.streams.bus.errors import BusUnavailableError, TopicsChangedError
from featurewatch.streams.bus.partitions import partition_of
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.rights import READ, WRITE, check_rights
from featurewatch.streams.bus.settings import REQUEST_TIMEOUT_S, BusSettings
from featurewatch.streams.bus.topic_keeper import TopicIds, TopicKeeper
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.topics import INPUTS, OUTPUTS, RESYNC_REQUESTS, WORKER_OUTPUTS
from featurewatch.streams.types import ClusterId
from featurewatch.tables.faust_table import image_table
from featurewatch.tables.garbage import collect_rarely, share_memory
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.rows import changelog_topic

LOG: Final = logging.getLogger("featurewatch.worker")

_UNREAD_S: Final = 5.0
"""After so long without a fetch a partition counts as unread: they come five times a second."""

_AWAY_S: Final = 15.0
"""After so long without metadata the bus counts as away: they are requested each ten seconds."""

_END_S: Final = 15.0
"""How long a run that failed may take to end before the process ends: a request takes four."""

_TURN_S: Final = 120.0
"""The worker looks after itself each two seconds, and compares what is read with what is committed:
if that itself does not happen, the worker is stuck."""

_READY_LAG: Final = 100
"""The lag, in messages, up to which a worker counts as ready: new messages arrive all the time."""


class Worker:
    """One run of a worker; ``await run()`` returns after `stop` and raises when something fails.

    It runs once: after a failure a new one begins at the last commit. ``metrics`` may outlive it.
    ``clock_ms`` gives milliseconds since the Unix epoch, ``monotonic`` seconds of a clock that does
    not go back.
    """

    def __init__(
        self,
        settings: WorkerSettings,
        clock_ms: Callable[[], int] = wall_clock_ms,
        monotonic: Callable[[], float] = time.monotonic,
        metrics: WorkerMetrics | None = None,
    ) -> None:
        self.settings = settings
        self._clock_ms = clock_ms
        self._monotonic = monotonic
        self.metrics = metrics or WorkerMetrics(settings.node_series, settings.max_series)
        self._fetches, self._refreshes = Freshness(), Freshness()
        self.ready = asyncio.Event()
        """Set once the tables are recovered."""
        self.lost_member_id = ""
        """After a failure: the id that the consumer group gave this worker last, if it is known."""
        self._stop = asyncio.Event()
        self._app: Any = None
        self._publisher: Publisher | None = None
        self._changelog: ChangelogWriter | None = None
        self._processor: EventProcessor | None = None
        self._loop: Loop | None = None

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
        error = self._bus_error()
        reasons = [error] if error is not None else []
        changelog = changelog_topic(self.settings.app_id)
        if len(_whole_partitions(consumer, self.settings.bus, changelog)) < len(
            _partitions(consumer)
        ):
            reasons.append("the consumer group assigns partitions of some topics only")
        for topic in INPUTS:
            name = self.settings.bus.topic(topic)
            for partition in sorted(tp for tp in consumer.assignment() if tp.topic == name):
                end, read = consumer.highwater(partition), consumer._read_offset[partition]
                lag = (end or 0) - (read + 1 if read is not None else 0)
                if end is None or lag > _READY_LAG:
                    reasons.append(f"{name} partition {partition.partition}: {lag} messages left")
        return reasons

    async def _check_membership(self, lost_member_id: str, failure: RunFailure) -> None:
        """Ends the run if another process has taken this worker's place in the consumer group."""
        settings = self.settings
        try:
            holder = await asyncio.to_thread(
                find_member, settings.bus, settings.app_id, settings.instance_id
            )
        except BusUnavailableError as error:
            await failure.end_run(error)
        if holder is not None and holder.member_id != lost_member_id:
            await failure.end_run(WorkerIdTakenError.by(holder, settings.worker_id))

    def _is_waiting(self) -> bool:
        """Whether the worker waits for its tables or for the bus."""
        return not self.ready.is_set() or self._bus_error() is not None

    def _bus_error(self) -> str | None:
        """Why the bus cannot be written, read or committed to now (None: it can)."""
        for writer in (self._publisher, self._changelog):
            if writer is not None and writer.error is not None:
                return writer.error
        servers = self.settings.bus.bootstrap_servers
        if not self._app.reader.has_coordinator():
            return f"the bus at {servers} has no coordinator for the consumer group now"
        if self._refreshes.unchanged(_AWAY_S, self._monotonic()):
            return f"the bus at {servers} does not answer"
        return None

    async def run(self) -> None:
        """Runs until it is stopped.

        Raises:
            streams.bus.BusError: The bus cannot be used as it is set up.
            TopicsChangedError: Topics were recreated, which the next worker handles.
            Exception: This worker cannot continue; a new one can.
        """
        collect_rarely()
        share_memory()
        free_unread_records()
        settings = self.settings
        changelog = changelog_topic(settings.app_id)
        await asyncio.to_thread(ensure_topics, settings.bus, changelogs=[changelog])
        keeper = TopicKeeper(settings.bus, [changelog])
        ids = await asyncio.to_thread(keeper.check)
        both = [changelog, *(settings.bus.topic(topic) for topic in INPUTS)]
        operations: dict[str, tuple[AclOperation, ...]] = dict.fromkeys(both, (READ, WRITE))
        outputs = WORKER_OUTPUTS if settings.limits.operations else OUTPUTS
        operations |= {settings.bus.topic(topic): (WRITE,) for topic in (*outputs, RESYNC_REQUESTS)}
        await asyncio.to_thread(check_rights, settings.bus, operations, settings.app_id)
        writer = self._changelog = ChangelogWriter(settings.bus, settings.app_id, changelog)
        async with Publisher(
            settings.bus,
            max_pause_s=settings.session_timeout_s / 2,
            request_timeout_s=REQUEST_TIMEOUT_S,
        ) as publisher:
            self._publisher = publisher

            async def flush() -> None:
                async with failure.ending_run():
                    await publisher.flush()
                    await writer.commit()

            async def claim(partitions: Collection[int]) -> None:
                async with failure.ending_run():
                    await writer.claim(partitions, publisher)

            tracker = OffsetTracker(flush)
            failure = RunFailure(tracker)

            async def check_membership(lost_member_id: str) -> None:
                await self._check_membership(lost_member_id, failure)

            app = self._app = create_app(settings, tracker, claim, check_membership)
            processor = EventProcessor(
                app,
                settings.bus,
                publisher,
                writer,
                self.metrics,
                failure,
                self._monotonic,
                settings.limits,
            )
            self._processor = processor
            self.metrics.expose(processor.states)
            self._assemble(app, processor, publisher, failure, ids)

            def is_hinted() -> bool:
                return publisher.waits_for_topic or app.reader.take_stale_metadata()

            report_changes = partial(_report_changes, failure, ids)
            watching = start_background(
                "looking after the topics", partial(keeper.run, is_hinted, report_changes)
            )
            end = app.stop
            try:
                await self._until_end(app, failure)
            except Exception as error:
                tracker.fail()
                self.lost_member_id = app.reader.member_id()
                end = partial(_end_failed, app, error)
                raise
            finally:
                await watching.close()
                await end()
                await writer.close()

    async def _until_end(self, app: Any, failure: RunFailure) -> None:
        """Starts the app, and returns once it is to stop; raises what failed first."""
        stopped = asyncio.ensure_future(self._stop.wait())
        failed = asyncio.ensure_future(failure.wait())
        running = asyncio.ensure_future(_run_app(app))
        tasks: set[asyncio.Future[Any]] = {stopped, failed, running}
        try:
            with STATE.loop("the worker", _TURN_S, self._is_waiting) as self._loop:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks - {stopped}:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _assemble(
        self,
        app: Any,
        processor: EventProcessor,
        publisher: Publisher,
        failure: RunFailure,
        ids: TopicIds,
    ) -> None:
        settings = self.settings
        table = image_table(app, settings.bus.partitions)
        for topic in INPUTS:
            register_agent(app, processor, topic, settings.bus.topic(topic), table)

        def owned(cluster: ClusterId) -> bool:
            partition = partition_of(cluster.encode(), settings.bus.partitions)
            return any(tp.partition == partition for tp in app.consumer.assignment())

        changelog = changelog_topic(settings.app_id)
        changes = TopicChanges(
            *(settings.bus, processor, ids, app, self._clock_ms, changelog),
            judged_by=judges(settings.limits),
        )

        async def recovered(*_: Any) -> None:
            try:
                rows, stored = split_rows(table.items())
                unreadable = processor.restore(rows, owned)
                partitions = _whole_partitions(app.consumer, settings.bus, changelog)
                await changes.apply(rows, stored, partitions, unreadable)
            except RevokedError:
                return  # the group has assigned again: this is called again after that recovery
            except Exception as error:  # Faust would continue without the tables
                await failure.end_run(error)
            self.ready.set()

        table.on_recover(recovered)

        def unread() -> set[tuple[str, int]]:
            return self._fetches.unchanged(_UNREAD_S, self._monotonic())

        silence = SilenceDetector(
            processor, publisher, settings.silent_after_s, unread, settings.limits
        )
        watchdog = Watchdog(
            lambda: app.consumer._committed_offset,
            lambda: self._bus_error() is not None,
            settings.stuck_after_s,
        )

        async def states() -> None:
            await publish_states(processor, settings.bus, publisher, self._clock_ms())

        requester = ResyncRequester(lambda: processor.states, publisher)

        async def watch() -> None:
            if self._loop is not None:
                self._loop.turn()
            now_s = self._monotonic()
            self._fetches.observe(app.reader.fetch_times(), now_s)
            self._refreshes.observe({"metadata": app.reader.refresh_time()}, now_s)
            with suppress(RevokedError):  # it is checked again when the partitions are recovered
                await silence.check(now_s, self._clock_ms())
            if len(_whole_partitions(app.consumer, settings.bus, changelog)) < len(
                _partitions(app.consumer)
            ):
                # The group's assignment is from when a topic was missing.
                app.reader.rejoin()
            async with failure.ending_run():
                await requester.check(now_s, self._clock_ms())
            try:
                watchdog.check(dict(app.consumer._read_offset), now_s)
            except StuckCommitsError as error:
                failure.report(error)

        app.timer(settings.state_interval_s)(states)
        app.timer(2.0)(watch)


async def _run_app(app: Any) -> None:
    """Runs a Faust app until it stops or crashes; raises what it crashed of."""
    await app.start()
    await app.wait_until_stopped()
    if app.crash_reason is not None:
        raise app.crash_reason


def _partitions(consumer: Any) -> set[int]:
    """The numbers of the partitions that are assigned to a consumer."""
    return {tp.partition for tp in consumer.assignment()}


def _whole_partitions(consumer: Any, bus: BusSettings, changelog: str) -> set[int]:
    """Those of the assigned partitions that are assigned of every input topic and the changelog."""
    assigned = {(tp.topic, tp.partition) for tp in consumer.assignment()}
    names = [changelog, *(bus.topic(topic) for topic in INPUTS)]
    return {
        partition
        for partition in _partitions(consumer)
        if all((name, partition) in assigned for name in names)
    }


def _report_changes(failure: RunFailure, before: TopicIds, now: TopicIds) -> None:
    """Ends a run that began with other topics than there are now."""
    if names := changed_topics(before, now):
        text = f"{', '.join(sorted(names))}: deleted and recreated"
        failure.report(TopicsChangedError(text))


async def _end_failed(app: Any, failure: Exception) -> None:
    """Ends an app that failed; the process, if the app does not end."""
    stopping = asyncio.ensure_future(app.stop())
    # Not `asyncio.timeout`: parts of Faust swallow a cancellation.
    await asyncio.wait({stopping}, timeout=_END_S)
    if not stopping.done():
        reason = f"does not end within {_END_S:g} s"
    elif (error := stopping.exception()) is not None:
        reason = f"did not end: {error_line(error)}"
    else:
        return
    LOG.critical("stopping: the worker that failed (%s) %s", error_line(failure), reason)
    exit_now()
