"""Gold: folds each cluster's messages, in the lake's order, into tables.

The fold reads bronze, not silver: it decodes events as the live worker does, and so yields the same
outputs.

Without a checkpoint, the query first folds all of bronze as a batch and continues from the
resulting state. Messages folded twice on the way are skipped by the fold, and outputs emitted twice
have the same id.

**One pass.** If silver has everything that gold has, its rows are made where the fold decodes the
messages, and each batch adds them before gold's checkpoint moves on (`SilverQuery.join`). If a
table of silver is missing, or another version filled the lake, silver follows by its own query
first.
"""

import logging
from collections.abc import Callable
from typing import Final

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.readwriter import DataStreamWriter

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.errors import LakeError
from featurewatch.pipeline.fold.messages import STATE_ROW
from featurewatch.pipeline.gold.output_rows import TABLES
from featurewatch.pipeline.gold.spark_fold import OUTPUT_SCHEMA, by_cluster, fold_batch, fold_stream
from featurewatch.pipeline.lake.block_writer import BlockTarget, write_blocks
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import EXPIRED, MESSAGES
from featurewatch.pipeline.silver.query import SILVER_TARGETS, SilverQuery, report_unreadable

LOG: Final = logging.getLogger("featurewatch.pipeline")

_TARGETS: Final = tuple(BlockTarget(spec.table, spec.replace_when) for spec in TABLES)


class FoldQuery:
    """The query that fills gold from bronze, and silver too if ``with_silver``.

    ``limits`` must be the worker's: other limits lead to other alerts.
    """

    def __init__(
        self,
        lake: Lake,
        limits: Limits = DEFAULT_LIMITS,
        *,
        with_silver: bool = False,
        progress: Progress = NO_PROGRESS,
    ) -> None:
        self._lake = lake
        self._progress = progress
        self._limits = limits
        self._with_silver = with_silver
        self._name = "silver and gold" if with_silver else "gold"
        self._checkpoint = lake.checkpoint("gold")
        self._start = lake.checkpoint("gold-start")

    def writer(self) -> DataStreamWriter:
        """Returns the query; it needs a trigger and to be started.

        Without a checkpoint, all of bronze is folded first. If silver lacks what gold has already,
        it follows before.

        Raises:
            LakeError: The checkpoint is lost and bronze no longer has its beginning.
            RunError: The query of silver failed.
        """
        silver = SilverQuery(self._lake)
        if self._with_silver:
            silver.create_tables()
        if self._can_resume():
            options = {}
            self._progress.begin(self._name, self._progress.committed or None)
            if self._with_silver and not silver.is_joined:
                silver.catch_up()
        else:
            options = {"startingVersion": str(self.rebuild())}
        if self._with_silver:
            silver.join()
        else:
            silver.leave()
        start = self._lake.session.read.schema(OUTPUT_SCHEMA).parquet(self._start)
        messages = by_cluster(self._lake.follow(MESSAGES, **options))
        return (
            fold_stream(messages, start, self._limits, with_silver=self._with_silver)
            .writeStream.queryName(self._name)
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
            if self._with_silver:
                SilverQuery(self._lake).catch_up()  # it needs no beginning
            raise LakeError(
                f"the checkpoint {self._checkpoint} is lost, and {path} no longer has the messages "
                "since the beginning: put the checkpoint back, or fill a new lake from the topics"
            )
        self._progress.begin(self._name, self._lake.count(MESSAGES))
        messages = by_cluster(self._lake.read_version(MESSAGES, version))
        outputs = fold_batch(messages, self._limits, with_silver=self._with_silver)
        outputs = outputs.persist(StorageLevel.MEMORY_AND_DISK)
        rows = outputs.where(fn.col("kind") == STATE_ROW)
        try:
            self._add(outputs, lambda: rows.write.mode("overwrite").parquet(self._start))
            for spec in TABLES:
                self._lake.ensure_table(spec.table)  # readers expect all tables, even empty ones
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

    def _add(self, outputs: DataFrame, *others: Callable[[], object]) -> None:
        targets = (*SILVER_TARGETS, *_TARGETS) if self._with_silver else _TARGETS
        report_unreadable(write_blocks(self._lake, outputs, targets, others))
