"""Rows of silver from the records of the metadata log. Each function takes `records` of them."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from pipeline.shapes import CONTROL_RECORD, LEVEL_RECORD, NODE_RECORD, ddl
from streams.events import UNREADABLE

_REGISTERS: Final = ("REGISTER_BROKER_RECORD", "REGISTER_CONTROLLER_RECORD")
_UNREGISTERS: Final = "UNREGISTER_BROKER_RECORD"
_FENCES: Final = ("FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD")
_CHANGES: Final = "BROKER_REGISTRATION_CHANGE_RECORD"

REGISTRATION_TYPES: Final = (*_REGISTERS, _UNREGISTERS)
FENCING_TYPES: Final = (*_FENCES, _CHANGES)
LEVEL_TYPES: Final = ("FEATURE_LEVEL_RECORD",)
CONTROL_TYPES: Final = (
    *("LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS"),
    "ZK_MIGRATION_STATE_RECORD",
)

_TYPES: Final = (
    *(*REGISTRATION_TYPES, *FENCING_TYPES, *LEVEL_TYPES, *CONTROL_TYPES),
    UNREADABLE,
)

CAUSE: Final = ("cluster", "id", "index", "at", "seen_at", "day", "topic", "partition", "offset")
LOG: Final = ("log_offset", "leader_epoch", "from_snapshot")


def records(events: DataFrame) -> DataFrame:
    """The records of commits and snapshots that some table holds, one a row, with their cause."""
    # Nine in ten records of a log are of no table: they are left out before they are rows.
    numbered = fn.transform(
        "event.records",
        lambda record, index: fn.struct(index.alias("index"), record.alias("record")),
    )
    wanted = fn.filter(numbered, lambda one: one["record"]["type"].isin(*_TYPES))
    exploded = events.where("reason IS NULL AND event.records IS NOT NULL").select(
        *("id", "at", "day", "topic", "partition", "offset", "kafka_time"),
        *("event.cluster", "event.seen_ms", "event.leader_epoch", "event.end_offset"),
        fn.explode(wanted).alias("one"),
    )
    return exploded.select(
        *("cluster", "id", "one.index", "at"),
        fn.timestamp_millis("seen_ms").alias("seen_at"),
        *("day", "topic", "partition", "offset", "kafka_time"),
        fn.col("one.record.offset").alias("log_offset"),
        "leader_epoch",
        fn.col("end_offset").isNotNull().alias("from_snapshot"),
        fn.col("one.record.type").alias("type"),
        fn.col("one.record.data").alias("data"),
    )


def _of(records: DataFrame, types: tuple[str, ...], fields: str) -> DataFrame:
    found = fn.from_json("data", fields).alias("data")
    return records.where(fn.col("type").isin(*types)).select(*CAUSE, *LOG, "type", found)


def registrations(records: DataFrame) -> DataFrame:
    """Rows of `silver_tables.REGISTRATIONS`."""
    return (
        _of(records, REGISTRATION_TYPES, ddl(NODE_RECORD))
        .select(
            *CAUSE,
            *LOG,
            fn.when(fn.col("type") == _REGISTERS[1], "controller")
            .otherwise("broker")
            .alias("role"),
            fn.coalesce("data.brokerId", "data.controllerId").alias("node_id"),
            fn.col("type").isin(*_REGISTERS).alias("registered"),
            fn.col("data.incarnationId").alias("incarnation"),
            fn.col("data.brokerEpoch").alias("node_epoch"),
            (fn.col("data.fenced") == "true").alias("fenced"),
            (fn.col("data.inControlledShutdown") == "true").alias("shutting_down"),
            fn.coalesce("data.isMigratingZkBroker", "data.zkMigrationReady").alias("migrating"),
            _ranges("data.features").alias("features"),
        )
        .where("node_id IS NOT NULL")
    )


def fencing(records: DataFrame) -> DataFrame:
    """Rows of `silver_tables.FENCING`."""
    by_type = fn.when(fn.col("type") == _FENCES[0], True).when(fn.col("type") == _FENCES[1], False)
    by_change = fn.when(fn.col("data.fenced") == "1", True).when(
        fn.col("data.fenced") == "-1", False
    )
    return (
        _of(records, FENCING_TYPES, ddl(NODE_RECORD))
        .select(
            *CAUSE,
            *LOG,
            fn.coalesce("data.brokerId", "data.id").alias("node_id"),
            fn.coalesce("data.brokerEpoch", "data.epoch").alias("node_epoch"),
            fn.coalesce(by_type, by_change).alias("fenced"),
            fn.when(fn.col("data.inControlledShutdown") == "1", True).alias("shutting_down"),
        )
        .where("node_id IS NOT NULL")
    )


def levels(records: DataFrame) -> DataFrame:
    """Rows of `silver_tables.LEVELS`."""
    return (
        _of(records, LEVEL_TYPES, ddl(LEVEL_RECORD))
        .select(
            *CAUSE,
            *LOG,
            fn.col("data.name").alias("feature"),
            fn.col("data.featureLevel").alias("level"),
        )
        .where("feature IS NOT NULL AND level IS NOT NULL")
    )


def control_records(records: DataFrame) -> DataFrame:
    """Rows of `silver_tables.CONTROL_RECORDS`."""
    return _of(records, CONTROL_TYPES, ddl(CONTROL_RECORD)).select(
        *CAUSE,
        *LOG,
        "type",
        fn.col("data.leaderId").alias("leader_id"),
        fn.col("data.voters.voterId").alias("voters"),
        fn.col("data.kRaftVersion").alias("kraft_version"),
        fn.col("data.zkMigrationState").alias("migration_state"),
    )


def broken_records(records: DataFrame) -> DataFrame:
    """Rows of `silver_tables.QUARANTINE`: what the source or these expressions could not read."""
    needed = {**NODE_RECORD, **LEVEL_RECORD, "reason": "string"}
    lacking = fn.concat(
        fn.lit("a "), "type", fn.lit(" lacks what it must have, or has it with another type")
    )
    node = fn.coalesce("found.brokerId", "found.controllerId", "found.id")
    no_level = fn.col("found.name").isNull() | fn.col("found.featureLevel").isNull()
    reason = (
        fn.when(fn.col("type") == UNREADABLE, fn.coalesce("found.reason", fn.lit("no reason")))
        .when(fn.col("type").isin(*REGISTRATION_TYPES, *FENCING_TYPES) & node.isNull(), lacking)
        .when(fn.col("type").isin(*LEVEL_TYPES) & no_level, lacking)
    )
    return (
        records.withColumn("found", fn.from_json("data", ddl(needed)))
        .select(
            *("cluster", "topic", "partition", "offset", "index", "type"),
            reason.alias("reason"),
            fn.col("data").cast("binary").alias("payload"),
            "kafka_time",
            fn.to_date("kafka_time").alias("day"),
        )
        .where("reason IS NOT NULL")
    )


def _ranges(features: str) -> Column:
    """An array of Kafka's supported ranges as a map by feature."""
    return fn.map_from_entries(
        fn.transform(
            fn.filter(features, lambda one: one["name"].isNotNull()),
            lambda one: fn.struct(
                one["name"].alias("key"),
                fn.struct(
                    one["minSupportedVersion"].alias("min"), one["maxSupportedVersion"].alias("max")
                ).alias("value"),
            ),
        )
    )
