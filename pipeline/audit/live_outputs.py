"""Turns the messages of the output topics, and the rows of gold, into comparable rows.

Each row has a ``content``: one JSON text for each field of the gold table, in which the order of a
map's entries does not count.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as ty

from featurewatch.pipeline.audit.lake_view import AUDITED
from featurewatch.pipeline.audit.live_tables import KINDS, TYPED
from featurewatch.pipeline.gold.tables import ALERTS, FEATURE_CHANGES, OPERATIONS
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.silver.query import input_messages, short_topic
from featurewatch.streams import topics

_JSON: Final = ("evidence", "details")
"""Columns that hold JSON as text."""

_CAUSED_BY: Final = (
    ("provenance.offset", topics.METADATA_LOG),
    ("provenance.path", topics.ZOOKEEPER),
    ("provenance.role", topics.API_VERSIONS),
)
"""Fields of a change's provenance, each with the topic that the change comes from if it is set."""


def header(name: str) -> Column:
    """Returns a header's value as text; null if the message lacks the header."""
    matching = fn.filter("headers", lambda header: header["key"] == name)
    return fn.get(matching, fn.lit(0))["value"].cast("string")


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
    kinds = [
        part
        for topic, table in AUDITED.items()
        for part in (fn.lit(topic), fn.lit(KINDS[table.name]))
    ]
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


def live_rows(outputs: DataFrame, table: Table) -> DataFrame:
    """Returns the outputs of a table, among `live_outputs`: one row for each id and content.

    The columns are ``cluster``, ``id``, ``content``, ``copies`` (how often it was published),
    ``cause``, and of the first copy ``published_at``, ``round``, ``partition`` and ``text``.
    """
    rows = comparable(TYPED[table.name](outputs), table).withColumns(
        {"position": fn.col("id"), "id": fn.col("id.id")}
    )
    first = fn.min_by("position", fn.struct("position.round", "position.offset"))
    distinct = rows.groupBy("cluster", "id", "content").agg(
        fn.count("*").alias("copies"), first.alias("position"), fn.min("cause").alias("cause")
    )
    return distinct.select(
        *("cluster", "id", "content", "copies", "cause"),
        fn.col("position.published_at").alias("published_at"),
        fn.col("position.round").alias("round"),
        fn.col("position.partition").alias("partition"),
        fn.col("position.text").alias("text"),
    )


def lake_rows(rows: DataFrame, table: Table) -> DataFrame:
    """Returns the recomputed outputs of a table with their ``content`` and their ``text`` as JSON.

    ``rows`` have the columns of gold's table.
    """
    text = fn.to_json(fn.struct(*(f"`{name}`" for name in table.columns)))
    return comparable(rows.withColumn("text", text), table, "text")


def comparable(rows: DataFrame, table: Table, *extra_columns: str) -> DataFrame:
    """Returns ``cluster``, ``id``, ``content``, ``cause``, ``revision`` (if the table has it) and
    ``extra_columns``."""
    fields = [name for name in table.columns if name not in table.key]
    content = fn.array(*(_canonical_text(rows, name) for name in fields)).alias("content")
    revision = ["revision"] if "revision" in table.columns else []
    return rows.select(
        "cluster", "id", content, _cause(table).alias("cause"), *revision, *extra_columns
    )


def _canonical_text(rows: DataFrame, name: str) -> Column:
    if name in _JSON:
        entries = fn.array_sort(fn.map_entries(fn.from_json(name, "map<string, string>")))
        return fn.coalesce(fn.to_json(entries), name, fn.lit("null"))
    kind = rows.schema[name].dataType
    return fn.to_json(fn.struct(canonical(fn.col(f"`{name}`"), kind).alias("is")))


def canonical(value: Column, kind: ty.DataType) -> Column:
    """Returns a value in which every map, at any depth, is a sorted array of its entries."""
    if isinstance(kind, ty.MapType):
        values = fn.transform_values(value, lambda _, item: canonical(item, kind.valueType))
        return fn.array_sort(fn.map_entries(values))
    if isinstance(kind, ty.ArrayType):
        return fn.transform(value, lambda item: canonical(item, kind.elementType))
    if isinstance(kind, ty.StructType):
        fields = (canonical(value[field.name], field.dataType).alias(field.name) for field in kind)
        return fn.when(value.isNotNull(), fn.struct(*fields))
    return value


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
        named.where("cause IS NOT NULL")
        .groupBy("cluster", "cause")
        .agg(
            fn.min_by("kafka_time", fn.struct("round", "offset")).alias("cause_at"),
            fn.min("round").alias("cause_round"),
            fn.min("partition").alias("cause_partition"),
        )
    )
