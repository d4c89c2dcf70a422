"""Tables of a lake that is a directory, made and written by Delta's Rust library in this process.

A commit of Spark's keeps two cores busy for a second, however few the rows are; one of these takes
some hundredths of a second. What is added is the same, and so is when: the rows whose key a table
does not have, in one commit.

All raise `LakeError` where the table cannot be read or written.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import deltalake
import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from featurewatch.pipeline.errors import LakeError, one_line

SMALL_BYTES: Final = 64 << 20
"""What is made of messages with so many bytes has room in this process, beside all else."""


def create(path: Path, columns: StructType, partitioned: Sequence[str], about: str) -> None:
    """Makes a table, unless it is there."""
    schema = deltalake.Schema.from_json(columns.json())
    with _failing(path, "made"):
        deltalake.DeltaTable.create(path, schema, "ignore", [*partitioned], description=about)


def newest(path: Path) -> tuple[int, Mapping[str, str]]:
    """The newest version of a table, and its properties."""
    with _failing(path, "read"):
        table = deltalake.DeltaTable(path)
        return table.version(), table.metadata().configuration


def append(path: Path, rows: DataFrame) -> None:
    """Adds all rows to a table."""
    found = _collected(rows, ())
    if found.num_rows:
        with _failing(path, "written"):
            deltalake.write_deltalake(path, found, mode="append")


def merge_new(
    path: Path, rows: DataFrame, key: Sequence[str], same: str, replaced: str = ""
) -> None:
    """Adds the rows, of those with one ``key`` one, that no row of the table is the ``same`` as.

    ``same`` and ``replaced`` are conditions on ``old`` and ``new``, as in `Lake.add_new`.
    """
    found = _collected(rows, key)
    if not found.num_rows:
        return
    with _failing(path, "written"):
        table = deltalake.DeltaTable(path)
        merger = table.merge(found, same, source_alias="new", target_alias="old")
        if replaced:
            merger = merger.when_matched_update_all(replaced)
        merger.when_not_matched_insert_all().execute()


def _collected(rows: DataFrame, key: Sequence[str]) -> pa.Table:
    """The rows, of those with one key the first; an empty key tells all of them apart."""
    found = rows.toArrow()
    if not key:
        chosen: Sequence[int] = range(found.num_rows)
    else:
        values = zip(*(found.column(name).to_pylist() for name in key), strict=True)
        first: dict[tuple[object, ...], int] = {}
        for number, value in enumerate(values):
            first.setdefault(value, number)
        chosen = [*first.values()]
    # Taken even if all are: Spark leaves out the offsets of an empty list, which Rust then reads.
    return found.take(pa.array(chosen, pa.int64()))


@contextmanager
def _failing(path: Path, done: str) -> Iterator[None]:
    try:
        yield
    except (DeltaError, OSError) as error:
        told = one_line(str(error))
        raise LakeError(f"the table {path} cannot be {done}: {told}") from error
