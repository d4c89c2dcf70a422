"""What tables need from time to time: new columns, an end of their rows, fewer and larger files.

Nothing here changes what a row says, and the queries that follow a table take none of it for news.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from delta.tables import DeltaTable
from pyspark.sql import functions as fn

from featurewatch.pipeline.bronze.query import by_partition, extents
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.gold.tables import AUDIT, GOLD
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import BRONZE, EXPIRED, MESSAGES, Table
from featurewatch.pipeline.silver.tables import SILVER

TABLES: Final = (*BRONZE, *SILVER, *GOLD, AUDIT)
"""All tables, in the order in which data flows."""

VACUUM_H: Final = 168.0
"""Hours after which files that no version needs any more are removed: readers may still be at it,
and a query that stood still has to read what it missed."""

_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


class MaintenanceResult(NamedTuple):
    """What was done to a table; ``files_before`` were there before rows were deleted."""

    table: Table
    columns_added: tuple[str, ...]
    rows_deleted: int
    files_before: int
    files_after: int


def maintain(
    lake: Lake, keep_days: int | None = None, vacuum_h: float = VACUUM_H
) -> Iterator[MaintenanceResult]:
    """Maintains each table that there is, and says what was done.

    ``keep_days``: rows of bronze and silver of earlier days are deleted; the newest message of each
    partition stays, since it says how far the lake came. Gold is kept.

    Raises:
        LakeError: The lake holds no tables, or another process fills it.
    """
    # Before the lock, which makes the directory.
    if not any(lake.exists(table) for table in TABLES):
        raise LakeError(f"the lake {lake.root} holds no tables: name another with --lake")
    lake.lock()
    for table in TABLES:
        if lake.exists(table):
            yield _maintain(lake, table, keep_days, vacuum_h)


def _maintain(
    lake: Lake, table: Table, keep_days: int | None, vacuum_h: float
) -> MaintenanceResult:
    added = _add_columns(lake, table)
    if lake.is_empty(table):
        return MaintenanceResult(table, added, 0, 0, 0)  # each step would take its second
    delta = DeltaTable.forPath(lake.session, lake.path(table))
    before = _files(delta)
    deleted = 0 if keep_days is None else _expire(lake, table, keep_days)
    delta.optimize().executeCompaction()
    # Delta asks for a week at least; here it is the caller who says how long readers take.
    lake.session.conf.set(_CHECK, "false")
    try:
        delta.vacuum(vacuum_h)
    finally:
        lake.session.conf.unset(_CHECK)
    return MaintenanceResult(table, added, deleted, before, _files(delta))


def _files(delta: DeltaTable) -> int:
    return int(delta.detail().select("numFiles").collect()[0]["numFiles"])


def _add_columns(lake: Lake, table: Table) -> tuple[str, ...]:
    """Columns that the table was made without; old rows have nulls there."""
    path = lake.path(table)
    there = lake.session.read.format("delta").load(path).columns
    missing = {name: kind for name, kind in table.columns.items() if name not in there}
    if missing:
        listed = ", ".join(f"`{name}` {kind}" for name, kind in missing.items())
        lake.session.sql(f"ALTER TABLE {_named(path)} ADD COLUMNS ({listed})")
    return tuple(missing)


def _expire(lake: Lake, table: Table, keep_days: int) -> int:
    if "day" not in table.partitioned:
        return 0
    path = lake.path(table)
    old = fn.col("day") < fn.date_sub(fn.current_date(), keep_days)
    rows = lake.session.read.format("delta").load(path)
    if table is MESSAGES:
        ends = {place: extent.end for place, extent in extents(rows).items()}
        old &= fn.col("offset") + 1 < by_partition(ends)
    count = rows.where(old).count()
    if count:
        if table is MESSAGES:
            # First: from now on gold cannot be made from the beginning.
            properties = f"'{EXPIRED}' = 'true'"
            lake.session.sql(f"ALTER TABLE {_named(path)} SET TBLPROPERTIES ({properties})")
        DeltaTable.forPath(lake.session, path).delete(old)
    return count


def _named(path: str) -> str:
    """A table as SQL names it by its path, which is no relative one."""
    return f"delta.`{path.replace('`', '``')}`"
