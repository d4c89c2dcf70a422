"""Runs the sources of all configured clusters in this process."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from featurewatch.cli.config.settings import ClusterSection, Settings
from featurewatch.cli.config.source_settings import (
    api_versions_settings,
    check_directory,
    cluster_id_in_files,
    kraft_settings,
    node_logins,
    zookeeper_settings,
)
from featurewatch.cli.errors import UsageError
from featurewatch.cli.runtime.bus import wait_for_topics
from featurewatch.cli.runtime.cluster_claims import Claim, ClaimedSink, ClusterClaims, Entry
from featurewatch.cli.runtime.cluster_id import find_cluster_id
from featurewatch.cli.runtime.resync import follow_resync_requests
from featurewatch.cli.runtime.supervisor import (
    SourceSupervisor,
    is_bus_error,
    must_be_set_up,
    run_restarting,
)
from featurewatch.cli.runtime.unreached import report_unreached
from featurewatch.common.log_subject import log_subject
from featurewatch.common.tasks import run_all, start_background
from featurewatch.common.text import error_line
from featurewatch.streams.apiversions.source import ApiVersionsSource
from featurewatch.streams.bus.errors import BusError
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.topic_keeper import TopicKeeper
from featurewatch.streams.events import SourceState
from featurewatch.streams.health import HealthServer, source_views
from featurewatch.streams.kraft.source import KraftSource
from featurewatch.streams.metrics import SourceReport, SourceReporter
from featurewatch.streams.node_addresses import NodeAddresses
from featurewatch.streams.source import monotonic_ms
from featurewatch.streams.source_shell import SourceShell
from featurewatch.streams.source_status import RecentTexts
from featurewatch.streams.types import ClusterId
from featurewatch.streams.zookeeper.source import ZookeeperSource

LOG: Final = logging.getLogger("featurewatch.watch")

_CATCHING_UP_POLL_S: Final = 0.1
_LEARN_AGAIN_S: Final = 30.0
"""Between two looks at the id of a cluster that another entry has too, or that is not read."""

_OTHER_LOOKS: Final = 10
"""After this many looks in a row that find another id, it is the cluster's: a name may lead
elsewhere for minutes."""

_Source = TypeVar("_Source", bound=SourceShell)
_ZookeeperSupervisor = SourceSupervisor[ZookeeperSource] | None


class WatchedCluster:
    """One configured cluster: first its id is learned, then its sources run.

    ``claims`` are those of all clusters of this process to their ids.

    Raises `UsageError` for settings that are wrong, before any request.
    """

    def __init__(self, cluster: ClusterSection, claims: ClusterClaims | None = None) -> None:
        self._cluster = cluster
        self._claims = claims or ClusterClaims()
        self._entry = Entry(self.name, bool(cluster.cluster_id))
        if not (self._has_nodes or cluster.zookeeper):
            raise UsageError(
                "a cluster has neither controllers nor servers nor polled controllers nor a log "
                "directory nor zookeeper: give at least one of them"
            )
        if cluster.log_directory is not None:
            check_directory(cluster.log_directory, cluster.cluster_id)
        self._logins = node_logins(cluster)
        self._znodes = zookeeper_settings(cluster) if cluster.zookeeper else None
        self._trouble = "its cluster id is not known yet"
        self._learning = self._has_nodes
        self._is_unreached = asyncio.Event()
        self._refusal: str | None = None
        self.sources: list[SourceSupervisor[Any]] = []
        self._restart_counts: dict[str, int] = {}

    @property
    def _has_nodes(self) -> bool:
        """Whether the cluster has more to follow than znodes."""
        cluster = self._cluster
        polled = cluster.servers or cluster.polled_controllers
        return bool(cluster.controllers or polled or cluster.log_directory)

    @property
    def name(self) -> str:
        """The name of the cluster before its id is known."""
        return self._cluster.provisional_id

    @property
    def first_source(self) -> str:
        """The name of its source, the first if it has several."""
        if self._cluster.controllers or self._cluster.log_directory:
            return KraftSource.name
        return ApiVersionsSource.name if self._cluster.servers else ZookeeperSource.name

    def unreached_reason(self) -> str | None:
        """Why its id is not known, or not its own; None if it is."""
        if self._refusal is not None:
            return self._refusal
        if self._has_nodes:
            return self._trouble if self._learning else None
        reports = [source.report() for source in self.sources]
        if any(source.source.cluster for source in self.sources):
            return None
        return "; ".join(report.detail for report in reports if report.detail) or self._trouble

    def reports(self) -> Iterable[SourceReporter]:
        """The sources; this one speaks for those that wait for the cluster's id."""
        return [*self.sources, *([self] if self._learning else [])]

    def report(self) -> SourceReport:
        """The report that nothing can be read yet, and why."""
        return SourceReport(
            self.name,
            "none",
            SourceState.STALLED,
            name=self._cluster.name,
            detail=self._trouble,
        )

    async def run(self, publisher: Publisher) -> None:
        """Follows the cluster until cancelled; raises `BusError`, and may be called again then.

        Whatever else a source fails of is its own trouble: it is started again.
        """
        earlier, self.sources = self.sources, []
        self._restart_counts = {
            supervisor.source.name: supervisor.restart_count + 1 for supervisor in earlier
        }
        self._learning = self._has_nodes
        running = []
        znodes = None
        self._refusal = None
        if (settings := self._znodes) is not None:
            sink = ClaimedSink(publisher, self._claims, self._entry, self._note_refusal)
            znodes = self._supervise(ZookeeperSource.name, lambda: ZookeeperSource(settings, sink))
            self.sources.append(znodes)
            running.append(_run_with(znodes, sink))
        if self._has_nodes:
            running.append(self._follow_nodes(publisher, znodes))
        running.append(self._report_unreached(publisher))
        with log_subject(self._log_name):
            await run_all(running)

    def _log_name(self) -> str:
        """The id of the cluster, or its name while the id is not known."""
        reported = (source.report().cluster for source in self.sources)
        return next(filter(None, reported), self.name)

    async def _report_unreached(self, publisher: Publisher) -> None:
        """Reports that the cluster is not followed, whenever that begins."""
        while True:
            await report_unreached(self, publisher)
            self._is_unreached.clear()
            await self._is_unreached.wait()

    def note_failure(self, reason: str) -> None:
        """Reports all sources as stalled: they have ended, and ``reason`` says why."""
        self._trouble = reason
        for supervisor in self.sources:
            supervisor.note_failure(reason)

    def _supervise(self, name: str, make: Callable[[], _Source]) -> SourceSupervisor[_Source]:
        return SourceSupervisor(
            make,
            restart_count=self._restart_counts.get(name, 0),
            cluster_name=self._cluster.name,
            addresses=self._addresses(name),
        )

    def _addresses(self, source: str) -> str:
        """The configured addresses of a source, in an order that does not depend on theirs."""
        cluster = self._cluster
        given = {
            KraftSource.name: cluster.controllers or f"{cluster.log_directory}",
            ApiVersionsSource.name: f"{cluster.servers},{cluster.polled_controllers}",
            ZookeeperSource.name: cluster.zookeeper,
        }[source]
        return ",".join(sorted(filter(None, map(str.strip, given.split(",")))))

    async def _follow_nodes(self, publisher: Publisher, znodes: _ZookeeperSupervisor) -> None:
        """Follows what speaks Kafka's protocol, and the log's files, while the id is this one's."""
        others = [*self.sources]
        claim: Claim | None = None
        try:
            while True:
                cluster_id = await self._learned(znodes)
                if claim is None or claim.cluster_id != cluster_id:
                    if claim is not None:
                        claim.release()
                    claim = self._claims.claim(cluster_id, self._entry)
                if (refusal := claim.refusal()) is not None:
                    self._refuse(refusal)
                    await claim.wait(refused=False, timeout_s=_LEARN_AGAIN_S)
                    continue
                self._learning = False
                try:
                    running = self._run_sources(cluster_id, publisher)
                    await run_all([running, _until_refused(claim), self._until_other(cluster_id)])
                except _RefusedError as error:
                    for supervisor in self.sources[len(others) :]:
                        await supervisor.source.withdraw(str(error))
                self.sources = [*others]
        finally:
            if claim is not None:
                claim.release()

    def _refuse(self, reason: str) -> None:
        """Reports that the cluster is not followed, since its id is another's too."""
        if reason != self._trouble or not self._learning:
            LOG.error("%s: %s", self.name, reason)
        self._trouble, self._learning = reason, True
        self._is_unreached.set()

    def _note_refusal(self, refusal: str | None) -> None:
        """Reports that the znodes are not published, since their cluster's id is another's too."""
        if refusal == self._refusal:
            return
        self._refusal = refusal
        for supervisor in self.sources:
            if supervisor.source.name == ZookeeperSource.name:
                supervisor.note_failure(refusal or "")
        if refusal is not None:
            LOG.error("%s: %s", self.name, refusal)
            self._is_unreached.set()

    async def _run_sources(self, cluster_id: ClusterId, publisher: Publisher) -> None:
        """Runs the sources of a cluster whose id is known."""
        cluster = self._cluster
        running = []
        addresses = NodeAddresses()
        if cluster.controllers or cluster.log_directory:
            log = kraft_settings(cluster, cluster_id, self._logins.controllers)
            log = replace(log, addresses=addresses)
            self.sources.append(
                self._supervise(KraftSource.name, lambda: KraftSource.on_bus(log, publisher))
            )
            running.append(self.sources[-1].run())
        if cluster.servers or cluster.polled_controllers:
            nodes = api_versions_settings(cluster, cluster_id, self._logins)
            nodes = replace(nodes, addresses=addresses)
            polling = self._supervise(
                ApiVersionsSource.name, lambda: ApiVersionsSource(nodes, publisher)
            )
            running.append(_run_after(self.sources[-1:] if running else [], polling))
            self.sources.append(polling)
        await run_all(running)

    async def _learned(self, znodes: _ZookeeperSupervisor) -> ClusterId:
        """The cluster's id, whatever learning it fails of meanwhile."""
        learned: list[ClusterId] = []

        async def learn() -> None:
            learned.append(await self._learn(znodes))

        await run_restarting(learn, self._on_failure, is_bus_error)
        return learned[0]

    async def _until_other(self, cluster_id: ClusterId) -> None:
        """Raises `_RefusedError` once no source has read for minutes and the nodes have another id.

        They may have been another cluster's when the id was learned.
        """
        other, looks = cluster_id, 0
        while not (self._cluster.cluster_id or self._cluster.log_directory):
            await asyncio.sleep(_LEARN_AGAIN_S)
            if not all(one.report().state is SourceState.STALLED for one in self.sources):
                looks = 0
                continue
            try:
                found = (await find_cluster_id(self._cluster, self._logins)).cluster
            except Exception as error:  # of these nodes, or of this process for a moment
                LOG.warning("%s: its id cannot be read again: %s", self.name, error_line(error))
                continue
            if found is None or found == cluster_id:
                looks = 0
                continue
            other, looks = found, looks + 1 if found == other else 1
            if looks >= _OTHER_LOOKS:
                LOG.warning(
                    "%s: its nodes return the id %s now, not %s", self.name, found, cluster_id
                )
                raise _RefusedError(f"its nodes return the id {found} now")
        await asyncio.Event().wait()

    async def _on_failure(self, error: Exception, wait_s: float) -> None:
        """Notes that the cluster's id could not be learned because of an unexpected error."""
        reason = f"learning its cluster id failed; retry in {wait_s:g} s ({error_line(error)})"
        if error_line(error) not in self._trouble:
            LOG.error("%s: %s", self.name, reason, exc_info=error)
        self._trouble = reason

    async def _learn(self, znodes: _ZookeeperSupervisor) -> ClusterId:
        """The cluster's id, from the settings or from the first node that returns it."""
        cluster = self._cluster
        if cluster.cluster_id:
            return ClusterId(cluster.cluster_id)
        if cluster.log_directory is not None:
            cluster_id = cluster_id_in_files(cluster.log_directory)
            if cluster_id is not None:
                return cluster_id
        warned = RecentTexts()
        while True:
            if znodes is not None and znodes.source.cluster is not None:
                return znodes.source.cluster
            search = await find_cluster_id(cluster, self._logins)
            if search.cluster is not None:
                return search.cluster
            self._trouble = search.reason
            if warned.is_new(search.reason, monotonic_ms()):
                LOG.warning("%s: %s", self.name, search.reason)
            await asyncio.sleep(search.retry_s)


