"""Writes the blocks of rows that Python processes of Spark return into their tables.

Few rows are collected once and written by this process; many are unpacked by Spark.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.lake import local_writer
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.row_blocks import RANK, row_values, rows_of
from featurewatch.pipeline.lake.tables import Table

_FIRST_BLOCKS: Final = 1_000
_FIRST_BYTES: Final = 16 << 10
"""At most this many blocks of a partition, of at most this many bytes each, are read with their
labels: those of some clusters in a stream, and little of this process's memory."""
_NUMBER: Final = f"(monotonically_increasing_id() & {(1 << 33) - 1})"
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


def _read(blocks: DataFrame) -> pa.Table:
    """The label and size of each block, and the value of those that are small and among the first
    of their partition.

    A small batch is thereby read in one job, and a large one stays where it is.
    """
    # The lower bits of such an id number the rows of a partition. Each part of an expression that
    # is built in Python is a call to the JVM, and all of this is one.
    is_small = f"{_NUMBER} < {_FIRST_BLOCKS} AND length(value) <= {_FIRST_BYTES}"
    value = f"CASE WHEN {is_small} THEN value END AS value"
    # Rows of Python take twice as long.
    return blocks.selectExpr("kind", "id", "length(value) AS size", value).toArrow()


def _summaries(blocks: pa.Table) -> dict[str, BlockSummary]:
    row_counts, sizes = Counter[str](), Counter[str]()
    days: dict[str, set[str]] = {}
    for kind, label, size in row_values(blocks, ("kind", "id", "size")):
        row_count, _, of_block = label.partition(" ")
        row_counts[kind] += int(row_count)
        sizes[kind] += size
        days.setdefault(kind, set()).update(filter(None, of_block.split(",")))
    return {
        kind: BlockSummary(row_counts[kind], sizes[kind], tuple(sorted(of_kind)))
        for kind, of_kind in days.items()
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
    blocks = outputs.selectExpr("kind", "id", "value").where(_of_kinds(by_path))
    read = _read(blocks)
    found = _summaries(read)
    for path in found:
        lake.ensure_table(by_path[path].table)
    small = {
        path: summary
        for path, summary in found.items()
        if lake.directory is not None and summary.size <= local_writer.SMALL_BYTES
    }
    shared: Mapping[str, list[bytes]] = {}
    if sum(summary.size for summary in small.values()) <= local_writer.SMALL_BYTES:
        shared = _shared(read, blocks, small) if small else {}
    actions: list[Callable[[], object]] = [*others]
    added: dict[str, int] = {}
    for path, summary in found.items():
        target = by_path[path]
        if path in small:
            write = partial(_write_local, lake, target, summary, blocks, shared.get(path))
        else:
            write = partial(_write_by_spark, lake, target, summary, blocks)
        actions.append(partial(_count, added, path, write))
    lake.in_parallel(actions)
    return added


def _count(added: dict[str, int], path: str, write: Callable[[], int]) -> None:
    added[path] = write()


def _shared(read: pa.Table, blocks: DataFrame, kinds: Collection[str]) -> Mapping[str, list[bytes]]:
    """The blocks of some kinds, which are read again if a value is missing in ``read``."""
    wanted = read.filter(pc.is_in(read.column("kind"), pa.array([*kinds], pa.string())))
    if wanted.column("value").null_count:
        return _collected(blocks, kinds)
    return _by_kind(wanted)


def _of_kinds(kinds: Iterable[str]) -> str:
    """The SQL condition of blocks of some kinds."""
    names = ", ".join(f"'{kind}'" for kind in kinds)
    return f"kind IN ({names})"


def _collected(blocks: DataFrame, kinds: Iterable[str]) -> dict[str, list[bytes]]:
    return _by_kind(blocks.where(_of_kinds(kinds)).select("kind", "value").toArrow())


def _by_kind(blocks: pa.Table) -> dict[str, list[bytes]]:
    """The blocks of each kind, in the order in which each partition returned them."""
    by_kind: dict[str, list[bytes]] = {}
    for kind, value in row_values(blocks, ("kind", "value")):
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
        collected = _collected(blocks, [target.table.path])[target.table.path]
    directory = lake.directory
    assert directory is not None  # noqa: S101 - of another lake Spark writes
    table = target.table
    rows = newest_rows(rows_of(collected, table), table.key)
    same = lake.same_key(table, summary.days)
    return local_writer.merge_rows(directory / table.path, rows, table.key, same, target.replaced)


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
    rows = (
        blocks.where(_of_kinds([table.path]))
        .select("value")
        .mapInArrow(partial(_unpacked, table=table), f"{table.ddl}, {RANK} bigint")
    )
    others = [name for name in table.columns if name not in table.key]
    best = fn.max_by(fn.struct(*others), RANK).alias("row")
    rows = rows.groupBy(*table.key).agg(best).select(*table.key, "row.*")
    added = lake.merge_new(table, rows.select(*table.columns), summary.days, True, target.replaced)
    return summary.row_count if added is None else added


def _unpacked(batches: Iterable[pa.RecordBatch], table: Table) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from rows_of(batch.column("value").to_pylist(), table).to_batches()
