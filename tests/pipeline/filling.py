"""Publishes events to a bus, writes them to bronze, and reads the tables of a lake.

Small rounds are written, and tables are read, without Spark, which takes a second for each.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder, write_deltalake
from pyspark.sql import Row

from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.local_writer import SMALL_BYTES
from featurewatch.pipeline.lake.row_blocks import arrow_type
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
        append_messages(lake, round_rows)


def append_messages(lake: Lake, round_rows: list[tuple[Any, ...]]) -> None:
    """Appends rows to bronze in one commit, by Spark if they are many, as the pipeline does."""
    if sum(len(row[5] or b"") for row in round_rows) > SMALL_BYTES:
        lake.append(MESSAGES, lake.session.createDataFrame(round_rows, MESSAGES.ddl))
        return
    schema = pa.schema([(name, arrow_type(type_)) for name, type_ in MESSAGES.columns.items()])
    by_name = [dict(zip(schema.names, row, strict=True)) for row in round_rows]
    write_deltalake(
        lake.ensure_table(MESSAGES), pa.Table.from_pylist(by_name, schema), mode="append"
    )


def rows(lake: Lake, table: Table, *columns: str) -> list[tuple[Any, ...]]:
    """Returns some columns of a table's rows, sorted, as Spark's `collect` would."""
    names = columns or tuple(table.columns)
    builder = QueryBuilder().register("it", DeltaTable(lake.ensure_table(table)))
    found = pa.table(builder.execute("SELECT * FROM it").read_all()).select([*names])
    types = [arrow_type(table.columns[name]) for name in names]
    values = zip(*(column.to_pylist() for column in found.columns), strict=True)
    return sorted((tuple(map(_collected, row, types)) for row in values), key=repr)


def _collected(value: Any, type_: pa.DataType) -> Any:
    """A value of Arrow as one of Spark's rows: times have no zone, and maps are dictionaries."""
    if value is None:
        return None
    if pa.types.is_timestamp(type_):
        return value.astimezone(UTC).replace(tzinfo=None)
    if pa.types.is_map(type_):
        return {key: _collected(one, type_.item_type) for key, one in value}
    if pa.types.is_list(type_):
        return [_collected(one, type_.value_type) for one in value]
    if pa.types.is_struct(type_):
        return Row(**{field.name: _collected(value[field.name], field.type) for field in type_})
    return value
