"""Runs the shared fold in Spark, over a batch of messages or over a stream.

Both hand a cluster's messages in the lake's order to a `TablePass`, which decodes each once for the
rows of gold and, if wanted, of silver. In a batch the messages are sorted by cluster, so only one
cluster's state is in memory. In a stream Spark keeps the state, as the same rows that the worker
keeps in its changelog.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from featurewatch.monitor.input_messages import INPUT_TOPICS, InputMessage
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.fold.messages import STATE_ROW, FoldOutput, FoldState, state_rows
from featurewatch.pipeline.gold.table_pass import TablePass
from featurewatch.pipeline.lake.row_blocks import as_batch, row_values
from featurewatch.pipeline.silver.query import short_topic
from featurewatch.tables.garbage import collect_rarely

OUTPUT_SCHEMA: Final = "cluster string, kind string, id string, value binary"
"""Rows of a state (kind `STATE_ROW`), and blocks of a table's rows: ``kind`` is then the table's
path, and ``id`` the block's label."""
_PARTITIONS_A_CORE: Final = 4
ORDER: Final = ("round", "order_ms", "topic", "offset", "partition")
"""The order of a cluster's messages in the lake.

``order_ms`` is the newest of Kafka's times in the message's partition and round, up to its offset:
producers set these times, and those of a partition may run backwards. Within a partition the order
is the offset, as for the worker; Kafka's time places a message among those of other partitions.
"""
_PARTITION: Final = ("round", "topic", "partition")

_MESSAGE: Final = InputMessage._fields
_OUTPUT_ARROW: Final = pa.schema(
    [("cluster", pa.string()), ("kind", pa.string()), ("id", pa.string()), ("value", pa.binary())]
)


def by_cluster(messages: DataFrame, *others: Column) -> DataFrame:
    """Returns the messages that the fold applies, with the cluster whose state each belongs to.

    The cluster is the message's key; a message without a key is assigned by its value. The columns
    are ``cluster``, ``round``, ``topic``, ``partition``, ``offset``, ``time_ms``, ``key``,
    ``value``, and the ``others``, which are made of the messages' columns.
    """
    in_value = fn.get_json_object(fn.col("value").cast("string"), "$.cluster")
    cluster = fn.when(fn.length("key") > 0, fn.make_valid_utf8(fn.col("key").cast("string"))).when(
        fn.col("key").isNull(), in_value
    )
    return messages.where(short_topic().isin([*INPUT_TOPICS])).select(
        fn.coalesce(cluster, fn.lit("unknown")).alias("cluster"),
        "round",
        *("topic", "partition", "offset"),
        fn.unix_millis("kafka_time").alias("time_ms"),
        *("key", "value"),
        *others,
    )


def fold_batch(
    messages: DataFrame, limits: Limits = DEFAULT_LIMITS, *, with_silver: bool = False
) -> DataFrame:
    """Folds all messages and returns blocks of the tables' rows and the rows of the final states.

    Takes rows of `by_cluster` and returns rows of `OUTPUT_SCHEMA`.
    """
    # The window needs no second shuffle: its partitions are parts of a cluster.
    so_far = Window.partitionBy("cluster", *_PARTITION).orderBy("offset")
    so_far = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # Spark copies a binary value at each step that looks at the row, and a string at none.
    messages = messages.withColumn("value", fn.col("value").cast("string"))
    timed = partitioned_by_cluster(messages).withColumn("order_ms", fn.max("time_ms").over(so_far))
    # All columns go to Python: to select some of them is another copy of each row.
    return timed.sortWithinPartitions("cluster", *ORDER).mapInArrow(
        lambda batches: _fold_sorted(batches, limits, with_silver), OUTPUT_SCHEMA
    )


def partitioned_by_cluster(rows: DataFrame) -> DataFrame:
    """Returns rows in partitions of whole clusters; two results in one session can be joined by
    cluster without another shuffle.

    There are several partitions a core, since clusters differ in size: a core that is done takes
    more. Not several times ``spark.sql.shuffle.partitions``, which is 200 on any Spark cluster:
    most partitions would be empty, and each costs a task.
    """
    count = _PARTITIONS_A_CORE * rows.sparkSession.sparkContext.defaultParallelism
    return rows.repartition(count, "cluster")


