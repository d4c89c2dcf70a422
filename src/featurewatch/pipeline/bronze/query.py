"""Bronze: ingests the topics as they come, each message once.

**Exactly once** rests on the table, not on the checkpoint: the table holds each partition up to
some offset, a batch is one commit, and messages that the table already has are dropped. It does
therefore not matter where the process was killed, or whether the checkpoint is current, old or
lost; the checkpoint only saves work. A MERGE would give the same guarantee, but searches the whole
table for each batch.

A ``round`` is one such commit. Within a partition the lake's order is the offset; across topics it
is the round, and then Kafka's time (`derived.spark_fold.ORDER`). The round comes first because a
message may be ingested after a newer one of another topic, and folded messages are not folded again
in another order.
"""

import json
import logging
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.pipeline.bronze.kafka import (
    COMPLETE_TOPICS,
    INGESTED_TOPICS,
    OffsetRange,
    kafka_options,
    offset_ranges,
    warn_of_open_transactions,
)
from featurewatch.pipeline.bronze.offsets import (
    StoredRange,
    gaps_in,
    planned_ends,
    ranges_in,
    stored_ranges,
)
from featurewatch.pipeline.errors import LakeError, TopicError
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import GAPS, MESSAGES
from featurewatch.pipeline.spark.checkpoints import FOLD, OLDER_FOLD
from featurewatch.streams.bus.offsets import TopicPartitionKey
from featurewatch.streams.bus.settings import BusSettings

LOG: Final = logging.getLogger("featurewatch.pipeline")

_QUERIES: Final = ("bronze", FOLD, OLDER_FOLD)
_CHECKED: Final = "bronze-gaps"
"""Beside the checkpoints: the round whose missing messages were reported."""
_MEASURED: Final = 10_000
"""Batches of at most this many messages are measured before they are written: a small one is
written by this process, which takes a tenth of the time of a commit of Spark."""
_LOCAL_BYTES: Final = 8 << 20
"""Delta's Rust library writes up to 10 MB at once; if the disk is full in the middle of more, it
prints the stack of a panic beside the error."""
_MESSAGE_BYTES: Final = 1 << 20
"""Kafka's default for the largest message (``max.message.bytes``)."""
_MAX_LOGGED_GAPS: Final = 100
"""At most this many gaps are logged per round; the table has all of them."""


def new_messages(
    raw: DataFrame, stored_ends: Mapping[TopicPartitionKey, int], round_: int
) -> DataFrame:
    """Returns rows of `MESSAGES` from rows of Spark's Kafka source.

    ``stored_ends`` maps each partition to the offset after its last stored message; messages below
    it are dropped.
    """
    # Each part of an expression that is built in Python is a call to the JVM, and this is one.
    return raw.selectExpr(
        *("topic", "partition", "offset"),
        "timestamp AS kafka_time",
        *("key", "value", "headers"),
        "current_timestamp() AS ingested_at",
        f"{round_}L AS round",
        "to_date(timestamp) AS day",
    ).where(_beyond(stored_ends))


def _beyond(stored_ends: Mapping[TopicPartitionKey, int]) -> str:
    """The SQL condition of messages that are not stored."""
    ends = "".join(
        f" WHEN topic = '{topic}' AND partition = {partition} THEN {end}"
        for (topic, partition), end in stored_ends.items()
    )
    return f"offset >= CASE{ends} ELSE 0 END" if ends else "true"


def check_bronze(lake: Lake) -> None:
    """Checks that the bronze table exists if a query has a checkpoint.

    A new table in its place would begin at the checkpoints and lack everything before them.

    Raises:
        LakeError: The table is missing.
    """
    files = lake.files()
    if files.has_any(f"{lake.path(MESSAGES)}/_delta_log"):
        return
    with_checkpoint = [
        name for name in _QUERIES if files.has_any(f"{lake.checkpoint(name)}/commits")
    ]
    if with_checkpoint:
        raise LakeError(
            f"the lake {lake.root} has no table {MESSAGES.path}, and its checkpoints count on it: "
            "put the table back, or fill a new lake with --lake"
        )


