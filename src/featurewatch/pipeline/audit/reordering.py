"""Checks whether another order of messages explains the clusters whose sides differ.

`order_search` searches for the order; this module hands it each cluster's messages with the live
outputs and their times.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

import orjson
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from featurewatch.monitor.input_messages import InputMessage
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.audit.live_outputs import cause_names
from featurewatch.pipeline.audit.order_search import LiveOutput, OrderSearch, TimedMessage, queued
from featurewatch.pipeline.derived.spark_fold import by_cluster, partitioned_by_cluster
from featurewatch.pipeline.lake.row_blocks import row_values
from featurewatch.tables.garbage import collect_rarely

_MESSAGE: Final = InputMessage._fields
_RESULT: Final = pa.schema([("cluster", pa.string()), ("is_reordered", pa.bool_())])
_OUTPUT: Final = ("id", "live", "due", "cause", "published_ms")


def reorderable_clusters(
    messages: DataFrame,
    clusters: DataFrame,
    published: DataFrame,
    settled_ms: int,
    limits: Limits = DEFAULT_LIMITS,
) -> DataFrame:
    """Returns the clusters for which another order may be right, as the column ``cluster``.

    ``is_reordered`` is true where a valid order exists, and null where the search was ended before
    that was known.

    ``messages`` are rows of bronze that gold has folded, ``clusters`` has the clusters to check.
    ``published`` has their live outputs: ``cluster``, ``id``, ``live`` (JSON text),
    ``published_at``, ``cause``, and ``due``. The outputs of messages up to ``settled_ms`` (Kafka's
    time, ms) must have been published. ``limits`` are the worker's.
    """
    settled = (fn.col("time_ms") <= settled_ms).alias("settled")
    searched = _with_other_orders(messages, clusters, published)
    inputs = (
        by_cluster(messages, cause_names().alias("names"))
        .join(searched, "cluster", "left_semi")
        .select("cluster", *_MESSAGE, "names", settled)
    )
    outputs = published.join(searched, "cluster", "left_semi").select(
        *("cluster", "id", "live", "due", "cause"),
        fn.unix_millis("published_at").alias("published_ms"),
    )
    inputs, outputs = partitioned_by_cluster(inputs), partitioned_by_cluster(outputs)
    both = inputs.groupBy("cluster").cogroup(outputs.groupBy("cluster"))
    return both.applyInArrow(partial(_search, limits), "cluster string, is_reordered boolean")


def _with_other_orders(messages: DataFrame, clusters: DataFrame, published: DataFrame) -> DataFrame:
    """Those of some clusters for which another order than the lake's may be right.

    They have messages of several topics, or several contents under one id: a log that went
    backwards and is read again repeats its records, and gold has only one row for the id. The
    messages of the others are not handed over, which for a large cluster may be millions.
    """
    topics = by_cluster(messages).groupBy("cluster").agg(_has_several("topic"))
    contents = published.groupBy("cluster", "id").agg(_has_several("live"))
    either = topics.select("cluster", "several").union(contents.select("cluster", "several"))
    found = either.where("several").select("cluster").distinct()
    return clusters.join(found, "cluster", "left_semi").localCheckpoint()


def _has_several(column: str) -> Column:
    return (fn.min(column) < fn.max(column)).alias("several")


def _search(limits: Limits, inputs: pa.Table, outputs: pa.Table) -> pa.Table:
    """The cluster of these messages and outputs, unless there is no valid order."""
    collect_rarely()
    live: dict[str, list[LiveOutput]] = {}
    by_cause: dict[str, int] = {}
    # Plain loops: pandas takes longer for the few rows of a cluster than the search itself.
    for id_, text, due, cause, published_ms in row_values(outputs, _OUTPUT):
        live.setdefault(id_, []).append(LiveOutput(_content(text), published_ms, bool(due)))
        if cause is not None:
            by_cause[cause] = max(published_ms, by_cause.get(cause, published_ms))
    timed: dict[tuple[str, int], list[TimedMessage]] = {}
    for *fields, names, settled in row_values(inputs, (*_MESSAGE, "names", "settled")):
        message = InputMessage(*fields)
        found = TimedMessage(message, _published_ms(names, by_cause), bool(settled))
        timed.setdefault((message.topic, message.partition), []).append(found)
    if not timed:
        return _RESULT.empty_table()
    cluster = inputs.column("cluster")[0].as_py()
    queues = [
        queued(sorted(timed[key], key=lambda found: found.message.offset)) for key in sorted(timed)
    ]
    is_found = OrderSearch(cluster, queues, live, limits).finds_order()
    found_rows = [] if is_found is False else [{"cluster": cluster, "is_reordered": is_found}]
    return pa.Table.from_pylist(found_rows, schema=_RESULT)


def _content(text: str) -> Any:
    """The content of a live output; its text if it is no JSON, which no order yields."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def _published_ms(names: Iterable[str | None], by_cause: Mapping[str, int]) -> int | None:
    """When the worker published the outputs of a message with these names (None: unknown)."""
    times = [by_cause[name] for name in names if name is not None and name in by_cause]
    return max(times, default=None)
