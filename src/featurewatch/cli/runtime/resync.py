"""Reads requests that sources republish their whole state, and writes them for a person.

Anybody with the right to write the topic may request anything, as often as they like. Therefore a
message counts only if it is small and matches the schema, and a source that this process runs
begins at most one republication in `MIN_INTERVAL_S`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from confluent_kafka import OFFSET_END, Message

from featurewatch.cli.runtime.supervisor import SourceSupervisor
from featurewatch.common.text import shortened
from featurewatch.streams.bus.feed import FailureLog, TopicFeed, follow_feed
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import MalformedEventError, decode_resync_request
from featurewatch.streams.events import ResyncRequest
from featurewatch.streams.source import wall_clock_ms
from featurewatch.streams.topics import RESYNC_REQUESTS
from featurewatch.streams.types import ClusterId

LOG: Final = logging.getLogger("featurewatch.watch")

MIN_INTERVAL_S: Final = 10.0
"""Between two republications of one source, in seconds; earlier requests wait this long."""

MAX_REQUEST_BYTES: Final = 64 * 1024
"""A longer request is ignored."""

_Supervisors = Callable[[], Iterable[SourceSupervisor[Any]]]


class ResyncRequests:
    """Which sources must republish. Pure: times are seconds of a clock that does not go back."""

    def __init__(self, sources: _Supervisors) -> None:
        self._sources = sources
        self._pending: dict[SourceSupervisor[Any], str] = {}
        self._begun_s: dict[SourceSupervisor[Any], float] = {}

    def add(self, value: bytes | None, key: bytes | None) -> None:
        """Notes a request; an invalid one, or one for no source here, changes nothing."""
        if value is None or len(value) > MAX_REQUEST_BYTES:
            return
        try:
            request = decode_resync_request(value, key)
        except MalformedEventError as error:
            LOG.debug("an invalid resync request is ignored: %s", error)
            return
        for supervisor in self._sources():
            source = supervisor.source
            is_meant = request.source in ("", source.name)
            if is_meant and source.report().cluster == request.cluster:
                self._pending.setdefault(supervisor, request.reason)

    def begin(self, now_s: float) -> None:
        """Begins the republications that are due."""
        for supervisor, reason in list(self._pending.items()):
            if now_s - self._begun_s.get(supervisor, -MIN_INTERVAL_S) < MIN_INTERVAL_S:
                continue
            del self._pending[supervisor]
            self._begun_s[supervisor] = now_s
            source = supervisor.source
            cluster = source.report().cluster
            LOG.warning(
                "%s: %s republishes its whole state: %s",
                *(cluster, source.name, shortened(reason, 400)),
            )
            source.request_resync(reason)


class _RequestFeed(TopicFeed):
    """Notes requests as they come, and begins the republications that are due."""

    def __init__(self, requests: ResyncRequests, monotonic: Callable[[], float]) -> None:
        super().__init__(FailureLog(LOG, "resync requests cannot be read", after_s=0))
        self._requests = requests
        self._monotonic = monotonic

    def apply_message(self, message: Message) -> None:
        self._requests.add(message.value(), message.key())

    def report(self, error: str | None) -> None:
        super().report(error)
        self._requests.begin(self._monotonic())


async def follow_resync_requests(
    bus: BusSettings, sources: _Supervisors, monotonic: Callable[[], float] = time.monotonic
) -> None:
    """Reads the requests that come from now on until cancelled.

    ``monotonic`` gives seconds of a clock that does not go back.
    """
    await follow_feed(
        _RequestFeed(ResyncRequests(sources), monotonic),
        bus,
        (RESYNC_REQUESTS,),
        start=OFFSET_END,
        group="resync",
        fetch_message_max_bytes=MAX_REQUEST_BYTES,
        queued_max_messages_kbytes=1024,
    )


def publish_request(bus: BusSettings, cluster: str, source: str, reason: str) -> None:
    """Writes a request for a source of a cluster (empty: for all); returns when the bus has it.

    Raises `streams.bus.errors.BusError` if the bus does not take it.
    """
    request = ResyncRequest(ClusterId(cluster), source, reason, wall_clock_ms())

    async def publish() -> None:
        async with Publisher(bus) as publisher:
            await (await publisher.publish(RESYNC_REQUESTS, request))

    asyncio.run(publish())
