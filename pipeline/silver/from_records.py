"""Rows of silver from the records of the metadata log. Each function takes the result of
`records`."""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from featurewatch.streams.events import UNREADABLE

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

WANTED: Final = frozenset(
    {*REGISTRATION_TYPES, *FENCING_TYPES, *LEVEL_TYPES, *CONTROL_TYPES, UNREADABLE}
)
"""The record types that some table holds."""

CAUSE: Final = ("cluster", "id", "index", "at", "seen_at", "day", "topic", "partition", "offset")
LOG: Final = ("log_offset", "leader_epoch", "from_snapshot")


def records(events: DataFrame) -> DataFrame:
    """Returns the records of `read_events`, one per row, with their cause."""
    exploded = events.where("records IS NOT NULL").select(
        *("id", "at", "day", "topic", "partition", "offset", "kafka_time"),
        *("event.cluster", "event.seen_ms", "event.leader_epoch", "event.end_offset"),
        fn.explode("records").alias("one"),
    )
    return exploded.select(
        *("cluster", "id", "one.index", "at"),
        fn.timestamp_millis("seen_ms").alias("seen_at"),
        *("day", "topic", "partition", "offset", "kafka_time"),
        fn.col("one.offset").alias("log_offset"),
        "leader_epoch",
        fn.col("end_offset").isNotNull().alias("from_snapshot"),
        *("one.type", "one.data", "one.found"),
    )


def _of(records: DataFrame, types: tuple[str, ...]) -> DataFrame:
    return records.where(fn.col("type").isin(*types))


def registrations(records: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.REGISTRATIONS`."""
    return (
        _of(records, REGISTRATION_TYPES)
        .select(
            *CAUSE,
            *LOG,
            fn.when(fn.col("type") == _REGISTERS[1], "controller")
            .otherwise("broker")
            .alias("role"),
            fn.coalesce("found.brokerId", "found.controllerId").alias("node_id"),
            fn.col("type").isin(*_REGISTERS).alias("registered"),
            fn.col("found.incarnationId").alias("incarnation"),
            fn.col("found.brokerEpoch").alias("node_epoch"),
            (fn.col("found.fenced") == "true").alias("fenced"),
            (fn.col("found.inControlledShutdown") == "true").alias("shutting_down"),
            fn.coalesce("found.isMigratingZkBroker", "found.zkMigrationReady").alias("migrating"),
            _ranges("found.features").alias("features"),
        )
        .where("node_id IS NOT NULL")
    )


def fencing(records: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.FENCING`."""
    by_type = fn.when(fn.col("type") == _FENCES[0], True).when(fn.col("type") == _FENCES[1], False)
    by_change = fn.when(fn.col("found.fenced") == "1", True).when(
        fn.col("found.fenced") == "-1", False
    )
    return (
        _of(records, FENCING_TYPES)
        .select(
            *CAUSE,
            *LOG,
            fn.coalesce("found.brokerId", "found.id").alias("node_id"),
            fn.coalesce("found.brokerEpoch", "found.epoch").alias("node_epoch"),
            fn.coalesce(by_type, by_change).alias("fenced"),
            fn.when(fn.col("found.inControlledShutdown") == "1", True).alias("shutting_down"),
        )
        .where("node_id IS NOT NULL")
    )


def levels(records: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.LEVELS`."""
    return (
        _of(records, LEVEL_TYPES)
        .select(
            *CAUSE,
            *LOG,
            fn.col("found.name").alias("feature"),
            fn.col("found.featureLevel").alias("level"),
        )
        .where("feature IS NOT NULL AND level IS NOT NULL")
    )


def control_records(records: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.CONTROL_RECORDS`."""
    return _of(records, CONTROL_TYPES).select(
        *CAUSE,
        *LOG,
        "type",
        fn.col("found.leaderId").alias("leader_id"),
        fn.col("found.voters.voterId").alias("voters"),
        fn.col("found.kRaftVersion").alias("kraft_version"),
        fn.col("found.zkMigrationState").alias("migration_state"),
    )


def why_broken(type_: Column, found: Column) -> Column:
    """Returns why a record is in no table: its source or these expressions could not read it (or
    null)."""
    lacking = fn.concat(
        fn.lit("a "), type_, fn.lit(" lacks what it must have, or has it with another type")
    )
    node = fn.coalesce(found["brokerId"], found["controllerId"], found["id"])
    no_level = found["name"].isNull() | found["featureLevel"].isNull()
    return (
        fn.when(type_ == UNREADABLE, fn.coalesce(found["reason"], fn.lit("no reason")))
        .when(type_.isin(*REGISTRATION_TYPES, *FENCING_TYPES) & node.isNull(), lacking)
        .when(type_.isin(*LEVEL_TYPES) & no_level, lacking)
    )


def broken_records(records: DataFrame) -> DataFrame:
    """Returns rows of `silver.tables.QUARANTINE`: the records for which `why_broken` gives a
    reason."""
    return records.select(
        *("cluster", "topic", "partition", "offset", "index", "type"),
        why_broken(fn.col("type"), fn.col("found")).alias("reason"),
        fn.col("data").cast("binary").alias("payload"),
        "kafka_time",
        fn.to_date("kafka_time").alias("day"),
    ).where("reason IS NOT NULL")


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
