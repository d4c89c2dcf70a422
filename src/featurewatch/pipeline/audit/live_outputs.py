"""Turns the messages of the output topics, and the rows of gold, into comparable rows.

Each row has a ``content``: a text for each column of the gold table (`canonical`).
"""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.audit.canonical import content
from featurewatch.pipeline.audit.lake_view import AUDITED, KINDS
from featurewatch.pipeline.audit.live_tables import TYPED
from featurewatch.pipeline.derived.spark_fold import (
    input_messages,
    partitioned_by_cluster,
    short_topic,
)
from featurewatch.pipeline.gold.tables import ALERTS, FEATURE_CHANGES, OPERATIONS
from featurewatch.pipeline.lake.tables import Table
from featurewatch.streams import topics

_POSITION: Final = "struct(id.round, id.offset, id.partition, id.published_at, id.text)"
"""SQL of where and when an output was published, in the order of the copies of one output: it is
complete, so the first copy does not depend on the order in which Spark's tasks end."""
_CAUSED_BY: Final = (
    ("provenance.offset", topics.METADATA_LOG),
    ("provenance.path", topics.ZOOKEEPER),
    ("provenance.role", topics.API_VERSIONS),
)
"""Fields of a change's provenance, each with the topic that the change comes from if it is set."""


def header(name: str) -> Column:
    """Returns a header's value as text, that of the first of this name; null if there is none."""
    # `filter` is interpreted for each header of each message, and these are compiled.
    index = fn.array_position("headers.key", name) - 1
    return fn.get("headers.value", index.cast("int")).cast("string")


def message_position() -> Column:
    """Returns the position of a message in the format of the worker ("T partition P offset O")."""
    partition, offset = fn.col("partition").cast("string"), fn.col("offset").cast("string")
    return fn.concat("topic", fn.lit(" partition "), partition, fn.lit(" offset "), offset)


def output_cluster() -> Column:
    """Returns the cluster of an output message: from its value, else its key, else "unknown"."""
    in_value = fn.get_json_object(fn.col("value").cast("string"), "$.cluster")
    return fn.coalesce(in_value, fn.col("key").cast("string"), fn.lit("unknown"))


def live_outputs(messages: DataFrame) -> DataFrame:
    """Returns the messages of the output topics with ``cluster``, ``kind``, ``id`` and ``value``.

    ``id`` is a struct: the ``ce_id`` (the message's position if it has none), and where and when
    the output was published. Tombstones are left out.
    """
    kinds = [fn.lit(part) for item in KINDS.items() for part in item]
    outputs = messages.where(short_topic().isin([*AUDITED]) & fn.col("value").isNotNull())
    return outputs.select(
        output_cluster().alias("cluster"),
        fn.create_map(*kinds)[short_topic()].alias("kind"),
        fn.struct(
            fn.coalesce(header("ce_id"), message_position()).alias("id"),
            fn.col("kafka_time").alias("published_at"),
            *("round", "partition", "offset"),
            fn.col("value").cast("string").alias("text"),
        ).alias("id"),
        "value",
    )


def live_rows(messages: DataFrame) -> DataFrame:
    """Returns the live outputs among some messages, one row for each table, id and content.

    The columns are ``table``, ``cluster``, ``id``, ``content``, ``copies`` (how often it was
    published), ``cause``, and of the first copy ``published_at``, ``round``, ``partition`` and
    ``text``. They are partitioned by cluster and id, as those of `lake_rows`.
    """
    # Materialized: each table would read all of bronze again for its own.
    outputs = live_outputs(messages).localCheckpoint()
    rows = _of_all_tables(
        comparable(TYPED[table.name](outputs), table, "id.id", f"{_POSITION} AS position")
        for table in AUDITED.values()
    )
    distinct = rows.groupBy("table", "cluster", "id", "content").agg(
        fn.count("*").alias("copies"),
        fn.min("position").alias("first"),
        fn.min("cause").alias("cause"),
    )
    of_first = ("published_at", "round", "partition", "text")
    return distinct.select(
        *("table", "cluster", "id", "content", "copies", "cause"),
        *(f"first.{name}" for name in of_first),
    )


def lake_rows(gold: Mapping[str, DataFrame]) -> DataFrame:
    """Returns the recomputed outputs: ``table``, ``cluster``, ``id``, ``content``, ``cause``, and
    their ``text`` as JSON.

    ``gold`` has the rows of each audited table, by the table's name.
    """
    return _of_all_tables(
        comparable(gold[table.name], table, "id", f"to_json(struct({_names(table)})) AS text")
        for table in AUDITED.values()
    )


def _names(table: Table) -> str:
    return ", ".join(f"`{name}`" for name in table.columns)


def _of_all_tables(rows: Iterable[DataFrame]) -> DataFrame:
    return partitioned_by_cluster(reduce(DataFrame.unionByName, rows), "id")


def content_columns(table: Table) -> list[str]:
    """Returns the names of the columns that make the content of a table's rows."""
    return [name for name in table.columns if name not in table.key]


def comparable(rows: DataFrame, table: Table, *others: str) -> DataFrame:
    """Returns ``table``, ``cluster``, ``content``, ``cause``, and ``others``, which are SQL."""
    return rows.select(
        fn.lit(table.name).alias("table"),
        "cluster",
        fn.expr(content(rows.schema, content_columns(table))).alias("content"),
        _cause(table).alias("cause"),
        *map(fn.expr, others),
    )


def _cause(table: Table) -> Column:
    """The name of an output's cause in `causes`; null for a snapshot, whose cause is that of its
    changes."""
    if table is ALERTS:
        return fn.col("cause")
    if table is FEATURE_CHANGES:
        topic = fn.coalesce(
            *(
                fn.when(fn.col(field).isNotNull(), fn.lit(topic.short_name))
                for field, topic in _CAUSED_BY
            )
        )
        return _seen(topic, _event_time())
    if table is OPERATIONS:
        return _seen(fn.lit(topics.METADATA_LOG.short_name), _event_time())
    return fn.lit(None).cast("string")


def _event_time() -> Column:
    """The time at which a source saw the cause of an output, in the format of ``ce_time``."""
    return fn.date_format("seen_at", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")


def _seen(topic: Column, time: Column) -> Column:
    """The name of an event by its topic and the time at which its source saw it."""
    return fn.concat_ws(" ", topic, fn.lit("seen"), time)


def cause_names() -> Column:
    """Returns the names by which outputs refer to an input message, as an array."""
    return fn.array(header("ce_id"), message_position(), _seen(short_topic(), header("ce_time")))


def causes(messages: DataFrame) -> DataFrame:
    """Returns the input messages, one row for each name by which outputs refer to them.

    The columns are ``cluster``, ``cause``, and of the first message with that name ``cause_at``
    (Kafka's time), ``cause_round`` and ``cause_partition``. Only keys and headers are read.
    """
    named = input_messages(messages).select(
        fn.coalesce(fn.col("key").cast("string"), fn.lit("unknown")).alias("cluster"),
        fn.explode(cause_names()).alias("cause"),
        *("kafka_time", "round", "partition", "offset"),
    )
    return (
        partitioned_by_cluster(named.where("cause IS NOT NULL"), "cause")
        .groupBy("cluster", "cause")
        .agg(
            fn.min(fn.struct("round", "offset", "kafka_time"))["kafka_time"].alias("cause_at"),
            fn.min("round").alias("cause_round"),
            fn.min("partition").alias("cause_partition"),
        )
    )
