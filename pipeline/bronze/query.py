"""Bronze: the topics as they came, each message once.

**Exactly once** rests on the table itself and not on the checkpoint: each partition's messages are
in it up to some offset, a batch comes into it in one commit, and what the table already has is not
taken again. So it makes no difference where the process was killed, and whether the checkpoint is
the newest, an old one, or lost; the checkpoint only saves work. A MERGE would say the same at the
price of a search in the whole table for each batch.

A ``round`` is one such commit. Between topics the lake's order is: round, Kafka's time, topic,
offset. The round comes first because a message may be taken after one of another topic that is
newer: what has been folded is not folded again in another order.
"""

import json
import logging
from collections.abc import Mapping
from typing import Final, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.pipeline.bronze.kafka import (
    INGESTED_TOPICS,
    OffsetRange,
    TopicPartitionKey,
    kafka_options,
    offset_ranges,
)
from featurewatch.pipeline.errors import LakeError, TopicError
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import GAPS, MESSAGES
from featurewatch.streams.bus import BusSettings

LOG: Final = logging.getLogger("featurewatch.pipeline")

_QUERIES: Final = ("bronze", "silver", "gold")
_TOLD: Final = 100
"""The gaps that one round is heard to tell of; all are in the table."""


def new_messages(raw: DataFrame, held: Mapping[TopicPartitionKey, int], round_: int) -> DataFrame:
    """Rows of `MESSAGES` from those of Spark's Kafka source.

    ``held`` maps partitions to the offset that they must begin with: what lies below is in the
    table.
    """

    return raw.select(
        "topic",
        "partition",
        "offset",
        fn.col("timestamp").alias("kafka_time"),
        "key",
        "value",
        "headers",
        fn.current_timestamp().alias("taken_at"),
        fn.lit(round_).cast("bigint").alias("round"),
        fn.to_date("timestamp").alias("day"),
    ).where(_beyond(held))


def _beyond(held: Mapping[TopicPartitionKey, int]) -> Column:
    return fn.col("offset") >= fn.coalesce(by_partition(held), fn.lit(0))


def by_partition(held: Mapping[TopicPartitionKey, int]) -> Column:
    """A row's number in a small map by partition; null where it has none."""
    if not held:
        return fn.lit(None).cast("bigint")
    entries = [fn.lit(part) for (topic, n), at in held.items() for part in (f"{topic}/{n}", at)]
    return fn.create_map(*entries)[fn.concat_ws("/", "topic", fn.col("partition").cast("string"))]


def check_bronze(lake: Lake) -> None:
    """Sees whether the table that queries read is there, if any has begun.

    A new one in its place would begin where their checkpoints are, and lack all before that.

    Raises:
        LakeError: It is gone.
    """
    files = lake.files()
    if files.has_any(f"{lake.path(MESSAGES)}/_delta_log"):
        return
    begun = [name for name in _QUERIES if files.has_any(f"{lake.checkpoint(name)}/commits")]
    if begun:
        raise LakeError(
            f"the lake {lake.root} has no table {MESSAGES.path}, and its checkpoints count on it: "
            "put the table back, or fill a new lake with --lake"
        )


class StoredRange(NamedTuple):
    """The messages that there are of a partition: from ``first``, below ``end``, in ``number``."""

    first: int
    end: int
    number: int


def extents(messages: DataFrame) -> dict[TopicPartitionKey, StoredRange]:
    """What some messages cover of each partition. Collects a row a partition."""
    found = messages.groupBy("topic", "partition").agg(
        fn.min("offset").alias("first"),
        (fn.max("offset") + 1).alias("end"),
        fn.count("offset").alias("count"),
    )
    return {
        (row["topic"], row["partition"]): StoredRange(row["first"], row["end"], row["count"])
        for row in found.collect()
    }


def gaps_in(
    messages: DataFrame, held: Mapping[TopicPartitionKey, int], complete: list[str]
) -> DataFrame:
    """Rows of `GAPS`: the offsets that are missing between those of some messages.

    ``held`` is where each partition must begin (0 where it says nothing), and ``complete`` are the
    topics on which no offset is missing by Kafka's own doing: compaction makes holes.
    """
    before = fn.lag("offset").over(Window.partitionBy("topic", "partition").orderBy("offset")) + 1
    return (
        messages.where(fn.col("topic").isin(complete))
        .select(
            "topic",
            "partition",
            fn.coalesce(before, by_partition(held), fn.lit(0)).cast("bigint").alias("from_offset"),
            (fn.col("offset") - 1).alias("to_offset"),
            fn.col("taken_at").alias("found_at"),
        )
        .where("from_offset <= to_offset")
    )


