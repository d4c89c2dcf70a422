"""A cluster as it was at a moment, from the tables of gold.

`epochs` holds a snapshot for each feature revision; between two revisions nodes come and go, so
that nodes are taken from the intervals of their capabilities.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from featurewatch.pipeline.history.cuts import OFFSET, HistoryCut, resolve_moment
from featurewatch.pipeline.history.moments import (
    AtTime,
    Moment,
    MomentError,
    UnknownMomentError,
    format_time,
)
from featurewatch.pipeline.lake.reader import (
    ALERTS,
    CAPABILITY_INTERVALS,
    EPOCHS,
    INCOMPATIBILITIES,
    SOURCE_STATES,
    LakeReader,
    Row,
    Sql,
    sql,
)

Ranges = Mapping[str, list[int]]

_LAG: Final = timedelta(minutes=1)
"""A lake that is filled may be so far behind without a word about it."""
_NAMED_CLUSTERS: Final = 5


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes of one role that supported the same.

    ``release``: the one whose ranges these are; None: none known. ``complete`` is false where the
    answers may have left supported features out.
    """

    role: str
    release: str | None
    ranges: Ranges
    complete: bool
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HistoricalState:
    """A cluster at a moment.

    ``revision`` began at ``since``; ``digest``, ``epoch``, ``leader_id``, ``leader_epoch`` and
    ``provenance`` are those of its snapshot (revision 0: there was none, and they are unknown).
    ``doubt``: why more may have happened than the lake holds.
    """

    cluster: str
    at: datetime
    moment: str
    revision: int
    since: datetime | None
    epoch: int | None
    leader_id: int | None
    leader_epoch: int | None
    levels: Mapping[str, int]
    classes: tuple[NodeClass, ...]
    incompatible: tuple[Row, ...]
    alerts: tuple[Row, ...]
    digest: str | None
    provenance: Mapping[str, Any]
    doubt: str | None


def clusters(lake: LakeReader) -> list[str]:
    """The ids of all clusters that the lake has heard of, sorted."""
    found = lake.query(
        "SELECT cluster FROM epochs UNION SELECT cluster FROM capability_intervals",
        *(EPOCHS, CAPABILITY_INTERVALS),
    )
    return sorted(row["cluster"] for row in found)


def cluster_of(lake: LakeReader, asked: str) -> str:
    """The cluster that is meant: the one that was asked for, or the only one.

    Raises:
        UnknownMomentError: The lake has never heard of it, or of any.
        MomentError: There is more than one, and none was named.
        LakeError: The lake cannot be read.
    """
    found = clusters(lake)
    if asked and asked not in found:
        known = f"it holds {_named(found)}" if found else "it holds none yet"
        raise UnknownMomentError(f"the lake {lake.root} has no cluster {asked!r}: {known}")
    if not found:
        raise UnknownMomentError(f"the lake {lake.root} holds no cluster yet")
    if not asked and len(found) > 1:
        raise MomentError(
            f"name a cluster with --cluster: the lake {lake.root} holds {_named(found)}"
        )
    return asked or found[0]


def _named(found: list[str]) -> str:
    named = ", ".join(found[:_NAMED_CLUSTERS])
    more = len(found) - _NAMED_CLUSTERS
    return f"{named} and {more:,} more" if more > 0 else named


def state_at(lake: LakeReader, cluster: str, at: Moment, now: datetime) -> HistoricalState:
    """A cluster at a moment; ``now`` is aware.

    Raises:
        UnknownMomentError: The history does not reach there.
        LakeError: The lake cannot be read.
    """
    cut, row = resolve_moment(lake, cluster, at, now)
    row = row or {}
    provenance = row.get("provenance") or {}
    return HistoricalState(
        cluster=cluster,
        at=cut.time,
        moment=str(at),
        revision=row.get("revision", 0),
        since=row.get("at"),
        epoch=row.get("epoch"),
        leader_id=_known(row.get("leader_id")),
        leader_epoch=_known(row.get("leader_epoch")),
        levels=dict(sorted((row.get("finalized") or {}).items())),
        classes=classes_of(_intervals(lake, cluster, cut)),
        incompatible=_incompatible(lake, cluster, cut),
        alerts=tuple(firing(lake, cluster, cut)),
        digest=row.get("digest"),
        provenance={name: value for name, value in provenance.items() if value is not None},
        doubt=_doubt(lake, cut) if isinstance(at, AtTime) else None,
    )


def _known(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None


def classes_of(intervals: Iterable[Row]) -> tuple[NodeClass, ...]:
    """Nodes that supported the same, by role and then by their ids."""
    members: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in intervals:
        ranges = tuple((name, *bounds) for name, bounds in sorted((row["ranges"] or {}).items()))
        members[(row["role"], row["release"], row["complete"], ranges)].append(row["node_id"])
    found = [
        NodeClass(
            role,
            release,
            {name: bounds for name, *bounds in ranges},
            complete,
            tuple(sorted(nodes)),
        )
        for (role, release, complete, ranges), nodes in members.items()
    ]
    return tuple(sorted(found, key=lambda each: (each.role, each.nodes)))


def _intervals(lake: LakeReader, cluster: str, cut: HistoryCut) -> Iterator[Row]:
    rows = lake.query(
        "SELECT role, node_id, ranges, complete, release, since, until, since_cause, until_cause"
        " FROM capability_intervals WHERE cluster = $cluster AND $near",
        CAPABILITY_INTERVALS,
        parts={"near": cut.interval_filter()},
        cluster=cluster,
    )
    return filter(cut.open, rows)


def _incompatible(lake: LakeReader, cluster: str, cut: HistoryCut) -> tuple[Row, ...]:
    rows = lake.query(
        "SELECT role, node_id, feature, level, range, verdict, why, since, until, since_cause,"
        " until_cause FROM incompatibilities WHERE cluster = $cluster AND $near"
        " ORDER BY role, node_id, feature",
        INCOMPATIBILITIES,
        parts={"near": cut.interval_filter()},
        cluster=cluster,
    )
    left_out = ("until", "since_cause", "until_cause")
    return tuple(
        {name: value for name, value in row.items() if name not in left_out}
        for row in filter(cut.open, rows)
    )


def firing(lake: LakeReader, cluster: str, cut: HistoryCut) -> list[Row]:
    """The alerts that had begun and not ended, the critical ones first.

    The same alert that fires anew is told by its ``since``. When it was resolved does not follow
    from the order of ``at``: what resolves an alert, a snapshot for one, may be older than it.
    """
    where = sql("since <= $at AND at <= $at", at=cut.time)
    if cut.offset is not None:
        where = Sql(f"{where} AND coalesce({OFFSET}, -1) <= {cut.offset}")
    return lake.query(
        "SELECT alert_id AS id, rule, severity, subject, summary, since FROM ("
        " SELECT *, row_number() OVER (PARTITION BY alert_id ORDER BY since DESC, at DESC) AS nth"
        " FROM (SELECT *, max(state) OVER (PARTITION BY alert_id, since) AS ended"
        " FROM alerts WHERE cluster = $cluster AND $where) WHERE ended = 'firing'"
        ") WHERE nth = 1 ORDER BY severity, since, alert_id",
        ALERTS,
        parts={"where": where},
        cluster=cluster,
    )


def _doubt(lake: LakeReader, cut: HistoryCut) -> str | None:
    newest = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    if newest is None or cut.time <= newest + _LAG:
        return None
    return f"the lake ends at {format_time(newest)}: what happened after it is not known"
