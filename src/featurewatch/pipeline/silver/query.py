"""Silver: turns the messages of bronze into typed rows, one set for each cause.

A cause that was published twice has one id. A row's key is that id and its position in the event,
and only rows with a new key are added. Unreadable messages and records go to the quarantine with
the reason.

Ordinarily gold's query makes these rows too, where it decodes the messages (`gold.query`). This
query is for silver alone: when its tables lack what gold has already.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.monitor.input_messages import INPUT_TOPICS, InputMessage, decode_message
from featurewatch.pipeline.lake.block_writer import BLOCK_SCHEMA, BlockTarget, write_blocks
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.row_blocks import BLOCK_ARROW, RowBuilder, as_batch, row_values
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES
from featurewatch.pipeline.silver import tables
from featurewatch.pipeline.silver.message_rows import message_rows
from featurewatch.pipeline.spark.queries import wait_for_end

LOG: Final = logging.getLogger("featurewatch.pipeline")


SILVER_TARGETS: Final = tuple(BlockTarget(table) for table in tables.SILVER)


def short_topic() -> Column:
    """Returns a column with a topic's short name: the part after the last dot of its full name."""
    return fn.substring_index("topic", ".", -1)


def input_messages(messages: DataFrame) -> DataFrame:
    """Returns the messages of the input topics."""
    return messages.where(short_topic().isin([*INPUT_TOPICS]))


def report_unreadable(row_counts: Mapping[str, int]) -> None:
    """Warns if rows were added to the quarantine; takes the number of rows by the table's path."""
    if count := row_counts.get(tables.QUARANTINE.path):
        LOG.warning("%d messages or records could not be read: see table quarantine", count)


class SilverQuery:
    """The query that fills silver from bronze, alone."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._checkpoint = lake.checkpoint("silver")
        self._joined = f"{lake.checkpoint('gold')}/{tables.JOINED}"

    @property
    def is_joined(self) -> bool:
        """Whether silver has everything that gold has, by gold's checkpoint."""
        return self._lake.files().exists(self._joined)

    def join(self) -> None:
        """Notes that silver has everything that gold has; from now on gold's query fills both."""
        if not self.is_joined:
            self._lake.files().create(self._joined)
            self._lake.files().remove(self._checkpoint)

    def leave(self) -> None:
        """Notes that gold may have more than silver."""
        self._lake.files().remove(self._joined)

    def catch_up(self) -> None:
        """Processes what bronze has now.

        Raises:
            RunError: The query failed.
        """
        wait_for_end(self.writer().trigger(availableNow=True).start())

    def writer(self) -> DataStreamWriter:
        """Returns the query; it needs a trigger and to be started.

        If a table is missing, all of bronze is typed again.

        Raises:
            LakeError: The lake cannot be read.
        """
        self.create_tables()
        return (
            self._lake.follow(MESSAGES)
            .writeStream.queryName("silver")
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(lambda batch, _: self.process_batch(batch))
        )

    def create_tables(self) -> None:
        """Creates missing tables, also those that get no rows: a table that is missing later was
        deleted, or is new in this version, and lacks the rows of earlier messages."""
        files = self._lake.files()
        self._lake.ensure_table(MESSAGES)
        missing = [
            table
            for table in tables.SILVER
            if not files.has_any(f"{self._lake.path(table)}/_delta_log")
        ]
        is_filled = files.has_any(f"{self._checkpoint}/commits") or self.is_joined
        if missing and is_filled:
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
            self.leave()
            files.remove(self._checkpoint)
        for table in missing:
            self._lake.ensure_table(table)

    def process_batch(self, messages: DataFrame) -> None:
        """Adds the rows of some messages; rows that were added before are skipped."""
        columns = [fn.col(name) for name in InputMessage._fields if name != "time_ms"]
        timed = input_messages(messages).select(
            *columns, fn.unix_millis("kafka_time").alias("time_ms")
        )
        blocks = timed.mapInArrow(_typed, BLOCK_SCHEMA).persist(StorageLevel.MEMORY_AND_DISK)
        try:
            report_unreadable(write_blocks(self._lake, blocks, SILVER_TARGETS))
        finally:
            blocks.unpersist()


def _typed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Decodes messages and returns blocks of their rows."""
    rows = RowBuilder(tables.SILVER)
    for batch in batches:
        for fields in row_values(batch, InputMessage._fields):
            message = InputMessage(*fields)
            event = decode_message(message)
            for table, row in message_rows(message, event):
                rows.add(table, row)
            rows.count_bytes(len(message.value or b""))
            if rows.is_full:
                yield as_batch([block.labelled for block in rows.take()], BLOCK_ARROW)
    yield as_batch([block.labelled for block in rows.take()], BLOCK_ARROW)
