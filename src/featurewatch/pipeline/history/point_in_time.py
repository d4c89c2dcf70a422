"""Reads the state of a cluster at a moment from the tables of gold.

`epochs` holds a snapshot for each feature revision; nodes join and leave between two revisions, so
they are read from the intervals of their capabilities.
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
"""The usual delay of a lake that is being filled; it is not an uncertainty."""
_NAMED_CLUSTERS: Final = 5


@dataclass(frozen=True, slots=True)
class NodeClass:
    """Nodes of one role with the same capabilities.

    ``release`` is the release with these ranges (None: unknown). ``complete`` is false if the
    responses may have left out supported features.
    """

    role: str
    release: str | None
    ranges: Ranges
    complete: bool
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HistoricalState:
    """The state of a cluster at a moment.

    ``revision`` began at ``since``. ``digest``, ``epoch``, ``leader_id``, ``leader_epoch`` and
    ``provenance`` are those of its snapshot (revision 0: no snapshot, so they are unknown).
    ``uncertainty`` is the reason why the lake may lack later events (None: it has them all).
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
    uncertainty: str | None


def clusters(lake: LakeReader) -> list[str]:
    """Returns the ids of all clusters in the lake, sorted.

    Raises:
        LakeError: The lake cannot be read.
    """
    rows = lake.query(
        "SELECT cluster FROM epochs UNION SELECT cluster FROM capability_intervals",
        *(EPOCHS, CAPABILITY_INTERVALS),
    )
    return sorted(row["cluster"] for row in rows)


def cluster_of(lake: LakeReader, requested: str) -> str:
    """Returns the requested cluster; for an empty request, the only one of the lake.

    Raises:
        UnknownMomentError: The lake does not hold the cluster, or holds none.
        MomentError: The request is empty and the lake holds more than one cluster.
        LakeError: The lake cannot be read.
    """
    names = clusters(lake)
    if requested and requested not in names:
        contents = f"it holds {_named(names)}" if names else "it holds none yet"
        raise UnknownMomentError(f"the lake {lake.root} has no cluster {requested!r}: {contents}")
    if not names:
        raise UnknownMomentError(f"the lake {lake.root} holds no cluster yet")
    if not requested and len(names) > 1:
        raise MomentError(
            f"name a cluster with --cluster: the lake {lake.root} holds {_named(names)}"
        )
    return requested or names[0]


def _named(names: list[str]) -> str:
    listed = ", ".join(names[:_NAMED_CLUSTERS])
    hidden_count = len(names) - _NAMED_CLUSTERS
    return f"{listed} and {hidden_count:,} more" if hidden_count > 0 else listed


def state_at(lake: LakeReader, cluster: str, moment: Moment, now: datetime) -> HistoricalState:
    """Returns the state of a cluster at a moment; ``now`` is aware.

    Raises:
        UnknownMomentError: The history does not reach the moment.
        LakeError: The lake cannot be read.
    """
    cut, row = resolve_moment(lake, cluster, moment, now)
    row = row or {}
    provenance = row.get("provenance") or {}
    return HistoricalState(
        cluster=cluster,
        at=cut.time,
        moment=str(moment),
        revision=row.get("revision", 0),
        since=row.get("at"),
        epoch=row.get("epoch"),
        leader_id=_non_negative(row.get("leader_id")),
        leader_epoch=_non_negative(row.get("leader_epoch")),
        levels=dict(sorted((row.get("finalized") or {}).items())),
        classes=classes_of(_intervals(lake, cluster, cut)),
        incompatible=_incompatible(lake, cluster, cut),
        alerts=tuple(firing(lake, cluster, cut)),
        digest=row.get("digest"),
        provenance={name: value for name, value in provenance.items() if value is not None},
        uncertainty=_uncertainty(lake, cut) if isinstance(moment, AtTime) else None,
    )


def _non_negative(number: int | None) -> int | None:
    return number if number is not None and number >= 0 else None


def classes_of(intervals: Iterable[Row]) -> tuple[NodeClass, ...]:
    """Groups intervals of capabilities into classes of nodes, sorted by role and ids."""
    members: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    for row in intervals:
        ranges = tuple((name, *bounds) for name, bounds in sorted((row["ranges"] or {}).items()))
        members[(row["role"], row["release"], row["complete"], ranges)].append(row["node_id"])
    classes = [
        NodeClass(
            role,
            release,
            {name: bounds for name, *bounds in ranges},
            complete,
            tuple(sorted(nodes)),
        )
        for (role, release, complete, ranges), nodes in members.items()
    ]
    return tuple(sorted(classes, key=lambda cls: (cls.role, cls.nodes)))


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
        "SELECT role, node_id, feature, level, range, verdict, reason, since, until, since_cause,"
        " until_cause FROM incompatibilities WHERE cluster = $cluster AND $near"
        " ORDER BY role, node_id, feature",
        INCOMPATIBILITIES,
        parts={"near": cut.interval_filter()},
        cluster=cluster,
    )
    internal = ("until", "since_cause", "until_cause")
    return tuple(
        {name: value for name, value in row.items() if name not in internal}
        for row in filter(cut.open, rows)
    )


def firing(lake: LakeReader, cluster: str, cut: HistoryCut) -> list[Row]:
    """Returns the alerts that were firing at a cut, critical ones first.

    ``since`` tells apart the firings of one alert. The order of ``at`` does not show when an alert
    was resolved: its resolution (by a snapshot, say) may be older than itself.
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


def _uncertainty(lake: LakeReader, cut: HistoryCut) -> str | None:
    lake_end = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    if lake_end is None or cut.time <= lake_end + _LAG:
        return None
    return f"the lake ends at {format_time(lake_end)}: what happened after it is not known"
