"""Decodes messages of the input topics: validated by the live decoder, typed by column expressions.

`streams.codec.events` decides whether a message is readable, as it does live: two decoders would
disagree in corner cases, and a message could end up in no table, or in two. It runs in Python on
Arrow batches and returns the event's id, which follows from its cause. Spark types the columns.

Records that no table holds are dropped in that step, since the message is parsed there anyway:
Spark parses only the rest a second time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from featurewatch.controller.input_messages import INPUT_TOPICS, decode_input, input_topic
from featurewatch.pipeline.silver.event_schema import (
    CONTROL_RECORD,
    EVENT,
    LEVEL_RECORD,
    NODE_RECORD,
    ddl,
)
from featurewatch.pipeline.silver.from_records import WANTED
from featurewatch.streams.codec.events import MalformedEventError, kind_of
from featurewatch.streams.events import UNREADABLE, LogCommit, SnapshotChunk

_RECORD: Final = "struct<index: int, offset: bigint, type: string, data: string>"
_RECORD_FIELDS: Final = {**NODE_RECORD, **LEVEL_RECORD, **CONTROL_RECORD, "reason": "string"}
"""The fields of all records that some table holds."""
_INPUT_COLUMNS: Final = ("topic", "partition", "offset", "kafka_time", "key", "value")
_DECODED_SCHEMA: Final = (
    "topic string, partition int, offset bigint, kafka_time timestamp, key binary, value binary, "
    "size int, id string, reason string, content string"
)
_FIELDS: Final = {
    kind: tuple(field.name for field in fields(kind) if field.name not in ("kind", "records"))
    for kind in (LogCommit, SnapshotChunk)
}


def short_topic() -> Column:
    """Returns a column with a topic's short name: the part after the last dot of its full name."""
    return fn.substring_index("topic", ".", -1)


def input_messages(messages: DataFrame) -> DataFrame:
    """Returns the messages of the input topics."""
    return messages.where(short_topic().isin([*INPUT_TOPICS]))


class DecodedMessage(NamedTuple):
    """A message's event id and the content that tables need, as JSON; or the reason why it is
    unreadable."""

    id: str | None
    reason: str | None
    content: bytes | None


def decode_message(topic: str, key: bytes | None, value: bytes | None) -> DecodedMessage:
    """Decodes a message as the worker does; ``topic`` is its full or its short name."""
    event = decode_input(input_topic(topic), key, value)
    if isinstance(event, MalformedEventError):
        return DecodedMessage(None, str(event), None)
    if isinstance(event, (LogCommit, SnapshotChunk)):
        return DecodedMessage(event.id, None, _content(event))
    return DecodedMessage(event.id, None, value)


def _content(event: LogCommit | SnapshotChunk) -> bytes:
    content: dict[str, Any] = {"kind": kind_of(event)}
    for name in _FIELDS[type(event)]:
        content[name] = getattr(event, name)
    content["records"] = records = [
        {"index": index, **record}
        for index, record in enumerate(event.records)
        if record["type"] in WANTED
    ]
    try:
        return orjson.dumps(content)
    except TypeError:
        content["records"] = [*map(_writable, records)]
        return orjson.dumps(content)


def _writable(record: dict[str, Any]) -> dict[str, Any]:
    """A record; one that is nested too deep for JSON becomes an unreadable one (bronze has the
    bytes)."""
    try:
        orjson.dumps(record["data"])
    except TypeError:
        return record | {"type": UNREADABLE, "data": {"reason": "it is nested too deep"}}
    return record


def _decode_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
        messages = [*zip(*columns, strict=True)]
        decoded = [decode_message(*message) for message in messages]
        is_unreadable = pa.array([row.reason is not None for row in decoded], pa.bool_())
        none = pa.nulls(len(decoded), pa.binary())
        arrays = [
            *(batch.column(name) for name in _INPUT_COLUMNS[:4]),
            # Key and value of a readable message are not needed any more.
            *(pc.if_else(is_unreadable, batch.column(name), none) for name in _INPUT_COLUMNS[4:]),
            pa.array([len(value or b"") for _, _, value in messages], pa.int32()),
            pa.array([row.id for row in decoded], pa.string()),
            pa.array([row.reason for row in decoded], pa.string()),
            pa.array([row.content for row in decoded], pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(
            arrays, [*_INPUT_COLUMNS, "size", "id", "reason", "content"]
        )


def read_events(messages: DataFrame) -> DataFrame:
    """Decodes input messages into typed events.

    - ``event`` has the fields of `event_schema.EVENT` without the records.
    - ``records`` has the records that some table holds: the position in the event (``index``), the
      record's JSON (``data``) and its typed fields (``found``).
    - ``size`` is the message's size in bytes.
    - ``reason`` is null for a readable message; otherwise ``id``, ``event`` and ``records`` are
      null, and ``key`` and ``value`` are set.
    - ``at`` is the time of the event's cause (null: unknown), and ``day`` follows from it, so two
      messages of one cause have the same day.
    """
    decoded = messages.select(*_INPUT_COLUMNS).mapInArrow(_decode_all, _DECODED_SCHEMA)
    schema = ddl({**EVENT, "records": f"array<{_RECORD}>"})
    typed = decoded.withColumn("event", fn.from_json("content", schema))
    at_ms = fn.coalesce("event.append_ms", "event.seen_ms")
    at = fn.when(at_ms >= 0, fn.timestamp_millis(at_ms))
    records = fn.transform(
        "event.records",
        lambda record: record.withField("found", fn.from_json(record["data"], ddl(_RECORD_FIELDS))),
    )
    return typed.select(
        *_INPUT_COLUMNS,
        *("size", "id", "reason"),
        fn.col("event").dropFields("records").alias("event"),
        records.alias("records"),
        at.alias("at"),
        fn.coalesce(fn.to_date(at), fn.lit("1970-01-01").cast("date")).alias("day"),
    )
