"""What was said live, and what caused it, from the messages in bronze.

Both sides of an audit are made comparable here: a row has a ``content``, one JSON text for each
field that gold has, in which the order of a map's entries no longer counts.
"""

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn
from pyspark.sql import types as ty

from featurewatch.pipeline.audit.lake_view import AUDITED
from featurewatch.pipeline.gold.query import TABLES, GoldTableSpec
from featurewatch.pipeline.gold.tables import ALERTS, FEATURE_CHANGES
from featurewatch.pipeline.lake.tables import Table
from featurewatch.pipeline.silver.decoding import input_messages, short_topic
from featurewatch.streams import topics

_JSON: Final = ("evidence",)
"""Columns that hold JSON as text."""

_CAUSED_BY: Final = (
    ("provenance.offset", topics.METADATA_LOG),
    ("provenance.path", topics.ZOOKEEPER),
    ("provenance.role", topics.API_VERSIONS),
)
"""What the provenance of a change has, and the topic that it comes from then."""


def header(name: str) -> Column:
    """A header's value as text; null where there is none."""
    found = fn.filter("headers", lambda one: one["key"] == name)
    return fn.get(found, fn.lit(0))["value"].cast("string")


def place() -> Column:
    """Where a message stands, as the worker says it."""
    number = fn.col("partition").cast("string"), fn.col("offset").cast("string")
    return fn.concat("topic", fn.lit(" partition "), number[0], fn.lit(" offset "), number[1])


def output_cluster() -> Column:
    """The cluster of which an output tells."""
    named = fn.get_json_object(fn.col("value").cast("string"), "$.cluster")
    return fn.coalesce(named, fn.col("key").cast("string"), fn.lit("unknown"))


def live_outputs(messages: DataFrame) -> DataFrame:
    """The messages on the output topics as rows of `spark_fold.OUTPUT_SCHEMA`.

    ``id`` is a struct: the ``ce_id`` (a message without one is named by its place), and where and
    when it was said. What deletes a key says nothing.
    """
    kinds = [
        part
        for topic, table in AUDITED.items()
        for part in (fn.lit(topic), fn.lit(_of(table).kind))
    ]
    outputs = messages.where(short_topic().isin([*AUDITED]) & fn.col("value").isNotNull())
    return outputs.select(
        output_cluster().alias("cluster"),
        fn.create_map(*kinds)[short_topic()].alias("kind"),
        fn.struct(
            fn.coalesce(header("ce_id"), place()).alias("id"),
            fn.col("kafka_time").alias("said_at"),
            *("round", "partition", "offset"),
            fn.col("value").cast("string").alias("text"),
        ).alias("id"),
        "value",
    )


def _of(table: Table) -> GoldTableSpec:
    return next(made for made in TABLES if made.table is table)


def live_rows(messages: DataFrame, table: Table) -> DataFrame:
    """What was said live for a table: one row for each id and content, and how often it was."""
    made = _of(table).build(live_outputs(messages))
    rows = (
        comparable(made, table).withColumn("place", fn.col("id")).withColumn("id", fn.col("id.id"))
    )
    first = fn.min_by("place", "place.said_at")
    found = rows.groupBy("cluster", "id", "content").agg(
        fn.count("*").alias("copies"), first.alias("place"), fn.min("cause").alias("cause")
    )
    return found.select(
        *("cluster", "id", "content", "copies", "cause"),
        fn.col("place.said_at").alias("said_at"),
        fn.col("place.round").alias("round"),
        fn.col("place.partition").alias("partition"),
        fn.col("place.text").alias("text"),
    )


def lake_rows(rows: DataFrame, table: Table) -> DataFrame:
    """What the lake recomputed, from rows of gold's table, or of what makes them."""
    text = fn.to_json(fn.struct(*(f"`{name}`" for name in table.columns)))
    return comparable(rows.withColumn("text", text), table, "text")


def comparable(rows: DataFrame, table: Table, *more: str) -> DataFrame:
    """``cluster``, ``id``, ``content``, ``cause`` and, where it has one, ``revision``."""
    fields = [name for name in table.columns if name not in table.key]
    content = fn.array(*(_canonical_text(rows, name) for name in fields)).alias("content")
    revision = ["revision"] if "revision" in table.columns else []
    return rows.select("cluster", "id", content, _cause(table).alias("cause"), *revision, *more)


def _canonical_text(rows: DataFrame, name: str) -> Column:
    if name in _JSON:
        entries = fn.array_sort(fn.map_entries(fn.from_json(name, "map<string, string>")))
        return fn.coalesce(fn.to_json(entries), name, fn.lit("null"))
    kind = rows.schema[name].dataType
    return fn.to_json(fn.struct(canonical(fn.col(f"`{name}`"), kind).alias("is")))


def canonical(value: Column, kind: ty.DataType) -> Column:
    """A value in which maps are sorted lists of their entries, however deep they are."""
    if isinstance(kind, ty.MapType):
        values = fn.transform_values(value, lambda _, one: canonical(one, kind.valueType))
        return fn.array_sort(fn.map_entries(values))
    if isinstance(kind, ty.ArrayType):
        return fn.transform(value, lambda one: canonical(one, kind.elementType))
    if isinstance(kind, ty.StructType):
        fields = (canonical(value[each.name], each.dataType).alias(each.name) for each in kind)
        return fn.when(value.isNotNull(), fn.struct(*fields))
    return value


def _cause(table: Table) -> Column:
    """What names an output's cause in `causes`; null for a snapshot, which comes with changes."""
    if table is ALERTS:
        return fn.col("cause")
    if table is FEATURE_CHANGES:
        topic = fn.coalesce(
            *(fn.when(fn.col(it).isNotNull(), fn.lit(topic.short_name)) for it, topic in _CAUSED_BY)
        )
        return _seen(topic, fn.date_format("seen_at", "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'"))
    return fn.lit(None).cast("string")


def _seen(topic: Column, time: Column) -> Column:
    """What names an event by when its source saw it."""
    return fn.concat_ws(" ", topic, fn.lit("seen"), time)


def cause_names() -> Column:
    """The names that outputs have for an input message that caused them, as an array."""
    return fn.array(header("ce_id"), place(), _seen(short_topic(), header("ce_time")))


def causes(messages: DataFrame) -> DataFrame:
    """The input messages by each of the names that outputs have for their cause.

    ``cluster``, ``cause``, and of the first message with it ``cause_at`` (Kafka's time),
    ``cause_round`` and ``cause_partition``. Only keys and headers are read.
    """
    named = input_messages(messages).select(
        fn.coalesce(fn.col("key").cast("string"), fn.lit("unknown")).alias("cluster"),
        fn.explode(cause_names()).alias("cause"),
        *("kafka_time", "round", "partition"),
    )
    return (
        named.where("cause IS NOT NULL")
        .groupBy("cluster", "cause")
        .agg(
            fn.min("kafka_time").alias("cause_at"),
            fn.min("round").alias("cause_round"),
            fn.min("partition").alias("cause_partition"),
        )
    )
