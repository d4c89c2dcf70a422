"""Pins the versions of the lake that one audit compares, and measures how far each side has come.

Live outputs are in bronze and recomputed ones in gold, and gold follows bronze with a delay. The
versions are read in this order: gold's progress, gold, bronze. So gold has everything up to that
progress, and bronze has every cause of what gold has.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from featurewatch.pipeline.bronze.kafka import COMPLETE_TOPICS
from featurewatch.pipeline.bronze.offsets import stored_ranges
from featurewatch.pipeline.gold.spark_fold import by_cluster
from featurewatch.pipeline.gold.tables import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import EXPIRED, GAPS, MESSAGES, Table
from featurewatch.pipeline.silver.query import short_topic
from featurewatch.streams import topics

AUDITED: Final[Mapping[str, Table]] = {
    topics.FEATURE_CHANGES.short_name: FEATURE_CHANGES,
    topics.ALERTS.short_name: ALERTS,
    topics.EPOCHS.short_name: EPOCHS,
    topics.OPERATIONS.short_name: OPERATIONS,
}
"""The tables of gold that hold the worker's outputs, by the short name of the output topic."""

_REPLAYED: Final = "topic LIKE 'replay.%'"
"""Selects the messages of bronze that were replayed from files, not read from a bus."""

_SHORT_INPUTS: Final = frozenset(topic.short_name for topic in topics.INPUTS)


class LakeView(NamedTuple):
    """The content of the lake at one time.

    - ``messages``: bronze, without replayed messages.
    - ``gold``: rows of each audited table, by the table's name.
    - ``folded``: the last round of bronze that gold has folded.
    - ``clock``: the newest of Kafka's times in bronze.
    - ``lost``: partitions of output topics with missing messages ("topic/partition"), each with
      Kafka's time (ms) of the first message after the last hole.
    - ``lost_inputs``: a sentence for each partition of an input topic with missing messages.
    - ``expired``: whether maintenance deleted the oldest messages from bronze.
    - ``replayed``: the clusters that were replayed from files, as the column ``cluster``;
      ``replayed_count`` of them. No worker published outputs for their replayed messages.
    """

    messages: DataFrame
    gold: Mapping[str, DataFrame]
    folded: int
    clock: datetime
    lost: Mapping[str, int]
    lost_inputs: Mapping[int, str]
    expired: bool
    replayed: DataFrame
    replayed_count: int


def pin_view(lake: Lake) -> LakeView | None:
    """Returns a view of the lake (None: gold has not folded anything yet, or bronze is empty).

    Raises:
        LakeError: A table of the lake cannot be read.
    """
    if not lake.exists(MESSAGES):
        return None
    folded = _folded(lake)
    if folded is None:
        return None
    gold = {table.name: _pinned(lake, table) for table in AUDITED.values()}
    all_messages = _pinned(lake, MESSAGES)
    replayed = by_cluster(all_messages.where(_REPLAYED)).select("cluster").distinct()
    replayed = replayed.localCheckpoint()
    # Messages replayed from a file carry the times of the log; they count only if there are no
    # others.
    times = fn.max(fn.when(fn.expr(f"NOT {_REPLAYED}"), fn.col("kafka_time"))), fn.max("kafka_time")
    clock = all_messages.agg(fn.coalesce(*times).alias("at")).collect()[0]["at"]
    if clock is None:
        return None
    messages = all_messages.where(f"NOT {_REPLAYED}")
    expired = EXPIRED in lake.newest(MESSAGES).properties
    return LakeView(
        messages=messages,
        gold=gold,
        folded=folded,
        clock=clock,
        lost=_lost(lake, messages, expired=expired),
        lost_inputs=_lost_inputs(lake),
        expired=expired,
        replayed=replayed,
        replayed_count=replayed.count(),
    )


def state_of_tables(lake: Lake) -> tuple[int, ...]:
    """Returns the versions of the tables that a view reads; equal versions give equal views."""
    tables = (MESSAGES, GAPS, *AUDITED.values())
    return tuple(lake.newest(table).version if lake.exists(table) else -1 for table in tables)


