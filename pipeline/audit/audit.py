"""The audit: what the worker said live, held against what the lake recomputes.

`audit_view` says what is compared and `audit_compare` what counts; here the findings are counted.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from threading import Event
from typing import Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from featurewatch.controller.readiness.state_timers import DEFAULT_LIMITS, Limits
from featurewatch.pipeline.audit.compare import (
    BAD,
    DIFFERENT,
    EQUAL,
    REORDERED,
    UNDER_WAY,
    UNKNOWN,
    VERDICTS,
    findings,
)
from featurewatch.pipeline.audit.lake_view import AUDITED, LakeView, pin_view, state_of_tables
from featurewatch.pipeline.audit.reordering import disputed_clusters, reorderable_clusters
from featurewatch.pipeline.gold.tables import AUDIT
from featurewatch.pipeline.lake.lake import Lake

LATE_S: Final = 10.0
"""The time in which the worker says what follows from a message, in seconds."""


class TableCounts(NamedTuple):
    """The findings of one table. ``late`` and ``twice`` count among the others.

    ``verdicts`` has each of `VERDICTS`; ``late_ms`` is how late the latest was (0: none was).
    """

    table: str
    verdicts: Mapping[str, int]
    late: int
    late_ms: int
    twice: int


class OutputDifference(NamedTuple):
    """One output on which the sides differ; ``fields`` are those that do, in a `DIFFERENT` one.

    ``live`` and ``lake`` are what each side says, as JSON.
    """

    table: str
    cluster: str
    id: str
    verdict: str
    fields: tuple[str, ...] = ()
    live: str | None = None
    lake: str | None = None


class AuditReport(NamedTuple):
    """What an audit found.

    ``folded`` is the round of bronze up to which gold has come (-1: nothing was folded yet),
    ``differences`` are the first of them, and ``unknown`` says why something cannot be known.
    ``replayed`` is how many clusters were left out, as they were replayed from files.
    """

    folded: int = -1
    counts: tuple[TableCounts, ...] = ()
    differences: tuple[OutputDifference, ...] = ()
    unknown: tuple[str, ...] = ()
    replayed: int = 0

    def count(self, *verdicts: str) -> int:
        """How many findings have one of some verdicts."""
        return sum(each.verdicts[verdict] for each in self.counts for verdict in verdicts)

    @property
    def differ(self) -> bool:
        """Whether anything is missing, extra or different."""
        return self.count(*BAD) > 0

    @property
    def known(self) -> bool:
        """Whether something was compared, and nothing is left of which it cannot be known."""
        return self.count(UNKNOWN) == 0 and self.count(EQUAL, REORDERED) > 0


def audit(
    lake: Lake,
    late_s: float = LATE_S,
    limit: int = 20,
    *,
    save: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> AuditReport:
    """Compares the two sides of a lake; it may be filled meanwhile.

    ``late_s``: an output must be said so many seconds after its cause. ``limit``: so many
    differences are in the report. ``save``: all of them replace what is in the table `AUDIT`.
    ``limits`` are those of the worker and of gold.
    """
    seen = pin_view(lake)
    if seen is None:
        return AuditReport(
            unknown=("the lake holds nothing that was folded: run the pipeline first",)
        )
    # As rows, and not as the plan that leads to them, which every later step would go through anew.
    found = findings(seen, late_s).localCheckpoint()
    judged = _reordered(seen, found, late_s, limits)
    if save:
        _save(lake, judged)
    return _report(seen, judged, late_s, limit)


def follow(
    lake: Lake,
    every_s: float,
    stop: Event,
    late_s: float = LATE_S,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[AuditReport]:
    """An audit every so many seconds until ``stop`` is set, whenever the lake has changed.

    The first one is at once. Each looks at the whole lake: what was missing may come yet.
    """
    last = None
    while not stop.is_set():
        now = state_of_tables(lake)
        if now != last:
            yield audit(lake, late_s, limits=limits)
        last = now
        stop.wait(every_s)


def _reordered(seen: LakeView, found: DataFrame, late_s: float, limits: Limits) -> DataFrame:
    """The findings, with those told apart that go back to the order between topics."""
    is_bad = fn.col("verdict").isin(*BAD)
    bad = found.where(is_bad).select("cluster").distinct()
    clusters = disputed_clusters(seen.messages, found.join(bad, "cluster", "left_semi"))
    clusters = clusters.localCheckpoint()
    if clusters.isEmpty():
        return found
    is_due = (fn.col("verdict") != UNDER_WAY) & (fn.col("round") <= seen.folded)
    said = found.where("said_at IS NOT NULL").withColumn("due", is_due)
    folded = seen.messages.where(fn.col("round") <= seen.folded)
    settled_ms = round((seen.clock.timestamp() - late_s) * 1000)
    right = reorderable_clusters(folded, clusters, said, settled_ms, limits)
    right = right.withColumn("right", fn.lit(True))
    # Where an order is found all is known: what was not said then was not to be said.
    is_open = fn.col("verdict").isin(*BAD, UNKNOWN)
    verdict = fn.when(is_open & fn.col("right"), REORDERED).otherwise(fn.col("verdict"))
    judged = found.join(right, "cluster", "left").withColumn("verdict", verdict)
    return judged.drop("right").localCheckpoint()


def _save(lake: Lake, judged: DataFrame) -> None:
    rows = judged.where(fn.col("verdict").isin(*BAD, UNKNOWN))
    rows = rows.withColumn("audited_at", fn.lit(datetime.now(UTC)))
    path = lake.ensure_table(AUDIT)
    rows.select(*AUDIT.columns).write.format("delta").mode("overwrite").save(path)


def _report(seen: LakeView, judged: DataFrame, late_s: float, limit: int) -> AuditReport:
    late = fn.col("late_ms") > round(late_s * 1000)
    rows = (
        judged.groupBy("table", "verdict")
        .agg(
            fn.count("*").alias("number"),
            fn.count(fn.when(late, 1)).alias("late"),
            fn.max(fn.when(late, fn.col("late_ms"))).alias("late_ms"),
            fn.count(fn.when(fn.col("copies") > 1, 1)).alias("twice"),
        )
        .collect()
    )
    counts = []
    for table in AUDITED.values():
        mine = [row for row in rows if row["table"] == table.name]
        counts.append(
            TableCounts(
                table.name,
                dict.fromkeys(VERDICTS, 0) | {row["verdict"]: row["number"] for row in mine},
                sum(row["late"] for row in mine),
                max((row["late_ms"] or 0 for row in mine), default=0),
                sum(row["twice"] for row in mine),
            )
        )
    report = AuditReport(
        seen.folded, tuple(counts), tuple(_first(judged, limit)), replayed=seen.replays
    )
    return report._replace(unknown=tuple(_unknown(seen, report)))


def _first(judged: DataFrame, limit: int) -> Iterator[OutputDifference]:
    bad = judged.where(fn.col("verdict").isin(*BAD)).orderBy("cluster", "said_at", "table", "id")
    for row in bad.limit(limit).collect():
        fields = tuple(row["fields"] or ()) if row["verdict"] == DIFFERENT else ()
        told = (row["table"], row["cluster"], row["id"], row["verdict"])
        yield OutputDifference(*told, fields, row["live"], row["lake"])


def _unknown(seen: LakeView, report: AuditReport) -> Iterator[str]:
    if report.count(UNKNOWN):
        yield from seen.lost_inputs.values()
        for name in sorted(seen.lost):
            topic, _, partition = name.partition("/")
            yield f"messages of {topic} partition {partition} were gone before they were read"
    elif not report.count(EQUAL, REORDERED, *BAD):
        yield "nothing was said live of which the lake knows, or nothing that has to be there yet"
