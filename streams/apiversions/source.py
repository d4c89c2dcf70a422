"""The source: asks all nodes of one cluster at an interval and publishes what changed. A shell."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from featurewatch.streams.apiversions.connections import ConnectionPool
from featurewatch.streams.apiversions.discovery import DiscoveredNodes, discover_nodes
from featurewatch.streams.apiversions.node_features import NodeFeatures
from featurewatch.streams.apiversions.settings import ApiVersionsSettings
from featurewatch.streams.apiversions.tracker import NodeTracker, TrackerEvent
from featurewatch.streams.events import DeadLetter, NodeSilent, SourceState, SourceStatus
from featurewatch.streams.metrics import SourceReport
from featurewatch.streams.net.address import Address
from featurewatch.streams.net.connection import NodeError
from featurewatch.streams.source import Sink, wall_clock_ms
from featurewatch.streams.topics import API_VERSIONS, DEAD_LETTERS
from featurewatch.streams.types import ClusterId, NodeKey

LOG: Final = logging.getLogger("featurewatch.api-versions")

SOURCE: Final = "api-versions"

_STAGGER_S: Final = 0.002
"""Between the questions to two nodes: a thousand nodes are not asked in the same millisecond."""


class ApiVersionsSource:
    """Follows one cluster by ApiVersions; `run` ends only by cancellation or a failing bus.

    After a start everything is published once, as it is then: whoever folds it drops what it knows.
    """

    def __init__(
        self,
        settings: ApiVersionsSettings,
        publisher: Sink,
        clock_ms: Callable[[], int] = wall_clock_ms,
    ) -> None:
        self._settings = settings
        self._publisher = publisher
        self._clock_ms = clock_ms
        self._peers = ConnectionPool(settings)
        self._observer: NodeTracker | None = None
        self._found = DiscoveredNodes()
        self._addresses: dict[NodeKey, Address] = {}
        self._bound = asyncio.Semaphore(settings.concurrency)
        self._state = SourceState.CATCHING_UP
        self._detail = "no node was asked yet"
        self._last_error = ""
        self._warned: deque[str] = deque(maxlen=100)
        self._said: SourceState | None = None
        self._next_listing = self._next_heartbeat = 0.0
        self._cluster = settings.cluster
        self._answers = self._published = self._dead_letters = 0

    def report(self) -> SourceReport:
        """How the source stands, for metrics and health."""
        trouble = self._publisher.error
        return SourceReport(
            cluster=self._cluster or "",
            source=SOURCE,
            # Whoever cannot say what it sees does not follow, and cannot say that on the bus.
            state=self._state if trouble is None else SourceState.STALLED,
            detail=trouble or self._detail,
            records_read=self._answers,
            published=self._published,
            dead_letters=self._dead_letters,
            last_error=self._last_error,
        )

    async def run(self) -> None:
        """Asks, round by round; raises `PublishError` if the bus will never take an event."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                due = loop.time() + self._settings.interval_s
                await self.round()
                await asyncio.sleep(max(0.0, due - loop.time()))
        finally:
            await self._peers.retain(())

    async def round(self) -> None:
        """Lists the cluster if that is due, asks every node once, publishes what changed."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_listing or not self._addresses:
            self._next_listing = now + self._settings.listing_interval_s
            await self._list()
        observer = self._observer
        if observer is not None:
            unheard = await self._ask_all(observer)
            await self._publish(observer.end_round(self._clock_ms()))
            self._judge(unheard)
        await self._say_status()

    async def _list(self) -> None:
        found = await discover_nodes(self._settings, self._peers, self._addresses.items())
        self._found = found
        for remark in found.warnings:
            self._warn(remark)
        if found.cluster is not None and found.cluster != (self._cluster or found.cluster):
            self._stall(
                f"the nodes belong to cluster {found.cluster}, not {self._cluster}: "
                "check the addresses, or the cluster's id in the settings"
            )
            self._observer, self._addresses = None, {}
            return
        self._cluster = self._cluster or found.cluster
        if self._cluster is None or not (found.nodes or self._addresses):
            self._stall(_sentence(found.warnings) or "no node is known")
            return
        if self._observer is None:
            self._observer = NodeTracker(ClusterId(self._cluster), self._settings.misses)
        kept = {k: a for k, a in self._addresses.items() if k.role not in found.listed}
        self._addresses = kept | found.nodes
        said = self._observer.on_listing(
            {key: str(address) for key, address in self._addresses.items()}, self._clock_ms()
        )
        # A node counts as gone only at a second listing: until then it is asked.
        self._addresses = {
            key: self._addresses.get(key) or Address.parse(address)
            for key, address in self._observer.nodes.items()
        }
        await self._peers.retain([(key.role, address) for key, address in self._addresses.items()])
        await self._publish(said)

    async def _ask_all(self, observer: NodeTracker) -> list[NodeKey]:
        """The nodes that did not answer. Events go out as answers come in."""
        spread_s = min(_STAGGER_S, self._settings.interval_s / 2 / max(len(self._addresses), 1))
        asked = sorted(self._addresses.items())
        answered = await asyncio.gather(
            *(
                self._ask(observer, key, address, index * spread_s)
                for index, (key, address) in enumerate(asked)
            )
        )
        return [key for (key, _), heard in zip(asked, answered, strict=True) if not heard]

    async def _ask(
        self, observer: NodeTracker, key: NodeKey, address: Address, delay_s: float
    ) -> bool:
        await asyncio.sleep(delay_s)
        async with self._bound:
            answer: NodeFeatures | NodeError
            try:
                answer = await self._peers.request_features(key, address)
            except NodeError as error:
                answer = error
        if isinstance(answer, NodeError):
            self._last_error = str(answer)
            await self._publish(observer.on_no_response(key, str(answer), self._clock_ms()))
            return False
        self._answers += 1
        await self._publish(observer.on_response(key, answer, self._clock_ms()))
        return True

    def _judge(self, unheard: list[NodeKey]) -> None:
        known = len(self._addresses)
        if len(unheard) == known:
            first = self._last_error or "none of them answers"
            self._stall(f"no node answers, of {known} known ones ({first})")
            return
        self._state = SourceState.FOLLOWING
        self._detail = "; ".join(
            [
                f"{known - len(unheard)} of {known} nodes answer",
                *([f"silent: {', '.join(map(str, unheard))}"] if unheard else []),
                *self._found.warnings,
            ]
        )

    def _stall(self, detail: str) -> None:
        self._state, self._detail = SourceState.STALLED, detail
        self._warn(detail)

    def _warn(self, text: str) -> None:
        """Logs a trouble when it is new, not each time that it is met."""
        self._last_error = text
        if text not in self._warned:
            LOG.warning("%s: %s", self._cluster or "unknown cluster", text)
            self._warned.append(text)

    async def _say_status(self) -> None:
        """A change of state at once, a heartbeat now and then; nothing without a cluster id."""
        if self._cluster is None:
            return
        now = asyncio.get_running_loop().time()
        if self._state is self._said and now < self._next_heartbeat:
            return
        self._said, self._next_heartbeat = self._state, now + self._settings.heartbeat_s
        if self._state is SourceState.FOLLOWING:
            # Following means that the bus has all that was said before.
            await self._publisher.flush()
        status = SourceStatus(
            cluster=ClusterId(self._cluster),
            source=SOURCE,
            state=self._state,
            offset=-1,
            offset_epoch=-1,
            high_watermark=-1,
            leader_id=self._found.leader_id,
            leader_epoch=self._found.leader_epoch,
            detail=self._detail,
            seen_ms=self._clock_ms(),
        )
        await self._publisher.publish(API_VERSIONS, status)

    async def _publish(self, said: Iterable[TrackerEvent]) -> None:
        for event in said:
            if isinstance(event, DeadLetter):
                LOG.warning("%s: %s", event.cluster, event.reason)
                await self._publisher.publish(DEAD_LETTERS, event)
                self._dead_letters += 1
                continue
            if isinstance(event, NodeSilent):
                who = f"{event.role} {event.node_id}"
                LOG.warning("%s: %s: %s", event.cluster, who, event.detail)
            await self._publisher.publish(API_VERSIONS, event)
            self._published += 1


def _sentence(remarks: Iterable[str]) -> str:
    return "; ".join(list(remarks)[:3])
