"""Live outputs as rows of gold's tables, typed by Spark.

The pipeline types its own outputs in Python (`gold.output_rows`). What came over the bus is typed
here on its own, so that each of the two checks the other; a value that is no such JSON gives nulls.
"""

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.fold.messages import ALERT, CHANGE, OPERATION, SNAPSHOT
from featurewatch.pipeline.gold.tables import ALERTS, EPOCHS, FEATURE_CHANGES, OPERATIONS
from featurewatch.pipeline.lake.tables import Table, ddl_of


def _typed(outputs: DataFrame, kind: str, fields: dict[str, str]) -> DataFrame:
    output = fn.from_json(fn.col("value").cast("string"), ddl_of(fields)).alias("output")
    return outputs.where(fn.col("kind") == kind).select("cluster", "id", output)


def _time(name: str) -> Column:
    """A time of an output in milliseconds as a timestamp; negative (unknown) gives null."""
    at = fn.col(name)
    return fn.when(at >= 0, fn.timestamp_millis(at))


def _columns(table: Table, *excluded: str) -> list[str]:
    return [f"output.{name}" for name in table.columns if name not in ("cluster", "id", *excluded)]


def epochs(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.EPOCHS` from typed outputs."""
    return _typed(outputs, SNAPSHOT, {**EPOCHS.columns, "at_ms": "bigint"}).select(
        "cluster", "id", *_columns(EPOCHS, "at"), _time("output.at_ms").alias("at")
    )


def feature_changes(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.FEATURE_CHANGES` from typed outputs."""
    return _of_record(outputs, FEATURE_CHANGES, CHANGE)


def operations(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.OPERATIONS` from typed outputs."""
    return _of_record(outputs, OPERATIONS, OPERATION)


def _of_record(outputs: DataFrame, table: Table, kind: str) -> DataFrame:
    times = {"append_ms": "bigint", "seen_ms": "bigint"}
    return _typed(outputs, kind, {**table.columns, **times}).select(
        *("cluster", "id", *_columns(table, "appended_at", "seen_at")),
        _time("output.append_ms").alias("appended_at"),
        _time("output.seen_ms").alias("seen_at"),
    )


def alerts(outputs: DataFrame) -> DataFrame:
    """Rows of `gold.tables.ALERTS` from typed outputs."""
    times = {"since_ms": "bigint", "at_ms": "bigint"}
    return _typed(outputs, ALERT, {**ALERTS.columns, **times}).select(
        *("cluster", "id", *_columns(ALERTS, "alert_id", "since", "at")),
        fn.col("output.id").alias("alert_id"),
        _time("output.since_ms").alias("since"),
        _time("output.at_ms").alias("at"),
    )


TYPED: Final[Mapping[str, Callable[[DataFrame], DataFrame]]] = {
    EPOCHS.name: epochs,
    FEATURE_CHANGES.name: feature_changes,
    ALERTS.name: alerts,
    OPERATIONS.name: operations,
}
"""For each audited table, the function from outputs to its rows."""
