"""Learns the id of a cluster of which only addresses are known.

A broker returns it to everybody. A controller returns it only to a principal with ALTER on the
cluster, and before 3.7 to nobody. With CLUSTER_ACTION, however, its metadata log can be read, which
has the addresses of the brokers.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from featurewatch.cli.config.settings import ClusterSection
from featurewatch.cli.config.source_settings import NodeLogins
from featurewatch.kafka.address import Address, parse_addresses
from featurewatch.kafka.security import Security
from featurewatch.streams.apiversions.connections import ConnectionPool
from featurewatch.streams.apiversions.discovery import DiscoveredNodes, discover_nodes
from featurewatch.streams.apiversions.settings import ApiVersionsSettings, ControllerAddress
from featurewatch.streams.events import (
    DeadLetter,
    Event,
    SourceState,
    SourceStatus,
)
from featurewatch.streams.kraft.observer.quorum_reader import QuorumSettings
from featurewatch.streams.kraft.source import KraftSettings, KraftSource
from featurewatch.streams.node_addresses import security_protocol
from featurewatch.streams.source import Sink
from featurewatch.streams.source_status import GracePeriods
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import ClusterId, Role

RETRY_S: Final = 2.0
_RETRY_WITH_LOG_S: Final = 30.0
"""The retry interval after the whole metadata log was read without success."""

_READ_LOG_S: Final = 15.0
_GRACE: Final = GracePeriods(transient_ms=1000, permanent_ms=500)
_MAX_BROKERS: Final = 5
_REGISTER: Final = "REGISTER_BROKER_RECORD"
_UNREGISTER: Final = "UNREGISTER_BROKER_RECORD"
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""Protocols by the number that a registration has (``SecurityProtocol``)."""


class ClusterIdSearch(NamedTuple):
    """The cluster's id, or else one line that says why it is not known and what to do.

    ``retry_s`` is when to search again, in seconds.
    """

    cluster: ClusterId | None
    reason: str = ""
    retry_s: float = 0.0


async def find_cluster_id(cluster: ClusterSection, logins: NodeLogins) -> ClusterIdSearch:
    """Searches once for the id of a cluster, among its brokers and then its controllers.

    Raises:
        LocalResourceError: This process lacks resources for a connection.
    """
    reasons: list[str] = []
    retry_s = RETRY_S
    if cluster.servers:
        found = await _ask_brokers(parse_addresses(cluster.servers), logins.brokers)
        if found.cluster is not None:
            return ClusterIdSearch(found.cluster)
        reasons += found.warnings or (f"{cluster.servers} does not answer",)
    controllers = [*parse_addresses(cluster.controllers), *polled_addresses(cluster)]
    if controllers:
        found = await _ask_controllers(controllers, logins.controllers)
        if found.cluster is not None:
            return ClusterIdSearch(found.cluster)
        if not cluster.controllers:
            reasons += found.warnings
    if cluster.controllers:
        brokers = await _brokers_in_log(cluster, logins)
        if brokers.addresses:
            found = await _ask_brokers(brokers.addresses, logins.brokers)
            if found.cluster is not None:
                return ClusterIdSearch(found.cluster)
        if brokers.reason:
            reasons.append(brokers.reason)
        else:
            retry_s = _RETRY_WITH_LOG_S
            reasons.append(
                "controllers return it only with ALTER on the cluster; brokers in the metadata "
                "log: " + ("; ".join(found.warnings) or "none answers")
            )
    why = "; ".join(dict.fromkeys(reasons))
    return ClusterIdSearch(
        None,
        f"its cluster id is not known ({why}): if that cannot be changed, set cluster_id to what "
        "`kafka-cluster cluster-id` prints",
        retry_s,
    )


def polled_addresses(cluster: ClusterSection) -> list[Address]:
    """The addresses of ``polled_controllers``."""
    parts = filter(None, cluster.polled_controllers.split(","))
    return [ControllerAddress.parse(part).address for part in parts]


async def _ask_brokers(addresses: Iterable[Address], security: Security) -> DiscoveredNodes:
    return await _discover(
        ApiVersionsSettings(bootstrap_servers=tuple(addresses), security=security)
    )


async def _ask_controllers(addresses: Iterable[Address], security: Security) -> DiscoveredNodes:
    controllers = tuple(map(ControllerAddress, dict.fromkeys(addresses)))
    return await _discover(
        ApiVersionsSettings(bootstrap_controllers=controllers, security=security)
    )


async def _discover(settings: ApiVersionsSettings) -> DiscoveredNodes:
    connections = ConnectionPool(settings)
    try:
        return await discover_nodes(settings, connections, ())
    finally:
        await connections.retain(())


class _BrokersInLog(NamedTuple):
    """Some listeners of the registered brokers, or why they are not known."""

    addresses: tuple[Address, ...] = ()
    reason: str = ""


async def _brokers_in_log(cluster: ClusterSection, logins: NodeLogins) -> _BrokersInLog:
    """Reads the metadata log to its end; its cluster id cannot be checked yet."""
    name = ClusterId("not-known-yet")
    quorum = QuorumSettings(None, parse_addresses(cluster.controllers), logins.controllers)
    settings = KraftSettings(
        name,
        quorum,
        wanted=frozenset({_REGISTER, _UNREGISTER}),
        max_snapshot_bytes=cluster.max_snapshot_bytes,
        grace=_GRACE,
    )
    sink = _EndOfLog()
    source = KraftSource(settings, sink, _from_the_beginning)
    reading = asyncio.ensure_future(source.run())
    ended = asyncio.ensure_future(sink.ended.wait())
    try:
        first = asyncio.FIRST_COMPLETED
        await asyncio.wait([reading, ended], timeout=_READ_LOG_S, return_when=first)
    finally:
        reading.cancel()
        ended.cancel()
        failure, _ = await asyncio.gather(reading, ended, return_exceptions=True)
    if isinstance(failure, Exception):
        raise failure
    status = sink.status
    if status is None or status.state is not SourceState.FOLLOWING:
        report = source.report()
        late = f"the metadata log was not read within {_READ_LOG_S:g} s"
        return _BrokersInLog(reason=report.detail or report.last_error or late)
    addresses = settings.addresses.of(Role.BROKER, logins.brokers)
    if not addresses:
        protocol = security_protocol(logins.brokers)
        return _BrokersInLog(
            reason=f"no broker in the metadata log has a listener for {_PROTOCOLS[protocol]}"
        )
    return _BrokersInLog(addresses[:_MAX_BROKERS])


async def _from_the_beginning() -> None:
    """Returns None: nothing was published before."""


class _EndOfLog(Sink):
    """A sink that keeps nothing but the status: the log was read once its source follows, or
    stalls."""

    error: str | None = None

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.status: SourceStatus | None = None

    async def publish(self, topic: Topic, event: Event | DeadLetter) -> None:
        """Keeps a status."""
        del topic
        if isinstance(event, SourceStatus):
            self.status = event
            if event.state is not SourceState.CATCHING_UP:
                self.ended.set()

    async def flush(self) -> None:
        """Does nothing: there is nothing to wait for."""
