"""Summarizes all clusters of a lake by the newest data of each."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from featurewatch.pipeline.lake.reader import (
    ALERTS,
    CAPABILITY_INTERVALS,
    EPOCHS,
    INCOMPATIBILITIES,
    SOURCE_STATES,
    LakeReader,
    Row,
)

SEEN_WITHIN: Final = timedelta(hours=1)
"""A cluster without a heartbeat for this long before the end of the lake is silent."""
UNKNOWN_RELEASE: Final = "?"


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A cluster of the fleet.

    ``revision`` began at ``since`` (0 and None: no level is finalized). ``releases`` counts nodes
    by release, ``alerts`` firing alerts by severity, ``incompatible`` the nodes that some level
    excludes. ``last_seen`` is the time of its newest heartbeat (None: none within `SEEN_WITHIN` of
    the end of the lake).
    """

    cluster: str
    revision: int
    epoch: int | None
    since: datetime | None
    levels: Mapping[str, int]
    nodes: int
    releases: Mapping[str, int]
    incompatible: int
    alerts: Mapping[str, int]
    last_seen: datetime | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """All clusters by id, and the time of the newest heartbeat of any (None: no heartbeat)."""

    clusters: Mapping[str, ClusterSummary]
    ends: datetime | None


def fleet(lake: LakeReader) -> Fleet:
    """Returns all clusters of a lake.

    Raises:
        LakeError: The lake cannot be read.
    """
    snapshots = {row["cluster"]: row for row in _newest(lake)}
    releases = _counts(lake, _RELEASES, CAPABILITY_INTERVALS)
    totals = _counts(lake, _NODES, CAPABILITY_INTERVALS)
    incompatible = _counts(lake, _INCOMPATIBLE, INCOMPATIBILITIES)
    alerts = _counts(lake, _FIRING, ALERTS)
    ends = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    last_seen = _last_seen(lake, ends) if ends else {}
    summaries = {}
    for name in sorted({*snapshots, *releases, *last_seen, *alerts, *_all_clusters(lake)}):
        row: Row = snapshots.get(name, {})
        summaries[name] = ClusterSummary(
            cluster=name,
            revision=row.get("revision", 0),
            epoch=row.get("epoch"),
            since=row.get("at"),
            levels=dict(sorted((row.get("finalized") or {}).items())),
            nodes=sum(totals[name].values()),
            releases=dict(sorted(releases[name].items())),
            incompatible=sum(incompatible[name].values()),
            alerts=dict(sorted(alerts[name].items())),
            last_seen=last_seen.get(name),
        )
    return Fleet(summaries, ends)


def _newest(lake: LakeReader) -> list[Row]:
    return lake.query(
        "SELECT cluster, revision, epoch, at, finalized FROM (SELECT cluster, revision, epoch, at,"
        " finalized, row_number() OVER (PARTITION BY cluster ORDER BY revision DESC) AS nth"
        " FROM epochs) WHERE nth = 1",
        EPOCHS,
    )


# Combined nodes have the same id in both roles.
_RELEASES: Final = (
    "SELECT cluster, coalesce(release, '?') AS kind, count(DISTINCT node_id) AS count"
    " FROM capability_intervals WHERE until IS NULL GROUP BY cluster, kind"
)
_NODES: Final = (
    "SELECT cluster, 'all' AS kind, count(DISTINCT node_id) AS count"
    " FROM capability_intervals WHERE until IS NULL GROUP BY cluster"
)
_INCOMPATIBLE: Final = (
    "SELECT cluster, 'all' AS kind, count(DISTINCT node_id) AS count"
    " FROM incompatibilities WHERE until IS NULL GROUP BY cluster"
)
# As `history.point_in_time.firing`.
_FIRING: Final = (
    "SELECT cluster, severity AS kind, count(DISTINCT alert_id) AS count FROM (SELECT cluster,"
    " alert_id, since, max(severity) AS severity FROM alerts"
    " GROUP BY cluster, alert_id, since HAVING max(state) = 'firing') GROUP BY cluster, severity"
)


def _counts(lake: LakeReader, query: str, table: str) -> defaultdict[str, dict[str, int]]:
    """Counts by cluster and kind."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in lake.query(query, table):
        counts[row["cluster"]][row["kind"]] = row["count"]
    return counts


def _all_clusters(lake: LakeReader) -> set[str]:
    """All clusters that ever had a node, including those without a current one."""
    rows = lake.query("SELECT DISTINCT cluster FROM capability_intervals", CAPABILITY_INTERVALS)
    return {row["cluster"] for row in rows}


def _last_seen(lake: LakeReader, ends: datetime) -> dict[str, datetime]:
    rows = lake.query(
        "SELECT cluster, max(seen_at) AS at FROM source_states"
        " WHERE seen_at >= $since GROUP BY cluster",
        SOURCE_STATES,
        since=ends - SEEN_WITHIN,
    )
    return {row["cluster"]: row["at"] for row in rows}
