"""Rows of tables as Arrow record batches, built in Python and passed through Spark as bytes.

Whoever has the rows as Python values builds the columns of a table directly: Spark would parse each
row from JSON again. A block is a record batch without its schema, which follows from the table.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa

from featurewatch.pipeline.lake.tables import Table

_MAX_ROWS: Final = 5_000
_MAX_BYTES: Final = 4 << 20
"""A block is complete with this many rows, or rows of this many bytes of messages."""

RANK: Final = "_rank"
"""The last column of a block: of several rows with one key, that of the highest rank counts."""

_SIMPLE: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def arrow_type(ddl: str) -> pa.DataType:
    """Returns the Arrow type of one of Spark's types, as `Table.columns` names it.

    Raises:
        ValueError: The type is not one that tables have.
    """
    name, _, rest = ddl.strip().partition("<")
    if not rest:
        try:
            return _SIMPLE[name]
        except KeyError:
            raise ValueError(f"no table has the type {ddl}") from None
    parts = _split(rest.removesuffix(">"))
    if name == "array":
        return pa.list_(arrow_type(parts[0]))
    if name == "map":
        return pa.map_(arrow_type(parts[0]), arrow_type(parts[1]))
    fields = (part.partition(":") for part in parts)
    return pa.struct([(field.strip(), arrow_type(type_)) for field, _, type_ in fields])


def _split(text: str) -> list[str]:
    """The parts between commas that are not inside of angle brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += {"<": 1, ">": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def arrow_schema(table: Table) -> pa.Schema:
    """Returns the schema of a table's blocks: its columns, and `RANK`."""
    columns = [(name, arrow_type(type_)) for name, type_ in table.columns.items()]
    return pa.schema([*columns, (RANK, pa.int64())])


class RowBlock(NamedTuple):
    """Some rows of the table with a path; ``days`` are those of a table that has a day."""

    path: str
    row_count: int
    days: tuple[str, ...]
    content: bytes

    @property
    def labelled(self) -> tuple[str, str, bytes]:
        """The block as a row of `BLOCK_ARROW`; the label has the number of rows and the days."""
        return self.path, f"{self.row_count} {','.join(self.days)}", self.content


BLOCK_ARROW: Final = pa.schema([("kind", pa.string()), ("id", pa.string()), ("value", pa.binary())])
"""Blocks as rows: the path of the table, the label, and the content."""


class RowBuilder:
    """Collects rows of several tables and returns them as blocks."""

    def __init__(self, tables: Iterable[Table]) -> None:
        self._schemas = {table.path: arrow_schema(table) for table in tables}
        self._rows: dict[str, list[tuple[Any, ...]]] = {path: [] for path in self._schemas}
        self._ranks: dict[str, dict[int, int]] = {path: {} for path in self._schemas}
        """Those that are not 0, by the place of the row."""
        self._row_count = 0
        self._bytes = 0

    def add(self, table: Table, row: tuple[Any, ...], rank: int = 0) -> None:
        """Adds a row: its values in the order of the columns, as `pyarrow.array` takes them."""
        rows = self._rows[table.path]
        if rank:
            self._ranks[table.path][len(rows)] = rank
        rows.append(row)
        self._row_count += 1

    def add_all(self, rows: Iterable[tuple[Table, tuple[Any, ...]]]) -> None:
        """Adds rows without a rank, each with its table."""
        for table, row in rows:
            self._rows[table.path].append(row)
            self._row_count += 1

    def count_bytes(self, size: int) -> None:
        """Counts the bytes of a message whose rows were added."""
        self._bytes += size

    @property
    def is_full(self) -> bool:
        """Whether the rows should be taken before more are added."""
        return self._row_count >= _MAX_ROWS or self._bytes >= _MAX_BYTES

    def take(self) -> Iterator[RowBlock]:
        """Yields a block for each table with rows, and forgets the rows."""
        self._row_count = self._bytes = 0
        for path, rows in self._rows.items():
            if rows:
                by_place = self._ranks[path]
                ranks = [by_place.get(place, 0) for place in range(len(rows))]
                batch = _batch_of([*zip(*rows, strict=True), ranks], self._schemas[path])
                rows.clear()
                by_place.clear()
                yield RowBlock(path, batch.num_rows, _days(batch), batch.serialize().to_pybytes())


def as_batch(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    """Returns rows as a record batch."""
    return _batch_of(zip(*rows, strict=True) if rows else [()] * len(schema), schema)


def _batch_of(columns: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [pa.array(values, type_) for values, type_ in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _days(batch: pa.RecordBatch) -> tuple[str, ...]:
    if "day" not in batch.schema.names:
        return ()
    return tuple(str(day) for day in batch.column("day").unique().to_pylist())


def rows_of(blocks: Iterable[bytes], table: Table) -> pa.Table:
    """Returns the rows of a table's blocks, in order and with their ranks."""
    schema = arrow_schema(table)
    batches = [pa.ipc.read_record_batch(pa.py_buffer(block), schema) for block in blocks]
    return pa.Table.from_batches(batches, schema)


def row_values(rows: pa.Table | pa.RecordBatch, names: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    """Returns the values of some columns, row by row, as Python's own objects."""
    return zip(*(rows.column(name).to_pylist() for name in names), strict=True)
