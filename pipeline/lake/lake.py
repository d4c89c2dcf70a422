"""The lake: a directory or URI of Delta tables, each made when it is first needed."""

import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from delta.tables import DeltaTable
from py4j.protocol import Py4JJavaError
from pyspark import InheritableThread
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.lake import local_writer
from featurewatch.pipeline.lake.hadoop_files import HadoopFiles
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.spark.session import jvm

LOG: Final = logging.getLogger("featurewatch.pipeline")

_AT_ONCE: Final = 4
"""Tables that are written side by side: much of a commit is waiting for the one before it in the
table's log, and cores stand idle meanwhile."""
_MADE: Final = "0" * 20
"""Begins the names of the files in a table's log that were written when it was made."""
_LOCK_S: Final = 30.0
_LOCK_POLL_S: Final = 0.2


class TableWrite(NamedTuple):
    """New rows of a table, as `Lake.merge_new` takes them."""

    table: Table
    rows: DataFrame
    days: tuple[str, ...] = ()
    distinct: bool = False
    replaced: str = ""
    size: int | None = None


class TableVersion(NamedTuple):
    """The newest version of a table, and the properties that it has."""

    version: int
    properties: Mapping[str, str]


class Lake:
    """The tables below a root, and the checkpoints of the queries that fill them."""

    def __init__(self, session: SparkSession, root: str) -> None:
        self.session = session
        self.root = root.rstrip("/")
        self._known: set[str] = set()
        self._filled: set[str] = set()
        self._lock: Any = None

    @property
    def directory(self) -> Path | None:
        """The root where it is a directory of this machine (None: it is a URI of another kind)."""
        if "://" not in self.root:
            return Path(self.root)
        return Path(self.root.removeprefix("file://")) if self.root.startswith("file:") else None

    def path(self, table: Table) -> str:
        """Where a table is."""
        return f"{self.root}/{table.path}"

    def checkpoint(self, query: str) -> str:
        """Where a query keeps how far it has come."""
        return f"{self.root}/checkpoints/{query}"

    def files(self) -> HadoopFiles:
        """The files beside the tables."""
        return HadoopFiles(self.session)

    def exists(self, table: Table) -> bool:
        """Whether a table has been made."""
        return DeltaTable.isDeltaTable(self.session, self.path(table))

    def ensure_table(self, table: Table) -> str:
        """The path of a table, which is made if it is not there; raises `LakeError`."""
        path = self.path(table)
        if table.path not in self._known:
            if self.exists(table):
                self._check(table)
            else:
                self._create(table)
            self._known.add(table.path)
        return path

    def _create(self, table: Table) -> None:
        columns = StructType.fromDDL(table.ddl)
        assert isinstance(columns, StructType)  # noqa: S101 - what a list of columns is
        if self.directory is not None:
            local_writer.create(
                self.directory / table.path, columns, table.partitioned, table.about
            )
            return
        # Spark has the rights wherever the lake is, and takes a quarter of a second a table.
        builder = DeltaTable.createIfNotExists(self.session).location(self.path(table))
        builder = builder.comment(table.about).addColumns(columns)
        builder.partitionedBy(*table.partitioned).execute()

    def read(self, table: Table) -> DataFrame:
        """A table's rows."""
        return self.session.read.format("delta").load(self.ensure_table(table))

    def newest(self, table: Table) -> TableVersion:
        """How a table that is there stands now; raises `LakeError` if it cannot be read."""
        if self.directory is not None:
            return TableVersion(*local_writer.newest(self.directory / table.path))
        delta = DeltaTable.forPath(self.session, self.path(table))  # which takes two jobs
        version = delta.history(1).select("version").collect()[0]["version"]
        properties = delta.detail().select("properties").collect()[0]["properties"]
        return TableVersion(version, properties)

    def follow(self, table: Table, **options: str) -> DataFrame:
        """A table's rows as a stream.

        What maintenance rewrites or removes is no news, and is passed over.
        """
        reader = self.session.readStream.format("delta").option("skipChangeCommits", "true")
        return reader.options(**options).load(self.ensure_table(table))

    def append(self, table: Table, rows: DataFrame, size: int | None = None) -> None:
        """Adds rows in one commit; ``size`` as in `merge_new`."""
        path = self.ensure_table(table)
        if (directory := self._here(table, size)) is not None:
            local_writer.append(directory, rows)
        else:
            rows.write.format("delta").mode("append").option("optimizeWrite", "true").save(path)

    def merge_new(
        self,
        table: Table,
        rows: DataFrame,
        days: Iterable[str] = (),
        distinct: bool = False,
        replaced: str = "",
        size: int | None = None,
    ) -> None:
        """Adds the rows whose key the table does not have, in one commit; of equal ones, one.

        ``days`` are those of the rows, where the table is ``pruned``: doubles are looked for in no
        others. ``distinct`` says that no two of the rows have the same key. ``replaced`` is a
        condition on ``old`` and ``new`` under which a row takes the place of the one with its key.
        ``size`` is that of the messages of which the rows come, in bytes (None: not known).
        """
        path = self.ensure_table(table)
        conditions = [f"(old.{name} IS NOT DISTINCT FROM new.{name})" for name in table.key]
        if table.pruned and days:
            listed = ", ".join(f"DATE '{day}'" for day in sorted(days))
            conditions.append(f"old.day IN ({listed})")
        same = " AND ".join(conditions)
        if (directory := self._here(table, size)) is not None:
            local_writer.merge_new(directory, rows, table.key, same, replaced)
            return
        new = rows if distinct else rows.dropDuplicates([*table.key])
        if self.is_empty(table):
            self.append(table, new)  # nothing to look through
            return
        target = DeltaTable.forPath(self.session, path)
        merge = target.alias("old").merge(new.alias("new"), same)
        if replaced:
            merge = merge.whenMatchedUpdateAll(replaced)
        merge.whenNotMatchedInsertAll().execute()

    def _here(self, table: Table, size: int | None) -> Path | None:
        """Where this process writes rows itself, without Spark's commit, which is most of what few
        of them cost (None: Spark writes them)."""
        small = size is not None and size <= local_writer.SMALL_BYTES
        return self.directory / table.path if small and self.directory is not None else None

    def is_empty(self, table: Table) -> bool:
        """Whether nothing was ever written to a table. Another process may at any time, so that
        only its having been written is remembered."""
        if table.path not in self._filled:
            if not self.files().has_any(f"{self.ensure_table(table)}/_delta_log", besides=_MADE):
                return True
            self._filled.add(table.path)
        return False

    def merge_all(self, additions: Iterable[TableWrite]) -> None:
        """Adds to several tables as `merge_new` does, side by side; each table stands once at most.

        All are waited for. The first error is raised then: what was added stays, and adding all of
        it again adds what is missing.
        """
        todo = [*additions]
        for addition in todo:
            self.ensure_table(
                addition.table
            )  # one by one: tables are made rarely, and remembered here
        waiting = todo[::-1]
        failed: list[BaseException] = []

        def add() -> None:
            while not failed:
                try:
                    addition = waiting.pop()
                except IndexError:
                    return
                try:
                    self.merge_new(*addition)
                except BaseException as error:  # raised where all are waited for
                    failed.append(error)

        # These take the caller's query with them, so that its end is theirs.
        adding = [InheritableThread(target=add) for _ in range(min(_AT_ONCE, len(todo)) - 1)]
        for thread in adding:
            thread.start()
        add()
        for thread in adding:
            thread.join()
        if failed:
            raise failed[0]

    def lock(self) -> None:
        """Keeps other processes from filling this lake until the session's JVM has ended.

        The JVM holds the lock and not this process: when this one is killed, a write of the JVM may
        still be on its way, and who comes next waits for its end. A lake that is no directory of
        this machine has no lock: see to it that one process fills it.

        Raises:
            LakeError: Another process fills it, or the directory cannot be written.
        """
        if self.directory is None or self._lock is not None:
            return
        file = self.directory / "lock"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            file.touch()
        except OSError as error:
            raise LakeError(
                f"the lake {self.directory} cannot be written ({error.strerror}): "
                "choose another with --lake"
            ) from None
        channel = jvm(self.session).java.io.RandomAccessFile(str(file), "rw").getChannel()
        deadline = time.monotonic() + _LOCK_S
        while (held := self._try_lock(channel)) is None:
            if time.monotonic() > deadline:
                raise LakeError(
                    f"another process fills the lake {self.directory}: wait for its end, or stop it"
                )
            time.sleep(_LOCK_POLL_S)
        self._lock = held

    def unlock(self) -> None:
        """Lets others fill the lake."""
        if self._lock is not None:
            self._lock.channel().close()
            self._lock = None

    @staticmethod
    def _try_lock(channel: Any) -> Any:
        try:
            return channel.tryLock()
        except Py4JJavaError as error:
            if "OverlappingFileLockException" in str(error.java_exception):
                return None  # this very JVM holds it, for another `Lake`
            raise

    def _check(self, table: Table) -> None:
        """A table of a newer featurewatch may have more columns, and may not lack any."""
        schema = self.session.read.format("delta").load(self.path(table)).schema
        found = {field.name: field.dataType.simpleString() for field in schema}
        missing = [name for name in table.columns if name not in found]
        if missing:
            raise LakeError(
                f"the table {self.path(table)} has no column {', '.join(missing)}: it was made by "
                "an older featurewatch; run: featurewatch pipeline maintain"
            )