class _RefusedError(Exception):
    """Another entry has the cluster's id too, or the nodes have another id."""


async def _until_refused(claim: Claim) -> None:
    await claim.wait(refused=True)
    raise _RefusedError(claim.refusal() or "another entry has its id too")


async def _run_with(supervisor: SourceSupervisor[Any], sink: ClaimedSink) -> None:
    """Runs a source that claims its cluster's id."""
    try:
        await supervisor.run()
    finally:
        sink.release()


async def _run_after(
    earlier: Sequence[SourceSupervisor[Any]], supervisor: SourceSupervisor[Any]
) -> None:
    """Runs a source once the earlier ones have caught up for the first time, or stalled.

    The metadata log has the time at which a level was finalized. A response of a node has not, and
    would date the first change of a cluster if it were published before.
    """
    while any(source.report().state is SourceState.CATCHING_UP for source in earlier):
        await asyncio.sleep(_CATCHING_UP_POLL_S)
    await supervisor.run()


class SourceRunner:
    """All watched clusters of this process."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        claims = ClusterClaims()
        self.clusters = [WatchedCluster(cluster, claims) for cluster in settings.clusters]
        if not self.clusters:
            raise UsageError(
                "there is no cluster to watch: pass --controllers, --servers, --log-directory or "
                "--zookeeper, or list clusters in the configuration file"
            )
        self._has_published = False

    def sources(self) -> Iterable[SourceReporter]:
        """Every source, for metrics and health."""
        return [report for cluster in self.clusters for report in cluster.reports()]

    async def run(self) -> None:
        """Watches until cancelled; all sources restart if the bus accepts no more of them.

        Raises:
            streams.bus.errors.BusSetupError: The bus cannot be used as it is set up.
            streams.health.PortTakenError: Somebody else listens on our port.
        """
        web = self.settings.web
        async with HealthServer(
            source_views(self.sources),
            port=web.source_port,
            host=web.host,
            access=web.access(),
            part="sources",
        ) as health:
            LOG.info("the sources' health and metrics: %s", health.url)
            await run_restarting(self._run_sources, self._on_failure, self._is_final)

    async def _run_sources(self) -> None:
        bus = self.settings.bus_settings()
        await wait_for_topics(bus)
        publisher = Publisher(bus, on_error=_log_error)
        keeper = TopicKeeper(bus)
        keeping = start_background(
            "maintaining the topics", lambda: keeper.run(lambda: publisher.waits_for_topic)
        )
        try:
            async with publisher:
                clusters = (cluster.run(publisher) for cluster in self.clusters)
                await run_all([follow_resync_requests(bus, self._supervisors), *clusters])
        finally:
            await keeping.close()
            self._has_published |= publisher.published > 0

    def _supervisors(self) -> Iterable[SourceSupervisor[Any]]:
        return [supervisor for cluster in self.clusters for supervisor in cluster.sources]

    def _is_final(self, error: Exception) -> bool:
        return must_be_set_up(error) and not self._has_published

    async def _on_failure(self, error: Exception, wait_s: float) -> None:
        reason = f"the sources restart in {wait_s:g} s ({error_line(error)})"
        LOG.error("%s", reason, exc_info=None if isinstance(error, BusError) else error)
        for cluster in self.clusters:
            cluster.note_failure(reason)


def _log_error(error: str | None) -> None:
    if error:
        LOG.warning("%s", error)
    else:
        LOG.info("the bus takes messages again")
