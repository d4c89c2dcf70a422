"""Messages of the input topics as events: judged by the live decoder, typed by column expressions.

Whether a message can be read is decided by `streams.codec`, as live: two decoders would disagree in
corners, and a message that one of them refuses would be in no table, or in two. It runs in Python
on Arrow batches, and says the event's id, which follows from its cause. The columns are Spark's.
"""

from collections.abc import Iterator
from typing import Final

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.functions import pandas_udf

from pipeline.shapes import EVENT, ddl
from streams.codec import MalformedEvent, decode
from streams.topics import INPUTS

_TOPICS: Final = {topic.short_name: topic for topic in INPUTS}
_JUDGED: Final = "id string, reason string"


def short_topic() -> Column:
    """A topic's short name: what follows the last dot of its full name."""
    return fn.substring_index("topic", ".", -1)


def of_inputs(messages: DataFrame) -> DataFrame:
    """The messages of the input topics."""
    return messages.where(short_topic().isin([*_TOPICS]))


def judge(topic: str, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """The id of the event that a message holds, or the reason why it holds none.

    ``topic`` is the short name.
    """
    try:
        return decode(_TOPICS[topic], value, key).id, None
    except MalformedEvent as error:
        return None, str(error)


def _judge_all(
    batches: Iterator[tuple[pd.Series, pd.Series, pd.Series]],
) -> Iterator[pd.DataFrame]:
    for topics, keys, values in batches:
        judged = [judge(*message) for message in zip(topics, keys, values, strict=True)]
        yield pd.DataFrame(judged, columns=["id", "reason"], dtype=object)


def read_events(messages: DataFrame) -> DataFrame:
    """Input messages as events: ``event`` has the fields of `shapes.EVENT`.

    ``reason`` is null where the message can be read; where not, ``id`` is null, ``event`` holds
    nothing that counts, and ``value`` is there. ``at`` is the time of the event's cause, null where
    it is not known, and ``day`` follows from it: two messages of one cause have one day.
    """
    judged = pandas_udf(_judge_all, _JUDGED)(short_topic(), "key", "value")  # type: ignore[call-overload]
    event = fn.from_json(fn.col("value").cast("string"), ddl(EVENT))
    typed = messages.select(
        *("topic", "partition", "offset", "kafka_time", "key", "value"),
        judged.alias("judged"),
        event.alias("event"),
    )
    at_ms = fn.coalesce("event.append_ms", "event.seen_ms")
    at = fn.when(at_ms >= 0, fn.timestamp_millis(at_ms))
    return typed.select(
        *("topic", "partition", "offset", "kafka_time", "key", "event"),
        fn.when(fn.col("judged.reason").isNotNull(), fn.col("value")).alias("value"),
        fn.col("judged.id").alias("id"),
        fn.col("judged.reason").alias("reason"),
        at.alias("at"),
        fn.coalesce(fn.to_date(at), fn.lit("1970-01-01").cast("date")).alias("day"),
    )
