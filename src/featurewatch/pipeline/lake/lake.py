"""The lake: a directory or URI of Delta tables, each created when it is first needed."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
from delta.exceptions import DeltaConcurrentModificationException
from delta.tables import DeltaTable
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.lake import local_writer
from featurewatch.pipeline.lake.hadoop_files import HadoopFiles
from featurewatch.pipeline.lake.locks import FILLING, MAINTAINING, Locks
from featurewatch.pipeline.lake.root import local_directory
from featurewatch.pipeline.lake.tables import PROPERTIES, Table

LOG: Final = logging.getLogger("featurewatch.pipeline")

_PARALLEL_WRITES: Final = 4
"""Tables that are written at the same time: a commit mostly waits for the previous one in the
table's log, and leaves the cores idle meanwhile."""
_CONFLICT: Final = DeltaConcurrentModificationException
"""Raised by Spark where another commit was in the way."""
_CREATION_PREFIX: Final = "0" * 20
"""Prefix of the files in a table's log that were written when it was created."""


class TableVersion(NamedTuple):
    """The newest version of a table, and its properties."""

    version: int
    properties: Mapping[str, str]


class Lake:
    """The tables below a root, and the checkpoints of the queries that fill them.

    ``root`` is a directory or a URI that Spark can write (`absolute_root`). The methods raise
    `LakeError` if a table cannot be read or written.
    """

    def __init__(self, session: SparkSession, root: str) -> None:
        self.session = session
        self.root = root.rstrip("/")
        self._ensured: set[str] = set()
        self._filled: set[str] = set()
        self.locks = Locks(session, self.directory)

    @property
    def directory(self) -> Path | None:
        """The root if it is a directory of this machine (None: it is another kind of URI)."""
        return local_directory(self.root)

    def path(self, table: Table) -> str:
        """Returns the path or URI of a table."""
        return f"{self.root}/{table.path}"

    def checkpoint(self, query: str) -> str:
        """Returns the path or URI of a query's checkpoint."""
        return f"{self.root}/checkpoints/{query}"

    def files(self) -> HadoopFiles:
        """Returns access to the files beside the tables."""
        return HadoopFiles(self.session)

    def exists(self, table: Table) -> bool:
        """Whether a table has been created."""
        return DeltaTable.isDeltaTable(self.session, self.path(table))

    def ensure_table(self, table: Table) -> str:
        """Returns the path of a table, which is created if it does not exist.

        Raises:
            LakeError: The table cannot be created, or lacks columns.
        """
        path = self.path(table)
        if table.path not in self._ensured:
            if self.exists(table):
                self._check(table)
            else:
                self._create(table)
            self._ensured.add(table.path)
        return path

    def _create(self, table: Table) -> None:
        columns = StructType.fromDDL(table.ddl)
        assert isinstance(columns, StructType)  # noqa: S101 - a list of columns is a struct
        if self.directory is not None:
            local_writer.create(
                self.directory / table.path, columns, table.partitioned, table.about
            )
            return
        # Spark has the credentials for any store; it takes a quarter of a second for each table.
        builder = DeltaTable.createIfNotExists(self.session).location(self.path(table))
        builder = builder.comment(table.about).addColumns(columns)
        for name, value in PROPERTIES.items():
            builder = builder.property(name, value)
        builder.partitionedBy(*table.partitioned).execute()

    def read(self, table: Table) -> DataFrame:
        """Returns a table's rows; an absent table is created."""
        return self.session.read.format("delta").load(self.ensure_table(table))

    def read_version(self, table: Table, version: int) -> DataFrame:
        """Returns the rows of one version of an existing table, whatever is written meanwhile.

        Raises:
            LakeError: The table cannot be read.
        """
        path, reader = self.path(table), self.session.read
        files = None
        if self.directory is not None:
            files = local_writer.plain_files(self.directory / table.path, version)
        if files is None:
            return reader.format("delta").option("versionAsOf", version).load(path)
        if not files:
            return self.session.createDataFrame([], table.ddl)
        # Spark would read Delta's log in four jobs, half a second for each table.
        return reader.schema(table.ddl).parquet(*files)

    def newest(self, table: Table) -> TableVersion:
        """Returns the newest version of an existing table.

        Raises:
            LakeError: The table cannot be read.
        """
        if self.directory is not None:
            return TableVersion(*local_writer.newest(self.directory / table.path))
        delta = DeltaTable.forPath(self.session, self.path(table))  # runs two jobs
        version = delta.history(1).select("version").collect()[0]["version"]
        properties = delta.detail().select("properties").collect()[0]["properties"]
        return TableVersion(version, properties)

    def count(self, table: Table) -> int | None:
        """Returns the number of rows of an existing table, if its log tells it (None: Spark would
        have to read the table)."""
        return local_writer.count(self.directory / table.path) if self.directory else None

    def follow(self, table: Table, **options: str) -> DataFrame:
        """Returns a table's rows as a stream; commits of maintenance are skipped."""
        reader = self.session.readStream.format("delta").option("skipChangeCommits", "true")
        return reader.options(**options).load(self.ensure_table(table))

    def append(self, table: Table, rows: DataFrame, size: int | None = None) -> pa.Table | None:
        """Adds rows in one commit; ``size`` as in `merge_new`.

        Returns the rows if this process wrote them (None: Spark did).
        """
        path = self.ensure_table(table)
        if (directory := self._local_directory(table, size)) is not None:
            return local_writer.append(directory, rows)
        writer = rows.write.format("delta").mode("append").option("optimizeWrite", "true")
        local_writer.repeated(lambda: writer.save(path), _CONFLICT)
        return None

    def merge_new(
        self,
        table: Table,
        rows: DataFrame,
        days: Iterable[str] = (),
        distinct: bool = False,
        replaced: str = "",
        size: int | None = None,
    ) -> int | None:
        """Adds the rows whose keys the table lacks, one row for each key, in one commit.

        Returns how many were added; None if nothing was ever written to the table before, and Spark
        added all.

        ``days`` are the days of the rows, for a ``pruned`` table: only those partitions are
        searched for duplicates. ``distinct``: no two rows have the same key. ``replaced`` is a SQL
        condition on ``old`` and ``new`` under which a row replaces the one with its key. ``size``
        is the size in bytes of the messages behind the rows (None: unknown).
        """
        path, same_key = self.ensure_table(table), self.same_key(table, days)
        if (directory := self._local_directory(table, size)) is not None:
            return local_writer.merge_new(directory, rows, table.key, same_key, replaced)
        new = rows if distinct else rows.dropDuplicates([*table.key])
        if self.is_empty(table):
            self.append(table, new)  # there is nothing to compare with
            return None
        target = DeltaTable.forPath(self.session, path)
        merge = target.alias("old").merge(new.alias("new"), same_key)
        if replaced:
            merge = merge.whenMatchedUpdateAll(replaced)
        (done,) = local_writer.repeated(
            lambda: merge.whenNotMatchedInsertAll().execute().collect(), _CONFLICT
        )
        return int(done["num_inserted_rows"])

    @staticmethod
    def same_key(table: Table, days: Iterable[str] = ()) -> str:
        """Returns the SQL condition under which ``old`` and ``new`` have the same key; ``days`` as
        in `merge_new`."""
        conditions = [f"(old.{name} IS NOT DISTINCT FROM new.{name})" for name in table.key]
        if table.pruned and days:
            dates = ", ".join(f"DATE '{day}'" for day in sorted(days))
            conditions.append(f"old.day IN ({dates})")
        return " AND ".join(conditions)

    def _local_directory(self, table: Table, size: int | None) -> Path | None:
        """The table's directory if this process writes the rows itself (None: Spark writes them).
        For few rows, Spark's commit is most of the cost."""
        is_small = size is not None and size <= local_writer.SMALL_BYTES
        return self.directory / table.path if is_small and self.directory is not None else None

    def is_empty(self, table: Table) -> bool:
        """Whether nothing was ever written to a table.

        Only the negative result is cached: another process may write at any time.
        """
        if table.path not in self._filled:
            if not self.files().has_any(
                f"{self.ensure_table(table)}/_delta_log", besides=_CREATION_PREFIX
            ):
                return True
            self._filled.add(table.path)
        return False

    @staticmethod
    def in_parallel(actions: Sequence[Callable[[], object]]) -> None:
        """Calls some functions, several at a time; waits for all, then raises the first error."""
        waiting = [*reversed(actions)]
        errors: list[BaseException] = []

        def write_waiting() -> None:
            while not errors:
                try:
                    action = waiting.pop()
                except IndexError:
                    return
                try:
                    action()
                except BaseException as error:  # raised below, after all threads have ended
                    errors.append(error)

        # They inherit the caller's query, so stopping it stops them too.
        threads = [
            InheritableThread(target=write_waiting)
            for _ in range(min(_PARALLEL_WRITES, len(actions)) - 1)
        ]
        for thread in threads:
            thread.start()
        write_waiting()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]

    def lock(self) -> None:
        """Keeps other processes from filling this lake (`Locks.take`)."""
        self.locks.take(FILLING)

    def unlock(self) -> None:
        """Releases all locks."""
        for name in (FILLING, MAINTAINING):
            self.locks.release(name)

    def _check(self, table: Table) -> None:
        """Checks that a table has all columns; one of a newer featurewatch may have more."""
        schema = self.session.read.format("delta").load(self.path(table)).schema
        missing = [name for name in table.columns if name not in schema.names]
        if missing:
            raise LakeError(
                f"the table {self.path(table)} has no column {', '.join(missing)}: it was made by "
                "an older featurewatch; run: featurewatch pipeline maintain"
            )
