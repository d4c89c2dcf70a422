"""Maintains the tables of a lake: adds new columns, deletes old rows, compacts and removes files.

Maintenance changes no remaining row, and the queries that follow a table skip its commits, so that
it may run while another process fills a local lake. Only columns are added, and tables removed,
while nothing does: a table of silver or gold whose columns were renamed since is removed, and its
query fills it again from bronze.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from delta.tables import DeltaTable
from pyspark.sql import functions as fn

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.pipeline.bronze.offsets import by_partition, stored_ranges
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.gold.tables import AUDIT, GOLD
from featurewatch.pipeline.lake import local_maintenance, local_writer
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.locks import FILLING, MAINTAINING
from featurewatch.pipeline.lake.tables import BRONZE, EXPIRED, MESSAGES, PROPERTIES, Table
from featurewatch.pipeline.silver.tables import SILVER
from featurewatch.pipeline.spark.checkpoints import FOLD, followed_version
from featurewatch.pipeline.spark.queries import with_settings

TABLES: Final = (*BRONZE, *SILVER, *GOLD, AUDIT)
"""All tables, in the order in which data flows."""

VACUUM_H: Final = 168.0
"""Hours after which files of older versions are removed: readers may still use them, and a query
that was stopped must be able to read what it missed."""
BESIDE_H: Final = 24.0
"""`VACUUM_H` at least beside a process that fills the lake: what it has written becomes part of a
table only with its commit."""

_LOG_S: Final = 3600.0
"""Seconds for which commits stay in a table's log (`PROPERTIES`)."""
_CHECK: Final = "spark.databricks.delta.retentionDurationCheck.enabled"


class MaintenanceResult(NamedTuple):
    """The changes to one table; ``files_before`` counts its files before rows were deleted.

    ``is_removed``: its columns were renamed since, and the next run fills it again.
    """

    table: Table
    columns_added: tuple[str, ...]
    rows_deleted: int
    files_before: int
    files_after: int
    is_removed: bool = False


def maintain(
    lake: Lake,
    keep_days: int | None = None,
    vacuum_h: float = VACUUM_H,
    progress: Progress = NO_PROGRESS,
) -> Iterator[MaintenanceResult]:
    """Maintains each existing table and yields the result for each.

    ``keep_days``: rows of bronze and silver of earlier days are deleted (None: none are). The
    newest message of each partition stays, since it marks how far the lake has come, and gold is
    kept. ``vacuum_h`` is in hours.

    Raises:
        LakeError: The lake holds no tables, another process maintains it, or another process fills
            it and ``vacuum_h`` is below `BESIDE_H`.
    """
    # Checked before the lock, which creates the directory.
    if not any(lake.exists(table) for table in TABLES):
        raise LakeError(f"the lake {lake.root} holds no tables: name another with --lake")
    lake.locks.take(MAINTAINING)
    if not (is_alone := lake.locks.try_take(FILLING)) and vacuum_h < BESIDE_H:
        raise LakeError(
            f"another process fills the lake {lake.root} and may still need files that are younger "
            f"than --vacuum-hours {vacuum_h:g}: give at least {BESIDE_H:g}, or stop it"
        )
    tables = [table for table in TABLES if lake.exists(table)]
    removed = [table for table in tables if is_alone and _remove_obsolete(lake, table)]
    tables = [table for table in tables if table not in removed]
    added = {table.path: _add_columns(lake, table) for table in tables} if is_alone else {}
    if lake.directory is not None and vacuum_h >= BESIDE_H:
        lake.locks.release(FILLING)  # what follows does not disturb a process that fills the lake
    counts = {} if progress is NO_PROGRESS else _counts(lake, tables)
    progress.begin("maintain", sum(counts.values()) if counts else None)
    done = 0
    for table in removed:
        yield MaintenanceResult(table, (), 0, 0, 0, is_removed=True)
    for table in tables:
        yield _maintain(lake, table, added.get(table.path, ()), keep_days, vacuum_h)
        done += counts.get(table.path, 0)
        progress.advance(done)
    progress.end()
    lake.locks.release(MAINTAINING)


def _counts(lake: Lake, tables: Iterable[Table]) -> dict[str, int]:
    """The number of rows of each table that can be read (what cannot is reported at its turn)."""
    counts = {}
    for table in tables:
        with suppress(LakeError):
            counts[table.path] = lake.count(table) or 0
    return counts


