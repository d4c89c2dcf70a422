"""Whether there is an order of a cluster's messages in which the fold says what was said live.

Messages of one topic have an order, those of two topics have none: the worker took them as they
came to it, the lake folds them by Kafka's time, and what follows may differ where both are right.
A cluster of which several topics tell, and on which the sides differ, is looked at once more: its
messages are folded in orders that keep that of each topic, until one says all that was said live,
word by word and one after the other, and nothing else. When the worker said something shows when it
took in what caused that; so one of the first orders is mostly the right one.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from pipeline.audit_live import cause_names
from pipeline.folding import ALERT, CHANGE, SNAPSHOT, Message, fold_message, state_of
from pipeline.spark_fold import by_cluster

_SAID: Final = (CHANGE, ALERT, SNAPSHOT)
_SKEW_MS: Final = 5_000
"""How far the clocks of sources and workers may be apart."""
_MESSAGE: Final = Message._fields
_PLACE: Final = ("topic", "partition", "offset")


class Live(NamedTuple):
    """An output that was said live: each text that it was said with, and when the last time (ms).

    ``due``: gold has folded its cause, so that an order has to come to it.
    """

    contents: Sequence[Any]
    said_ms: int
    due: bool


class Queued(NamedTuple):
    """A message, when the worker took it in at the earliest (ms), and whether it has spoken of it.

    ``settled``: what follows from it has been said, or never will be.
    """

    message: Message
    taken_ms: int
    settled: bool


class Search:
    """The orders of a cluster's messages, tried one after the other."""

    def __init__(
        self, cluster: str, queues: Sequence[Sequence[Queued]], live: Mapping[str, Live]
    ) -> None:
        self._cluster = cluster
        self._queues = queues
        self._live = live
        self._times = sorted(one.said_ms for one in live.values() if one.due)
        # An order is found at once or after some corrections; a search through all is endless.
        self._budget = 2_000 + 30 * sum(map(len, queues))

    def succeeds(self) -> bool:
        """Whether an order was found that says what was said live."""
        start = (0,) * len(self._queues)
        path = [(start, state_of(self._cluster, {}), 0, self._heads(start))]
        tried: dict[tuple[int, ...], list[Any]] = {}
        while path:
            at, state, said, heads = path[-1]
            for head in heads:
                now = (*at[:head], at[head] + 1, *at[head + 1 :])
                one = self._queues[head][at[head]]
                if self._is_late(one, said):
                    continue
                self._budget -= 1
                if self._budget < 0:
                    return False
                after, outputs = fold_message(state, one.message)
                found = {out.id: orjson.loads(out.value) for out in outputs if out.kind in _SAID}
                if not self._agrees(found, said, one) or after in tried.get(now, ()):
                    continue
                tried.setdefault(now, []).append(after)
                count = said + sum(id_ in self._live and self._live[id_].due for id_ in found)
                path.append((now, after, count, self._heads(now)))
                break
            else:
                if said == len(self._times) and self._is_end(at):
                    return True
                path.pop()
        return False

    def _heads(self, at: tuple[int, ...]) -> Iterator[int]:
        """The topics with messages left, the one first whose next message came first."""
        left = [n for n, queue in enumerate(self._queues) if at[n] < len(queue)]
        return iter(sorted(left, key=lambda n: self._queues[n][at[n]].taken_ms))

    def _is_end(self, at: tuple[int, ...]) -> bool:
        return all(n == len(queue) for n, queue in zip(at, self._queues, strict=True))

    def _is_late(self, one: Queued, said: int) -> bool:
        """Whether a message came after something was said that has not come out yet."""
        return said < len(self._times) and one.message.time_ms > self._times[said] + _SKEW_MS

    def _agrees(self, found: Mapping[str, Any], said: int, one: Queued) -> bool:
        """Whether what a message says was said live, after all that was said before it."""
        if any(id_ not in self._live for id_ in found):
            return not one.settled and not any(id_ in self._live for id_ in found)
        if any(content not in self._live[id_].contents for id_, content in found.items()):
            return False
        times = [self._live[id_].said_ms for id_ in found if self._live[id_].due]
        return not times or bisect_left(self._times, min(times)) <= said


def several_topics(messages: DataFrame, clusters: DataFrame) -> DataFrame:
    """Those of some clusters of which more than one topic tells."""
    found = by_cluster(messages).join(clusters, "cluster", "left_semi")
    number = fn.countDistinct("topic").alias("topics")
    return found.groupBy("cluster").agg(number).where("topics > 1").select("cluster")


def in_some_order(
    messages: DataFrame, clusters: DataFrame, said: DataFrame, settled_ms: int
) -> DataFrame:
    """Those of some clusters for which an order is found, as the column ``cluster``.

    ``messages`` are rows of bronze that gold has folded. ``said`` has what was said live:
    ``cluster``, ``id``, ``live`` (its text), ``said_at``, ``cause``, and ``due``. What messages up
    to ``settled_ms`` by Kafka's time led to must have been said.
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
    taken = fn.greatest("time_ms", fn.coalesce("said_ms", "time_ms")).alias("taken_ms")
    settled = (fn.col("time_ms") <= settled_ms).alias("settled")
    inputs = mine.join(when, [*_PLACE], "left").select("cluster", *_MESSAGE, taken, settled)
    outputs = said.select(
        "cluster", "id", "live", "due", fn.unix_millis("said_at").alias("said_ms")
    )
    both = inputs.groupBy("cluster").cogroup(outputs.groupBy("cluster"))
    return both.applyInPandas(_search, "cluster string")


def _search(inputs: pd.DataFrame, outputs: pd.DataFrame) -> pd.DataFrame:
    if inputs.empty:
        return pd.DataFrame({"cluster": []}, dtype=object)
    cluster = str(inputs["cluster"].iloc[0])
    queues = []
    for _, rows in inputs.sort_values("offset").groupby("topic"):
        taken = rows["taken_ms"].cummax()
        fields = rows[[*_MESSAGE]].itertuples(index=False, name=None)
        found = zip(fields, taken, rows["settled"], strict=True)
        queues.append([Queued(Message(*one), int(at), bool(done)) for one, at, done in found])
    live = {
        str(id_): Live(
            [orjson.loads(text) for text in rows["live"]],
            int(rows["said_ms"].max()),
            bool(rows["due"].all()),
        )
        for id_, rows in outputs.groupby("id")
    }
    names = [cluster] if Search(cluster, queues, live).succeeds() else []
    return pd.DataFrame({"cluster": names}, dtype=object)
