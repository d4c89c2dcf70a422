"""Runs an audit: compares the worker's live outputs with what the lake recomputes, and counts.

`lake_view` pins what is compared, `compare` makes the findings, and `reordering` checks those that
may follow from the order of messages.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from threading import Event
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.common.progress import NO_PROGRESS, Progress
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.audit.compare import findings
from featurewatch.pipeline.audit.lake_view import AUDITED, LakeView, pin_view, state_of_tables
from featurewatch.pipeline.audit.reordering import reorderable_clusters
from featurewatch.pipeline.audit.report import (
    BAD,
    DIFFERENT,
    EQUAL,
    PENDING,
    REORDERED,
    UNKNOWN,
    VERDICTS,
    AuditReport,
    OutputDifference,
    TableCounts,
)
from featurewatch.pipeline.gold.tables import AUDIT
from featurewatch.pipeline.lake.lake import Lake
from featurewatch.pipeline.lake.tables import MESSAGES
from featurewatch.pipeline.spark.queries import watched
from featurewatch.streams.source import wall_clock_ms

LATE_S: Final = 10.0
"""Default limit, in seconds, between a message and the outputs that follow from it."""


def audit(
    lake: Lake,
    late_s: float = LATE_S,
    limit: int = 20,
    *,
    save: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    clock_ms: Callable[[], int] = wall_clock_ms,
    progress: Progress = NO_PROGRESS,
) -> AuditReport:
    """Compares the two sides of a lake, which may be filled meanwhile.

    ``late_s``: an output counts as late, or as missing, this many seconds after its cause.
    ``limit`` bounds the differences in the report. ``save`` replaces the content of the table
    `AUDIT` with all differences and unknown findings. ``limits`` must be those of the worker and of
    gold. ``clock_ms`` gives milliseconds since the Unix epoch.

    Raises:
        LakeError: The lake cannot be read, or with ``save`` the table cannot be created.
    """
    view = pin_view(lake)
    if view is None:
        return AuditReport(
            unknown_reasons=("the lake holds nothing that was folded: run the pipeline first",)
        )
    progress.begin("comparing", lake.count(MESSAGES))
    with watched(lake.session, progress):
        # Materialized: every later step would run the whole plan again.
        compared = findings(view, late_s).localCheckpoint()
    progress.begin("searching orders", None)
    with watched(lake.session, progress):
        result, ended = _reordered(view, compared, late_s, limits)
    if save:
        _save(lake, result, datetime.fromtimestamp(clock_ms() / 1000, UTC))
    return _report(view, result, late_s, limit)._replace(searches_ended=ended)


def follow(
    lake: Lake,
    every_s: float,
    stop: Event,
    late_s: float = LATE_S,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[AuditReport]:
    """Yields an audit every ``every_s`` seconds if the lake has changed, until ``stop`` is set.

    The first audit runs at once. Each one covers the whole lake, since an output that was missing
    may have arrived since.

    Raises:
        LakeError: The lake cannot be read.
    """
    audited_state = None
    while not stop.is_set():
        state = state_of_tables(lake)
        if state != audited_state:
            yield audit(lake, late_s, limits=limits)
        audited_state = state
        stop.wait(every_s)


def _reordered(
    view: LakeView, compared: DataFrame, late_s: float, limits: Limits
) -> tuple[DataFrame, int]:
    """The findings; bad and unknown ones become `REORDERED` for clusters with a valid order.

    Also returns for how many clusters the search for an order was ended without a result.
    """
    is_bad = fn.col("verdict").isin(*BAD)
    clusters = compared.where(is_bad).select("cluster").distinct().localCheckpoint()
    if clusters.isEmpty():
        return compared, 0
    is_due = (fn.col("verdict") != PENDING) & (fn.col("round") <= view.folded)
    published = compared.where("published_at IS NOT NULL").withColumn("due", is_due)
    folded = view.messages.where(fn.col("round") <= view.folded)
    settled_ms = round((view.clock.timestamp() - late_s) * 1000)
    searched = reorderable_clusters(folded, clusters, published, settled_ms, limits)
    searched = searched.localCheckpoint()
    ended = searched.where("is_reordered IS NULL").count()
    # A valid order settles the unknown findings of the cluster as well.
    is_open = fn.col("verdict").isin(*BAD, UNKNOWN)
    verdict = fn.when(is_open & fn.col("is_reordered"), REORDERED).otherwise(fn.col("verdict"))
    result = compared.join(searched, "cluster", "left").withColumn("verdict", verdict)
    return result.drop("is_reordered").localCheckpoint(), ended


def _save(lake: Lake, compared: DataFrame, now: datetime) -> None:
    rows = compared.where(fn.col("verdict").isin(*BAD, UNKNOWN))
    rows = rows.withColumn("audited_at", fn.lit(now))
    path = lake.ensure_table(AUDIT)
    rows.select(*AUDIT.columns).write.format("delta").mode("overwrite").save(path)


def _report(view: LakeView, compared: DataFrame, late_s: float, limit: int) -> AuditReport:
    late = fn.col("late_ms") > round(late_s * 1000)
    rows = (
        compared.groupBy("table", "verdict")
        .agg(
            fn.count("*").alias("findings"),
            fn.count(fn.when(late, 1)).alias("late"),
            fn.max(fn.when(late, fn.col("late_ms"))).alias("late_ms"),
            fn.count(fn.when(fn.col("copies") > 1, 1)).alias("duplicates"),
        )
        .collect()
    )
    counts = []
    for table in AUDITED.values():
        of_table = [row for row in rows if row["table"] == table.name]
        counts.append(
            TableCounts(
                table.name,
                dict.fromkeys(VERDICTS, 0) | {row["verdict"]: row["findings"] for row in of_table},
                sum(row["late"] for row in of_table),
                max((row["late_ms"] or 0 for row in of_table), default=0),
                sum(row["duplicates"] for row in of_table),
            )
        )
    report = AuditReport(
        view.folded, tuple(counts), tuple(_first(compared, limit)), replayed=view.replayed_count
    )
    return report._replace(unknown_reasons=tuple(_unknown(view, report)))


def _first(compared: DataFrame, limit: int) -> Iterator[OutputDifference]:
    bad = compared.where(fn.col("verdict").isin(*BAD)).orderBy(
        "cluster", "published_at", "table", "id", "live"
    )
    for row in bad.limit(limit).collect():
        fields = tuple(row["fields"] or ()) if row["verdict"] == DIFFERENT else ()
        identity = (row["table"], row["cluster"], row["id"], row["verdict"])
        yield OutputDifference(*identity, fields, row["live"], row["lake"])


def _unknown(view: LakeView, report: AuditReport) -> Iterator[str]:
    if report.count(UNKNOWN):
        yield from view.lost_inputs.values()
        for name in sorted(view.lost):
            topic, _, partition = name.partition("/")
            yield f"messages of {topic} partition {partition} were deleted before they were read"
    elif not report.count(EQUAL, REORDERED, *BAD):
        yield "no live output could be compared: none exists yet, or all are within the time limit"
