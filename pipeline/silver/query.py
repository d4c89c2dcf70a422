"""Silver: what the messages say, as typed rows, each cause once.

A cause that was published twice has one id, and a row's key is that id and its place in the event;
rows are added where the key is new. What cannot be read goes to the quarantine with its reason.
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
    """How a table's rows are made, and from which kinds of events or types of records."""

    table: Table
    build: Callable[[DataFrame], DataFrame]
    of: tuple[str, ...]


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
    """What a batch holds: all of it small, however many rows it has."""

    kinds: frozenset[str]
    types: frozenset[str]
    days: tuple[str, ...]
    kafka_days: tuple[str, ...]
    broken: int
    """Messages and records that could not be read."""
    has_duplicates: bool
    """Whether a cause came twice."""
    size: int
    """Of all messages, in bytes."""


def summary(events: DataFrame) -> BatchSummary:
    """One look at what `read_events` gave, and one at its ids. Collects two rows."""
    types = fn.transform("records", lambda one: one["type"])
    why = fn.transform("records", lambda one: from_records.why_broken(one["type"], one["found"]))
    lame = fn.coalesce(fn.size(fn.array_compact(why)), fn.lit(0))
    found: Row = events.agg(
        fn.collect_set("event.kind").alias("kinds"),
        fn.array_distinct(fn.flatten(fn.collect_set(fn.array_distinct(types)))).alias("types"),
        fn.collect_set(fn.col("day").cast("string")).alias("days"),
        fn.collect_set(fn.to_date("kafka_time").cast("string")).alias("kafka_days"),
        (fn.count("reason") + fn.sum(lame)).alias("broken"),
        fn.sum("size").alias("size"),
    ).collect()[0]
    ids = events.agg(fn.count("id").alias("all"), fn.count_distinct("id").alias("own")).collect()[0]
    return BatchSummary(
        kinds=frozenset(found["kinds"]),
        types=frozenset(found["types"]),
        days=(*found["days"],),
        kafka_days=(*found["kafka_days"],),
        broken=found["broken"] or 0,
        has_duplicates=ids["all"] > ids["own"],
        size=found["size"] or 0,
    )


class SilverQuery:
    """The query that makes silver of bronze."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._checkpoint = lake.checkpoint("silver")

    def writer(self) -> DataStreamWriter:
        """The query; it wants a trigger and to be started. Where a table is missing it types all of
        bronze again."""
        self._lake.ensure_table(MESSAGES)
        self._make_tables()
        return (
            input_messages(self._lake.follow(MESSAGES))
            .writeStream.queryName("silver")
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(lambda batch, _: self.take(batch))
        )

    def _make_tables(self) -> None:
        """Makes those that are not there, with rows or without: so one that is missing later was
        deleted, or is new to this featurewatch, and lacks what was typed before."""
        files = self._lake.files()
        missing = [
            table
            for table in tables.SILVER
            if not files.has_any(f"{self._lake.path(table)}/_delta_log")
        ]
        if missing and files.has_any(f"{self._checkpoint}/commits"):
            names = ", ".join(table.path for table in missing)
            LOG.info("the lake had no %s: silver is typed anew from the beginning", names)
            if EXPIRED in self._lake.newest(MESSAGES).properties:
                LOG.warning(
                    "bronze no longer has the messages since the beginning: what only they said "
                    "is missing in %s; put them back if you have them",
                    names,
                )
            # Before the tables are made: after a kill in between it is still seen what to do.
            files.remove(self._checkpoint)
        for table in missing:
            self._lake.ensure_table(table)

    def take(self, messages: DataFrame) -> None:
        """Adds what some input messages say; those that were added before say nothing new."""
        events = read_events(messages).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            found = summary(events)
            records = from_records.records(events)
            made = [(t, make(records)) for t, make, of in FROM_RECORDS if found.types & {*of}]
            made += [(t, make(events)) for t, make, of in FROM_EVENTS if found.kinds & {*of}]
            additions = [
                TableWrite(table, rows, found.days, not found.has_duplicates, size=found.size)
                for table, rows in made
            ]
            broken = self._broken(events, records, found)
            if broken is not None:
                additions.append(
                    TableWrite(tables.QUARANTINE, broken, found.kafka_days, size=found.size)
                )
            self._lake.merge_all(additions)
            if broken is not None and (count := broken.count()):
                LOG.warning("%d messages or records could not be read: see table quarantine", count)
        finally:
            events.unpersist()

    def _broken(
        self, events: DataFrame, records: DataFrame, found: BatchSummary
    ) -> DataFrame | None:
        """Rows of the quarantine (None: there can be none)."""
        rows = None
        if found.broken:
            messages = from_events.broken_messages(events)
            rows = messages.unionByName(from_records.broken_records(records))
        if found.kinds & {"znode-change", "znode-snapshot"}:
            znodes = from_events.broken_znodes(events)
            rows = znodes if rows is None else rows.unionByName(znodes)
        return rows
