"""Events onto a bus, and what a lake holds of them."""

from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer

from pipeline.lake import Lake
from pipeline.registry import Table
from streams.bus import BusSettings
from streams.codec import encode
from streams.events import Event
from streams.topics import METADATA_LOG, Topic


def put(bus: BusSettings, events: Iterable[Event], topic: Topic = METADATA_LOG) -> None:
    """Publishes events and waits until they are on the topic; its own partition for each key."""
    producer = Producer(bus.client())
    for event in events:
        message = encode(topic, event)
        producer.produce(bus.topic(topic), message.value, message.key, headers=message.headers)
    assert producer.flush(30) == 0


def put_bytes(bus: BusSettings, topic: Topic, key: bytes | None, value: bytes | None) -> None:
    """Publishes a message as somebody else would write it."""
    producer = Producer(bus.client())
    producer.produce(bus.topic(topic), value, key)
    assert producer.flush(30) == 0


def rows(lake: Lake, table: Table, *columns: str) -> list[tuple[Any, ...]]:
    """Some columns of a table's rows, sorted."""
    names = columns or tuple(table.columns)
    found = lake.read(table).select(*names).collect()
    return sorted((tuple(row) for row in found), key=repr)
