"""Silver: turns the messages of bronze into typed rows, one set for each cause.

A cause that was published twice has one id. A row's key is that id and its position in the event,
and only rows with a new key are added. Unreadable messages and records go to the quarantine with
the reason.
"""

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.pipeline.lake.lake import Lake, TableWrite
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES, Table
from featurewatch.pipeline.silver import from_events, from_records, tables
from featurewatch.pipeline.silver.decoding import input_messages, read_events

LOG: Final = logging.getLogger("featurewatch.pipeline")


class SilverTableSpec(NamedTuple):
    """How a table's rows are built, and from which kinds of events or types of records."""

    table: Table
    build: Callable[[DataFrame], DataFrame]
    kinds: tuple[str, ...]


FROM_RECORDS: Final = (
    SilverTableSpec(
        tables.REGISTRATIONS, from_records.registrations, from_records.REGISTRATION_TYPES
    ),
    SilverTableSpec(tables.FENCING, from_records.fencing, from_records.FENCING_TYPES),
    SilverTableSpec(tables.LEVELS, from_records.levels, from_records.LEVEL_TYPES),
    SilverTableSpec(
        tables.CONTROL_RECORDS, from_records.control_records, from_records.CONTROL_TYPES
    ),
)
FROM_EVENTS: Final = (
    SilverTableSpec(tables.LOG_GAPS, from_events.log_gaps, ("gap",)),
    SilverTableSpec(
        tables.ZNODE_CHANGES, from_events.znode_changes, ("znode-change", "znode-snapshot")
    ),
    SilverTableSpec(tables.ANSWERS, from_events.answers, ("node-answer", "node-silent")),
    SilverTableSpec(tables.DISAGREEMENTS, from_events.disagreements, ("disagreement",)),
    SilverTableSpec(tables.SOURCE_STATES, from_events.source_states, ("status",)),
)


class BatchSummary(NamedTuple):
    """The content of a batch, in a form whose size does not depend on the number of rows."""

    kinds: frozenset[str]
    types: frozenset[str]
    days: tuple[str, ...]
    kafka_days: tuple[str, ...]
    unreadable_count: int
    """Unreadable messages and records."""
    has_duplicates: bool
    """Whether a cause occurs twice."""
    size: int
    """The size of all messages, in bytes."""


def summary(events: DataFrame) -> BatchSummary:
    """Summarizes the result of `read_events`; collects two rows."""
    types = fn.transform("records", lambda record: record["type"])
    reasons = fn.transform(
        "records", lambda record: from_records.why_broken(record["type"], record["found"])
    )
    unreadable_records = fn.coalesce(fn.size(fn.array_compact(reasons)), fn.lit(0))
    totals: Row = events.agg(
        fn.collect_set("event.kind").alias("kinds"),
        fn.array_distinct(fn.flatten(fn.collect_set(fn.array_distinct(types)))).alias("types"),
        fn.collect_set(fn.col("day").cast("string")).alias("days"),
        fn.collect_set(fn.to_date("kafka_time").cast("string")).alias("kafka_days"),
        (fn.count("reason") + fn.sum(unreadable_records)).alias("unreadable"),
        fn.sum("size").alias("size"),
    ).collect()[0]
    ids = events.agg(
        fn.count("id").alias("all"), fn.count_distinct("id").alias("distinct")
    ).collect()[0]
    return BatchSummary(
        kinds=frozenset(totals["kinds"]),
        types=frozenset(totals["types"]),
        days=(*totals["days"],),
        kafka_days=(*totals["kafka_days"],),
        unreadable_count=totals["unreadable"] or 0,
        has_duplicates=ids["all"] > ids["distinct"],
        size=totals["size"] or 0,
    )


class SilverQuery:
    """The query that fills silver from bronze."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._checkpoint = lake.checkpoint("silver")

    def writer(self) -> DataStreamWriter:
        """Returns the query; it needs a trigger and to be started.

        If a table is missing, all of bronze is typed again.

        Raises:
            LakeError: The lake cannot be read.
        """
        self._lake.ensure_table(MESSAGES)
        self._create_tables()
        return (
            input_messages(self._lake.follow(MESSAGES))
            .writeStream.queryName("silver")
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(lambda batch, _: self.process_batch(batch))
        )

    def _create_tables(self) -> None:
        """Creates missing tables, also those that get no rows: a table that is missing later was
        deleted, or is new in this version, and lacks the rows of earlier messages."""
        files = self._lake.files()
        missing = [
            table
            for table in tables.SILVER
            if not files.has_any(f"{self._lake.path(table)}/_delta_log")
        ]
        if missing and files.has_any(f"{self._checkpoint}/commits"):
            names = ", ".join(table.path for table in missing)
            LOG.info("the lake has no %s: silver is typed again from the beginning", names)
            if EXPIRED in self._lake.newest(MESSAGES).properties:
                LOG.warning(
                    "bronze no longer has the messages since the beginning: their rows are missing "
                    "in %s; put them back if you have them",
                    names,
                )
            # Removed before the tables are created, so that a restart after a kill in between sees
            # it.
            files.remove(self._checkpoint)
        for table in missing:
            self._lake.ensure_table(table)

    def process_batch(self, messages: DataFrame) -> None:
        """Adds the rows of some input messages; rows that were added before are skipped."""
        events = read_events(messages).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            batch = summary(events)
            records = from_records.records(events)
            specs = [(spec, records) for spec in FROM_RECORDS if batch.types & {*spec.kinds}]
            specs += [(spec, events) for spec in FROM_EVENTS if batch.kinds & {*spec.kinds}]
            writes = [
                TableWrite(
                    *(spec.table, spec.build(source), batch.days, not batch.has_duplicates),
                    size=batch.size,
                )
                for spec, source in specs
            ]
            unreadable = self._unreadable(events, records, batch)
            if unreadable is not None:
                writes.append(
                    TableWrite(tables.QUARANTINE, unreadable, batch.kafka_days, size=batch.size)
                )
            self._lake.merge_all(writes)
            if unreadable is not None and (count := unreadable.count()):
                LOG.warning("%d messages or records could not be read: see table quarantine", count)
        finally:
            events.unpersist()

    def _unreadable(
        self, events: DataFrame, records: DataFrame, batch: BatchSummary
    ) -> DataFrame | None:
        """Rows of the quarantine (None: there are none)."""
        rows = None
        if batch.unreadable_count:
            messages = from_events.unreadable_messages(events)
            rows = messages.unionByName(from_records.broken_records(records))
        if batch.kinds & {"znode-change", "znode-snapshot"}:
            znodes = from_events.unreadable_znodes(events)
            rows = znodes if rows is None else rows.unionByName(znodes)
        return rows
