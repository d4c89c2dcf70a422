"""Gold: what the shared fold says of each cluster's messages, in the lake's order.

The fold reads bronze and not silver: it takes events, by the decoder of the live worker, and so
comes to what the worker said.

A query without a checkpoint folds what lies there as a batch and goes on from the state that comes
of it. Whatever is folded twice on the way is passed over by the fold itself, and what is said twice
has the same id.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.fold.daily_readiness import STANDING
from featurewatch.pipeline.fold.intervals import CAPABILITY, EXCLUSION, ROLL
from featurewatch.pipeline.fold.messages import ALERT, CHANGE, SNAPSHOT, STATE_ROW
from featurewatch.pipeline.gold.spark_fold import OUTPUT_SCHEMA, by_cluster, fold_batch, fold_stream
from featurewatch.pipeline.gold.tables import (
    ALERTS,
    CAPABILITY_INTERVALS,
    EPOCHS,
    FEATURE_CHANGES,
    INCOMPATIBILITIES,
    READINESS_BY_DAY,
    UPGRADES,
)
from featurewatch.pipeline.lake.lake import Lake, TableWrite
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES, Table
from featurewatch.pipeline.silver.event_schema import ddl

LOG: Final = logging.getLogger("featurewatch.pipeline")


def _typed(said: DataFrame, kind: str, fields: dict[str, str]) -> DataFrame:
    output = fn.from_json(fn.col("value").cast("string"), ddl(fields)).alias("said")
    return said.where(fn.col("kind") == kind).select("cluster", "id", output)


def _time(name: str) -> Column:
    """A time of an output: milliseconds, -1 where it is not known."""
    at = fn.col(name)
    return fn.when(at >= 0, fn.timestamp_millis(at))


def _columns(table: Table, *others: str) -> list[str]:
    return [f"said.{name}" for name in table.columns if name not in ("cluster", "id", *others)]


def epochs(said: DataFrame) -> DataFrame:
    """Rows of `gold_tables.EPOCHS` from rows of `OUTPUT_SCHEMA`."""
    return _typed(said, SNAPSHOT, {**EPOCHS.columns, "at_ms": "bigint"}).select(
        "cluster", "id", *_columns(EPOCHS, "at"), _time("said.at_ms").alias("at")
    )


def feature_changes(said: DataFrame) -> DataFrame:
    """Rows of `gold_tables.FEATURE_CHANGES` from rows of `OUTPUT_SCHEMA`."""
    times = {"append_ms": "bigint", "seen_ms": "bigint"}
    return _typed(said, CHANGE, {**FEATURE_CHANGES.columns, **times}).select(
        *("cluster", "id", *_columns(FEATURE_CHANGES, "appended_at", "seen_at")),
        _time("said.append_ms").alias("appended_at"),
        _time("said.seen_ms").alias("seen_at"),
    )


def alerts(said: DataFrame) -> DataFrame:
    """Rows of `gold_tables.ALERTS` from rows of `OUTPUT_SCHEMA`."""
    times = {"since_ms": "bigint", "at_ms": "bigint"}
    return _typed(said, ALERT, {**ALERTS.columns, **times}).select(
        *("cluster", "id", *_columns(ALERTS, "alert_id", "since", "at")),
        fn.col("said.id").alias("alert_id"),
        _time("said.since_ms").alias("since"),
        _time("said.at_ms").alias("at"),
    )


def _intervals(said: DataFrame, kind: str, table: Table) -> DataFrame:
    """Rows of a table of intervals; of one that began and ended, the row that says both."""
    times = {"since_ms": "bigint", "until_ms": "bigint"}
    rows = _typed(said, kind, {**table.columns, **times}).select(
        *("cluster", "id", *_columns(table, "since", "until")),
        _time("said.since_ms").alias("since"),
        _time("said.until_ms").alias("until"),
    )
    return _newest(rows, table, fn.col("until").isNotNull())


def _newest(rows: DataFrame, table: Table, order: Column) -> DataFrame:
    """Of the rows with one key the one that comes last in an order."""
    others = [name for name in table.columns if name not in table.key]
    last = fn.max_by(fn.struct(*others), order).alias("row")
    return rows.groupBy(*table.key).agg(last).select(*table.key, "row.*")


def capability_intervals(said: DataFrame) -> DataFrame:
    """Rows of `gold_tables.CAPABILITY_INTERVALS` from rows of `OUTPUT_SCHEMA`."""
    return _intervals(said, CAPABILITY, CAPABILITY_INTERVALS)


def incompatibilities(said: DataFrame) -> DataFrame:
    """Rows of `gold_tables.INCOMPATIBILITIES` from rows of `OUTPUT_SCHEMA`."""
    return _intervals(said, EXCLUSION, INCOMPATIBILITIES)


def upgrades(said: DataFrame) -> DataFrame:
    """Rows of `gold_tables.UPGRADES` from rows of `OUTPUT_SCHEMA`."""
    names = ("started", "rolled", "finalized", "ended")
    times = {f"{name}_ms": "bigint" for name in names}
    nodes = "array<struct<role: string, node_id: int, at_ms: bigint, release: string>>"
    rows = _typed(said, ROLL, {**UPGRADES.columns, **times, "nodes": nodes, "number": "bigint"})
    typed = rows.select(
        *("cluster", "id", "said.number", *_columns(UPGRADES, "nodes", *names)),
        *(_time(f"said.{name}_ms").alias(name) for name in names),
        fn.transform("said.nodes", _arrival).alias("nodes"),
    )
    return _newest(typed, UPGRADES, fn.col("number"))


def readiness_by_day(said: DataFrame) -> DataFrame:
    """Rows of `gold_tables.READINESS_BY_DAY` from rows of `OUTPUT_SCHEMA`."""
    rows = _typed(said, STANDING, {**READINESS_BY_DAY.columns})
    return rows.select("cluster", "id", *_columns(READINESS_BY_DAY))


def _arrival(node: Column) -> Column:
    at = fn.timestamp_millis(node["at_ms"]).alias("at")
    return fn.struct(
        node["role"].alias("role"),
        node["node_id"].alias("node_id"),
        at,
        node["release"].alias("release"),
    )


CLOSES: Final = "old.until IS NULL AND new.until IS NOT NULL"
"""An interval that ended stays as it is, whatever is said of it again."""


class GoldTableSpec(NamedTuple):
    """How a table's rows are made, and of which kind of what is said.

    ``replace_when`` is when a row takes the place of the one with its key (empty: never).
    """

    table: Table
    build: Callable[[DataFrame], DataFrame]
    kind: str
    replace_when: str = ""


TABLES: Final = (
    GoldTableSpec(EPOCHS, epochs, SNAPSHOT),
    GoldTableSpec(FEATURE_CHANGES, feature_changes, CHANGE),
    GoldTableSpec(ALERTS, alerts, ALERT),
    GoldTableSpec(CAPABILITY_INTERVALS, capability_intervals, CAPABILITY, CLOSES),
    GoldTableSpec(INCOMPATIBILITIES, incompatibilities, EXCLUSION, CLOSES),
    GoldTableSpec(UPGRADES, upgrades, ROLL, "TRUE"),
    GoldTableSpec(READINESS_BY_DAY, readiness_by_day, STANDING, "TRUE"),
)


class GoldQuery:
    """The query that makes gold of bronze.

    ``limits`` are the worker's: with others it would say other alerts than gold holds.
    """

    def __init__(self, lake: Lake, limits: Limits = DEFAULT_LIMITS) -> None:
        self._lake = lake
        self._limits = limits
        self._checkpoint = lake.checkpoint("gold")
        self._start = lake.checkpoint("gold-start")

    def writer(self) -> DataStreamWriter:
        """The query; it wants a trigger and to be started. Without a checkpoint it folds what lies
        there first."""
        options = {} if self._has_begun() else {"startingVersion": str(self.rebuild())}
        start = self._lake.session.read.schema(OUTPUT_SCHEMA).parquet(self._start)
        messages = by_cluster(self._lake.follow(MESSAGES, **options))
        return (
            fold_stream(messages, start, self._limits)
            .writeStream.queryName("gold")
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(lambda said, _: self._tell(said))
        )

    def rebuild(self) -> int:
        """Folds all of bronze as a batch; the version of bronze that was folded.

        Raises:
            LakeError: Bronze no longer has the beginning, without which the fold comes to another
                end.
        """
        path = self._lake.ensure_table(MESSAGES)
        version, properties = self._lake.newest(MESSAGES)
        if EXPIRED in properties:
            raise LakeError(
                f"the checkpoint {self._checkpoint} is lost, and {path} no longer has the messages "
                "since the beginning: put the checkpoint back, or fill a new lake from the topics"
            )
        reader = self._lake.session.read.format("delta").option("versionAsOf", version)
        said = fold_batch(by_cluster(reader.load(path)), self._limits)
        said = said.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._add(said)
            for each in TABLES:
                self._lake.ensure_table(
                    each.table
                )  # readers find all of them, with rows or without
            rows = said.where(fn.col("kind") == STATE_ROW)
            rows.write.mode("overwrite").parquet(self._start)
        finally:
            said.unpersist()
        return version

    def _has_begun(self) -> bool:
        """Whether a batch was finished with this checkpoint: what had only begun begins anew.

        So does a lake that lacks a table, deleted or new to this featurewatch, if bronze still has
        all.
        """
        files = self._lake.files()
        self._lake.ensure_table(MESSAGES)
        if files.has_any(f"{self._checkpoint}/commits"):
            missing = [each.table for each in TABLES if not self._lake.exists(each.table)]
            if not missing:
                return True
            names = ", ".join(table.path for table in missing)
            if EXPIRED in self._lake.newest(MESSAGES).properties:
                LOG.warning(
                    "the lake had no %s, and bronze no longer has the messages since the "
                    "beginning: they hold what comes from now on; put them back if you have them",
                    names,
                )
                for table in missing:
                    self._lake.ensure_table(table)
                return True
            LOG.info("the lake had no %s: gold is folded anew from the beginning", names)
        files.remove(self._checkpoint)
        return False

    def _tell(self, said: DataFrame) -> None:
        said = said.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._add(said)
        finally:
            said.unpersist()

    def _add(self, said: DataFrame) -> None:
        size = fn.sum(fn.length("value")).alias("size")
        sizes = {row["kind"]: row["size"] for row in said.groupBy("kind").agg(size).collect()}
        self._lake.merge_all(
            TableWrite(
                *(each.table, each.build(said), (), bool(each.replace_when), each.replace_when),
                size=sizes[each.kind],
            )
            for each in TABLES
            if each.kind in sizes
        )