def _pinned(lake: Lake, table: Table, version: int | None = None) -> DataFrame:
    """One version of a table (None: the newest), unaffected by concurrent writes."""
    if not lake.exists(table):
        return lake.session.createDataFrame([], table.ddl)
    pinned_version = lake.newest(table).version if version is None else version
    reader = lake.session.read.format("delta").option("versionAsOf", pinned_version)
    return reader.load(lake.path(table))


def _folded(lake: Lake) -> int | None:
    """The last round that gold's query has finished, from its checkpoint (None: none yet).

    A round is one commit of bronze, and the checkpoint holds the next version of bronze to read.
    """
    checkpoint = lake.checkpoint("gold")
    if not lake.files().has_any(f"{checkpoint}/commits"):
        return None
    read = lake.session.read
    names = (
        read.text(f"{checkpoint}/commits", wholetext=True).select("_metadata.file_name").collect()
    )
    last = max(int(row[0]) for row in names if row[0].isdigit())
    text: str = read.text(f"{checkpoint}/offsets/{last}", wholetext=True).collect()[0][0]
    version = int(json.loads(text.splitlines()[2])["reservoirVersion"])
    if version == 0:
        return 0
    version = min(version - 1, lake.newest(MESSAGES).version)
    newest = _pinned(lake, MESSAGES, version).agg(fn.max("round").alias("n")).collect()[0]["n"]
    return int(newest or 0)


def _lost(lake: Lake, messages: DataFrame, *, expired: bool) -> dict[str, int]:
    """The partitions of output topics with missing messages, as in `LakeView.lost`.

    Compaction and the expiry of the lake's oldest days leave holes, and so do transactions, which
    lose nothing. So a hole counts where one of the first two may have left it, and elsewhere if
    bronze has noted it as a gap.
    """
    outputs = messages.where(short_topic().isin([*AUDITED]))
    partitions = [
        (topic, partition)
        for (topic, partition), stored in stored_ranges(outputs).items()
        if stored.first > 0 or stored.message_count < stored.end - stored.first
    ]
    if not partitions:
        return {}
    names = [f"{topic}/{partition}" for topic, partition in partitions]
    name = fn.concat_ws("/", "topic", fn.col("partition").cast("string"))
    in_order = Window.partitionBy("topic", "partition").orderBy("offset")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    after_holes = (
        outputs.where(name.isin(names))
        .select("topic", "partition", "offset", "kafka_time")
        .withColumn("before", fn.coalesce(fn.lag("offset").over(in_order), fn.lit(-1)))
        # Kafka's time may run backwards: the hole is older than the newest time up to here.
        .withColumn("until", fn.max("kafka_time").over(so_far))
        .where("offset > before + 1")
    )
    if not expired:
        gaps = _pinned(lake, GAPS).alias("gap")
        noted = after_holes.alias("hole").join(
            gaps,
            fn.expr(
                "gap.topic = hole.topic AND gap.partition = hole.partition "
                "AND gap.from_offset < hole.offset AND gap.to_offset > hole.before"
            ),
            "left_semi",
        )
        complete = [topic.short_name for topic in COMPLETE_TOPICS]
        compacted = after_holes.where(~short_topic().isin(complete))
        after_holes = compacted.unionByName(noted)
    until = fn.unix_millis(fn.max("until")).alias("until")
    latest = after_holes.groupBy(short_topic().alias("topic"), "partition").agg(until)
    return {f"{row['topic']}/{row['partition']}": row["until"] for row in latest.collect()}


def _lost_inputs(lake: Lake) -> dict[int, str]:
    if not lake.exists(GAPS):
        return {}
    of_inputs = short_topic().isin([*_SHORT_INPUTS])
    gaps = _pinned(lake, GAPS).where(of_inputs & fn.expr(f"NOT {_REPLAYED}"))
    ends = (fn.min("from_offset").alias("first"), fn.max("to_offset").alias("last"))
    ranges = gaps.groupBy("topic", "partition").agg(*ends).orderBy("topic", "partition").collect()
    return {
        row["partition"]: f"messages of {row['topic']} partition {row['partition']} (between "
        f"offsets {row['first']} and {row['last']}) were deleted before they were read"
        for row in ranges
    }
