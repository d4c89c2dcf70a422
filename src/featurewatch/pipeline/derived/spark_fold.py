"""Runs the shared fold in Spark, over a batch of messages or over a stream.

Both hand a cluster's messages in the lake's order to a `TablePass`, which decodes each once for the
rows of silver and gold. In a batch the messages are sorted by cluster, so only one cluster's state
is in memory. In a stream Spark keeps the state, as the same rows that the worker keeps in its
changelog, in one value for each cluster.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as fn
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from featurewatch.monitor.input_messages import INPUT_TOPICS, InputMessage
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.derived.packed_rows import pack
from featurewatch.pipeline.derived.table_pass import TablePass
from featurewatch.pipeline.fold.messages import STATE_ROW, FoldState, state_rows
from featurewatch.pipeline.lake.row_blocks import RowBlock, as_batch, row_values
from featurewatch.tables.garbage import collect_rarely

OUTPUT_SCHEMA: Final = "cluster string, kind string, id string, value binary"
"""Rows of a state (kind `STATE_ROW`), and blocks of a table's rows: ``kind`` is then the table's
path, and ``id`` the block's label."""
STATE: Final = "rows"
"""The name of the state of a cluster, a value of the type `STATE_SCHEMA`."""
STATE_SCHEMA: Final = "rows binary"
_PARTITIONS_A_CORE: Final = 4
ORDER: Final = ("round", "order_ms", "topic", "offset", "partition")
"""The order of a cluster's messages in the lake.

``order_ms`` is the newest of Kafka's times in the message's partition and round, up to its offset:
producers set these times, and those of a partition may run backwards. Within a partition the order
is the offset, as for the worker; Kafka's time places a message among those of other partitions.
"""
_PARTITION: Final = ("round", "topic", "partition")

_MESSAGE: Final = InputMessage._fields
_COLUMNS: Final = ("cluster", "round", *_MESSAGE)
"""The columns of `by_cluster`."""
_OUTPUT_ARROW: Final = pa.schema(
    [("cluster", pa.string()), ("kind", pa.string()), ("id", pa.string()), ("value", pa.binary())]
)
_OUTPUT: Final = Row(*_OUTPUT_ARROW.names)

Placed = tuple[int, InputMessage]
"""A message with the round in which it came."""


def short_topic() -> Column:
    """Returns a column with a topic's short name: the part after the last dot of its full name."""
    return fn.substring_index("topic", ".", -1)


def input_messages(messages: DataFrame) -> DataFrame:
    """Returns the messages of the input topics."""
    return messages.where(short_topic().isin([*INPUT_TOPICS]))


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
    return input_messages(messages).select(
        fn.coalesce(cluster, fn.lit("unknown")).alias("cluster"),
        "round",
        *("topic", "partition", "offset"),
        fn.unix_millis("kafka_time").alias("time_ms"),
        *("key", "value"),
        *others,
    )


def fold_batch(messages: DataFrame, limits: Limits = DEFAULT_LIMITS) -> DataFrame:
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
        lambda batches: _fold_sorted(batches, limits), OUTPUT_SCHEMA
    )


def partitioned_by_cluster(rows: DataFrame, *within: str) -> DataFrame:
    """Returns rows in partitions of whole clusters; two results in one session can be joined by
    cluster without another shuffle.

    With columns ``within``, the rows of a cluster that differ in them may be in several partitions.

    There are several partitions a core, since clusters differ in size: a core that is done takes
    more. Not several times ``spark.sql.shuffle.partitions``, which is 200 on any Spark cluster:
    most partitions would be empty, and each costs a task.
    """
    count = _PARTITIONS_A_CORE * rows.sparkSession.sparkContext.defaultParallelism
    return rows.repartition(count, "cluster", *within)


def in_order(messages: Iterable[Placed]) -> list[InputMessage]:
    """Returns a cluster's messages in the lake's order (`ORDER`)."""
    newest: dict[tuple[int, str, int], int] = {}
    keyed = []
    for round_, message in sorted(messages, key=lambda placed: placed[1].offset):
        topic, partition, offset, time_ms, *_ = message
        part = (round_, topic, partition)
        order_ms = newest[part] = max(newest.get(part, time_ms), time_ms)
        keyed.append(((round_, order_ms, topic, offset, partition), message))
    keyed.sort(key=itemgetter(0))
    return [message for _, message in keyed]


