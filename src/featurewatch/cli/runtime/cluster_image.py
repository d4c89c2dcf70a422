"""Reads the image of a cluster once, without a bus and without a worker."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.config.source_settings import (
    NodeLogins,
    api_versions_settings,
    cluster_id_in_files,
    kraft_settings,
    node_logins,
    zookeeper_settings,
)
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.cluster_id import find_cluster_id
from featurewatch.kafka.node_errors import LocalResourceError
from featurewatch.streams.apiversions.source import ApiVersionsSource
from featurewatch.streams.events import DeadLetter, Event, SourceState, SourceStatus
from featurewatch.streams.kraft.source import KraftSource
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.topics import API_VERSIONS, METADATA_LOG, ZOOKEEPER, Topic
from featurewatch.streams.types import ClusterId
from featurewatch.streams.zookeeper.source import ZookeeperSource
from featurewatch.tables.fold.fold import fold
from featurewatch.tables.image.cluster import Authority, ClusterImage

LOG: Final = logging.getLogger("featurewatch.watch")

TIMEOUT_S: Final = 20.0
_HEARTBEAT_MS: Final = 500
_SOURCES: Final = {
    METADATA_LOG.short_name: Authority.LOG,
    API_VERSIONS.short_name: Authority.ANSWERS,
    ZOOKEEPER.short_name: Authority.ZOOKEEPER,
}
"""The authority of a source by the topic that it publishes to."""
_ANSWER_S: Final = 2.0
"""A node that has not returned the cluster's id by then will not: it is down, or refuses."""


class ClusterNotReadError(Exception):
    """The cluster could not be read to its end: one line that says why and what to do."""


class NothingCommittedError(ClusterNotReadError):
    """There was no error, but no record is known to be committed."""


@dataclass(frozen=True, slots=True)
class LogReading:
    """What is read of a metadata log beside the image: records of these types, the values of these
    settings; ``observe`` gets every event."""

    record_types: frozenset[str]
    settings: frozenset[str]
    observe: Callable[[Event], None]


def read_image(
    cluster: ClusterSection,
    timeout_s: float = TIMEOUT_S,
    *,
    settle_ms: int | None = None,
    reading: LogReading | None = None,
) -> ClusterImage:
    """Folds the events of a cluster's sources until each has caught up.

    ``timeout_s`` is how long a source that has not caught up may make no progress. ``settle_ms`` is
    for a log directory: how long a record must have stood to count as committed
    (`streams.kraft.directory.commit_rule`); 0 takes all that is there.

    Raises:
        UsageError: The cluster is not described so that it could be read.
        ClusterNotReadError: It made no progress in time, or cannot be read.
    """
    return asyncio.run(_read(cluster, timeout_s, settle_ms, reading))


async def _read(
    cluster: ClusterSection, timeout_s: float, settle_ms: int | None, reading: LogReading | None
) -> ClusterImage:
    logins = node_logins(cluster)
    cluster_id = await _learn(cluster, logins, timeout_s)
    sink = _FoldingSink(ClusterImage(cluster_id), reading)
    sources = _sources(cluster, cluster_id, logins, sink, settle_ms)
    tasks = [asyncio.ensure_future(source.run()) for source in sources.values()]
    tasks.append(asyncio.ensure_future(sink.settled(frozenset(sources), timeout_s)))
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ended:
        if isinstance(end, Exception):
            raise end
    if not sink.image.ready:
        reports = (source.report() for source in sources.values())
        errors = dict.fromkeys(report.detail or report.last_error for report in reports)
        if why := "; ".join(filter(None, errors)):
            raise ClusterNotReadError(f"{_name(cluster)} was not read to its end: {why}")
        raise NothingCommittedError(f"nothing in {_name(cluster)} is known to be committed")
    for status in sink.image.sources.statuses.values():
        if status.state is SourceState.STALLED:
            LOG.warning("%s: %s was not read: %s", _name(cluster), status.source, status.detail)
    return sink.image


class _FoldingSink:
    """A sink that folds the events of sources into an image."""

    error: str | None = None

    def __init__(self, image: ClusterImage, reading: LogReading | None = None) -> None:
        self.image = image
        self.reading = reading
        self._news = asyncio.Event()
        self._progress_s = 0.0

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> None:
        """Folds an event."""
        if isinstance(event, DeadLetter):
            return  # the source's report has it
        source = _SOURCES[topic.short_name]
        before = self.image.sources.statuses.get(source)
        behind = not self.image.ready or source not in self.image.sources.caught_up
        self.image, _ = fold(self.image, event)
        if self.reading is not None:
            self.reading.observe(event)
        if behind and not (isinstance(event, SourceStatus) and before and _same(before, event)):
            self._progress_s = asyncio.get_running_loop().time()
        self._news.set()

    async def flush(self) -> None:
        """Does nothing: there is nothing to wait for."""

    async def settled(self, names: frozenset[str], timeout_s: float) -> None:
        """Waits until each of these sources has caught up or stalled, while one makes progress.

        A source that has caught up still publishes: a quiet log has a record twice a second. That
        is progress only until the image is ready: the end of a log directory may have to be old
        enough to count as committed.
        """
        now = asyncio.get_running_loop().time
        self._progress_s = now()
        while not self._over(names) and (left_s := self._progress_s + timeout_s - now()) > 0:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._news.wait()

    def _over(self, names: frozenset[str]) -> bool:
        stalled = {
            source
            for source, status in self.image.sources.statuses.items()
            if status.state is SourceState.STALLED
        }
        done = names <= stalled | self.image.sources.caught_up
        return done and (self.image.ready or bool(stalled))


