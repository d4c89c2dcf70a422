"""Which clusters of a fleet can go to a release: the newest verdict of each, and day by day."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from featurewatch.pipeline.lake.reader import CAPABILITY_INTERVALS, READINESS_BY_DAY, LakeReader

STALE_AFTER: Final = timedelta(days=1)
"""A cluster that is followed has a verdict each day; around midnight some are a day behind."""

YES, NO, UNKNOWN = "yes", "no", "unknown"


@dataclass(frozen=True, slots=True)
class TargetReadiness:
    """How a cluster stands to a release by the newest word on it.

    ``verdict`` is yes, no or unknown; ``day`` is of whose end it is (None: nothing was ever said),
    ``finalized`` whether the levels are there already. ``blockers`` counts the nodes that stand in
    the way, ``named`` has the first of them. ``lossless`` says whether there is a way back without
    loss (None: not known), and ``back_to`` to which releases.
    """

    cluster: str
    target: str
    verdict: str
    day: date | None
    finalized: bool = False
    blockers: int = 0
    named: Sequence[str] = ()
    reasons: Sequence[str] = ()
    lossless: bool | None = None
    back_to: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DailyCounts:
    """How many clusters could go to a release at the end of a day; ``finalized`` were there."""

    day: date
    yes: int
    no: int
    unknown: int
    finalized: int


def target_readiness(lake: LakeReader, target: str) -> list[TargetReadiness]:
    """How each cluster of a lake stands to a release (``4.3``), by cluster.

    What was not looked at since the day before the newest is unknown: it is not followed any more.

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
    found = {
        row["cluster"]: TargetReadiness(**{name: row[name] for name in fields}) for row in rows
    }
    known = lake.query("SELECT DISTINCT cluster FROM capability_intervals", CAPABILITY_INTERVALS)
    for name in {row["cluster"] for row in known} - found.keys():
        reasons = ["Nothing was ever said of it that a verdict could rest on."]
        found[name] = TargetReadiness(name, target, UNKNOWN, None, reasons=reasons)
    return [_aged(found[name], newest) for name in sorted(found)]


def _aged(standing: TargetReadiness, newest: date | None) -> TargetReadiness:
    if standing.day is None or newest is None or newest - standing.day <= STALE_AFTER:
        return standing
    reasons = [f"Nothing was heard of it since {standing.day}: is it still followed?"]
    return TargetReadiness(
        standing.cluster, standing.target, UNKNOWN, standing.day, reasons=reasons
    )


def by_day(lake: LakeReader, target: str) -> list[DailyCounts]:
    """How many clusters could go to a release, for each day of which there is a word.

    Raises:
        LakeError: The lake cannot be read, or has no such table.
    """
    rows = lake.query(
        "SELECT day, verdict, finalized, count(*) AS count FROM readiness_by_day"
        " WHERE target = $target GROUP BY day, verdict, finalized",
        READINESS_BY_DAY,
        target=target,
    )
    found: dict[date, Counter[str]] = {}
    for row in rows:
        counts = found.setdefault(row["day"], Counter())
        there = row["finalized"] and row["verdict"] == YES
        counts["finalized" if there else row["verdict"]] += row["count"]
    return [_day(day, counts) for day, counts in sorted(found.items())]


def _day(day: date, counts: Mapping[str, int]) -> DailyCounts:
    return DailyCounts(day, *(counts.get(name, 0) for name in (YES, NO, UNKNOWN, "finalized")))
