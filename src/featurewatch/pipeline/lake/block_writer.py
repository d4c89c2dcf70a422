"""Writes the blocks of rows that Python processes of Spark return into their tables.

Few rows are collected once and written by this process; many are unpacked by Spark.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.lake import local_writer
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.row_blocks import RANK, row_values, rows_of
from featurewatch.pipeline.lake.tables import Table

BLOCK_SCHEMA: Final = "kind string, id string, value binary"
"""`row_blocks.BLOCK_ARROW` in Spark's terms."""


class BlockTarget(NamedTuple):
    """A table that blocks are written to.

    ``replaced`` is a SQL condition on ``old`` and ``new`` under which a row replaces the one with
    its key (empty: never).
    """

    table: Table
    replaced: str = ""


class BlockSummary(NamedTuple):
    """The rows of a table's blocks, their size in bytes, and their days."""

    row_count: int
    size: int
    days: tuple[str, ...]


def _summaries(blocks: DataFrame) -> dict[str, BlockSummary]:
    row_count = fn.substring_index("id", " ", 1).cast("bigint")
    collected = blocks.groupBy("kind").agg(
        fn.sum(row_count).alias("rows"),
        fn.sum(fn.length("value")).alias("size"),
        fn.collect_set(fn.substring_index("id", " ", -1)).alias("days"),
    )
    return {
        row["kind"]: BlockSummary(
            row["rows"],
            row["size"],
            tuple(sorted({day for days in row["days"] for day in days.split(",") if day})),
        )
        for row in collected.collect()
    }


def write_blocks(
    lake: Lake,
    outputs: DataFrame,
    targets: Iterable[BlockTarget],
    others: Iterable[Callable[[], object]] = (),
) -> dict[str, int]:
    """Merges the blocks of some tables into them, several at a time.

    ``outputs`` has the columns ``kind`` (the path of a table, or else another kind of rows),
    ``id`` (the label of a block) and ``value`` (a block); it should be persisted. ``others`` write
    what else it has, at the same time. Returns the number of rows that were added to each table.

    Raises:
        LakeError: A table cannot be written; the others may have been.
    """
    by_path = {target.table.path: target for target in targets}
    blocks = outputs.where(fn.col("kind").isin([*by_path])).select("kind", "id", "value")
    found = _summaries(blocks)
    for path in found:
        lake.ensure_table(by_path[path].table)
    small = {
        path: summary
        for path, summary in found.items()
        if lake.directory is not None and summary.size <= local_writer.SMALL_BYTES
    }
    shared: Mapping[str, list[bytes]] = {}
    if sum(summary.size for summary in small.values()) <= local_writer.SMALL_BYTES:
        shared = _collected(blocks.where(fn.col("kind").isin([*small]))) if small else {}
    actions: list[Callable[[], object]] = [*others]
    added: dict[str, int] = {}
    for path, summary in found.items():
        target = by_path[path]
        own = blocks.where(fn.col("kind") == path)
        if path in small:
            write = partial(_write_local, lake, target, summary, own, shared.get(path))
        else:
            write = partial(_write_by_spark, lake, target, summary, own)
        actions.append(partial(_count, added, path, write))
    lake.in_parallel(actions)
    return added


def _count(added: dict[str, int], path: str, write: Callable[[], int]) -> None:
    added[path] = write()


def _collected(blocks: DataFrame) -> dict[str, list[bytes]]:
    """The blocks of each kind, in the order in which each partition returned them."""
    by_kind: dict[str, list[bytes]] = {}
    collected = blocks.select("kind", "value").toArrow()  # rows of Python take twice as long
    for kind, value in row_values(collected, ("kind", "value")):
        by_kind.setdefault(kind, []).append(value)
    return by_kind


def _write_local(
    lake: Lake,
    target: BlockTarget,
    summary: BlockSummary,
    blocks: DataFrame,
    collected: list[bytes] | None,
) -> int:
    if collected is None:
        collected = _collected(blocks)[target.table.path]
    directory = lake.directory
    assert directory is not None  # noqa: S101 - of another lake Spark writes
    table = target.table
    rows = newest_rows(rows_of(collected, table), table.key)
    same = lake.same_key(table, summary.days)
    return local_writer.merge_rows(directory / table.path, rows, same, target.replaced)


def newest_rows(rows: pa.Table, key: Iterable[str]) -> pa.Table:
    """Returns the row with the highest rank of each key, without the rank; with an empty key, all
    rows. Of equal rank, the first counts."""
    names = [*key]
    if names and rows.group_by(names).aggregate([]).num_rows < rows.num_rows:
        values = row_values(rows, names)
        best: dict[tuple[Any, ...], tuple[int, int]] = {}
        for index, (value, rank) in enumerate(
            zip(values, rows.column(RANK).to_pylist(), strict=True)
        ):
            known = best.get(value)
            if known is None or rank > known[0]:
                best[value] = (rank, index)
        rows = rows.take(pa.array([index for _, index in best.values()], pa.int64()))
    return rows.drop_columns([RANK])


def _write_by_spark(
    lake: Lake, target: BlockTarget, summary: BlockSummary, blocks: DataFrame
) -> int:
    table = target.table
    rows = blocks.select("value").mapInArrow(
        partial(_unpacked, table=table), f"{table.ddl}, {RANK} bigint"
    )
    others = [name for name in table.columns if name not in table.key]
    best = fn.max_by(fn.struct(*others), RANK).alias("row")
    rows = rows.groupBy(*table.key).agg(best).select(*table.key, "row.*")
    added = lake.merge_new(table, rows.select(*table.columns), summary.days, True, target.replaced)
    return summary.row_count if added is None else added


def _unpacked(batches: Iterable[pa.RecordBatch], table: Table) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from rows_of(batch.column("value").to_pylist(), table).to_batches()
