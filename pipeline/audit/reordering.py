"""Checks whether another order of messages explains the clusters whose sides differ.

`order_search` searches for the order; this module hands it each cluster's messages with the live
outputs and their times.
"""

from functools import partial
from typing import Final

import orjson
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.controller.input_messages import InputMessage
from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.audit.live_outputs import cause_names
from featurewatch.pipeline.audit.order_search import LiveOutput, OrderSearch, TimedMessage, queued
from featurewatch.pipeline.gold.spark_fold import by_cluster

_MESSAGE: Final = InputMessage._fields
_POSITION: Final = ("topic", "partition", "offset")


def disputed_clusters(messages: DataFrame, compared: DataFrame) -> DataFrame:
    """Returns the clusters of some findings for which another order may be right, as ``cluster``.

    Those with messages on several topics, and those with several contents under one id: a log that
    went backwards and is read again repeats its records, and gold has only one row for the id.
    """
    of_clusters = by_cluster(messages).join(
        compared.select("cluster").distinct(), "cluster", "left_semi"
    )
    topic_count = fn.countDistinct("topic").alias("topics")
    several = of_clusters.groupBy("cluster").agg(topic_count).where("topics > 1").select("cluster")
    content_count = fn.countDistinct("live").alias("contents")
    reworded = compared.groupBy("cluster", "table", "id").agg(content_count).where("contents > 1")
    return several.union(reworded.select("cluster")).distinct()


def reorderable_clusters(
    messages: DataFrame,
    clusters: DataFrame,
    published: DataFrame,
    settled_ms: int,
    limits: Limits = DEFAULT_LIMITS,
) -> DataFrame:
    """Returns the clusters for which a valid order exists, as the column ``cluster``.

    ``messages`` are rows of bronze that gold has folded, ``clusters`` has the clusters to check.
    ``published`` has their live outputs: ``cluster``, ``id``, ``live`` (JSON text),
    ``published_at``, ``cause``, and ``due``. The outputs of messages up to ``settled_ms`` (Kafka's
    time, ms) must have been published. ``limits`` are the worker's.
    """
    of_clusters = by_cluster(messages).join(clusters, "cluster", "left_semi")
    named = messages.select(*_POSITION, cause_names().alias("names"))
    by_cause = published.groupBy("cluster", "cause").agg(
        fn.unix_millis(fn.max("published_at")).alias("published_ms")
    )
    times = (
        of_clusters.select("cluster", *_POSITION)
        .join(named, [*_POSITION])
        .select("cluster", *_POSITION, fn.explode("names").alias("cause"))
        .join(by_cause, ["cluster", "cause"])
        .groupBy(*_POSITION)
        .agg(fn.max("published_ms").alias("published_ms"))
    )
    settled = (fn.col("time_ms") <= settled_ms).alias("settled")
    inputs = of_clusters.join(times, [*_POSITION], "left").select(
        "cluster", *_MESSAGE, "published_ms", settled
    )
    outputs = published.select(
        "cluster", "id", "live", "due", fn.unix_millis("published_at").alias("published_ms")
    )
    both = inputs.groupBy("cluster").cogroup(outputs.groupBy("cluster"))
    return both.applyInPandas(partial(_search, limits), "cluster string")


def _search(limits: Limits, inputs: pd.DataFrame, outputs: pd.DataFrame) -> pd.DataFrame:
    if inputs.empty:
        return pd.DataFrame({"cluster": []}, dtype=object)
    cluster = str(inputs["cluster"].iloc[0])
    queues = []
    for _, rows in inputs.sort_values("offset").groupby(["topic", "partition"]):
        published = (None if pd.isna(at) else int(at) for at in rows["published_ms"])
        messages = (
            InputMessage(*fields) for fields in rows[[*_MESSAGE]].itertuples(index=False, name=None)
        )
        settled = map(bool, rows["settled"])
        queues.append(queued([*map(TimedMessage, messages, published, settled)]))
    live = {
        str(id_): [
            LiveOutput(orjson.loads(text), int(at), bool(due))
            for text, at, due in rows[["live", "published_ms", "due"]].itertuples(
                index=False, name=None
            )
        ]
        for id_, rows in outputs.groupby("id")
    }
    reorderable = [cluster] if OrderSearch(cluster, queues, live, limits).finds_order() else []
    return pd.DataFrame({"cluster": reorderable}, dtype=object)
