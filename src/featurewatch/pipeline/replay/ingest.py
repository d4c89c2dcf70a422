"""Ingests logs with Spark: splits are read in parallel and enter bronze in one commit."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES, REPLAYED
from featurewatch.pipeline.replay.assembly import ClusterReplay, assemble
from featurewatch.pipeline.replay.plan import ClusterPlan, SnapshotFile
from featurewatch.pipeline.replay.split_reader import (
    BronzeRow,
    ReplaySplit,
    SplitReader,
    SplitStats,
    topic_name,
)
from featurewatch.pipeline.replay.splits import ClusterSplits, read_until_closed, splits_of
from featurewatch.streams.topics import METADATA_LOG

_BATCH_ROWS: Final = 500
"""Messages in an Arrow batch: a snapshot chunk or a large commit may have some hundred KiB."""

_ROW: Final = (
    "split int, topic string, partition int, offset bigint, time_ms bigint, key binary, "
    "value binary, headers array<struct<key: string, value: binary>>, stats string"
)
_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
_ARROW: Final = pa.schema(
    [
        ("split", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER)),
        ("stats", pa.string()),
    ]
)

Before = Callable[[int], None]
"""Called with the number of splits before they are read."""


def ingest(lake: Lake, cluster_plans: Iterable[ClusterPlan], before: Before) -> list[ClusterReplay]:
    """Ingests the planned logs into bronze, without messages that the lake already has.

    ``before`` is called before each round of reading. The caller holds the lake's lock.

    Raises:
        LakeError: The lake cannot be read or written.
    """
    clusters = splits_of(cluster_plans)
    with ExitStack() as stack:
        frames, all_stats = _read_all(lake, clusters, before, stack)
        held = _held(lake)
        replays = []
        for cluster_splits in clusters:
            steps = [
                step if isinstance(step, SnapshotFile) else step.number
                for step in cluster_splits.steps
            ]
            end = held.offsets.get(topic_name(cluster_splits.cluster, METADATA_LOG), -1) + 1
            replays.append(assemble(cluster_splits.cluster, steps, all_stats, end))
        assembled_size = sum(len(row.value or b"") for replay in replays for row in replay.rows)
        size = assembled_size + sum(stats.size for stats in all_stats.values())
        _into_bronze(lake, frames, replays, held, size)
    if held.offsets:
        added = _added(lake, held.round + 1)
        for replay in replays:
            replay.messages = added.get(replay.cluster, 0)
    return replays


def _added(lake: Lake, round_: int) -> dict[str, int]:
    """The number of messages in a round, by cluster."""
    rows = lake.read(MESSAGES).where(fn.col("round") == round_).groupBy("key").count().collect()
    return {bytes(row["key"]).decode(): row["count"] for row in rows}


class _Held(NamedTuple):
    """The last round in the lake, and the highest offset of each replayed topic."""

    round: int
    offsets: dict[str, int]


def _held(lake: Lake) -> _Held:
    """Reads it from bronze; collects a row per replayed topic, and one for all others."""
    if lake.is_empty(MESSAGES):
        return _Held(0, {})
    topic = fn.when(fn.expr(REPLAYED), fn.col("topic")).alias("replayed")
    last = (fn.max("offset").alias("offset"), fn.max("round").alias("round"))
    rows = lake.read(MESSAGES).groupBy(topic).agg(*last).collect()
    offsets = {row["replayed"]: row["offset"] for row in rows if row["replayed"] is not None}
    return _Held(max((row["round"] for row in rows), default=0), offsets)


def _read_all(
    lake: Lake, clusters: list[ClusterSplits], before: Before, stack: ExitStack
) -> tuple[list[DataFrame], dict[int, SplitStats]]:
    """Reads all splits; returns their rows and their statistics."""
    frames: list[DataFrame] = []

    def read(splits: Sequence[ReplaySplit], removed: frozenset[int]) -> list[SplitStats]:
        before(len(splits))
        stale = [*removed, *(split.number for split in splits)]
        frame = _rows(lake, splits).persist(StorageLevel.MEMORY_AND_DISK)
        stack.callback(frame.unpersist)
        frames[:] = [*(previous.where(~fn.col("split").isin(stale)) for previous in frames), frame]
        rows = frame.where("stats IS NOT NULL").select("stats").collect()
        return [SplitStats.of(row["stats"]) for row in rows]

    all_stats = read_until_closed(clusters, read)
    return frames, all_stats


def _rows(lake: Lake, splits: Sequence[ReplaySplit]) -> DataFrame:
    """The rows of some splits, each read by a separate task."""
    indices = lake.session.range(0, len(splits), 1, len(splits))
    return indices.mapInArrow(partial(_read, splits), _ROW)


def _read(
    splits: Sequence[ReplaySplit], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for index in batch.column(0).to_pylist():
            rows = SplitReader(splits[index]).rows()
            while rows_of_batch := [row._asdict() for row in islice(rows, _BATCH_ROWS)]:
                yield pa.RecordBatch.from_pylist(rows_of_batch, schema=_ARROW)


def _into_bronze(
    lake: Lake, frames: list[DataFrame], replays: list[ClusterReplay], held: _Held, size: int
) -> None:
    """Appends everything that the lake does not have, in one commit."""
    assembled: list[BronzeRow] = [row for replay in replays for row in replay.rows]
    starts: dict[int, int] = {
        split: start_ms for replay in replays for split, start_ms in replay.starts.items()
    }
    rows = lake.session.createDataFrame(assembled, _ROW)
    if starts:
        # Indexed by split; rows with the split -1 keep their own times.
        earliest = fn.lit([starts.get(number, 0) for number in range(max(starts) + 1)])
        timed = fn.greatest(fn.col("time_ms"), fn.get(earliest, fn.col("split")))
        for frame in frames:
            of_messages = frame.where("stats IS NULL").withColumn("time_ms", timed)
            rows = rows.unionByName(of_messages)
    if held.offsets:
        existing = lake.read(MESSAGES).where(REPLAYED).select(*MESSAGES.key)
        rows = rows.join(existing, [*MESSAGES.key], "left_anti")
    time = fn.timestamp_millis("time_ms")
    lake.append(
        MESSAGES,
        rows.select(
            *("topic", "partition", "offset"),
            time.alias("kafka_time"),
            *("key", "value", "headers"),
            fn.current_timestamp().alias("ingested_at"),
            fn.lit(held.round + 1).cast("bigint").alias("round"),
            fn.to_date(time).alias("day"),
        ),
        size,
    )
