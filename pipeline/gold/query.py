"""Gold: folds each cluster's messages, in the lake's order, into tables.

The fold reads bronze, not silver: it decodes events as the live worker does, and so yields the same
outputs.

Without a checkpoint, the query first folds all of bronze as a batch and continues from the
resulting state. Messages folded twice on the way are skipped by the fold, and outputs emitted twice
have the same id.
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
from featurewatch.pipeline.fold.daily_readiness import READINESS
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


def _typed(outputs: DataFrame, kind: str, fields: dict[str, str]) -> DataFrame:
    output = fn.from_json(fn.col("value").cast("string"), ddl(fields)).alias("output")
    return outputs.where(fn.col("kind") == kind).select("cluster", "id", output)


def _time(name: str) -> Column:
    """A time of an output in milliseconds as a timestamp; negative (unknown) gives null."""
    at = fn.col(name)
    return fn.when(at >= 0, fn.timestamp_millis(at))


def _columns(table: Table, *excluded: str) -> list[str]:
    return [f"output.{name}" for name in table.columns if name not in ("cluster", "id", *excluded)]


def epochs(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.EPOCHS` from rows of `OUTPUT_SCHEMA`."""
    return _typed(outputs, SNAPSHOT, {**EPOCHS.columns, "at_ms": "bigint"}).select(
        "cluster", "id", *_columns(EPOCHS, "at"), _time("output.at_ms").alias("at")
    )


