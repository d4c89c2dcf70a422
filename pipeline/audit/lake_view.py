"""One look at the lake: all that an audit compares, of fixed versions, and how far each side came.

What was said live is in bronze, what the lake recomputes is in gold, and gold follows bronze at a
distance. The versions are taken in this order: how far gold has folded, gold, bronze. So gold has
all that was folded, and bronze all causes of what gold has.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.bronze.query import extents
from featurewatch.pipeline.gold.spark_fold import by_cluster
from featurewatch.pipeline.gold.tables import ALERTS, EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import EXPIRED, GAPS, MESSAGES, Table
from featurewatch.pipeline.silver.decoding import short_topic
from featurewatch.streams import topics

AUDITED: Final[Mapping[str, Table]] = {
    topics.FEATURE_CHANGES.short_name: FEATURE_CHANGES,
    topics.ALERTS.short_name: ALERTS,
    topics.EPOCHS.short_name: EPOCHS,
}
"""The tables that hold what the worker says, by the short name of the topic on which it does."""

_REPLAYED: Final = "topic LIKE 'replay.%'"
"""Which messages of bronze come from files, and not from a bus."""

_SHORT_INPUTS: Final = frozenset(topic.short_name for topic in topics.INPUTS)


class LakeView(NamedTuple):
    """What the lake holds at one time.

    ``gold`` is by a table's name, ``folded`` the last round of bronze that gold has folded, and
    ``clock`` the newest of Kafka's times in bronze. ``lost`` names partitions of output topics of
    which messages are missing ("topic/partition"), with Kafka's time of the first message after the
    last of them, in milliseconds. ``lost_inputs`` are sentences, one for a partition of an input of
    which messages are missing. ``expired``: maintenance deleted the oldest messages from bronze.
    ``replayed`` are the clusters that were replayed from files, ``replays`` is how many they are:
    no worker said anything of that. ``messages`` are without what was replayed.
    """

    messages: DataFrame
    gold: Mapping[str, DataFrame]
    folded: int
    clock: datetime
    lost: Mapping[str, int]
    lost_inputs: Mapping[int, str]
    expired: bool
    replayed: DataFrame
    replays: int


def pin_view(lake: Lake) -> LakeView | None:
    """A look at the lake (None: there is nothing to compare, gold has not folded anything yet)."""
    if not lake.exists(MESSAGES):
        return None
    folded = _folded(lake)
    if folded is None:
        return None
    gold = {table.name: _pinned(lake, table) for table in AUDITED.values()}
    everything = _pinned(lake, MESSAGES)
    replayed = by_cluster(everything.where(_REPLAYED)).select("cluster").distinct()
    replayed = replayed.localCheckpoint()
    # A log that is read from a file has its own times.
    times = fn.max(fn.when(fn.expr(f"NOT {_REPLAYED}"), fn.col("kafka_time"))), fn.max("kafka_time")
    clock = everything.agg(fn.coalesce(*times).alias("at")).collect()[0]["at"]
    if clock is None:
        return None
    messages = everything.where(f"NOT {_REPLAYED}")
    return LakeView(
        messages=messages,
        gold=gold,
        folded=folded,
        clock=clock,
        lost=_lost(messages),
        lost_inputs=_lost_inputs(lake),
        expired=EXPIRED in lake.newest(MESSAGES).properties,
        replayed=replayed,
        replays=replayed.count(),
    )


def state_of_tables(lake: Lake) -> tuple[int, ...]:
    """The versions of what a look would look at: equal ones give the same view."""
    found = (MESSAGES, GAPS, *AUDITED.values())
    return tuple(lake.newest(table).version if lake.exists(table) else -1 for table in found)


def _pinned(lake: Lake, table: Table, version: int | None = None) -> DataFrame:
    """A table as it is now, whoever writes to it while it is read."""
    if not lake.exists(table):
        return lake.session.createDataFrame([], table.ddl)
    number = lake.newest(table).version if version is None else version
    reader = lake.session.read.format("delta").option("versionAsOf", number)
    return reader.load(lake.path(table))


def _folded(lake: Lake) -> int | None:
    """The last round that gold's query has finished, by its checkpoint (None: none yet).

    A round is one commit of bronze, and the query's place is the version of bronze that comes next.
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
    found = _pinned(lake, MESSAGES, version).agg(fn.max("round").alias("n")).collect()[0]["n"]
    return int(found or 0)


def _lost(messages: DataFrame) -> dict[str, int]:
    """The partitions of output topics of which messages are missing, as `LakeView.lost` has them.

    Retention and compaction make holes, and so does a lake whose oldest days were deleted.
    """
    outputs = messages.where(short_topic().isin([*AUDITED]))
    places = [
        (topic, partition)
        for (topic, partition), extent in extents(outputs).items()
        if extent.first > 0 or extent.number < extent.end - extent.first
    ]
    if not places:
        return {}
    named = [f"{topic}/{partition}" for topic, partition in places]
    place = fn.concat_ws("/", "topic", fn.col("partition").cast("string"))
    before = fn.expr(
        "coalesce(lag(offset) OVER (PARTITION BY topic, partition ORDER BY offset), -1)"
    )
    after_holes = (
        outputs.where(place.isin(named))
        .select(short_topic().alias("topic"), "partition", "offset", "kafka_time")
        .withColumn("before", before)
        .where("offset > before + 1")
        .groupBy("topic", "partition")
        .agg(fn.unix_millis(fn.max("kafka_time")).alias("until"))
    )
    return {f"{row['topic']}/{row['partition']}": row["until"] for row in after_holes.collect()}


def _lost_inputs(lake: Lake) -> dict[int, str]:
    if not lake.exists(GAPS):
        return {}
    of_inputs = short_topic().isin([*_SHORT_INPUTS])
    gaps = _pinned(lake, GAPS).where(of_inputs & fn.expr(f"NOT {_REPLAYED}"))
    ends = (fn.min("from_offset").alias("first"), fn.max("to_offset").alias("last"))
    found = gaps.groupBy("topic", "partition").agg(*ends).orderBy("topic", "partition").collect()
    return {
        row["partition"]: f"messages of {row['topic']} partition {row['partition']} (between "
        f"offsets {row['first']} and {row['last']}) were deleted before they were read"
        for row in found
    }
