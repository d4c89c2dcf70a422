"""Takes over the state of the fold from the checkpoint of an older featurewatch.

That checkpoint (`OLDER_FOLD`) has the rows of a cluster's state in a map, which Spark can read as a
table and cannot continue as the value that they are now.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

from delta.tables import DeltaTable
from pyspark.sql import functions as fn

from featurewatch.pipeline.errors import OTHER_BRONZE_ADVICE, LakeError
from featurewatch.pipeline.fold.messages import STATE_ROW
from featurewatch.pipeline.lake.checkpoint_files import follow_move, newest_end
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.spark.checkpoints import OLDER_FOLD

LOG: Final = logging.getLogger("featurewatch.pipeline")

_JOINED: Final = "silver"
"""The file in that checkpoint that exists if its query filled silver too."""


class OlderCheckpoint:
    """The checkpoint of an older featurewatch in a lake, if it has one."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._path = lake.checkpoint(OLDER_FOLD)

    @property
    def exists(self) -> bool:
        """Whether it has completed a batch."""
        return self._lake.files().has_any(f"{self._path}/commits")

    @property
    def has_silver(self) -> bool:
        """Whether silver has everything that gold has."""
        return self._lake.files().exists(f"{self._path}/{_JOINED}")

    def take_over(self, start: str, monotonic: Callable[[], float] = time.monotonic) -> int:
        """Writes the rows of all states into the directory ``start``; returns the version of bronze
        to continue from. Messages after it that were folded already are skipped by the fold.

        ``monotonic`` gives seconds of a clock that does not go back.

        Raises:
            LakeError: The checkpoint belongs to another table of bronze.
        """
        began, files = monotonic(), self._lake.files()
        end = newest_end(files, self._path)
        assert end is not None  # noqa: S101 - it exists
        bronze = DeltaTable.forPath(self._lake.session, self._lake.path(MESSAGES))
        if end["reservoirId"] != bronze.detail().select("id").collect()[0]["id"]:
            raise LakeError(OTHER_BRONZE_ADVICE)
        follow_move(files, self._path)
        # Spark reads a state store only once the session has its manager of streaming queries.
        _ = self._lake.session.streams
        reader = self._lake.session.read.format("statestore").option("stateVarName", "rows")
        rows = reader.load(self._path).select(
            fn.col("key.cluster").alias("cluster"),
            fn.lit(STATE_ROW).alias("kind"),
            fn.col("user_map_key.name").alias("id"),
            fn.col("user_map_value.value").alias("value"),
        )
        rows.write.mode("overwrite").parquet(start)
        LOG.info(
            "took over the fold's state from the checkpoint of an older featurewatch in %.1f s",
            monotonic() - began,
        )
        return min(int(end["reservoirVersion"]), self._lake.newest(MESSAGES).version)

    def remove(self) -> None:
        """Removes it, with that of silver."""
        for name in (OLDER_FOLD, "gold-start", "silver"):
            self._lake.files().remove(self._lake.checkpoint(name))
