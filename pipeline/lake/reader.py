"""Reads the lake's tables without a JVM: Delta's own log and SQL over Parquet, by `deltalake`.

Nothing of Spark is imported here, nor is pyarrow: a question to the history is a process that ends
before a JVM would have started. What is asked goes down to the files: columns, clusters and times
that are not asked for are not read.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any, Final, NewType

from featurewatch.pipeline.errors import LakeError, one_line

Row = dict[str, Any]
"""A row by column: maps are dictionaries, times are aware (UTC)."""

EPOCHS: Final = "gold/epochs"
FEATURE_CHANGES: Final = "gold/feature_changes"
ALERTS: Final = "gold/alerts"
CAPABILITY_INTERVALS: Final = "gold/capability_intervals"
INCOMPATIBILITIES: Final = "gold/incompatibilities"
UPGRADES: Final = "gold/upgrades"
READINESS_BY_DAY: Final = "gold/readiness_by_day"
SOURCE_STATES: Final = "silver/source_states"

Sql = NewType("Sql", str)
"""A part of a query."""

_NO_TABLE: Final = "TableNotFoundError"
_NOTHING: Final[Mapping[str, Sql]] = {}
_OTHER_SCHEMA: Final = "No field named"
_FIRST: Final = datetime(1678, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2262, 1, 1, tzinfo=UTC)
"""SQL's times count nanoseconds in 64 bits, and have room for little more than what lies between;
nothing of Kafka's lies outside."""


def literal(value: str | int | datetime) -> str:
    """A value as SQL has it; times are aware, and the nearest that SQL has stands for others."""
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            near = min(max(value, _FIRST), _LAST).astimezone(UTC)
            return f"TIMESTAMP '{near.isoformat(timespec='microseconds')}'"
        case int():
            return str(int(value))


def sql(template: str, **values: str | int | datetime) -> Sql:
    """A part of a query, its ``$name`` replaced by values; ``$$`` stands for one sign."""
    return Sql(Template(template).substitute({name: literal(v) for name, v in values.items()}))


class LakeReader:
    """A lake to ask: a directory, or a URI that `deltalake` can open (``s3://…``, ``abfss://…``).

    What a store needs besides is taken from the environment, as `deltalake` does.
    """

    def __init__(self, root: str) -> None:
        self.root = root.rstrip("/")
        self._tables: dict[str, Any] = {}

    def query(
        self,
        query: str,
        *tables: str,
        parts: Mapping[str, Sql] = _NOTHING,
        **values: str | int | datetime,
    ) -> list[Row]:
        """The rows that a query gives; each of ``tables`` is called in it as in the lake, without
        its layer (``epochs``). Its ``$name`` stand for ``parts`` of queries and for values.

        Raises:
            LakeError: A table is not there, lacks a column, or cannot be read.
        """
        from deltalake import QueryBuilder

        filled = {**parts, **{name: literal(value) for name, value in values.items()}}
        builder = QueryBuilder()
        for path in tables:
            builder.register(path.partition("/")[2], self._table(path))
        try:
            found = builder.execute(Template(query).substitute(filled)).read_all()
        except Exception as error:
            raise self._failed(error, tables) from error
        return [*_rows(found)]

    def has(self, table: str) -> bool:
        """Whether a table is there; it may be one that cannot be read."""
        from deltalake import DeltaTable

        return table in self._tables or DeltaTable.is_deltatable(f"{self.root}/{table}")

    def newest(self, table: str, column: str) -> datetime | None:
        """The newest time in a column, as the statistics of the files have it; None: there is none.

        It reads no rows. Delta's statistics are exact to the millisecond.
        """
        from deltalake.exceptions import DeltaError

        try:
            actions = self._table(table).get_add_actions(flatten=True)
        except DeltaError as error:
            raise self._failed(error, (table,)) from error
        name = f"max.{column}"
        if name not in actions.schema.names:
            return None
        found = [at for at in actions.column(name).to_pylist() if at is not None]
        return max(found).astimezone(UTC) if found else None

    def _table(self, path: str) -> Any:
        from deltalake import DeltaTable

        if (known := self._tables.get(path)) is None:
            where = f"{self.root}/{path}"
            if "://" not in where and not Path(where).is_dir():
                raise self._missing(path)
            try:
                known = DeltaTable(where)
            except Exception as error:
                raise self._failed(error, (path,)) from error
            self._tables[path] = known
        return known

    def _missing(self, path: str) -> LakeError:
        return LakeError(
            f"the lake {self.root} has no table {path}: fill it with featurewatch pipeline run "
            f"--lake {self.root}, or name another with --lake"
        )

    def _failed(self, error: Exception, tables: tuple[str, ...]) -> LakeError:
        """The one line for what `deltalake` raised: it has errors of its own, and lets through
        those of the file system."""
        names = ", ".join(tables)
        told = one_line(str(error))
        if type(error).__name__ == _NO_TABLE and len(tables) == 1:
            return self._missing(tables[0])
        if _OTHER_SCHEMA in told:
            return LakeError(
                f"the lake {self.root} was filled by an older featurewatch ({names}: {told}); run: "
                "featurewatch pipeline maintain"
            )
        return LakeError(f"the lake {self.root} cannot be read ({names}): {told}")


def _rows(found: Any) -> Iterator[Row]:
    """Rows of a table of Arrow."""
    columns = [_values(column) for column in found.columns]
    names = found.column_names
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _values(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if "Map(" in repr(column.type)[:40]:
        return [None if value is None else dict(value) for value in values]
    return values
