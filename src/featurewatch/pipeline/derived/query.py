"""The query that fills silver and gold: each cluster's messages, in the lake's order, as tables.

It reads bronze and decodes each message once, as the live worker does, for the rows of silver and
for the fold, whose outputs are gold. Each batch adds all of its rows before the checkpoint moves
on, and rows that a table has already are not added again.

Without a checkpoint, the query first folds all of bronze as a batch and continues from the
resulting state. Messages folded twice on the way are skipped by the fold, and outputs emitted twice
have the same id. So whatever silver or gold lacks comes back when the checkpoint is dropped.
"""

import logging
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.derived.older_state import OlderCheckpoint
from featurewatch.pipeline.derived.spark_fold import (
    OUTPUT_SCHEMA,
    by_cluster,
    fold_batch,
    fold_stream,
)
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.fold.messages import STATE_ROW
from featurewatch.pipeline.gold.output_rows import TABLES
from featurewatch.pipeline.lake.block_writer import BlockTarget, write_blocks
from featurewatch.pipeline.lake.checkpoint_files import follow_move
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES, Table
from featurewatch.pipeline.silver.tables import QUARANTINE, SILVER
from featurewatch.pipeline.spark.checkpoints import FOLD

LOG: Final = logging.getLogger("featurewatch.pipeline")

_NAME: Final = "silver and gold"
_SILVER: Final = tuple(BlockTarget(table) for table in SILVER)
_ALL: Final = (*_SILVER, *(BlockTarget(spec.table, spec.replace_when) for spec in TABLES))


class FoldQuery:
    """The query that fills silver and gold from bronze.

    ``limits`` must be the worker's: other limits lead to other alerts. ``monotonic`` gives seconds
    of a clock that does not go back.
    """

    def __init__(
        self,
        lake: Lake,
        limits: Limits = DEFAULT_LIMITS,
        progress: Progress = NO_PROGRESS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lake = lake
        self._progress = progress
        self._limits = limits
        self._monotonic = monotonic
        self._files = lake.files()
        self._checkpoint = lake.checkpoint(FOLD)
        self._start = f"{self._checkpoint}/start"
        self._refill = lake.checkpoint("refill")
        self._older = OlderCheckpoint(lake)

    def writer(self) -> DataStreamWriter:
        """Returns the query; it needs a trigger and to be started.

        Without a checkpoint, or if a table is missing, all of bronze is folded first.

        Raises:
            LakeError: The checkpoint is lost and bronze no longer has its beginning.
        """
        version = self._prepare()
        options = {} if version is None else {"startingVersion": str(version)}
        messages = by_cluster(self._lake.follow(MESSAGES, **options))
        start = self._lake.session.readStream.schema(OUTPUT_SCHEMA).parquet(self._start)
        return (
            fold_stream(messages, start, self._limits)
            .writeStream.queryName(_NAME)
            .option("checkpointLocation", self._checkpoint)
            .foreachBatch(lambda outputs, _: self._add(outputs, _ALL))
        )

    def _prepare(self) -> int | None:
        """Returns the version of bronze at which a new checkpoint starts (None: there is one).

        A table that is missing was deleted, or is new in this version, and lacks the rows of
        earlier messages.
        """
        self._lake.ensure_table(MESSAGES)
        has_own = self._files.has_any(f"{self._checkpoint}/commits")
        has_older = not has_own and self._older.exists
        if not has_own and not has_older:
            return self.rebuild()
        lacking = self._lacking(self._older.has_silver if has_older else True)
        if lacking and EXPIRED not in self._lake.newest(MESSAGES).properties:
            names = ", ".join(table.path for table in lacking)
            LOG.info("the lake lacks rows of %s: all of bronze is folded again", names)
            began = self._monotonic()
            version = self.rebuild()
            LOG.info("folded all of bronze again in %.0f s", self._monotonic() - began)
            return version
        if lacking:
            self._do_without_beginning(lacking)
        self._progress.begin(_NAME, self._progress.committed or None)
        if has_older:
            self._files.remove(self._checkpoint)
            return self._older.take_over(self._start)
        self._older.remove()
        follow_move(self._files, self._checkpoint)
        return None

    def _lacking(self, has_silver: bool) -> list[Table]:
        """The tables that lack rows of messages that were folded already."""
        has_silver = has_silver and not self._files.exists(self._refill)
        return [
            target.table
            for target in _ALL
            if (target.table in SILVER and not has_silver)
            or not self._files.has_any(f"{self._lake.path(target.table)}/_delta_log")
        ]

    def _do_without_beginning(self, lacking: list[Table]) -> None:
        """Adds what follows from the messages that bronze still has to tables that lack rows.

        Gold does not follow from them: its tables start empty.
        """
        LOG.warning(
            "the lake lacks rows of %s, and bronze no longer has the messages since the beginning: "
            "put them back if you have them",
            ", ".join(table.path for table in lacking),
        )
        if any(table in SILVER for table in lacking):
            # Until it is done, a restart after a kill does it again.
            self._files.create(self._refill)
            self._fold(self._lake.newest(MESSAGES).version, _SILVER)
        for table in lacking:
            self._lake.ensure_table(table)
        self._files.remove(self._refill)

    def rebuild(self) -> int:
        """Drops the checkpoint, folds all of bronze as a batch and returns the version of bronze
        that was folded.

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
        self._files.remove(self._checkpoint)
        self._older.remove()
        self._fold(version, _ALL, lambda rows: rows.write.mode("overwrite").parquet(self._start))
        for target in _ALL:
            self._lake.ensure_table(target.table)  # readers expect all tables, even empty ones
        self._files.remove(self._refill)
        return version

    def _fold(
        self,
        version: int,
        targets: tuple[BlockTarget, ...],
        write_state: Callable[[DataFrame], object] | None = None,
    ) -> None:
        """Folds a version of bronze as a batch into some tables."""
        self._progress.begin(_NAME, self._lake.count(MESSAGES))
        messages = by_cluster(self._lake.read_version(MESSAGES, version))
        self._add(fold_batch(messages, self._limits), targets, write_state)

    def _add(
        self,
        outputs: DataFrame,
        targets: tuple[BlockTarget, ...],
        write_state: Callable[[DataFrame], object] | None = None,
    ) -> None:
        """Adds the rows of some tables that they lack, and hands on those of the state."""
        outputs = outputs.persist(StorageLevel.MEMORY_AND_DISK)
        others = []
        if write_state is not None:
            others.append(partial(write_state, outputs.where(fn.col("kind") == STATE_ROW)))
        try:
            _report_unreadable(write_blocks(self._lake, outputs, targets, others))
        finally:
            outputs.unpersist()


def _report_unreadable(row_counts: Mapping[str, int]) -> None:
    """Warns if rows were added to the quarantine; takes the number of rows by the table's path."""
    if count := row_counts.get(QUARANTINE.path):
        LOG.warning("%d messages or records could not be read: see table quarantine", count)
