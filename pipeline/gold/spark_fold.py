"""The shared fold in Spark: over a batch of messages, and over a stream of them.

Both run `folding.fold_message` over a cluster's messages in the lake's order. In a batch they run
through it sorted, one cluster after the other, so that only one cluster's state is in memory. In a
stream the state is kept by Spark, as the rows in which the worker keeps it in its changelog.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from featurewatch.controller.input_messages import INPUT_TOPICS, InputMessage
from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.fold.messages import (
    STATE_ROW,
    FoldOutput,
    FoldState,
    flush_outputs,
    fold_message,
    restore_state,
    state_rows,
)
from featurewatch.pipeline.silver.decoding import short_topic

OUTPUT_SCHEMA: Final = "cluster string, kind string, id string, value binary"
ORDER: Final = ("round", "time_ms", "topic", "offset")
"""The order of a cluster's messages."""

_MESSAGE: Final = InputMessage._fields
_SAID_ARROW: Final = pa.schema(
    [("cluster", pa.string()), ("kind", pa.string()), ("id", pa.string()), ("value", pa.binary())]
)


def by_cluster(messages: DataFrame) -> DataFrame:
    """The messages that the fold takes in, with the cluster whose state each belongs to.

    It is the one that the key names; a message without a key says it itself.
    """
    said = fn.get_json_object(fn.col("value").cast("string"), "$.cluster")
    named = fn.when(fn.length("key") > 0, fn.make_valid_utf8(fn.col("key").cast("string"))).when(
        fn.col("key").isNull(), said
    )
    return messages.where(short_topic().isin([*INPUT_TOPICS])).select(
        fn.coalesce(named, fn.lit("unknown")).alias("cluster"),
        "round",
        *("topic", "partition", "offset"),
        fn.unix_millis("kafka_time").alias("time_ms"),
        *("key", "value"),
    )


def fold_batch(messages: DataFrame, limits: Limits = DEFAULT_LIMITS) -> DataFrame:
    """What the fold says of all messages, and the rows of the states that it ends with.

    Takes what `by_cluster` gives, and gives rows of `OUTPUT_SCHEMA`.
    """
    ordered = messages.repartition("cluster").sortWithinPartitions("cluster", *ORDER)
    return ordered.select("cluster", *_MESSAGE).mapInArrow(
        lambda batches: _fold_sorted(batches, limits), OUTPUT_SCHEMA
    )


def _fold_sorted(batches: Iterable[pa.RecordBatch], limits: Limits) -> Iterator[pa.RecordBatch]:
    """One part of the sorted messages; a cluster's are all in it, and follow each other."""
    cluster: str | None = None
    state: FoldState | None = None
    for batch in batches:
        said: list[FoldOutput] = []
        columns = (batch.column(name).to_pylist() for name in ("cluster", *_MESSAGE))
        for name, *fields in zip(*columns, strict=True):
            if name != cluster or state is None:
                said += _at_end(state)
                cluster, state = name, restore_state(name, {})
            state, more = fold_message(state, InputMessage(*fields), limits)
            said += more
        yield _as_batch(said)
    yield _as_batch(_at_end(state))


def _at_end(state: FoldState | None) -> list[FoldOutput]:
    """The last words of a cluster, and its state."""
    if state is None:
        return []
    state, said = flush_outputs(state)
    rows = state_rows(state).items()
    return said + [FoldOutput(state.cluster, STATE_ROW, name, value) for name, value in rows]


def _as_batch(said: list[FoldOutput]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([one._asdict() for one in said], schema=_SAID_ARROW)


class FoldProcessor(StatefulProcessor):
    """The fold in a stream: one cluster's new messages, with its state as rows of a map."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's call before the first rows."""
        self._rows = handle.getMapState("rows", "name string", "value binary")

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Iterator[pd.DataFrame], _timers: Any
    ) -> Iterator[pd.DataFrame]:
        """A cluster's messages of one batch, in any order; only rows that changed are written."""
        before = {name: bytes(value) for (name,), (value,) in self._rows.iterator()}
        state = restore_state(key[0], before)
        said: list[FoldOutput] = []
        messages = pd.concat([*rows]).sort_values([*ORDER])
        for fields in messages[[*_MESSAGE]].itertuples(index=False, name=None):
            state, more = fold_message(state, InputMessage(*fields), self._limits)
            said += more
        state, more = flush_outputs(state)
        said += more
        after = state_rows(state)
        for name in before.keys() - after.keys():
            self._rows.removeKey((name,))
        for name, value in after.items():
            if before.get(name) != value:
                self._rows.updateValue((name,), (value,))
        yield pd.DataFrame(said, columns=FoldOutput._fields)

    def handleInitialState(  # noqa: N802 - Spark's name
        self, _key: Any, start: pd.DataFrame, _timers: Any
    ) -> None:
        """The rows with which a cluster begins."""
        for name, value in zip(start["id"], start["value"], strict=True):
            self._rows.updateValue((name,), (bytes(value),))

    def close(self) -> None:
        """Nothing is held open."""


def fold_stream(
    messages: DataFrame, start: DataFrame, limits: Limits = DEFAULT_LIMITS
) -> DataFrame:
    """What the fold says of a stream of what `by_cluster` gives, as rows of `OUTPUT_SCHEMA`.

    ``start`` has the rows of the states to begin with, as `fold_batch` gives them.
    """
    return messages.groupBy("cluster").transformWithStateInPandas(
        FoldProcessor(limits),
        OUTPUT_SCHEMA,
        "Append",
        "None",
        initialState=start.groupBy("cluster"),
    )
