"""Findings: what was said live beside what the lake recomputes, and what each finding means.

A difference is one only where both sides have seen the place at which it stands:

- An output that the lake does not have is *extra* if gold has folded its cause, and the round of
  bronze in which it came. What gold has still to fold is under way.
- An output that was not said is *missing* if bronze has messages that are newer than its cause by
  more than the time in which it must have been said. Until then it is under way.
- What cannot be had any more proves nothing: where messages were lost before they were read, or
  topics were compacted, a finding that follows from it is *unknown*.
"""

from collections.abc import Mapping
from datetime import timedelta
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from featurewatch.pipeline.audit.lake_view import AUDITED, LakeView
from featurewatch.pipeline.audit.live_outputs import causes, lake_rows, live_rows
from featurewatch.pipeline.gold.tables import ALERTS, EPOCHS, FEATURE_CHANGES
from featurewatch.pipeline.lake.tables import Table

EQUAL: Final = "equal"
REORDERED: Final = "reordered"
DIFFERENT: Final = "different"
MISSING: Final = "missing"
EXTRA: Final = "extra"
UNKNOWN: Final = "unknown"
UNDER_WAY: Final = "under way"
EXPIRED: Final = "expired"
VERDICTS: Final = (EQUAL, REORDERED, DIFFERENT, MISSING, EXTRA, UNKNOWN, UNDER_WAY, EXPIRED)
BAD: Final = (DIFFERENT, MISSING, EXTRA)

_REVISION: Final = ("cluster", "revision")


def sides(live: DataFrame, gold: Mapping[str, DataFrame]) -> DataFrame:
    """Both sides of all tables, by `id` and content.

    ``live`` are messages of bronze, ``gold`` rows of each table by its name. Gives ``table``,
    ``cluster``, ``id``, ``verdict`` (equal, different, missing or extra, whatever is under way),
    ``fields`` (the names of those that differ), the texts of both sides, where and how often it was
    said, and the name of its cause.
    """
    changes = _sides(live_rows(live, FEATURE_CHANGES), gold[FEATURE_CHANGES.name], FEATURE_CHANGES)
    # A snapshot is said with the changes of its revision, and has their cause.
    revision = fn.substring_index("id", "/", -1).alias("revision")
    by_change = changes.groupBy("cluster", revision).agg(fn.min("cause").alias("its_cause"))
    epochs = _sides(live_rows(live, EPOCHS), gold[EPOCHS.name], EPOCHS).withColumn(
        "revision", revision
    )
    epochs = epochs.join(by_change, [*_REVISION], "left").withColumn("cause", fn.col("its_cause"))
    alerts = _sides(live_rows(live, ALERTS), gold[ALERTS.name], ALERTS)
    return reduce(DataFrame.unionByName, [changes, alerts, epochs.drop("revision", "its_cause")])


def _sides(live: DataFrame, gold: DataFrame, table: Table) -> DataFrame:
    lake = lake_rows(gold, table)
    both = live.alias("live").join(
        lake.alias("lake"),
        [fn.col(f"live.{key}") == fn.col(f"lake.{key}") for key in table.key],
        "full_outer",
    )
    names = [name for name in table.columns if name not in table.key]
    differ = fn.filter(
        fn.transform(
            fn.arrays_zip(
                fn.array(*map(fn.lit, names)).alias("name"),
                fn.col("live.content").alias("one"),
                fn.col("lake.content").alias("other"),
            ),
            lambda each: fn.when(~each["one"].eqNullSafe(each["other"]), each["name"]),
        ),
        lambda name: name.isNotNull(),
    )
    in_live, in_lake = fn.col("live.id").isNotNull(), fn.col("lake.id").isNotNull()
    verdict = (
        fn.when(~in_live, MISSING)
        .when(~in_lake, EXTRA)
        .when(fn.col("live.content") == fn.col("lake.content"), EQUAL)
        .otherwise(DIFFERENT)
    )
    return both.select(
        fn.lit(table.name).alias("table"),
        *(fn.coalesce(f"live.{key}", f"lake.{key}").alias(key) for key in table.key),
        verdict.alias("verdict"),
        fn.when(in_live & in_lake, differ).alias("fields"),
        fn.col("live.text").alias("live"),
        fn.col("lake.text").alias("lake"),
        *("live.copies", "live.said_at", "live.round", "live.partition"),
        fn.coalesce("live.cause", "lake.cause").alias("cause"),
    )


