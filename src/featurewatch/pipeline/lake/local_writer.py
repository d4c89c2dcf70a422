"""Creates and writes tables of a local lake with Delta's Rust library, in this process.

A commit of Spark keeps two cores busy for a second, however few the rows are; a commit here takes
some hundredths of a second. The rows and the commits are the same: those whose keys the table
lacks, in one commit.

All functions raise `LakeError` if the table cannot be read or written.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import unquote

import deltalake
import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from featurewatch.pipeline.errors import LakeError, one_line
from featurewatch.pipeline.lake.row_blocks import row_values
from featurewatch.pipeline.lake.tables import PROPERTIES, READER_VERSION
from featurewatch.pipeline.lake.version_checksum import write_checksum

Result = TypeVar("Result")

_ATTEMPTS: Final = 10
SMALL_BYTES: Final = 64 << 20
"""Rows derived from messages of at most this size, in bytes, fit into this process's memory."""
_FEW_VALUES: Final = 500
"""More of them take longer to compare with a file's statistics than the file takes to read."""
_FEW_FILES: Final = 1000
"""Spark asks for the size of each file that it is to read without Delta's log."""


def create(path: Path, columns: StructType, partitioned: Sequence[str], about: str) -> None:
    """Creates a table, unless it exists."""
    schema = deltalake.Schema.from_json(columns.json())
    with lake_errors(path, "made"):
        deltalake.DeltaTable.create(
            *(path, schema, "ignore", [*partitioned]),
            description=about,
            configuration=PROPERTIES,
        )


def newest(path: Path) -> tuple[int, Mapping[str, str]]:
    """Returns the newest version of a table, and its properties."""
    with lake_errors(path, "read"):
        table = deltalake.DeltaTable(path)
        return table.version(), table.metadata().configuration


def count(path: Path) -> int:
    """Returns the number of rows of a table."""
    with lake_errors(path, "read"):
        return int(deltalake.DeltaTable(path).count())


def plain_files(path: Path, version: int) -> list[str] | None:
    """Returns the Parquet files that hold exactly the rows of a version of a table.

    None: the files have rows that were deleted, or lack columns whose values are in the log alone,
    or there are too many.
    """
    with lake_errors(path, "read"):
        table = deltalake.DeltaTable(path, version=version)
        has_vectors = (
            table.protocol().min_reader_version > READER_VERSION
        )  # only later ones delete in a file
        if has_vectors or table.metadata().partition_columns:
            return None
        files = [unquote(uri) for uri in table.file_uris()]
    return files if len(files) <= _FEW_FILES else None


def append(path: Path, rows: DataFrame) -> pa.Table:
    """Adds all rows to a table in one commit, and returns them; without rows there is no commit."""
    table_rows = _collected(rows, ())

    def write() -> None:
        table = deltalake.DeltaTable(path)
        deltalake.write_deltalake(table, table_rows, mode="append")
        write_checksum(path, table)

    if table_rows.num_rows:
        retried(path, write)
    return table_rows


def merge_new(
    path: Path, rows: DataFrame, key: Sequence[str], same: str, replaced: str = ""
) -> int:
    """Adds the rows, one for each ``key``, that match no row of the table by the condition
    ``same``; returns their number.

    ``same`` and ``replaced`` are SQL conditions on ``old`` and ``new``, as in `Lake.merge_new`.
    """
    return merge_rows(path, _collected(rows, key), key, same, replaced)


def merge_rows(
    path: Path, rows: pa.Table, key: Sequence[str], same: str, replaced: str = ""
) -> int:
    """Adds rows of different keys that match no row of the table, and returns how many were added.

    The conditions are those of `merge_new`. Nothing is compared if nothing was ever written to the
    table.
    """
    if not rows.num_rows:
        return 0

    def merge() -> int:
        table = deltalake.DeltaTable(path)
        if table.version() == 0:
            deltalake.write_deltalake(table, rows, mode="append")
            return int(rows.num_rows)
        condition = " AND ".join((same, *_few_values(rows, key)))
        merger = table.merge(rows, condition, source_alias="new", target_alias="old")
        if replaced:
            merger = merger.when_matched_update_all(replaced)
        return int(merger.when_not_matched_insert_all().execute()["num_target_rows_inserted"])

    return retried(path, merge)


def _few_values(rows: pa.Table, key: Sequence[str]) -> Iterator[str]:
    """Conditions that a row of the table, ``old``, meets if its key is that of one of these rows.

    Delta's library then opens only the files whose statistics allow such a row, and not every file
    of the table: of four hundred, a tenth of the time.
    """
    for name in key:
        values = rows.column(name).unique()
        if len(values) > _FEW_VALUES or values.null_count:
            continue
        literals = [_literal(value) for value in values.to_pylist()]
        if None not in literals:
            yield f"old.{name} IN ({', '.join(map(str, literals))})"


def _literal(value: object) -> str | None:
    """A value in SQL (None: a type for which this would need more care)."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value) if type(value) is int else None


def retried(path: Path, write: Callable[[], Result]) -> Result:
    """Calls what commits to a table, again if another process's commit was in its way.

    The stream and the maintenance may replace the same files; whichever is later looks at the table
    again.
    """
    with lake_errors(path, "written"):
        return repeated(write, CommitFailedError)


def repeated(write: Callable[[], Result], conflict: type[Exception]) -> Result:
    """Calls what commits to a table until it raises no ``conflict``, or too often."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return write()
        except conflict:
            continue
    return write()


def _collected(rows: DataFrame, key: Sequence[str]) -> pa.Table:
    """The rows as Arrow, the first of each key; with an empty key, all rows."""
    collected = rows.toArrow()
    if not key:
        indices: Sequence[int] = range(collected.num_rows)
    else:
        values = row_values(collected, key)
        first: dict[tuple[object, ...], int] = {}
        for index, value in enumerate(values):
            first.setdefault(value, index)
        indices = [*first.values()]
    # Copied even if all rows remain: Spark omits the offsets of an empty list, and Rust reads them.
    return collected.take(pa.array(indices, pa.int64()))


@contextmanager
def lake_errors(path: Path, action: str) -> Iterator[None]:
    """Raises what Delta's library raises as a `LakeError`."""
    try:
        yield
    except (DeltaError, OSError) as error:
        reason = one_line(str(error))
        raise LakeError(f"the table {path} cannot be {action}: {reason}") from error