def _same(before: SourceStatus, after: SourceStatus) -> bool:
    """Whether a source has made no progress; a heartbeat alone is no progress."""
    return (before.state, before.offset) == (after.state, after.offset)


class _Source(Protocol):
    """The sources that are followed until they have caught up."""

    def run(self) -> Coroutine[Any, Any, None]: ...

    def report(self) -> SourceReport: ...


def _sources(
    cluster: ClusterSection,
    cluster_id: ClusterId,
    logins: NodeLogins,
    into: _FoldingSink,
    settle_ms: int | None,
) -> dict[str, _Source]:
    """The sources by name."""
    by_name: dict[str, _Source] = {}
    if cluster.controllers or cluster.log_directory:
        settings = replace(
            kraft_settings(cluster, cluster_id, logins.controllers), heartbeat_ms=_HEARTBEAT_MS
        )
        if settle_ms is not None:
            settings = replace(settings, log_directory_settle_ms=settle_ms)
        if into.reading is not None:
            settings = replace(
                settings,
                wanted=frozenset(settings.wanted) | into.reading.record_types,
                read_settings=into.reading.settings,
            )
        by_name[Authority.LOG] = KraftSource(settings, into, _from_the_beginning)
    if cluster.servers or cluster.polled_controllers:
        by_name[Authority.ANSWERS] = ApiVersionsSource(
            api_versions_settings(cluster, cluster_id, logins), into
        )
    if cluster.zookeeper:
        by_name[Authority.ZOOKEEPER] = ZookeeperSource(zookeeper_settings(cluster), into)
    return by_name


async def _from_the_beginning() -> None:
    """Returns None: nothing was published before."""


async def _learn(cluster: ClusterSection, logins: NodeLogins, timeout_s: float) -> ClusterId:
    """The cluster's id: from the settings, from its files, or from a node."""
    nodes = cluster.controllers or cluster.servers or cluster.polled_controllers
    if not (nodes or cluster.log_directory or cluster.zookeeper):
        raise UsageError(
            "there is no cluster to read: pass --bootstrap-controller, --bootstrap-server or "
            "--log-directory"
        )
    if cluster.cluster_id:
        return ClusterId(cluster.cluster_id)
    if cluster.log_directory is not None:
        if not cluster.log_directory.is_dir():
            raise UsageError(f"there is no directory {cluster.log_directory}")
        if cluster_id := cluster_id_in_files(cluster.log_directory):
            return cluster_id
    if nodes:
        deadline = asyncio.get_running_loop().time() + min(timeout_s, _ANSWER_S)
        return await _search(cluster, logins, deadline)
    if cluster.zookeeper:
        return await _from_znodes(cluster, timeout_s)
    raise UsageError(f"{_name(cluster)} does not have the cluster's id: pass --cluster-id")


class _NullSink:
    """A sink for a source that is run only for the cluster's id."""

    error: str | None = None

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> None:
        """Drops an event."""

    async def flush(self) -> None:
        """Does nothing: there is nothing to wait for."""


async def _from_znodes(cluster: ClusterSection, timeout_s: float) -> ClusterId:
    """The id in ZooKeeper; without one its source publishes nothing, not even its state."""
    source = ZookeeperSource(zookeeper_settings(cluster), _NullSink())
    running = asyncio.ensure_future(source.run())
    now = asyncio.get_running_loop().time
    deadline = now() + timeout_s
    try:
        while source.cluster is None:
            if running.done():
                running.result()
            report = source.report()
            if report.state is SourceState.STALLED or now() >= deadline:
                why = report.detail or report.last_error or "it does not answer"
                raise ClusterNotReadError(f"{_name(cluster)} was not read: {why}")
            await asyncio.sleep(0.05)
        return source.cluster
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _search(cluster: ClusterSection, logins: NodeLogins, deadline: float) -> ClusterId:
    while True:
        try:
            search = await find_cluster_id(cluster, logins)
        except LocalResourceError as error:
            raise ClusterNotReadError(f"{_name(cluster)} was not read: {error}") from error
        if search.cluster is not None:
            return search.cluster
        if asyncio.get_running_loop().time() >= deadline:
            raise ClusterNotReadError(f"{_name(cluster)} was not read: {search.reason}")
        await asyncio.sleep(0.2)


def _name(cluster: ClusterSection) -> str:
    if cluster.log_directory is not None:
        return str(cluster.log_directory)
    return cluster.provisional_id
