"""Pins the versions of the lake that one audit compares, and measures how far each side has come.

Live outputs are in bronze and recomputed ones in gold, and gold follows bronze with a delay. The
versions are read in this order: gold's progress, gold, bronze. Gold therefore has everything up to
that progress, and bronze has every cause of gold's rows.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as fn

from featurewatch.pipeline.bronze.kafka import COMPLETE_TOPICS
from featurewatch.pipeline.bronze.offsets import StoredRange, stored_range
from featurewatch.pipeline.derived.spark_fold import by_cluster, short_topic
from featurewatch.pipeline.fold.messages import OUTPUT_KINDS
from featurewatch.pipeline.gold.output_rows import SPECS
from featurewatch.pipeline.lake.checkpoint_files import newest_end
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import (
    EXPIRED,
    GAPS,
    MESSAGES,
    REPLAYED,
    REPLAYED_PREFIX,
    Table,
)
from featurewatch.pipeline.spark.checkpoints import FOLD, OLDER_FOLD
from featurewatch.streams import topics
from featurewatch.streams.codec.outputs import TOPICS

KINDS: Final[Mapping[str, str]] = {
    TOPICS[output].short_name: kind for output, kind in OUTPUT_KINDS.items()
}
"""The kind of the rows of the worker's outputs, by the short name of the output topic."""

AUDITED: Final[Mapping[str, Table]] = {topic: SPECS[kind].table for topic, kind in KINDS.items()}
"""The tables of gold that hold the worker's outputs, by the short name of the output topic."""

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


class _StoredPartition(NamedTuple):
    """The messages of one partition in bronze: ``round`` is the last, ``newest`` Kafka's time."""

    topic: str
    partition: int
    stored: StoredRange
    newest: datetime
    round: int

    @property
    def is_replayed(self) -> bool:
        """Whether they were replayed from files."""
        return self.topic.startswith(REPLAYED_PREFIX)


def pin_view(lake: Lake) -> LakeView | None:
    """Returns a view of the lake (None: gold has not folded anything yet, or bronze is empty).

    Raises:
        LakeError: A table of the lake cannot be read.
    """
    if not lake.exists(MESSAGES) or (unread := _unread_version(lake)) is None:
        return None
    gold = {table.name: _newest(lake, table) for table in AUDITED.values()}
    newest, properties = lake.newest(MESSAGES)
    all_messages = lake.read_version(MESSAGES, newest)
    partitions = _stored_partitions(all_messages)
    if not partitions:
        return None
    of_bus = [stored for stored in partitions if not stored.is_replayed]
    messages, expired = all_messages.where(f"NOT {REPLAYED}"), EXPIRED in properties
    replayed, replayed_count = _replayed_clusters(all_messages), 0
    if len(of_bus) < len(partitions):
        replayed = replayed.localCheckpoint()
        replayed_count = replayed.count()
    return LakeView(
        messages=messages,
        gold=gold,
        folded=_folded(lake, unread, newest, partitions),
        # Messages replayed from a file carry the times of the log; they count only if there are no
        # others.
        clock=max(stored.newest for stored in of_bus or partitions),
        lost=_lost(lake, messages, of_bus, expired=expired),
        lost_inputs=_lost_inputs(lake),
        expired=expired,
        replayed=replayed,
        replayed_count=replayed_count,
    )


def state_of_tables(lake: Lake) -> tuple[int, ...]:
    """Returns the versions of the tables that a view reads; equal versions give equal views."""
    tables = (MESSAGES, GAPS, *AUDITED.values())
    return tuple(lake.newest(table).version if lake.exists(table) else -1 for table in tables)


def _newest(lake: Lake, table: Table) -> DataFrame:
    """The newest version of a table, unaffected by concurrent writes; no rows if it is missing."""
    if not lake.exists(table):
        return lake.session.createDataFrame([], table.ddl)
    return lake.read_version(table, lake.newest(table).version)


def _unread_version(lake: Lake) -> int | None:
    """The first version of bronze that gold's query has not read (None: it has read nothing)."""
    files = lake.files()
    ends = (newest_end(files, lake.checkpoint(name)) for name in (FOLD, OLDER_FOLD))
    return next((int(end["reservoirVersion"]) for end in ends if end is not None), None)


def _folded(lake: Lake, unread: int, newest: int, partitions: Iterable[_StoredPartition]) -> int:
    """The last round of bronze that gold has folded; a round is one commit of bronze.

    ``unread`` is the first version of bronze that gold has not read, and ``newest`` the one that
    ``partitions`` are of.
    """
    if unread == 0:
        return 0
    if unread > newest:
        return max(stored.round for stored in partitions)
    read = lake.read_version(MESSAGES, unread - 1)
    return int(read.agg(fn.max("round").alias("last")).collect()[0]["last"] or 0)


def _stored_partitions(messages: DataFrame) -> list[_StoredPartition]:
    rows = messages.groupBy("topic", "partition").agg(
        *stored_range(), fn.max("kafka_time").alias("newest"), fn.max("round").alias("round")
    )
    return [
        _StoredPartition(topic, partition, StoredRange(*stored), newest, round_)
        for topic, partition, *stored, newest, round_ in rows.collect()
    ]


def _replayed_clusters(messages: DataFrame) -> DataFrame:
    return by_cluster(messages.where(REPLAYED)).select("cluster").distinct()


def _lost(
    lake: Lake, messages: DataFrame, stored: Iterable[_StoredPartition], *, expired: bool
) -> dict[str, int]:
    """The partitions of output topics with missing messages, as in `LakeView.lost`.

    Compaction and the expiry of the lake's oldest days leave holes, and so do transactions, which
    lose nothing. A hole therefore counts where one of the first two may have left it, and elsewhere
    if bronze has noted it as a gap.
    """
    names = [
        f"{topic}/{partition}"
        for topic, partition, range_, *_ in stored
        if topic.rpartition(".")[2] in AUDITED
        and (range_.first > 0 or range_.message_count < range_.end - range_.first)
    ]
    if not names:
        return {}
    outputs = messages.where(short_topic().isin([*AUDITED]))
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
        gaps = _newest(lake, GAPS).alias("gap")
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
    gaps = _newest(lake, GAPS).where(of_inputs & fn.expr(f"NOT {REPLAYED}"))
    ends = (fn.min("from_offset").alias("first"), fn.max("to_offset").alias("last"))
    ranges = gaps.groupBy("topic", "partition").agg(*ends).orderBy("topic", "partition").collect()
    return {
        row["partition"]: f"messages of {row['topic']} partition {row['partition']} (between "
        f"offsets {row['first']} and {row['last']}) were deleted before they were read"
        for row in ranges
    }
