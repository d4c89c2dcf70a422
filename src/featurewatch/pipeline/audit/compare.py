"""Joins the live outputs with the recomputed ones and gives each pair a verdict.

A finding counts as a difference only if both sides have processed the position that it depends on:

- An output that the lake lacks is *extra* if gold has folded its cause and the round of bronze that
  holds the output itself. Otherwise it is pending.
- An output that the worker did not publish is *missing* if bronze has messages that are newer than
  its cause by more than the time limit. Until then it is pending.
- A finding is *unknown* if it depends on messages that were lost before they were read, or that
  were compacted away.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from featurewatch.monitor.rules.sources import MESSAGES_LOST, OUTPUTS_LOST
from featurewatch.pipeline.audit.lake_view import AUDITED, LakeView
from featurewatch.pipeline.audit.live_outputs import causes, content_columns, lake_rows, live_rows
from featurewatch.pipeline.audit.report import (
    DIFFERENT,
    EQUAL,
    EXPIRED,
    EXTRA,
    MISSING,
    PENDING,
    UNKNOWN,
)
from featurewatch.pipeline.gold.tables import ALERTS, AUDIT, EPOCHS, FEATURE_CHANGES

_NAMES: Final = " ".join(
    f"WHEN '{table.name}' THEN array({', '.join(map(repr, content_columns(table)))})"
    for table in AUDITED.values()
)
_DIFFERING: Final = f"""filter(
    CASE coalesce(live.table, lake.table) {_NAMES} END,
    (name, at) -> NOT (live.content[at] <=> lake.content[at])
)"""
"""SQL of the names of the columns in which two contents differ."""


def sides(live: DataFrame, gold: Mapping[str, DataFrame]) -> DataFrame:
    """Returns both sides of all tables, joined by key and compared by content.

    ``live`` are messages of bronze, ``gold`` the rows of each table by its name. The result has
    ``table``, ``cluster``, ``id``, ``verdict`` (equal, different, missing or extra, without regard
    to what is pending), ``fields`` (names of the columns that differ), the texts of both sides
    (``live`` and ``lake``), where and how often the output was published (``round``, ``partition``,
    ``published_at``, ``copies``), and ``cause``, the name of its cause.
    """
    published = live_rows(live)
    # The lake cannot know what a worker did not get, or published and a topic lost.
    for rule in (MESSAGES_LOST, OUTPUTS_LOST):
        is_unknowable = (fn.col("table") == ALERTS.name) & fn.col("id").contains(f"/{rule}/")
        published = published.where(~is_unknowable)
    both = published.alias("live").join(
        lake_rows(gold).alias("lake"),
        [fn.col(f"live.{key}") == fn.col(f"lake.{key}") for key in AUDIT.key],
        "full_outer",
    )
    is_same = fn.col("live.content") == fn.col("lake.content")
    verdict = (
        fn.when(fn.col("live.id").isNull(), MISSING)
        .when(fn.col("lake.id").isNull(), EXTRA)
        .when(is_same, EQUAL)
        .otherwise(DIFFERENT)
    )
    compared = both.select(
        *(fn.coalesce(f"live.{key}", f"lake.{key}").alias(key) for key in AUDIT.key),
        verdict.alias("verdict"),
        fn.when(~is_same, fn.expr(_DIFFERING)).alias("fields"),
        fn.col("live.text").alias("live"),
        fn.col("lake.text").alias("lake"),
        *("live.copies", "live.published_at", "live.round", "live.partition"),
        fn.coalesce("live.cause", "lake.cause").alias("cause"),
    )
    # A snapshot is published with the changes of its revision and has their cause.
    of_revision = Window.partitionBy("cluster", fn.substring_index("id", "/", -1))
    of_change = fn.when(fn.col("table") == FEATURE_CHANGES.name, fn.col("cause"))
    is_snapshot = fn.col("table") == EPOCHS.name
    cause = fn.when(is_snapshot, fn.min(of_change).over(of_revision)).otherwise(fn.col("cause"))
    return compared.withColumn("cause", cause)


def findings(view: LakeView, late_s: float) -> DataFrame:
    """Returns `sides` of a view with the final verdicts and the delay of each output.

    ``late_s`` is the time limit in seconds between a cause and its output, both by Kafka's time.
    Adds ``round``, ``cause``, ``cause_at`` and ``late_ms`` (null: unknown). Replayed clusters are
    left out.
    """
    compared = sides(view.messages, view.gold)
    if view.replayed_count:
        compared = compared.join(view.replayed, "cluster", "left_anti")
    caused = compared.join(causes(view.messages), ["cluster", "cause"], "left")
    if view.lost or view.lost_inputs:
        caused = caused.join(_home_partitions(caused), ["cluster"], "left")
    else:
        caused = caused.withColumn("home", fn.lit(None).cast("int"))
    late = fn.unix_millis("published_at") - fn.unix_millis("cause_at")
    return caused.select(
        *("table", "cluster", "id", _verdict(view, late_s).alias("verdict")),
        *("fields", "live", "lake", "copies", "published_at", "round", "cause", "cause_at"),
        late.alias("late_ms"),
    )


def _home_partitions(compared: DataFrame) -> DataFrame:
    """The partition that holds the messages of each cluster, as ``home`` (null: unknown)."""
    keyed = fn.when(fn.col("table") != ALERTS.name, fn.col("partition"))
    home = fn.min(fn.coalesce("cause_partition", keyed)).alias("home")
    return compared.groupBy("cluster").agg(home)


def _verdict(view: LakeView, late_s: float) -> Column:
    raw = fn.col("verdict")
    due = fn.lit(view.clock - timedelta(seconds=late_s))
    ahead = (fn.col("round") > view.folded) | (fn.col("cause_round") > view.folded)
    uncaused = fn.col("cause_at").isNull() & (fn.col("published_at") > due)
    early = fn.col("cause_at") > due
    old = fn.lit(view.expired) & fn.col("cause_at").isNull()
    return (
        fn.when(raw == EQUAL, raw)
        .when(_inputs_lost(view), UNKNOWN)
        .when((raw == EXTRA) & fn.coalesce(ahead | uncaused, uncaused, fn.lit(False)), PENDING)
        .when((raw == MISSING) & fn.coalesce(early, fn.lit(False)), PENDING)
        .when((raw == MISSING) & old, EXPIRED)
        .when((raw == MISSING) & _output_lost(view), UNKNOWN)
        .otherwise(raw)
    )


def _inputs_lost(view: LakeView) -> Column:
    """Whether input messages that led to an output may be lost, so that gold lacks its cause."""
    if not view.lost_inputs:
        return fn.lit(False)
    home = fn.col("home")
    return home.isNull() | home.isin([*view.lost_inputs])


def _output_lost(view: LakeView) -> Column:
    """Whether an output may have been published and then lost.

    Alerts are keyed by their own ids, not by cluster, so a hole in any partition counts for them.
    """
    if not view.lost:
        return fn.lit(False)
    home, until = fn.col("home"), fn.lit(None).cast("bigint")
    for topic, table in AUDITED.items():
        ends = {
            int(name.removeprefix(f"{topic}/")): until_ms
            for name, until_ms in view.lost.items()
            if name.startswith(f"{topic}/")
        }
        latest_hole = fn.lit(max(ends.values(), default=-1))
        of_partition = fn.lit(-1)
        for partition, until_ms in ends.items():
            of_partition = fn.when(home == partition, until_ms).otherwise(of_partition)
        is_any = home.isNull() if table is not ALERTS else fn.lit(True)
        lost_until = fn.when(is_any, latest_hole).otherwise(of_partition)
        until = fn.when(fn.col("table") == table.name, lost_until).otherwise(until)
    return fn.unix_millis("cause_at") <= until
