"""Reads the lake's tables without a JVM: Delta's log, and SQL over Parquet, by `deltalake`.

Neither Spark nor pyarrow is imported: a history command ends before a JVM would have started.
Queries are pushed down to the files, so columns, clusters and times that they exclude are not read.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import Any, Final, NewType

from featurewatch.pipeline.errors import LakeError, one_line
from featurewatch.pipeline.lake.root import absolute_root

Row = dict[str, Any]
"""A row by column; maps are dictionaries, times are aware (UTC)."""

EPOCHS: Final = "gold/epochs"
FEATURE_CHANGES: Final = "gold/feature_changes"
ALERTS: Final = "gold/alerts"
CAPABILITY_INTERVALS: Final = "gold/capability_intervals"
INCOMPATIBILITIES: Final = "gold/incompatibilities"
UPGRADES: Final = "gold/upgrades"
OPERATIONS: Final = "gold/operations"
READINESS_BY_DAY: Final = "gold/readiness_by_day"
REGISTRATIONS: Final = "silver/registrations"
FENCING: Final = "silver/fencing"
LOG_GAPS: Final = "silver/log_gaps"
SOURCE_STATES: Final = "silver/source_states"

Sql = NewType("Sql", str)
"""A fragment of SQL."""

_NO_TABLE: Final = "TableNotFoundError"
_NOTHING: Final[Mapping[str, Sql]] = {}
_OTHER_SCHEMA: Final = "No field named"
_FIRST: Final = datetime(1678, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2262, 1, 1, tzinfo=UTC)
"""SQL counts nanoseconds in 64 bits, which covers little more than this range; no time of Kafka
is outside it."""


def literal(value: str | int | datetime) -> str:
    """Returns a value as a SQL literal; an aware time outside SQL's range gives the nearest one
    inside."""
    match value:
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            clamped = min(max(value, _FIRST), _LAST).astimezone(UTC)
            return f"TIMESTAMP '{clamped.isoformat(timespec='microseconds')}'"
        case int():
            return str(int(value))


def sql(template: str, **values: str | int | datetime) -> Sql:
    """Fills a SQL template: ``$name`` is replaced by a literal; ``$$`` stands for a dollar sign."""
    return Sql(Template(template).substitute({name: literal(v) for name, v in values.items()}))


class LakeReader:
    """Queries a lake: a directory, or a URI that `deltalake` can open (``s3://…``, ``abfss://…``).

    Credentials of a store come from the environment, as for `deltalake`.

    Raises:
        LakeError: The root is a directory that `deltalake` cannot open.
    """

    def __init__(self, root: str) -> None:
        absolute_root(root)
        self.root = root.rstrip("/")
        self._tables: dict[str, Any] = {}

    def query(
        self,
        query: str,
        *tables: str,
        parts: Mapping[str, Sql] = _NOTHING,
        **values: str | int | datetime,
    ) -> list[Row]:
        """Runs a query and returns its rows.

        ``tables`` are the tables that it reads; the query names them without their layer
        (``epochs``). ``$name`` is replaced by ``parts`` (SQL fragments) and ``values`` (literals).

        Raises:
            LakeError: A table is missing, lacks a column, or cannot be read.
        """
        from deltalake import QueryBuilder

        substitutions = {**parts, **{name: literal(value) for name, value in values.items()}}
        builder = QueryBuilder()
        for path in tables:
            builder.register(path.partition("/")[2], self._table(path))
        try:
            result = builder.execute(Template(query).substitute(substitutions)).read_all()
        except Exception as error:
            raise self._failed(error, tables) from error
        return [*_rows(result)]

    def has(self, table: str) -> bool:
        """Whether a table exists, even if it cannot be read."""
        from deltalake import DeltaTable

        return table in self._tables or DeltaTable.is_deltatable(f"{self.root}/{table}")

    def newest(self, table: str, column: str) -> datetime | None:
        """Returns the newest time in a column from the files' statistics (None: the table has
        none).

        It reads no rows. Delta's statistics are exact to the millisecond.

        Raises:
            LakeError: The table is missing or cannot be read.
        """
        from deltalake.exceptions import DeltaError

        try:
            actions = self._table(table).get_add_actions(flatten=True)
        except DeltaError as error:
            raise self._failed(error, (table,)) from error
        name = f"max.{column}"
        if name not in actions.schema.names:
            return None
        times = [at for at in actions.column(name).to_pylist() if at is not None]
        return max(times).astimezone(UTC) if times else None

    def _table(self, path: str) -> Any:
        from deltalake import DeltaTable

        if (table := self._tables.get(path)) is None:
            location = f"{self.root}/{path}"
            if "://" not in location and not Path(location).is_dir():
                raise self._missing(path)
            try:
                table = DeltaTable(location)
            except Exception as error:
                raise self._failed(error, (path,)) from error
            self._tables[path] = table
        return table

    def _missing(self, path: str) -> LakeError:
        return LakeError(
            f"the lake {self.root} has no table {path}: fill it with featurewatch pipeline run "
            f"--lake {self.root}, or name another with --lake"
        )

    def _failed(self, error: Exception, tables: tuple[str, ...]) -> LakeError:
        """The one-line error for an exception of `deltalake` or of the file system."""
        names = ", ".join(tables)
        reason = one_line(str(error))
        if type(error).__name__ == _NO_TABLE and len(tables) == 1:
            return self._missing(tables[0])
        if _OTHER_SCHEMA in reason:
            return LakeError(
                f"the lake {self.root} was filled by an older featurewatch ({names}: {reason}); "
                "run: featurewatch pipeline maintain"
            )
        return LakeError(f"the lake {self.root} cannot be read ({names}): {reason}")


def _rows(table: Any) -> Iterator[Row]:
    """The rows of an Arrow table."""
    columns = [_values(column) for column in table.columns]
    names = table.column_names
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _values(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist()
    if "Map(" in repr(column.type)[:40]:
        return [None if value is None else dict(value) for value in values]
    return values
