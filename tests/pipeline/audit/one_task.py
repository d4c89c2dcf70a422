"""Audits in a single task, whose reports those in several tasks must equal."""

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from pyspark.sql import DataFrame

from featurewatch.pipeline.audit import live_outputs
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.spark.queries import with_settings

_SETTING = "spark.sql.shuffle.partitions"


def _in_one_partition(rows: DataFrame, *_: str) -> DataFrame:
    return rows.repartition(1)


@contextlib.contextmanager
def in_one_task(lake: Lake) -> Iterator[None]:
    """Inside, all outputs are compared in one task."""
    with (
        with_settings(lake.session, {_SETTING: "1"}),
        patch.object(live_outputs, "partitioned_by_cluster", _in_one_partition),
    ):
        yield