def in_order(messages: pd.DataFrame) -> pd.DataFrame:
    """Returns a cluster's messages, rows of `by_cluster`, in the lake's order."""
    by_offset = messages.sort_values("offset")
    order_ms = by_offset.groupby([*_PARTITION])["time_ms"].cummax()
    return by_offset.assign(order_ms=order_ms).sort_values([*ORDER])


def _fold_sorted(
    batches: Iterable[pa.RecordBatch], limits: Limits, with_silver: bool
) -> Iterator[pa.RecordBatch]:
    """Folds one partition of the sorted messages; each cluster is in exactly one partition."""
    collect_rarely()
    cluster: str | None = None
    table_pass = TablePass(limits, with_silver=with_silver)
    for batch in batches:
        for name, *fields in row_values(_with_bytes(batch), ("cluster", *_MESSAGE)):
            if name != cluster:
                yield from _state_batches(table_pass.end())
                cluster = name
                table_pass.begin(name, {})
            table_pass.apply(InputMessage(*fields))
            if table_pass.is_full:
                yield _as_batch(block_rows(table_pass))
    yield from _state_batches(table_pass.end())
    yield _as_batch(block_rows(table_pass))


def _with_bytes(messages: pa.RecordBatch) -> pa.RecordBatch:
    """The messages with their values as bytes again; they need not be UTF-8."""
    index = messages.schema.get_field_index("value")
    return messages.set_column(index, "value", messages.column(index).cast(pa.binary()))


def block_rows(table_pass: TablePass) -> list[FoldOutput]:
    """Returns the blocks of a pass as rows of `OUTPUT_SCHEMA`."""
    return [FoldOutput("", *block.labelled) for block in table_pass.take_blocks()]


def _state_batches(state: FoldState | None) -> Iterator[pa.RecordBatch]:
    """The rows of the state of a cluster that has ended."""
    if state is not None:
        rows = state_rows(state).items()
        yield _as_batch([FoldOutput(state.cluster, STATE_ROW, *row) for row in rows])


def _as_batch(outputs: list[FoldOutput]) -> pa.RecordBatch:
    return as_batch(outputs, _OUTPUT_ARROW)


class FoldProcessor(StatefulProcessor):
    """The fold over a stream: applies a cluster's new messages, with its state as rows of a map."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS, *, with_silver: bool = False) -> None:
        self._limits = limits
        self._with_silver = with_silver

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before the first rows."""
        self._rows = handle.getMapState("rows", "name string", "value binary")
        collect_rarely()
        self._pass = TablePass(self._limits, with_silver=self._with_silver)

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Iterator[pd.DataFrame], _timers: Any
    ) -> Iterator[pd.DataFrame]:
        """Folds a cluster's messages of one batch, in any order; writes only state rows that
        changed."""
        before = {name: bytes(value) for (name,), (value,) in self._rows.iterator()}
        self._pass.begin(key[0], before)
        messages = in_order(pd.concat([*rows], ignore_index=True))
        for fields in messages[[*_MESSAGE]].itertuples(index=False, name=None):
            self._pass.apply(InputMessage(*fields))
            if self._pass.is_full:
                yield pd.DataFrame(block_rows(self._pass), columns=FoldOutput._fields)
        state = self._pass.end()
        after = {} if state is None else state_rows(state)
        for name in before.keys() - after.keys():
            self._rows.removeKey((name,))
        for name, value in after.items():
            if before.get(name) != value:
                self._rows.updateValue((name,), (value,))
        yield pd.DataFrame(block_rows(self._pass), columns=FoldOutput._fields)

    def handleInitialState(  # noqa: N802 - Spark's name
        self, _key: Any, start: pd.DataFrame, _timers: Any
    ) -> None:
        """Stores the state rows with which a cluster begins."""
        for name, value in zip(start["id"], start["value"], strict=True):
            self._rows.updateValue((name,), (bytes(value),))

    def close(self) -> None:
        """Nothing to release."""


def fold_stream(
    messages: DataFrame,
    start: DataFrame,
    limits: Limits = DEFAULT_LIMITS,
    *,
    with_silver: bool = False,
) -> DataFrame:
    """Folds a stream of `by_cluster` rows into rows of `OUTPUT_SCHEMA`.

    ``start`` has the state rows to begin with, as `fold_batch` returns them.
    """
    return messages.groupBy("cluster").transformWithStateInPandas(
        FoldProcessor(limits, with_silver=with_silver),
        OUTPUT_SCHEMA,
        "Append",
        "None",
        initialState=start.groupBy("cluster"),
    )