class BronzeQuery:
    """One run that takes the topics of a bus into the lake."""

    def __init__(self, lake: Lake, bus: BusSettings) -> None:
        self._lake = lake
        self._bus = bus
        self._held: dict[TopicPartitionKey, int] = {}
        self._round = 0
        self._complete = [
            bus.topic(topic)
            for topic in INGESTED_TOPICS
            if topic.config.get("cleanup.policy") != "compact"
        ]

    def writer(self) -> DataStreamWriter:
        """The query that takes them; it wants a trigger and to be started.

        Raises:
            TopicError: The bus does not answer, or a topic was made anew.
        """
        spans = offset_ranges(self._bus)
        if not spans:
            LOG.info("none of featurewatch's topics is on the bus yet; they are waited for")
        self._resume(spans)
        pattern = "|".join(self._bus.topic(topic).replace(".", "\\.") for topic in INGESTED_TOPICS)
        raw = (
            self._lake.session.readStream.format("kafka")
            .options(**kafka_options(self._bus))
            .option("subscribePattern", pattern)
            .option("includeHeaders", "true")
            # What retention has deleted is a row of `GAPS`, and no reason to stop.
            .option("failOnDataLoss", "false")
            # Where there is no checkpoint; the table says how far it came.
            .option("startingOffsets", starting_offsets(spans, self._held))
            .load()
        )
        checkpoint = self._lake.checkpoint("bronze")
        return (
            raw.writeStream.queryName("bronze")
            .option("checkpointLocation", checkpoint)
            .foreachBatch(self._take)
        )

    def _resume(self, spans: Mapping[TopicPartitionKey, OffsetRange]) -> None:
        messages = self._lake.read(MESSAGES)
        # The lake may have topics of a replay, or of another bus, which are none of this one's.
        ours = fn.col("topic").isin([self._bus.topic(topic) for topic in INGESTED_TOPICS])
        rounds = messages.agg(
            fn.max("round").alias("all"), fn.max(fn.when(ours, fn.col("round"))).alias("ours")
        ).collect()[0]
        if last := rounds["ours"]:
            before = messages.where(ours & (fn.col("round") < last))
            self._held = {place: extent.end for place, extent in extents(before).items()}
            # Again: a kill may have come between the last round and its gaps.
            self._look(messages.where(ours & (fn.col("round") == last)))
        self._round = (rounds["all"] or 0) + 1
        for (topic, partition), span in spans.items():
            held = self._held.get((topic, partition), 0)
            if held > span.end:
                raise TopicError(
                    f"{topic} partition {partition} ends at offset {span.end}, and the lake holds "
                    f"it up to {held}: the topic was made anew; fill a new lake with --lake"
                )

    def _take(self, batch: DataFrame, _: int) -> None:
        """Takes a batch in; whatever part of it the table has is left out."""
        self._lake.append(MESSAGES, new_messages(batch, self._held, self._round))
        self._look(self._lake.read(MESSAGES).where(fn.col("round") == self._round))
        self._round += 1

    def _look(self, new: DataFrame) -> None:
        """Sees how far a round has come, and which offsets are missing in it.

        Gaps are found in what was taken, so that one commit is all that a batch needs.
        """
        found = extents(new)
        if any(self._is_broken(place, extent) for place, extent in found.items()):
            self._report(gaps_in(new, self._held, self._complete))
        self._held |= {place: extent.end for place, extent in found.items()}

    def _is_broken(self, place: TopicPartitionKey, extent: StoredRange) -> bool:
        return place[0] in self._complete and (
            extent.first > self._held.get(place, 0) or extent.number < extent.end - extent.first
        )

    def _report(self, gaps: DataFrame) -> None:
        told = self._lake.read(GAPS)
        untold = gaps.join(told, [*GAPS.key], "left_anti").limit(_TOLD).collect()
        self._lake.merge_new(GAPS, gaps)
        for row in untold:
            LOG.warning(
                "%s partition %d: offsets %d to %d were deleted before they were read; they are "
                "missing in the lake (table gaps)",
                *(row["topic"], row["partition"], row["from_offset"], row["to_offset"]),
            )


def starting_offsets(
    spans: Mapping[TopicPartitionKey, OffsetRange], held: Mapping[TopicPartitionKey, int]
) -> str:
    """Where a query without a checkpoint begins, as Spark wants it: every partition is named."""
    if not held:
        return "earliest"
    named: dict[str, dict[str, int]] = {}
    for (topic, partition), span in spans.items():
        at = max(held.get((topic, partition), 0), span.start)
        named.setdefault(topic, {})[str(partition)] = at
    return json.dumps(named)
