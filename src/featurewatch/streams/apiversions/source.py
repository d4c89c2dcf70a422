"""The source of ``api-versions``: requests each node's features and publishes the changes."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from featurewatch.common.text import error_line
from featurewatch.kafka.address import Address
from featurewatch.kafka.node_errors import LocalResourceError, NodeError, OtherNodeError
from featurewatch.streams.apiversions.connections import ConnectionPool
from featurewatch.streams.apiversions.discovery import DiscoveredNodes, discover_nodes
from featurewatch.streams.apiversions.node_features import NodeFeatures
from featurewatch.streams.apiversions.quorum_tracker import QuorumTracker
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.apiversions.tracker import NodeTracker, TrackerEvent
from featurewatch.streams.events import DeadLetter, NodeSilent, QuorumStatus
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.source import Sink, monotonic_ms, wall_clock_ms
from featurewatch.streams.source_shell import ProtocolState, SourceShell
from featurewatch.streams.source_status import GracePeriods, RecentTexts, StallReason
from featurewatch.streams.topics import API_VERSIONS
from featurewatch.streams.types import ClusterId, LeaderAndEpoch, NodeKey, Role

LOG: Final = logging.getLogger("featurewatch.api-versions")


_STAGGER_S: Final = 0.002
"""Between the requests to two nodes: a thousand nodes get none in the same millisecond."""

_NO_GRACE: Final = GracePeriods(transient_ms=0, permanent_ms=0, lag_ms=0)
"""A round tries every node, so its result counts at once."""


class ApiVersionsSource(SourceShell):
    """Follows one cluster by ApiVersions; `run` ends only by cancellation or a failing bus.

    After a start, and in each resync, every node's features are published once: they replace what
    was published before.
    Only the end of a round shows that no node responds. A response shows at once that one does.
    """

    name = API_VERSIONS.source
    topic = API_VERSIONS

    def __init__(
        self,
        settings: ApiVersionsSettings,
        publisher: Sink,
        clock_ms: Callable[[], int] = wall_clock_ms,
        monotonic_ms: Callable[[], int] = monotonic_ms,
    ) -> None:
        heartbeat_ms = int(settings.heartbeat_s * 1000)
        super().__init__(
            publisher, _NO_GRACE, heartbeat_ms, clock_ms, monotonic_ms, settings.interval_s
        )
        self._settings = settings
        self._peers = ConnectionPool(settings)
        self._tracker: NodeTracker | None = None
        self._quorum: QuorumTracker | None = None
        self._discovered = DiscoveredNodes()
        self._addresses: dict[NodeKey, Address] = {}
        self._concurrent = asyncio.Semaphore(settings.concurrency)
        self._stalled: str | None = None
        self._has_followed = False
        self._status.detail = self._detail = "no node was queried yet"
        self._warned = RecentTexts()
        self._next_listing_ms = 0
        self._cluster = settings.cluster
        self._response_count = 0
        self._is_resyncing = False

    def report(self) -> SourceReport:
        """The source's state now, for metrics and health."""
        return self._report(self._cluster or "", records_read=self._response_count)

    def _state(self) -> ProtocolState | None:
        if self._stalled is None and not self._has_followed:
            return None  # the first round is not over
        reason = None
        if self._stalled is not None:
            reason = StallReason(self._stalled, False, self._monotonic_ms())
        return ProtocolState(
            self._cluster,
            caught_up=reason is None,
            stall_reason=reason,
            leader=LeaderAndEpoch(self._discovered.leader_id, self._discovered.leader_epoch),
            detail=self._detail,
        )

    async def _close(self) -> None:
        await self._peers.retain(())

    async def _step(self) -> None:
        """List the cluster if that is due, request every node's features, publish the changes."""
        try:
            await self._poll()
        except LocalResourceError as error:
            # No verdict on any node follows: the round counts for nothing.
            self._stall(f"no node can be queried: {error}", logging.ERROR)

    async def _poll(self) -> None:
        now_ms = self._monotonic_ms()
        if now_ms >= self._next_listing_ms or not self._addresses:
            self._next_listing_ms = now_ms + int(self._settings.listing_interval_s * 1000)
            await self._list()
        tracker = self._tracker
        if tracker is not None:
            silent = await self._request_all(tracker)
            await self._publish_all(tracker.end_round(self._clock_ms()))
            if self._is_resyncing and tracker.is_whole:
                await self._end_resync(tracker.cluster)
            self._evaluate(silent)

    async def _resync(self, reason: str) -> None:
        if self._tracker is not None:
            self._is_resyncing = True
            await self._publish_resync(self._tracker.cluster, reason, finished=False)
            await self._publish_all(self._tracker.republish(self._clock_ms()))
            if self._quorum is not None:
                await self._publish_all(self._quorum.republish(self._clock_ms()))

    async def withdraw(self, reason: str) -> None:
        """Publishes that the nodes that answered are not this cluster's, or may not be."""
        if self._tracker is not None:
            await self._publish_all(self._tracker.withdraw(reason, self._clock_ms()))
            if self._quorum is not None:
                await self._publish_all(self._quorum.withdraw(reason, self._clock_ms()))

    async def _end_resync(self, cluster: ClusterId) -> None:
        self._is_resyncing = False
        await self._publish_resync(cluster, "", finished=True)

    async def _list(self) -> None:
        discovered = await discover_nodes(self._settings, self._peers, self._addresses.items())
        self._discovered = discovered
        for warning in discovered.warnings:
            self._warn(warning)
        cluster = discovered.cluster
        if cluster is not None and cluster != (self._cluster or cluster):
            self._stall(
                f"the nodes belong to cluster {cluster}, not {self._cluster}: "
                "check the addresses, or the cluster's id in the settings"
            )
            self._tracker, self._addresses, self._has_followed = None, {}, False
            self._quorum = None
            await self._peers.retain(())  # the same names may lead to this cluster by then
            return
        self._cluster = self._cluster or cluster
        self._settings.addresses.add_listing(discovered.nodes)
        if self._cluster is None or not (discovered.nodes or self._addresses):
            self._stall("; ".join(discovered.warnings[:3]) or "no node is known")
            return
        if self._tracker is None:
            self._tracker = NodeTracker(ClusterId(self._cluster), self._settings.misses)
            self._quorum = QuorumTracker(ClusterId(self._cluster))
            await self._resync("the source started")
        before = self._addresses
        retained = {k: a for k, a in before.items() if k.role not in discovered.listed}
        self._addresses = retained | discovered.nodes
        events = self._tracker.on_listing(
            {key: str(address) for key, address in self._addresses.items()}, self._clock_ms()
        )
        # A node is dropped only when a second listing lacks it too: until then it gets requests.
        self._addresses = {
            key: self._addresses.get(key) or before[key] for key in self._tracker.nodes
        }
        await self._peers.retain([(key.role, address) for key, address in self._addresses.items()])
        await self._publish_all(events)
        await self._publish_all(self._quorum_events(discovered))

    def _quorum_events(self, discovered: DiscoveredNodes) -> list[QuorumStatus]:
        if self._quorum is None:
            return []
        if discovered.quorum is None:
            detail = discovered.quorum_error
            return self._quorum.on_failure(detail, self._clock_ms()) if detail else []
        brokers, controllers = (
            {key.node_id for key in self._addresses if key.role is role}
            | self._settings.addresses.ids(role)
            for role in (Role.BROKER, Role.CONTROLLER)
        )
        return self._quorum.on_description(
            discovered.quorum, brokers, controllers, self._clock_ms()
        )

    async def _request_all(self, tracker: NodeTracker) -> dict[NodeKey, NodeError]:
        """The nodes that did not respond, and why. Events are published as responses arrive.

        Raises `LocalResourceError` once all requests are over, if one of them lacked a resource.
        """
        spread_s = min(_STAGGER_S, self._settings.interval_s / 2 / max(len(self._addresses), 1))
        nodes = sorted(self._addresses.items())
        requests = [
            asyncio.ensure_future(self._request(tracker, key, address, index * spread_s))
            for index, (key, address) in enumerate(nodes)
        ]
        try:
            responded = await asyncio.gather(*requests)
        finally:
            for request in requests:
                request.cancel()
        for result in responded:
            if isinstance(result, LocalResourceError):
                raise result
        results = zip(nodes, responded, strict=True)
        return {key: result for (key, _), result in results if result is not None}

    async def _request(
        self, tracker: NodeTracker, key: NodeKey, address: Address, delay_s: float
    ) -> NodeError | None:
        """Requests one node's features; returns the error if it could not."""
        await asyncio.sleep(delay_s)
        async with self._concurrent:
            response: NodeFeatures | NodeError
            try:
                response = await self._peers.request_features(key, address, tracker.cluster)
            except LocalResourceError as error:
                return error
            except NodeError as error:
                response = error
            except Exception as error:
                # An unexpected failure, too, counts against this node alone.
                response = NodeError(f"{address}: its answer failed with {error_line(error)}")
                if self._warned.is_new(str(response), self._monotonic_ms()):
                    LOG.exception("%s: %s", self._cluster, response)
        if isinstance(response, OtherNodeError):
            self._warn(str(response))
        if isinstance(response, NodeError):
            self._status.last_error = str(response)
            await self._publish_all(tracker.on_no_response(key, str(response), self._clock_ms()))
            await self._publish_status()
            return response
        self._response_count += 1
        await self._publish_all(tracker.on_response(key, response, self._clock_ms()))
        if self._has_followed and self._stalled is not None:
            self._stalled, self._detail = None, f"{key} answers again"
        await self._publish_status()
        return None

    def _evaluate(self, silent: Mapping[NodeKey, NodeError]) -> None:
        count = len(self._addresses)
        if len(silent) == count:
            self._stall(self._outage(silent))
            return
        self._stalled, self._has_followed = None, True
        self._detail = "; ".join(
            [
                f"{count - len(silent)} of {count} nodes answer",
                *([f"silent: {', '.join(map(str, silent))}"] if silent else []),
                *self._discovered.warnings,
            ]
        )

    def _outage(self, silent: Mapping[NodeKey, NodeError]) -> str:
        """Why no node responds, by the first of them: the same text in each round."""
        first = min(silent, default=None)
        if first is None:
            return "no node is known"
        settings, address = self._settings, self._addresses[first]
        configured = {it.address for it in settings.bootstrap_controllers}
        is_advertised = address not in configured.union(settings.bootstrap_servers)
        by = " by its advertised address" if is_advertised else ""
        return f"no node answers, of {len(silent)} known ones; {first}{by}: {silent[first]}"

    def _stall(self, reason: str, level: int = logging.WARNING) -> None:
        self._stalled = reason
        self._warn(reason, level)

    def _warn(self, text: str, level: int = logging.WARNING) -> None:
        """Log a warning when it is new, not in every round."""
        self._status.last_error = text
        if self._warned.is_new(text, self._monotonic_ms()):
            LOG.log(level, "%s: %s", self._cluster or "unknown cluster", text)

    async def _publish_all(self, events: Iterable[TrackerEvent | QuorumStatus]) -> None:
        for event in events:
            if isinstance(event, DeadLetter):
                LOG.warning("%s: %s", event.cluster, event.reason)
            elif isinstance(event, NodeSilent):
                node = f"{event.role} {event.node_id}"
                LOG.warning("%s: %s: %s", event.cluster, node, event.detail)
            await self._publish(event)