def feature_changes(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.FEATURE_CHANGES` from rows of `OUTPUT_SCHEMA`."""
    times = {"append_ms": "bigint", "seen_ms": "bigint"}
    return _typed(outputs, CHANGE, {**FEATURE_CHANGES.columns, **times}).select(
        *("cluster", "id", *_columns(FEATURE_CHANGES, "appended_at", "seen_at")),
        _time("output.append_ms").alias("appended_at"),
        _time("output.seen_ms").alias("seen_at"),
    )


def alerts(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.ALERTS` from rows of `OUTPUT_SCHEMA`."""
    times = {"since_ms": "bigint", "at_ms": "bigint"}
    return _typed(outputs, ALERT, {**ALERTS.columns, **times}).select(
        *("cluster", "id", *_columns(ALERTS, "alert_id", "since", "at")),
        fn.col("output.id").alias("alert_id"),
        _time("output.since_ms").alias("since"),
        _time("output.at_ms").alias("at"),
    )


def _intervals(outputs: DataFrame, kind: str, table: Table) -> DataFrame:
    """Rows of a table of intervals; of an interval's two rows, the one with its end."""
    times = {"since_ms": "bigint", "until_ms": "bigint"}
    rows = _typed(outputs, kind, {**table.columns, **times}).select(
        *("cluster", "id", *_columns(table, "since", "until")),
        _time("output.since_ms").alias("since"),
        _time("output.until_ms").alias("until"),
    )
    return _newest(rows, table, fn.col("until").isNotNull())


def _newest(rows: DataFrame, table: Table, order: Column) -> DataFrame:
    """The last row of each key, by the given order."""
    columns = [name for name in table.columns if name not in table.key]
    last = fn.max_by(fn.struct(*columns), order).alias("row")
    return rows.groupBy(*table.key).agg(last).select(*table.key, "row.*")


def capability_intervals(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.CAPABILITY_INTERVALS` from rows of `OUTPUT_SCHEMA`."""
    return _intervals(outputs, CAPABILITY, CAPABILITY_INTERVALS)


def incompatibilities(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.INCOMPATIBILITIES` from rows of `OUTPUT_SCHEMA`."""
    return _intervals(outputs, EXCLUSION, INCOMPATIBILITIES)


def upgrades(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.UPGRADES` from rows of `OUTPUT_SCHEMA`."""
    names = ("started", "rolled", "finalized", "ended")
    times = {f"{name}_ms": "bigint" for name in names}
    nodes = "array<struct<role: string, node_id: int, at_ms: bigint, release: string>>"
    rows = _typed(outputs, ROLL, {**UPGRADES.columns, **times, "nodes": nodes, "number": "bigint"})
    typed = rows.select(
        *("cluster", "id", "output.number", *_columns(UPGRADES, "nodes", *names)),
        *(_time(f"output.{name}_ms").alias(name) for name in names),
        fn.transform("output.nodes", _arrival).alias("nodes"),
    )
    return _newest(typed, UPGRADES, fn.col("number"))


def readiness_by_day(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.READINESS_BY_DAY` from rows of `OUTPUT_SCHEMA`."""
    rows = _typed(outputs, READINESS, {**READINESS_BY_DAY.columns})
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
"""An ended interval is final; repeated outputs do not change it."""


class GoldTableSpec(NamedTuple):
    """How a table's rows are built, and from which kind of outputs.

    ``replace_when`` is a SQL condition on ``old`` and ``new`` under which a row replaces the one
    with its key (empty: never).
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
    GoldTableSpec(READINESS_BY_DAY, readiness_by_day, READINESS, "TRUE"),
)


class GoldQuery:
    """The query that fills gold from bronze.

    ``limits`` must be the worker's: other limits lead to other alerts.
    """

    def __init__(self, lake: Lake, limits: Limits = DEFAULT_LIMITS) -> None:
        self._lake = lake
        self._limits = limits
        self._checkpoint = lake.checkpoint("gold")
        self._start = lake.checkpoint("gold-start")

    def writer(self) -> DataStreamWriter:
        """Returns the query; it needs a trigger and to be started.

        Without a checkpoint, all of bronze is folded first.

        Raises:
            LakeError: The checkpoint is lost and bronze no longer has its beginning.
        """
        options = {} if self._can_resume() else {"startingVersion": str(self.rebuild())}
        start = self._lake.session.read.schema(OUTPUT_SCHEMA).parquet(self._start)
        messages = by_cluster(self._lake.follow(MESSAGES, **options))
        return (
            fold_stream(messages, start, self._limits)
            .writeStream.queryName("gold")
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(lambda outputs, _: self._write(outputs))
        )

    def rebuild(self) -> int:
        """Folds all of bronze as a batch and returns the version of bronze that was folded.

        Raises:
            LakeError: Bronze no longer has its beginning, without which the result would differ.
        """
        path = self._lake.ensure_table(MESSAGES)
        version, properties = self._lake.newest(MESSAGES)
        if EXPIRED in properties:
            raise LakeError(
                f"the checkpoint {self._checkpoint} is lost, and {path} no longer has the messages "
                "since the beginning: put the checkpoint back, or fill a new lake from the topics"
            )
        reader = self._lake.session.read.format("delta").option("versionAsOf", version)
        outputs = fold_batch(by_cluster(reader.load(path)), self._limits)
        outputs = outputs.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._add(outputs)
            for spec in TABLES:
                self._lake.ensure_table(spec.table)  # readers expect all tables, even empty ones
            rows = outputs.where(fn.col("kind") == STATE_ROW)
            rows.write.mode("overwrite").parquet(self._start)
        finally:
            outputs.unpersist()
        return version

    def _can_resume(self) -> bool:
        """Whether a batch was completed with this checkpoint and all tables exist.

        Otherwise the fold restarts from the beginning. If a table is missing (deleted, or new in
        this version) and bronze no longer has the beginning, the fold resumes with an empty table.
        """
        files = self._lake.files()
        self._lake.ensure_table(MESSAGES)
        if files.has_any(f"{self._checkpoint}/commits"):
            missing = [spec.table for spec in TABLES if not self._lake.exists(spec.table)]
            if not missing:
                return True
            names = ", ".join(table.path for table in missing)
            if EXPIRED in self._lake.newest(MESSAGES).properties:
                LOG.warning(
                    "the lake has no %s, and bronze no longer has the messages since the "
                    "beginning: they start empty now; put them back if you have them",
                    names,
                )
                for table in missing:
                    self._lake.ensure_table(table)
                return True
            LOG.info("the lake has no %s: gold is folded again from the beginning", names)
        files.remove(self._checkpoint)
        return False

    def _write(self, outputs: DataFrame) -> None:
        outputs = outputs.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._add(outputs)
        finally:
            outputs.unpersist()

    def _add(self, outputs: DataFrame) -> None:
        size = fn.sum(fn.length("value")).alias("size")
        sizes = {row["kind"]: row["size"] for row in outputs.groupBy("kind").agg(size).collect()}
        self._lake.merge_all(
            TableWrite(
                *(spec.table, spec.build(outputs), (), bool(spec.replace_when), spec.replace_when),
                size=sizes[spec.kind],
            )
            for spec in TABLES
            if spec.kind in sizes
        )
