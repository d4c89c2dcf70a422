"""The offsets of messages that bronze has, that a batch brings, and that are missing."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from featurewatch.pipeline.spark.checkpoints import batch_end
from featurewatch.streams.bus.offsets import TopicPartitionKey


def by_partition(values: Mapping[TopicPartitionKey, int]) -> Column:
    """Returns a column with the value of a small map for the row's partition; null if it has none.

    ``values`` is keyed by topic and partition.
    """
    if not values:
        return fn.lit(None).cast("bigint")
    entries = [
        fn.lit(part)
        for (topic, partition), value in values.items()
        for part in (f"{topic}/{partition}", value)
    ]
    return fn.create_map(*entries)[fn.concat_ws("/", "topic", fn.col("partition").cast("string"))]


class StoredRange(NamedTuple):
    """The stored messages of a partition: ``message_count``, from ``first``, below ``end``."""

    first: int
    end: int
    message_count: int


def stored_range() -> tuple[Column, ...]:
    """Returns the aggregates of a partition's messages that make its `StoredRange`, in order."""
    return fn.min("offset"), fn.max("offset") + 1, fn.count("offset")


def stored_ranges(messages: DataFrame) -> dict[TopicPartitionKey, StoredRange]:
    """Returns the stored range of each partition of some messages. Collects a row per partition."""
    ranges = messages.groupBy("topic", "partition").agg(*stored_range())
    return {
        (topic, partition): StoredRange(*range_) for topic, partition, *range_ in ranges.collect()
    }


def ranges_in(rows: pa.Table) -> dict[TopicPartitionKey, StoredRange]:
    """`stored_ranges` of rows in this process."""
    aggregations = [("offset", "min"), ("offset", "max"), ("offset", "count")]
    ranges = rows.group_by(["topic", "partition"]).aggregate(aggregations)
    return {
        (row["topic"], row["partition"]): StoredRange(
            row["offset_min"], row["offset_max"] + 1, row["offset_count"]
        )
        for row in ranges.to_pylist()
    }


def planned_ends(checkpoint: Path, batch_id: int) -> dict[TopicPartitionKey, int] | None:
    """Returns the offsets at which a batch ends by the query's checkpoint, which is written before
    the batch runs (None: that cannot be read)."""
    try:
        ends = batch_end((checkpoint / "offsets" / str(batch_id)).read_text())
        return {
            (topic, int(partition)): int(end)
            for topic, partitions in ends.items()
            for partition, end in partitions.items()
        }
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def gaps_in(
    messages: DataFrame,
    stored_ends: Mapping[TopicPartitionKey, int],
    log_starts: Mapping[TopicPartitionKey, int],
) -> DataFrame:
    """Returns rows of `GAPS`: the offsets that are missing between those of some messages.

    ``stored_ends`` maps each partition to the offset at which the messages must begin (default 0),
    ``log_starts`` those to look at to the first offset that their log still had after the messages
    were read. A missing offset that the log still has was no message: it is the marker of a
    transaction, or part of an aborted one (KIP-98).
    """
    before = fn.lag("offset").over(Window.partitionBy("topic", "partition").orderBy("offset")) + 1
    log_start = by_partition(log_starts)
    return (
        messages.where(log_start.isNotNull())
        .select(
            "topic",
            "partition",
            fn.coalesce(before, by_partition(stored_ends), fn.lit(0))
            .cast("bigint")
            .alias("from_offset"),
            (fn.least(fn.col("offset"), log_start) - 1).alias("to_offset"),
            fn.col("ingested_at").alias("detected_at"),
        )
        .where("from_offset <= to_offset")
    )
