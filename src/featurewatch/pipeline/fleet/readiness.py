"""Reads which clusters of a fleet can move to a release: the newest verdict of each, and per
day."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from featurewatch.pipeline.lake.reader import CAPABILITY_INTERVALS, READINESS_BY_DAY, LakeReader

STALE_AFTER: Final = timedelta(days=1)
"""A monitored cluster has a verdict for each day; around midnight some are one day behind."""

YES, NO, UNKNOWN = "yes", "no", "unknown"


@dataclass(frozen=True, slots=True)
class TargetReadiness:
    """The newest verdict on moving a cluster to a release.

    ``verdict`` is yes, no or unknown, at the end of ``day`` (None: there never was one).
    ``finalized``: the levels are finalized already. ``blockers`` counts the blockers,
    ``blocker_names`` has the first of them. ``lossless``: a downgrade without loss is possible
    (None: unknown), to the releases ``downgrade_to``.
    """

    cluster: str
    target: str
    verdict: str
    day: date | None
    finalized: bool = False
    blockers: int = 0
    blocker_names: Sequence[str] = ()
    reasons: Sequence[str] = ()
    lossless: bool | None = None
    downgrade_to: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DailyCounts:
    """The number of clusters by verdict at the end of a day; ``finalized`` ones had the levels
    already."""

    day: date
    yes: int
    no: int
    unknown: int
    finalized: int


def target_readiness(lake: LakeReader, target: str) -> list[TargetReadiness]:
    """Returns the newest verdict of each cluster of a lake on a release (``4.3``), by cluster.

    A cluster without a verdict since the day before the newest one is unknown: it is not monitored
    any more.

    Raises:
        LakeError: The lake cannot be read, or has no such table.
    """
    rows = lake.query(
        "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY cluster ORDER BY day DESC) AS nth"
        " FROM readiness_by_day WHERE target = $target) WHERE nth = 1",
        READINESS_BY_DAY,
        target=target,
    )
    newest = max((row["day"] for row in rows), default=None)
    fields = [*TargetReadiness.__dataclass_fields__]
    verdicts = {
        row["cluster"]: TargetReadiness(**{name: row[name] for name in fields}) for row in rows
    }
    clusters = lake.query("SELECT DISTINCT cluster FROM capability_intervals", CAPABILITY_INTERVALS)
    for name in {row["cluster"] for row in clusters} - verdicts.keys():
        reasons = ["The lake has no data about it that a verdict could be based on."]
        verdicts[name] = TargetReadiness(name, target, UNKNOWN, None, reasons=reasons)
    return [_aged(verdicts[name], newest) for name in sorted(verdicts)]


def _aged(readiness: TargetReadiness, newest: date | None) -> TargetReadiness:
    """The verdict, or unknown if it is outdated."""
    if readiness.day is None or newest is None or newest - readiness.day <= STALE_AFTER:
        return readiness
    reasons = [f"The lake has no data about it since {readiness.day}: is it still followed?"]
    return TargetReadiness(
        readiness.cluster, readiness.target, UNKNOWN, readiness.day, reasons=reasons
    )


def by_day(lake: LakeReader, target: str) -> list[DailyCounts]:
    """Returns the number of clusters by verdict on a release, for each day that has verdicts.

    Raises:
        LakeError: The lake cannot be read, or has no such table.
    """
    rows = lake.query(
        "SELECT day, verdict, finalized, count(*) AS count FROM readiness_by_day"
        " WHERE target = $target GROUP BY day, verdict, finalized",
        READINESS_BY_DAY,
        target=target,
    )
    counts_by_day: dict[date, Counter[str]] = {}
    for row in rows:
        counts = counts_by_day.setdefault(row["day"], Counter())
        is_finalized = row["finalized"] and row["verdict"] == YES
        counts["finalized" if is_finalized else row["verdict"]] += row["count"]
    return [_day(day, counts) for day, counts in sorted(counts_by_day.items())]


def _day(day: date, counts: Mapping[str, int]) -> DailyCounts:
    return DailyCounts(day, *(counts.get(name, 0) for name in (YES, NO, UNKNOWN, "finalized")))