def _maintain(
    lake: Lake, table: Table, added: tuple[str, ...], keep_days: int | None, vacuum_h: float
) -> MaintenanceResult:
    if lake.is_empty(table):
        return MaintenanceResult(table, added, 0, 0, 0)  # each step would take about a second
    if lake.directory is None:
        return _maintain_by_spark(lake, table, added, keep_days, vacuum_h)
    path = lake.directory / table.path
    files_before = local_maintenance.files(path)
    rows_deleted = 0
    if keep_days is not None and "day" in table.partitioned:
        cutoff = lake.session.sql(f"SELECT date_sub(current_date(), {keep_days})").collect()[0][0]
        old = local_maintenance.is_old(path, cutoff, keep_newest=table is MESSAGES)
        if rows_deleted := local_maintenance.count(path, old):
            if table is MESSAGES:
                # Set before the deletion: from now on gold cannot be rebuilt from the beginning.
                local_maintenance.set_properties(path, {EXPIRED: "true"})
            local_maintenance.delete(path, old)
    local_maintenance.compact(path)
    local_maintenance.vacuum(path, vacuum_h)
    if table is not MESSAGES or _is_followed(lake.directory):
        local_maintenance.trim_log(path, PROPERTIES)
    return MaintenanceResult(
        table, added, rows_deleted, files_before, local_maintenance.files(path)
    )


def _is_followed(directory: Path) -> bool:
    """Whether the query that follows bronze needs none of the commits that may be removed."""
    version = followed_version(directory / "checkpoints" / FOLD)
    if version is None or version > local_writer.newest(directory / MESSAGES.path)[0]:
        return version is not None
    needed = directory / MESSAGES.path / "_delta_log" / f"{version:020}.json"
    try:
        # The lock was touched when this maintenance began.
        began_s = (directory / MAINTAINING).stat().st_mtime
        return began_s - needed.stat().st_mtime < _LOG_S / 2
    except OSError:
        return False


def _maintain_by_spark(
    lake: Lake, table: Table, added: tuple[str, ...], keep_days: int | None, vacuum_h: float
) -> MaintenanceResult:
    """`_maintain` in a store of which Spark has the credentials."""
    delta = DeltaTable.forPath(lake.session, lake.path(table))
    files_before = _files(delta)
    rows_deleted = 0 if keep_days is None else _expire(lake, table, keep_days)
    delta.optimize().executeCompaction()
    # Delta insists on at least a week; here the caller decides how long readers take.
    with with_settings(lake.session, {_CHECK: "false"}):
        delta.vacuum(vacuum_h)
    return MaintenanceResult(table, added, rows_deleted, files_before, _files(delta))


def _files(delta: DeltaTable) -> int:
    return int(delta.detail().select("numFiles").collect()[0]["numFiles"])


def _remove_obsolete(lake: Lake, table: Table) -> bool:
    """Removes a table if columns were renamed since it was created and bronze can fill it again;
    returns whether it did."""
    if table not in (*SILVER, *GOLD) or not lake.exists(MESSAGES):
        return False
    existing = _columns(lake, table)
    is_renamed = not table.columns.keys() <= existing and not existing <= table.columns.keys()
    if not is_renamed or EXPIRED in lake.newest(MESSAGES).properties:
        return False
    lake.files().remove(lake.path(table))
    return True


def _columns(lake: Lake, table: Table) -> set[str]:
    return {*lake.session.read.format("delta").load(lake.path(table)).columns}


def _add_columns(lake: Lake, table: Table) -> tuple[str, ...]:
    """Adds the columns that the table was created without; old rows have nulls in them."""
    path, existing = lake.path(table), _columns(lake, table)
    missing = {name: type_ for name, type_ in table.columns.items() if name not in existing}
    if missing:
        columns = ", ".join(f"`{name}` {type_}" for name, type_ in missing.items())
        lake.session.sql(f"ALTER TABLE {_sql_name(path)} ADD COLUMNS ({columns})")
    return tuple(missing)


def _expire(lake: Lake, table: Table, keep_days: int) -> int:
    if "day" not in table.partitioned:
        return 0
    path = lake.path(table)
    is_old = fn.col("day") < fn.date_sub(fn.current_date(), keep_days)
    rows = lake.session.read.format("delta").load(path)
    if table is MESSAGES:
        ends = {key: stored.end for key, stored in stored_ranges(rows).items()}
        is_old &= fn.col("offset") + 1 < by_partition(ends)
    row_count = rows.where(is_old).count()
    if row_count:
        if table is MESSAGES:
            # Set before the deletion: from now on gold cannot be rebuilt from the beginning.
            properties = f"'{EXPIRED}' = 'true'"
            lake.session.sql(f"ALTER TABLE {_sql_name(path)} SET TBLPROPERTIES ({properties})")
        DeltaTable.forPath(lake.session, path).delete(is_old)
    return row_count


def _sql_name(path: str) -> str:
    """The SQL name of a table, from its absolute path or URI."""
    return f"delta.`{path.replace('`', '``')}`"
