"""The clusters on which the sides differ, looked at once more: was the order another one?

`audit_search` says how an order is looked for; here each cluster's messages are brought to it,
with what was said live of them, and when.
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
_PLACE: Final = ("topic", "partition", "offset")


def disputed_clusters(messages: DataFrame, found: DataFrame) -> DataFrame:
    """The clusters of some findings whose messages may have been folded otherwise and rightly.

    More than one topic tells of them, or something was said with several words: what a topic says
    anew after its log went backwards has the same id, and gold has but one row for it.
    """
    mine = by_cluster(messages).join(found.select("cluster").distinct(), "cluster", "left_semi")
    number = fn.countDistinct("topic").alias("topics")
    several = mine.groupBy("cluster").agg(number).where("topics > 1").select("cluster")
    words = fn.countDistinct("live").alias("words")
    reworded = found.groupBy("cluster", "table", "id").agg(words).where("words > 1")
    return several.union(reworded.select("cluster")).distinct()


def reorderable_clusters(
    messages: DataFrame,
    clusters: DataFrame,
    said: DataFrame,
    settled_ms: int,
    limits: Limits = DEFAULT_LIMITS,
) -> DataFrame:
    """Those of some clusters for which an order is found, as the column ``cluster``.

    ``messages`` are rows of bronze that gold has folded. ``said`` has what was said live:
    ``cluster``, ``id``, ``live`` (its text), ``said_at``, ``cause``, and ``due``. What messages up
    to ``settled_ms`` by Kafka's time led to must have been said. ``limits`` are the worker's.
    """
    mine = by_cluster(messages).join(clusters, "cluster", "left_semi")
    named = messages.select(*_PLACE, cause_names().alias("names"))
    first = said.groupBy("cluster", "cause").agg(fn.unix_millis(fn.max("said_at")).alias("said_ms"))
    when = (
        mine.select("cluster", *_PLACE)
        .join(named, [*_PLACE])
        .select("cluster", *_PLACE, fn.explode("names").alias("cause"))
        .join(first, ["cluster", "cause"])
        .groupBy(*_PLACE)
        .agg(fn.max("said_ms").alias("said_ms"))
    )
    settled = (fn.col("time_ms") <= settled_ms).alias("settled")
    inputs = mine.join(when, [*_PLACE], "left").select("cluster", *_MESSAGE, "said_ms", settled)
    outputs = said.select(
        "cluster", "id", "live", "due", fn.unix_millis("said_at").alias("said_ms")
    )
    both = inputs.groupBy("cluster").cogroup(outputs.groupBy("cluster"))
    return both.applyInPandas(partial(_search, limits), "cluster string")


def _search(limits: Limits, inputs: pd.DataFrame, outputs: pd.DataFrame) -> pd.DataFrame:
    if inputs.empty:
        return pd.DataFrame({"cluster": []}, dtype=object)
    cluster = str(inputs["cluster"].iloc[0])
    queues = []
    for _, rows in inputs.sort_values("offset").groupby("topic"):
        said = (None if pd.isna(at) else int(at) for at in rows["said_ms"])
        fields = rows[[*_MESSAGE]].itertuples(index=False, name=None)
        found = zip(fields, said, rows["settled"], strict=True)
        queues.append(
            queued([TimedMessage(InputMessage(*one), at, bool(done)) for one, at, done in found])
        )
    live = {
        str(id_): [
            LiveOutput(orjson.loads(text), int(at), bool(due))
            for text, at, due in rows[["live", "said_ms", "due"]].itertuples(index=False, name=None)
        ]
        for id_, rows in outputs.groupby("id")
    }
    names = [cluster] if OrderSearch(cluster, queues, live, limits).finds_order() else []
    return pd.DataFrame({"cluster": names}, dtype=object)
