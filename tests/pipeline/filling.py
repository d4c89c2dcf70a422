"""Publishes events to a bus, writes them to bronze, and reads the tables of a lake."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from confluent_kafka import Producer

from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES, Table
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import encode
from featurewatch.streams.events import Event
from featurewatch.streams.topics import METADATA_LOG, PREFIX, Topic

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def put(bus: BusSettings, events: Iterable[Event], topic: Topic = METADATA_LOG) -> None:
    """Publishes events and waits until they are on the topic."""
    producer = Producer(bus.client() | {"partitioner": "murmur2"})
    for event in events:
        message = encode(topic, event)
        headers: list[tuple[str, str | bytes | None]] = [*message.headers]
        producer.produce(bus.topic(topic), message.value, message.key, headers=headers)
    assert producer.flush(30) == 0


def put_bytes(bus: BusSettings, topic: Topic, key: bytes | None, value: bytes | None) -> None:
    """Publishes any bytes as a message."""
    producer = Producer(bus.client() | {"partitioner": "murmur2"})
    producer.produce(bus.topic(topic), value, key)
    assert producer.flush(30) == 0


class Messages:
    """Messages as rows of bronze, with the offsets that a bus would give them, without a bus."""

    def __init__(self, prefix: str = PREFIX, first_round: int = 1) -> None:
        self._prefix = prefix
        self._ends: Counter[str] = Counter()
        self._rows: list[tuple[Any, ...]] = []
        self._round = first_round - 1

    def add(
        self, topic: Topic, key: bytes | None, value: bytes | None, time_ms: int | None = None
    ) -> None:
        """Adds a message with a time in milliseconds (by default its offset in seconds)."""
        name = topic.name(self._prefix)
        offset = self._ends[name]
        self._ends[name] += 1
        time = EPOCH + timedelta(milliseconds=offset * 1000 if time_ms is None else time_ms)
        position = (name, 0, offset, time, key, value, list[Any]())
        self._rows.append((*position, time, self._round, time.date()))

    def add_events(self, events: Iterable[Event], topic: Topic = METADATA_LOG) -> None:
        """Adds events as their sources encode them."""
        for event in events:
            message = encode(topic, event)
            self.add(topic, message.key, message.value)

    def forget(self) -> None:
        """Forgets the messages that were added, which a lake has already as its last round."""
        self._round += 1
        self._rows.clear()

    def into(self, lake: Lake) -> None:
        """Appends the messages added since the last call, as one round of bronze."""
        self._round += 1
        round_rows = [(*row[:8], self._round, row[9]) for row in self._rows]
        self._rows.clear()
        lake.append(MESSAGES, lake.session.createDataFrame(round_rows, MESSAGES.ddl))


def rows(lake: Lake, table: Table, *columns: str) -> list[tuple[Any, ...]]:
    """Returns some columns of a table's rows, sorted."""
    names = columns or tuple(table.columns)
    collected = lake.read(table).select(*names).collect()
    return sorted((tuple(row) for row in collected), key=repr)