def _fold_sorted(batches: Iterable[pa.RecordBatch], limits: Limits) -> Iterator[pa.RecordBatch]:
    """Folds one partition of the sorted messages; each cluster is in exactly one partition."""
    collect_rarely()
    table_pass = TablePass(limits)
    rows = (
        row for batch in batches for row in row_values(_with_bytes(batch), ("cluster", *_MESSAGE))
    )
    for cluster, of_cluster in groupby(rows, key=itemgetter(0)):
        table_pass.begin(cluster, {})
        for blocks in table_pass.apply(InputMessage(*row[1:]) for row in of_cluster):
            yield _as_batch(block_rows(blocks))
        yield _as_batch(_state_rows(table_pass.end()))
    yield _as_batch(block_rows(table_pass.take_blocks()))


def _with_bytes(messages: pa.RecordBatch) -> pa.RecordBatch:
    """The messages with their values as bytes again; they need not be UTF-8."""
    index = messages.schema.get_field_index("value")
    return messages.set_column(index, "value", messages.column(index).cast(pa.binary()))


def block_rows(blocks: Iterable[RowBlock]) -> list[tuple[Any, ...]]:
    """Returns blocks as rows of `OUTPUT_SCHEMA`."""
    return [("", *block.labelled) for block in blocks]


def _state_rows(state: FoldState | None) -> list[tuple[Any, ...]]:
    """The rows of the state of a cluster that has ended."""
    if state is None:
        return []
    return [(state.cluster, STATE_ROW, *row) for row in state_rows(state).items()]


def _as_batch(outputs: list[tuple[Any, ...]]) -> pa.RecordBatch:
    return as_batch(outputs, _OUTPUT_ARROW)


class FoldProcessor(StatefulProcessor):
    """The fold over a stream: applies a cluster's new messages to its state, which is one value."""

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark before the first rows."""
        self._state = handle.getValueState(STATE, STATE_SCHEMA)
        collect_rarely()
        self._pass = TablePass(self._limits)

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Iterator[Any], _timers: Any
    ) -> Iterator[Row]:
        """Folds a cluster's messages of one batch, in any order, after the rows of the state with
        which it starts, if there are any. All of a cluster's rows come in one call."""
        stored = self._state.get()
        before = b"" if stored is None else bytes(stored[0])
        start, messages = dict[str, bytes](), list[Placed]()
        for _, round_, topic, *fields in rows:
            if topic is None:
                *_, name, value = fields
                start[bytes(name).decode()] = bytes(value)
            else:
                messages.append((round_, InputMessage(topic, *fields)))
        self._pass.begin(key[0], before or start)
        for blocks in self._pass.apply(in_order(messages)):
            yield from map(_output, block_rows(blocks))
        state = self._pass.end()
        after = b"" if state is None else pack(state_rows(state))
        if after != before:
            self._state.update((after,))
        yield from map(_output, block_rows(self._pass.take_blocks()))

    def close(self) -> None:
        """Nothing to release."""


def _output(row: tuple[Any, ...]) -> Row:
    return _OUTPUT(*row)


def fold_stream(
    messages: DataFrame, start: DataFrame, limits: Limits = DEFAULT_LIMITS
) -> DataFrame:
    """Folds a stream of `by_cluster` rows into rows of `OUTPUT_SCHEMA`.

    ``start`` is a stream of the state rows to begin with, as `fold_batch` returns them, all of
    which come in its first batch. They are rows among the messages, and not an initial state in
    Spark's sense: with one, Spark 4.2 passes the messages of a cluster in several calls, each of
    ``spark.sql.execution.arrow.maxRecordsPerBatch``, and so without an order.
    """
    null = {name: fn.lit(None).cast(type_) for name, type_ in _NO_MESSAGE.items()}
    rows = start.where(fn.col("kind") == STATE_ROW).select(
        "cluster",
        *(column.alias(name) for name, column in null.items()),
        fn.col("id").cast("binary").alias("key"),
        "value",
    )
    return (
        messages.select(*_COLUMNS)
        .union(rows)
        .groupBy("cluster")
        .transformWithState(FoldProcessor(limits), OUTPUT_SCHEMA, "Append", "None")
    )


_NO_MESSAGE: Final = {
    "round": "bigint",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "time_ms": "bigint",
}
"""The columns of a message that a row of the state lacks."""
