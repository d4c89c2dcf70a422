"""Small additions, written by Delta's Rust library in this process.

A commit of Spark's keeps two cores busy for a second, however few the rows are; one of these takes
some hundredths of a second. What is added is the same, and so is when: the rows whose key a table
does not have, in one commit.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import deltalake
import pyarrow as pa
from deltalake.exceptions import DeltaError
from pyspark.sql import DataFrame

from pipeline.errors import LakeError

SMALL_BYTES: Final = 64 << 20
"""What is made of messages with so many bytes has room in this process, beside all else."""


def append(path: Path, rows: DataFrame) -> None:
    """Adds all rows to a table; raises `LakeError`."""
    found = _collected(rows, ())
    if found.num_rows:
        try:
            deltalake.write_deltalake(path, found, mode="append")
        except (DeltaError, OSError) as error:
            raise _failed(path, error) from error


def merge(path: Path, rows: DataFrame, key: Sequence[str], same: str, replaced: str = "") -> None:
    """Adds the rows, of those with one ``key`` one, that no row of the table is the ``same`` as.

    ``same`` and ``replaced`` are conditions on ``old`` and ``new``, as in `Lake.add_new`.

    Raises:
        LakeError: The table cannot be read or written.
    """
    found = _collected(rows, key)
    if not found.num_rows:
        return
    try:
        table = deltalake.DeltaTable(path)
        merger = table.merge(found, same, source_alias="new", target_alias="old")
        if replaced:
            merger = merger.when_matched_update_all(replaced)
        merger.when_not_matched_insert_all().execute()
    except (DeltaError, OSError) as error:
        raise _failed(path, error) from error


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


def _failed(path: Path, error: Exception) -> LakeError:
    return LakeError(f"the table {path} cannot be written: {error}")
