"""Rows of silver from events without records. Each function takes the result of `read_events`."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn


def _of(events: DataFrame, *kinds: str) -> DataFrame:
    return events.where(fn.col("event.kind").isin(*kinds))


def _cause(index: Column | None = None) -> list[Column]:
    return [
        fn.col("event.cluster").alias("cluster"),
        fn.col("id"),
        (fn.lit(0) if index is None else index).cast("int").alias("index"),
        fn.col("at"),
        fn.timestamp_millis("event.seen_ms").alias("seen_at"),
        *map(fn.col, ("day", "topic", "partition", "offset")),
    ]


def log_gaps(events: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.LOG_GAPS`."""
    return _of(events, "gap").select(
        *_cause(),
        "event.from_offset",
        "event.to_offset",
        "event.reset",
        fn.col("event.reason").alias("detail"),
    )


def znode_changes(events: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.ZNODE_CHANGES`: a change, or each znode of a resync."""
    single = fn.when(fn.col("event.kind") == "znode-change", fn.array("event.znode"))
    znodes = _of(events, "znode-change", "znode-snapshot").select(
        *("id", "at", "day", "topic", "partition", "offset", "event"),
        fn.posexplode(fn.coalesce(single, "event.znodes")).alias("number", "znode"),
    )
    return znodes.select(
        *_cause(fn.col("number")),
        fn.coalesce("event.path", "znode.path").alias("path"),
        fn.col("znode").isNull().alias("gone"),
        fn.get_json_object("znode.content", "$.type").alias("type"),
        "znode.content",
        "znode.czxid",
        "znode.mzxid",
        "znode.version",
        "event.zxid",
        fn.coalesce("event.missed", fn.lit(0)).alias("missed"),
        fn.coalesce("event.recreated", fn.lit(False)).alias("recreated"),
        "event.resync",
    )


def answers(events: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.ANSWERS`."""
    ranges = fn.transform_values(
        "event.supported",
        lambda _, bounds: fn.struct(fn.get(bounds, 0).alias("min"), fn.get(bounds, 1).alias("max")),
    )
    return _of(events, "node-answer", "node-silent").select(
        *_cause(),
        *("event.role", "event.node_id", "event.address"),
        (fn.col("event.kind") == "node-answer").alias("answered"),
        fn.coalesce("event.gone", fn.lit(False)).alias("gone"),
        "event.detail",
        ranges.alias("supported"),
        "event.finalized",
        "event.epoch",
        "event.complete",
    )


def disagreements(events: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.DISAGREEMENTS`."""
    return _of(events, "disagreement").select(*_cause(), "event.feature", "event.views")


def source_states(events: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.SOURCE_STATES`."""
    return _of(events, "status").select(
        *_cause(),
        *("event.source", "event.state"),
        fn.col("event.offset").alias("log_offset"),
        *("event.offset_epoch", "event.high_watermark", "event.leader_id", "event.leader_epoch"),
        "event.detail",
    )


def unreadable_messages(events: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.QUARANTINE` for unreadable messages."""
    return events.where("reason IS NOT NULL").select(
        fn.coalesce(fn.col("key").cast("string"), fn.lit("unknown")).alias("cluster"),
        *("topic", "partition", "offset"),
        fn.lit(-1).alias("index"),
        fn.lit("message").alias("type"),
        "reason",
        fn.col("value").alias("payload"),
        "kafka_time",
        fn.to_date("kafka_time").alias("day"),
    )


def unreadable_znodes(events: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.QUARANTINE` for znodes that the source could not read."""
    unreadable = znode_changes(events).where(fn.col("type") == "unreadable")
    times = events.select("topic", "partition", "offset", "kafka_time")
    return unreadable.join(times, ["topic", "partition", "offset"], "inner").select(
        *("cluster", "topic", "partition", "offset", "index"),
        fn.concat_ws(" ", fn.lit("znode"), "path").alias("type"),
        fn.get_json_object("content", "$.reason").alias("reason"),
        fn.col("content").cast("binary").alias("payload"),
        "kafka_time",
        fn.to_date("kafka_time").alias("day"),
    )
