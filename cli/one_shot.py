"""The image of a cluster as it is now, without a bus and without a worker: read once, then done."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final

from cli.errors import UsageError
from cli.settings import Cluster
from cli.watching import answers_settings, kraft_settings, security, zookeeper_settings
from streams.apiversions.discovery import find_nodes
from streams.apiversions.peers import Peers
from streams.apiversions.settings import ApiVersionsSettings
from streams.apiversions.source import ApiVersionsSource
from streams.events import DeadLetter, Event, SourceState
from streams.kraft.logdir_files import cluster_id_of
from streams.kraft.source import KraftSource
from streams.topics import Topic
from streams.types import ClusterId
from streams.zookeeper.source import ZookeeperSource
from tables.fold import fold
from tables.image import Authority, ClusterImage

TIMEOUT_S: Final = 20.0
_ANSWER_S: Final = 4.0
"""Whoever does not tell the cluster's id by then will not: it listens, or has the right, or not."""


class NotSeenError(Exception):
    """The cluster could not be read to its end: one line that says why and what to do."""


def image_once(
    cluster: Cluster, timeout_s: float = TIMEOUT_S, *, settle_ms: int | None = None
) -> ClusterImage:
    """What the sources of a watched cluster tell until each has caught up.

    ``settle_ms`` is for a log directory: how long a record must have stood to count as committed
    (`streams.kraft.logdir_rule`); 0 takes all that is there.

    Raises:
        UsageError: The cluster is not described so that it could be read.
        NotSeenError: It did not answer in time, or what it says cannot be read.
    """
    return asyncio.run(_read(cluster, timeout_s, settle_ms))


async def _read(cluster: Cluster, timeout_s: float, settle_ms: int | None) -> ClusterImage:
    deadline = asyncio.get_running_loop().time() + timeout_s
    cluster_id = await _learn(cluster, deadline)
    into = _Folded(ClusterImage(cluster_id))
    wanted, running = _sources(cluster, cluster_id, into, settle_ms)
    tasks = [asyncio.ensure_future(each) for each in (*running, into.settled(wanted))]
    try:
        async with asyncio.timeout_at(deadline):
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    except TimeoutError:
        pass  # what was told until now says why
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for end in ended:
        if isinstance(end, Exception):
            raise end
    if not into.image.ready:
        raise NotSeenError(f"{_name(cluster)} was not read to its end: {into.why}")
    return into.image


class _Folded:
    """A sink that takes what sources say into an image."""

    trouble: str | None = None

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self._unread = ""
        self._news = asyncio.Event()

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> None:
        """Takes in an event."""
        del topic
        if isinstance(event, DeadLetter):
            self._unread = f"{event.place}: {event.reason}"
            return
        self.image, _ = fold(self.image, event)
        self._news.set()

    async def flush(self) -> None:
        """There is nothing to wait for."""

    async def settled(self, wanted: frozenset[str]) -> None:
        """Waits until each of these sources has caught up or cannot read."""
        while not all(self._done(source) for source in wanted):
            self._news.clear()
            await self._news.wait()

    def _done(self, source: str) -> bool:
        status = self.image.sources.get(source)
        stalled = status is not None and status.state is SourceState.STALLED
        return stalled or source in self.image.caught_up

    @property
    def why(self) -> str:
        """Why the image is not whole."""
        details = [status.detail for status in self.image.sources.values() if status.detail]
        return "; ".join(details) or self._unread or "there was not enough time"


def _sources(
    cluster: Cluster, cluster_id: ClusterId, into: _Folded, settle_ms: int | None
) -> tuple[frozenset[str], list[Coroutine[Any, Any, None]]]:
    """The sources' names, and what is to be run."""
    found: dict[str, Coroutine[Any, Any, None]] = {}
    secured = security(cluster)
    if cluster.controllers or cluster.log_directory:
        settings = kraft_settings(cluster, cluster_id, secured)
        if settle_ms is not None:
            settings = replace(settings, log_directory_settle_ms=settle_ms)
        found[Authority.LOG] = KraftSource(settings, into, _from_the_beginning).run()
    if cluster.servers:
        found[Authority.ANSWERS] = ApiVersionsSource(answers_settings(cluster, secured), into).run()
    if cluster.zookeeper:
        found[Authority.ZOOKEEPER] = ZookeeperSource(zookeeper_settings(cluster), into).run()
    return frozenset(found), list(found.values())


async def _from_the_beginning() -> None:
    """Nothing was published before."""


async def _learn(cluster: Cluster, deadline: float) -> ClusterId:
    """The cluster's id: from the settings, from its files, or from whoever tells it."""
    nodes = cluster.controllers or cluster.servers
    if not (nodes or cluster.log_directory or cluster.zookeeper):
        raise UsageError(
            "there is no cluster to read: give --bootstrap-controller, --bootstrap-server or "
            "--log-directory"
        )
    if cluster.cluster_id:
        return ClusterId(cluster.cluster_id)
    if cluster.log_directory is not None:
        if not cluster.log_directory.is_dir():
            raise UsageError(f"there is no directory {cluster.log_directory}")
        if found := cluster_id_of(cluster.log_directory):
            return ClusterId(found)
    if nodes:
        return await _ask(cluster, min(deadline, asyncio.get_running_loop().time() + _ANSWER_S))
    raise UsageError(f"{_name(cluster)} does not tell the cluster's id: give --cluster-id")


async def _ask(cluster: Cluster, deadline: float) -> ClusterId:
    settings = ApiVersionsSettings.parse(
        cluster.servers, cluster.controllers, security=security(cluster)
    )
    peers = Peers(settings)
    try:
        while True:
            found = await find_nodes(settings, peers, ())
            if found.cluster is not None:
                return found.cluster
            # How to name a controller that shall be asked for its features is not to the point.
            remarks = [remark for remark in found.remarks if "id@host:port" not in remark]
            why = "; ".join(remarks) or "nobody tells it"
            if asyncio.get_running_loop().time() >= deadline:
                raise NotSeenError(
                    f"the cluster id of {_name(cluster)} is not known ({why}): give --cluster-id "
                    "if nobody tells it"
                )
            await asyncio.sleep(0.2)
    finally:
        await peers.keep_only(())


def _name(cluster: Cluster) -> str:
    given = (cluster.cluster_id, cluster.controllers, cluster.servers, cluster.zookeeper)
    return next(filter(None, given), str(cluster.log_directory))
