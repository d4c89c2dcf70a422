"""Audits in a single task, whose reports those in several tasks must equal."""

import contextlib
from collections.abc import Iterator
from unittest.mock import patch

from pyspark.sql import DataFrame

from featurewatch.pipeline.audit import live_outputs
from featurewatch.pipeline.lake.lake import Lake

_SETTING = "spark.sql.shuffle.partitions"


def _in_one_partition(rows: DataFrame, *_: str) -> DataFrame:
    return rows.repartition(1)


@contextlib.contextmanager
def in_one_task(lake: Lake) -> Iterator[None]:
    """Inside, all outputs are compared in one task."""
    conf = lake.session.conf
    before = conf.get(_SETTING)
    conf.set(_SETTING, "1")
    try:
        with patch.object(live_outputs, "partitioned_by_cluster", _in_one_partition):
            yield
    finally:
        conf.set(_SETTING, before or "")
