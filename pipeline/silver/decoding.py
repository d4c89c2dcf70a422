"""Messages of the input topics as events: judged by the live decoder, typed by column expressions.

Whether a message can be read is decided by `streams.codec.events`, as live: two decoders would
disagree in corners, and a message that one of them refuses would be in no table, or in two. It runs
in Python on Arrow batches, and says the event's id, which follows from its cause. The columns are
Spark's.

Since the message is parsed there anyway, the records that no table holds stay behind: Spark parses
a second time what is left.
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
_FOUND: Final = {**NODE_RECORD, **LEVEL_RECORD, **CONTROL_RECORD, "reason": "string"}
"""The fields of all records that some table holds."""
_TAKEN: Final = ("topic", "partition", "offset", "kafka_time", "key", "value")
_JUDGED: Final = (
    "topic string, partition int, offset bigint, kafka_time timestamp, key binary, value binary, "
    "size int, id string, reason string, content string"
)
_FIELDS: Final = {
    kind: tuple(field.name for field in fields(kind) if field.name not in ("kind", "records"))
    for kind in (LogCommit, SnapshotChunk)
}


def short_topic() -> Column:
    """A topic's short name: what follows the last dot of its full name."""
    return fn.substring_index("topic", ".", -1)


def input_messages(messages: DataFrame) -> DataFrame:
    """The messages of the input topics."""
    return messages.where(short_topic().isin([*INPUT_TOPICS]))


class DecodedMessage(NamedTuple):
    """The id of the event that a message holds and what tables hold of it, as JSON; or the reason
    why it holds none."""

    id: str | None
    reason: str | None
    content: bytes | None


def decode_message(topic: str, key: bytes | None, value: bytes | None) -> DecodedMessage:
    """Reads a message of a topic, which is its full or its short name, as the worker does."""
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
    content["records"] = wanted = [
        {"index": index, **record}
        for index, record in enumerate(event.records)
        if record["type"] in WANTED
    ]
    try:
        return orjson.dumps(content)
    except TypeError:
        content["records"] = [*map(_writable, wanted)]
        return orjson.dumps(content)


def _writable(record: dict[str, Any]) -> dict[str, Any]:
    """A record, or that it is nested deeper than may be written; it is in bronze as it came."""
    try:
        orjson.dumps(record["data"])
    except TypeError:
        return record | {"type": UNREADABLE, "data": {"reason": "it is nested too deep"}}
    return record


def _judge_all(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        columns = (batch.column(name).to_pylist() for name in ("topic", "key", "value"))
        messages = [*zip(*columns, strict=True)]
        judged = [decode_message(*message) for message in messages]
        refused = pa.array([one.reason is not None for one in judged], pa.bool_())
        none = pa.nulls(len(judged), pa.binary())
        found = [
            *(batch.column(name) for name in _TAKEN[:4]),
            # Of what can be read, these are not asked for any more.
            *(pc.if_else(refused, batch.column(name), none) for name in _TAKEN[4:]),
            pa.array([len(value or b"") for _, _, value in messages], pa.int32()),
            pa.array([one.id for one in judged], pa.string()),
            pa.array([one.reason for one in judged], pa.string()),
            pa.array([one.content for one in judged], pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(found, [*_TAKEN, "size", "id", "reason", "content"])


def read_events(messages: DataFrame) -> DataFrame:
    """Input messages as events: ``event`` has the fields of `shapes.EVENT` but for the records.

    ``records`` has those that some table holds, with the place in the event (``index``), its JSON
    (``data``) and what that holds (``found``).

    ``size`` is the message's, in bytes. ``reason`` is null where the message can be read; where
    not, ``id``, ``event`` and ``records`` are null, and ``key`` and ``value`` are there. ``at`` is
    the time of the event's cause, null where it is not known, and ``day`` follows from it: two
    messages of one cause have one day.
    """
    judged = messages.select(*_TAKEN).mapInArrow(_judge_all, _JUDGED)
    shape = ddl({**EVENT, "records": f"array<{_RECORD}>"})
    typed = judged.withColumn("event", fn.from_json("content", shape))
    at_ms = fn.coalesce("event.append_ms", "event.seen_ms")
    at = fn.when(at_ms >= 0, fn.timestamp_millis(at_ms))
    found = fn.transform(
        "event.records",
        lambda one: one.withField("found", fn.from_json(one["data"], ddl(_FOUND))),
    )
    return typed.select(
        *_TAKEN,
        *("size", "id", "reason"),
        fn.col("event").dropFields("records").alias("event"),
        found.alias("records"),
        at.alias("at"),
        fn.coalesce(fn.to_date(at), fn.lit("1970-01-01").cast("date")).alias("day"),
    )
