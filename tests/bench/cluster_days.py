"""The events of many equal clusters, day by day, with the times that they would have had."""

from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import CommitKind, Event, LogCommit, SourceState, SourceStatus
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import METADATA_VERSION, ClusterId
from tests.bench.growth import DAY_MS, NODES, RELEASES, registered
from tests.bench.worker import fencing, level

HEARTBEAT_MS: Final = 14_400_000
SOURCE_HEARTBEAT_MS: Final = 3_000
"""What a real source has (`streams.kraft.source`)."""
_NAME: Final = "cluster-000000"


@dataclass(slots=True)
class OneCluster:
    """The events of one cluster, day by day."""

    offset: int = 0
    events: list[Event] = field(default_factory=list)

    def day(self, number: int, start_ms: int) -> list[Event]:
        """The events of a day, in order."""
        self.events = []
        if number == 0:
            low = start_ms + 1_000
            newest = registered(0, RELEASES[0])["data"]["features"]
            (finalized,) = (f for f in newest if f["name"] == METADATA_VERSION)
            first = level(0, finalized["maxSupportedVersion"])
            self._commit(low, first, *(registered(node, RELEASES[0]) for node in range(NODES)))
            for node in range(NODES):
                self._commit(low + node + 1, fencing(0, node, -1))
        else:
            node, noon_ms = number % NODES, start_ms + DAY_MS // 2 + 60_000
            again = registered(node, RELEASES[0])
            again["data"]["incarnationId"] = f"day-{number}"
            self._commit(noon_ms, fencing(0, node, 1))
            self._commit(noon_ms + 20_000, again)
            self._commit(noon_ms + 30_000, fencing(0, node, -1))
        for at_ms in range(start_ms + 10_000, start_ms + DAY_MS, HEARTBEAT_MS):
            commits = [e for e in self.events if isinstance(e, LogCommit) and e.seen_ms < at_ms]
            read = max((c.last_offset for c in commits), default=max(0, self.offset - 1))
            self._heartbeat(at_ms, read)
        return sorted(self.events, key=lambda event: event.seen_ms)

    def minute(self, start_ms: int) -> list[Event]:
        """What a source publishes in a minute in which nothing changes."""
        self.events = []
        for at_ms in range(start_ms, start_ms + 60_000, SOURCE_HEARTBEAT_MS):
            self._heartbeat(at_ms, self.offset - 1)
        return self.events

    def _heartbeat(self, at_ms: int, read: int) -> None:
        state = (read, 1, read + 1, 1, 1)
        self.events.append(
            SourceStatus(ClusterId(_NAME), "kraft", SourceState.FOLLOWING, *state, "", at_ms)
        )

    def _commit(self, at_ms: int, *records: dict[str, Any]) -> None:
        first, self.offset = self.offset, self.offset + len(records)
        numbered = [{**record, "offset": first + n} for n, record in enumerate(records)]
        where = (first, self.offset - 1, 1, at_ms)
        self.events.append(
            LogCommit(ClusterId(_NAME), CommitKind.BATCH, *where, numbered, {}, at_ms)
        )


def keep_all(bus: BusSettings) -> None:
    """Lets the topic have messages with the times of a month ago, and keep them."""
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in (("retention.ms", "-1"), ("message.timestamp.type", "CreateTime"))
    ]
    name = bus.topic(METADATA_LOG)
    topic = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    client = AdminClient(bus.client())  # its requests end with it
    for done in client.incremental_alter_configs([topic]).values():
        done.result(30)


def publish(bus: BusSettings, events: list[Event], clusters: int) -> int:
    """Publishes the events of each cluster, with the times of their messages; their number."""
    producer = Producer(bus.client() | {"partitioner": "murmur2", "linger.ms": 50})
    messages = [(event.seen_ms, encode(METADATA_LOG, event)) for event in events]
    old = _NAME.encode()
    for number in range(clusters):
        name = f"cluster-{number:06}".encode()
        for at_ms, message in messages:
            headers: list[tuple[str, str | bytes | None]] = [
                (key, value.replace(old, name)) for key, value in message.headers
            ]
            value = (message.value or b"").replace(old, name)
            topic = bus.topic(METADATA_LOG)
            producer.produce(topic, value, name, timestamp=at_ms, headers=headers)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError("the bus did not take the messages")
    return clusters * len(events)