class BronzeQuery:
    """The query that ingests the topics of a bus into bronze."""

    def __init__(self, lake: Lake, bus: BusSettings, progress: Progress = NO_PROGRESS) -> None:
        self._lake = lake
        self._progress = progress
        self._bus = bus
        self._stored_ends: dict[TopicPartitionKey, int] = {}
        self._round = 0
        self._complete = [bus.topic(topic) for topic in COMPLETE_TOPICS]

    def writer(self) -> DataStreamWriter:
        """Returns the query; it needs a trigger and to be started.

        Raises:
            TopicError: The bus does not respond, or a topic was recreated.
            LakeError: The lake cannot be read.
        """
        ranges = offset_ranges(self._bus)
        if not ranges:
            LOG.info(
                "none of featurewatch's topics exists on the bus yet, or this login may not read "
                "them; waiting for them"
            )
        warn_of_open_transactions(ranges)
        self._resume(ranges)
        self._progress.begin("bronze", self._unread(ranges))
        pattern = "|".join(self._bus.topic(topic).replace(".", "\\.") for topic in INGESTED_TOPICS)
        raw = (
            self._lake.session.readStream.format("kafka")
            .options(**kafka_options(self._bus))
            .option("subscribePattern", pattern)
            .option("includeHeaders", "true")
            # Messages that retention deleted become rows of `GAPS`; the query continues.
            .option("failOnDataLoss", "false")
            # Used without a checkpoint; the table shows how far it came.
            .option("startingOffsets", starting_offsets(ranges, self._stored_ends))
            .load()
        )
        checkpoint = self._lake.checkpoint("bronze")
        return (
            raw.writeStream.queryName("bronze")
            .option("checkpointLocation", checkpoint)
            .foreachBatch(self._ingest)
        )

    def _resume(self, ranges: Mapping[TopicPartitionKey, OffsetRange]) -> None:
        if self._lake.is_empty(MESSAGES):
            self._round = 1
            return  # each of the queries would take a second before the first row
        messages = self._lake.read(MESSAGES)
        # The lake may also hold replayed topics, or those of another bus.
        is_of_bus = fn.col("topic").isin([self._bus.topic(topic) for topic in INGESTED_TOPICS])
        rounds = messages.agg(
            fn.max("round").alias("all"), fn.max(fn.when(is_of_bus, fn.col("round"))).alias("ours")
        ).collect()[0]
        if last := rounds["ours"]:
            before = messages.where(is_of_bus & (fn.col("round") < last))
            self._stored_ends = {key: stored.end for key, stored in stored_ranges(before).items()}
            newest = messages.where(is_of_bus & (fn.col("round") == last))
            self._advance(lambda: newest, last)
        self._round = (rounds["all"] or 0) + 1
        for (topic, partition), offsets in ranges.items():
            stored_end = self._stored_ends.get((topic, partition), 0)
            if stored_end > offsets.high_watermark:
                raise TopicError(
                    f"{topic} partition {partition} ends at offset {offsets.high_watermark}, and "
                    f"the lake holds it up to {stored_end}: the topic was recreated; fill a new "
                    "lake with --lake"
                )

    def _unread(self, ranges: Mapping[TopicPartitionKey, OffsetRange]) -> int:
        """The offsets that are to be read; some may hold no message."""
        starts = {key: max(self._stored_ends.get(key, 0), ranges[key].start) for key in ranges}
        return sum(max(0, ranges[key].end - start) for key, start in starts.items())

    def _ingest(self, batch: DataFrame, batch_id: int) -> None:
        """Appends a batch, without the messages that the table already has."""
        rows = new_messages(batch, self._stored_ends, self._round)
        written = self._lake.append(MESSAGES, rows, self._size(rows, batch_id))
        ranges = None if written is None else ranges_in(written)
        self._progress.commit(self._advance(self._newest, self._round, ranges))
        self._round += 1

    def _newest(self) -> DataFrame:
        """The rows of the round that was written last."""
        return self._lake.read(MESSAGES).where(fn.col("round") == self._round)

    def _size(self, rows: DataFrame, batch_id: int) -> int | None:
        """The size in bytes of a batch's messages, or a bound of it (None: leave it to Spark).

        To measure a batch is to read it twice. Spark writes down where it ends before it runs.
        """
        if self._lake.directory is None:
            return None
        ends = planned_ends(self._lake.directory / "checkpoints" / "bronze", batch_id)
        if ends is None:
            return None
        starts = {key: self._stored_ends.get(key, 0) for key in ends}
        message_count = sum(max(0, end - starts[key]) for key, end in ends.items())
        if message_count > _MEASURED:
            return None
        if message_count * _MESSAGE_BYTES <= _LOCAL_BYTES:
            return message_count * _MESSAGE_BYTES
        sizes = (fn.coalesce(fn.length(name), fn.lit(0)) for name in ("key", "value"))
        size = fn.sum(reduce(Column.__add__, sizes) + fn.length(fn.to_json("headers")))
        measured = int(rows.agg(size.alias("bytes")).collect()[0]["bytes"] or 0)
        return measured if measured <= _LOCAL_BYTES else None

    def _advance(
        self,
        read: Callable[[], DataFrame],
        round_: int,
        ranges: Mapping[TopicPartitionKey, StoredRange] | None = None,
    ) -> int:
        """Advances the stored ends past a round, and reports the messages that are missing in it.

        ``read`` gives the round's rows in the table; ``ranges`` are their `stored_ranges` if known.

        Returns the number of messages in the round.

        Gaps are computed from the stored rows, so a batch needs only one commit. The process may be
        killed before they are reported, so the last round is checked again at the next start; but
        only once, since by then retention may have deleted the markers of its transactions.
        """
        ranges = stored_ranges(read()) if ranges is None else ranges
        with_holes = [key for key, stored in ranges.items() if self._has_hole(key, stored)]
        if with_holes and not self._lake.files().exists(self._checked(round_)):
            offsets = offset_ranges(self._bus)
            log_starts = {
                key: offsets[key].start
                for key in with_holes
                if key in offsets and offsets[key].start > self._stored_ends.get(key, 0)
            }
            if log_starts:
                self._report(gaps_in(read(), self._stored_ends, log_starts))
            self._lake.files().remove(self._lake.checkpoint(_CHECKED))
            self._lake.files().create(self._checked(round_))
        self._stored_ends |= {key: stored.end for key, stored in ranges.items()}
        return sum(stored.message_count for stored in ranges.values())

    def _checked(self, round_: int) -> str:
        """The file that exists once the missing messages of a round were reported."""
        return f"{self._lake.checkpoint(_CHECKED)}/{round_}"

    def _has_hole(self, key: TopicPartitionKey, stored: StoredRange) -> bool:
        """Whether offsets are missing; compaction leaves holes that mean nothing."""
        return key[0] in self._complete and (
            stored.first > self._stored_ends.get(key, 0)
            or stored.message_count < stored.end - stored.first
        )

    def _report(self, gaps: DataFrame) -> None:
        logged_gaps = self._lake.read(GAPS)
        new_gaps = (
            gaps.join(logged_gaps, [*GAPS.key], "left_anti").limit(_MAX_LOGGED_GAPS).collect()
        )
        self._lake.merge_new(GAPS, gaps)
        for row in new_gaps:
            LOG.warning(
                "%s partition %d: offsets %d to %d were deleted before they were read; they are "
                "missing in the lake (table gaps)",
                *(row["topic"], row["partition"], row["from_offset"], row["to_offset"]),
            )


def starting_offsets(
    ranges: Mapping[TopicPartitionKey, OffsetRange], stored_ends: Mapping[TopicPartitionKey, int]
) -> str:
    """Returns Spark's starting offsets for a query without a checkpoint; every partition is
    named."""
    if not stored_ends:
        return "earliest"
    by_topic: dict[str, dict[str, int]] = {}
    for (topic, partition), range_ in ranges.items():
        offset = max(stored_ends.get((topic, partition), 0), range_.start)
        by_topic.setdefault(topic, {})[str(partition)] = offset
    return json.dumps(by_topic)