def findings(view: LakeView, late_s: float) -> DataFrame:
    """`sides` of a look at the lake, with the verdicts that hold, and how late each was said.

    ``late_s`` is the time in which an output must have been said after its cause stood on its
    topic, both by Kafka's time. Adds ``late_ms`` (null: not known). Replayed clusters are left out.
    """
    found = sides(view.messages, view.gold)
    if view.replays:
        found = found.join(view.replayed, "cluster", "left_anti")
    known = found.join(causes(view.messages), ["cluster", "cause"], "left")
    if view.lost or view.lost_inputs:
        known = known.join(_of_clusters(known), ["cluster"], "left")
    else:
        known = known.withColumn("home", fn.lit(None).cast("int"))
    late = fn.unix_millis("said_at") - fn.unix_millis("cause_at")
    return known.select(
        *("table", "cluster", "id", _verdict(view, late_s).alias("verdict")),
        *("fields", "live", "lake", "copies", "said_at", "round", "cause", "cause_at"),
        late.alias("late_ms"),
    )


def _of_clusters(found: DataFrame) -> DataFrame:
    """The partition on which each cluster's messages are, as far as one is known."""
    keyed = fn.when(fn.col("table") != ALERTS.name, fn.col("partition"))
    home = fn.min(fn.coalesce("cause_partition", keyed)).alias("home")
    return found.groupBy("cluster").agg(home)


def _verdict(view: LakeView, late_s: float) -> Column:
    raw = fn.col("verdict")
    due = fn.lit(view.clock - timedelta(seconds=late_s))
    ahead = (fn.col("round") > view.folded) | (fn.col("cause_round") > view.folded)
    uncaused = fn.col("cause_at").isNull() & (fn.col("said_at") > due)
    early = fn.col("cause_at") > due
    old = fn.lit(view.expired) & fn.col("cause_at").isNull()
    return (
        fn.when(raw == EQUAL, raw)
        .when(_inputs_lost(view), UNKNOWN)
        .when((raw == EXTRA) & fn.coalesce(ahead | uncaused, uncaused, fn.lit(False)), UNDER_WAY)
        .when((raw == MISSING) & fn.coalesce(early, fn.lit(False)), UNDER_WAY)
        .when((raw == MISSING) & old, EXPIRED)
        .when((raw == MISSING) & _output_lost(view), UNKNOWN)
        .otherwise(raw)
    )


def _inputs_lost(view: LakeView) -> Column:
    """Whether messages may be gone that led to an output, so that gold cannot know it."""
    if not view.lost_inputs:
        return fn.lit(False)
    home = fn.col("home")
    return home.isNull() | home.isin([*view.lost_inputs])


def _output_lost(view: LakeView) -> Column:
    """Whether an output may have been on its topic and is gone.

    An alert is keyed by its own id, so that its partition is not its cluster's: any one counts.
    """
    if not view.lost:
        return fn.lit(False)
    home, until = fn.col("home"), fn.lit(None).cast("bigint")
    for topic, table in AUDITED.items():
        ends = {
            int(name.removeprefix(f"{topic}/")): at
            for name, at in view.lost.items()
            if name.startswith(f"{topic}/")
        }
        of_any = fn.lit(max(ends.values(), default=-1))
        mine = fn.lit(-1)
        for partition, at in ends.items():
            mine = fn.when(home == partition, at).otherwise(mine)
        is_any = home.isNull() if table is not ALERTS else fn.lit(True)
        said_on = fn.when(is_any, of_any).otherwise(mine)
        until = fn.when(fn.col("table") == table.name, said_on).otherwise(until)
    return fn.unix_millis("cause_at") <= until
