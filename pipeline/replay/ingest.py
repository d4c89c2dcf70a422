"""The replay on Spark: units are read side by side, and come into bronze in one commit."""

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
from featurewatch.pipeline.lake.tables import MESSAGES
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

_ROWS: Final = 500
"""Messages in an Arrow batch: a snapshot chunk or a large commit has up to some hundred KiB."""

_REPLAYED: Final = "topic LIKE 'replay.%'"
_ROW: Final = (
    "unit int, topic string, partition int, offset bigint, time_ms bigint, key binary, "
    "value binary, headers array<struct<key: string, value: binary>>, tally string"
)
_HEADER: Final = pa.struct([("key", pa.string()), ("value", pa.binary())])
_ARROW: Final = pa.schema(
    [
        ("unit", pa.int32()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(_HEADER)),
        ("tally", pa.string()),
    ]
)

Before = Callable[[int], None]
"""Is told how many units are to be read, before they are."""


def ingest(lake: Lake, courses: Iterable[ClusterPlan], before: Before) -> list[ClusterReplay]:
    """Takes the courses into bronze; what the lake already has is not taken again.

    The caller holds the lake's lock.
    """
    tracks = splits_of(courses)
    with ExitStack() as stack:
        frames, tallies = _read_all(lake, tracks, before, stack)
        held = _held(lake)
        told = []
        for track in tracks:
            steps = [
                step if isinstance(step, SnapshotFile) else step.number for step in track.steps
            ]
            end = held.offsets.get(topic_name(track.cluster, METADATA_LOG), -1) + 1
            told.append(assemble(track.cluster, steps, tallies, end))
        of_told = sum(len(row.value or b"") for one in told for row in one.rows)
        size = of_told + sum(tally.size for tally in tallies.values())
        _into_bronze(lake, frames, told, held, size)
    if held.offsets:
        added = _added(lake, held.round + 1)
        for one in told:
            one.messages = added.get(one.cluster, 0)
    return told


def _added(lake: Lake, round_: int) -> dict[str, int]:
    """How many messages came in a round, by cluster; where nothing was held it is all."""
    rows = lake.read(MESSAGES).where(fn.col("round") == round_).groupBy("key").count().collect()
    return {bytes(row["key"]).decode(): row["count"] for row in rows}


class _Held(NamedTuple):
    """What the lake has: the last round, and the furthest offset of each topic of a replay."""

    round: int
    offsets: dict[str, int]


def _held(lake: Lake) -> _Held:
    """Collects a row a replayed topic, and one for all else."""
    if lake.is_empty(MESSAGES):
        return _Held(0, {})
    topic = fn.when(fn.expr(_REPLAYED), fn.col("topic")).alias("replayed")
    last = (fn.max("offset").alias("offset"), fn.max("round").alias("round"))
    found = lake.read(MESSAGES).groupBy(topic).agg(*last).collect()
    offsets = {row["replayed"]: row["offset"] for row in found if row["replayed"] is not None}
    return _Held(max((row["round"] for row in found), default=0), offsets)


def _read_all(
    lake: Lake, tracks: list[ClusterSplits], before: Before, stack: ExitStack
) -> tuple[list[DataFrame], dict[int, SplitStats]]:
    """The rows of all units, and their tallies."""
    frames: list[DataFrame] = []

    def read(units: Sequence[ReplaySplit], gone: frozenset[int]) -> list[SplitStats]:
        before(len(units))
        stale = [*gone, *(unit.number for unit in units)]
        frame = _rows(lake, units).persist(StorageLevel.MEMORY_AND_DISK)
        stack.callback(frame.unpersist)
        frames[:] = [*(one.where(~fn.col("unit").isin(stale)) for one in frames), frame]
        found = frame.where("tally IS NOT NULL").select("tally").collect()
        return [SplitStats.of(row["tally"]) for row in found]

    tallies = read_until_closed(tracks, read)
    return frames, tallies


def _rows(lake: Lake, units: Sequence[ReplaySplit]) -> DataFrame:
    """A task for each unit."""
    numbers = lake.session.range(0, len(units), 1, len(units))
    return numbers.mapInArrow(partial(_read, units), _ROW)


def _read(
    units: Sequence[ReplaySplit], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for index in batch.column(0).to_pylist():
            rows = SplitReader(units[index]).rows()
            while some := [row._asdict() for row in islice(rows, _ROWS)]:
                yield pa.RecordBatch.from_pylist(some, schema=_ARROW)


def _into_bronze(
    lake: Lake, frames: list[DataFrame], told: list[ClusterReplay], held: _Held, size: int
) -> None:
    """One commit with all that the lake does not have."""
    said: list[BronzeRow] = [row for one in told for row in one.rows]
    starts: dict[int, int] = {unit: ms for one in told for unit, ms in one.starts.items()}
    rows = lake.session.createDataFrame(said, _ROW)
    if starts:
        # By unit; -1 for what has its own time.
        least = fn.lit([starts.get(number, 0) for number in range(max(starts) + 1)])
        timed = fn.greatest(fn.col("time_ms"), fn.get(least, fn.col("unit")))
        for frame in frames:
            of_messages = frame.where("tally IS NULL").withColumn("time_ms", timed)
            rows = rows.unionByName(of_messages)
    if held.offsets:
        there = lake.read(MESSAGES).where(_REPLAYED).select(*MESSAGES.key)
        rows = rows.join(there, [*MESSAGES.key], "left_anti")
    time = fn.timestamp_millis("time_ms")
    lake.append(
        MESSAGES,
        rows.select(
            *("topic", "partition", "offset"),
            time.alias("kafka_time"),
            *("key", "value", "headers"),
            fn.current_timestamp().alias("taken_at"),
            fn.lit(held.round + 1).cast("bigint").alias("round"),
            fn.to_date(time).alias("day"),
        ),
        size,
    )
