"""Maintains tables of a local lake with Delta's Rust library, also while another process fills it.

A commit of Spark on a local disk looks for the next number in the table's log and then takes it, so
that it may replace another process's commit. A commit here takes a number only if nobody has it. If
another commit removed the same files meanwhile, the step is repeated with the table as it then is.

All functions raise `LakeError` if the table cannot be read or written.
"""

from collections.abc import Mapping
from datetime import date
from math import ceil
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from featurewatch.pipeline.lake.local_writer import lake_errors, retried

_TARGET_BYTES: Final = 128 << 20


def files(path: Path) -> int:
    """Returns the number of a table's files."""
    with lake_errors(path, "read"):
        return len(DeltaTable(path).file_uris())


def compact(path: Path) -> None:
    """Merges small files of each partition."""
    retried(
        path,
        lambda: DeltaTable(path).optimize.compact(
            target_size=_TARGET_BYTES, max_concurrent_tasks=1
        ),
    )


def vacuum(path: Path, hours: float) -> None:
    """Removes files that no version of the table has needed for some hours."""
    # The caller decides how long readers take; Delta insists on a week.
    retried(
        path,
        lambda: DeltaTable(path).vacuum(
            ceil(hours), dry_run=False, enforce_retention_duration=False
        ),
    )


def trim_log(path: Path, properties: Mapping[str, str]) -> None:
    """Summarizes a table's log in a checkpoint, and removes the commits before it that are older
    than the table's properties say; those that it was created without are set first.

    A stream can only follow the table from a commit that is still there.
    """

    def trim() -> None:
        table = DeltaTable(path)
        existing = table.metadata().configuration
        if missing := {name: value for name, value in properties.items() if name not in existing}:
            set_properties(path, missing)
            table = DeltaTable(path)
        table.create_checkpoint()
        table.cleanup_metadata()

    retried(path, trim)


def set_properties(path: Path, properties: Mapping[str, str]) -> None:
    """Sets properties of a table."""
    retried(
        path,
        lambda: DeltaTable(path).alter.set_table_properties(
            dict(properties), raise_if_not_exists=False
        ),
    )


def is_old(path: Path, cutoff: date, *, keep_newest: bool) -> str:
    """Returns the SQL condition of rows of days before ``cutoff``; with ``keep_newest``, without
    the newest message of each partition of a topic."""
    condition = f"day < DATE '{cutoff}'"
    if not keep_newest:
        return condition
    newest = _query(
        path,
        "SELECT topic, partition, max(offset) AS last FROM t "  # noqa: S608 - a date
        "GROUP BY topic, partition "
        f"HAVING first_value(day ORDER BY offset DESC) < DATE '{cutoff}'",
    )
    for row in newest:
        topic = row["topic"].replace("'", "''")
        position = (
            f"topic = '{topic}'",
            f"partition = {row['partition']}",
            f"offset = {row['last']}",
        )
        condition += f" AND NOT ({' AND '.join(position)})"
    return condition


def count(path: Path, condition: str) -> int:
    """Returns the number of rows under a SQL condition."""
    return int(_query(path, f"SELECT count(*) AS rows FROM t WHERE {condition}")[0]["rows"])  # noqa: S608 - the conditions are ours


def delete(path: Path, condition: str) -> None:
    """Deletes the rows under a SQL condition."""
    retried(path, lambda: DeltaTable(path).delete(condition))


def _query(path: Path, query: str) -> list[dict[str, Any]]:
    with lake_errors(path, "read"):
        found = QueryBuilder().register("t", DeltaTable(path)).execute(query).read_all()
        rows: list[dict[str, Any]] = pa.table(found).to_pylist()
        return rows
