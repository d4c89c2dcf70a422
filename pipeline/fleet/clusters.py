"""All clusters of a lake, a line each: what is so by the newest word of each."""

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

HEARD_WITHIN: Final = timedelta(hours=1)
"""A cluster of which nothing was heard for so long before the lake's end is silent."""
UNKNOWN_RELEASE: Final = "?"


@dataclass(frozen=True, slots=True)
class ClusterSummary:
    """A cluster of the fleet.

    ``revision`` began at ``since`` (0 and None: no level is finalized). ``releases`` counts nodes
    by release, ``alerts`` those that fire by severity, ``incompatible`` nodes that some level
    excludes. ``heard`` is when a source last spoke of it: None if it was not within
    `HEARD_WITHIN` of the lake's end.
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
    heard: datetime | None


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every cluster by its id, and when the last word of any came (None: nobody says)."""

    clusters: Mapping[str, ClusterSummary]
    ends: datetime | None


def fleet(lake: LakeReader) -> Fleet:
    """All clusters of a lake.

    Raises:
        LakeError: The lake cannot be read.
    """
    snapshots = {row["cluster"]: row for row in _newest(lake)}
    releases = _counts(lake, _RELEASES, CAPABILITY_INTERVALS)
    totals = _counts(lake, _NODES, CAPABILITY_INTERVALS)
    bad = _counts(lake, _INCOMPATIBLE, INCOMPATIBILITIES)
    alerts = _counts(lake, _FIRING, ALERTS)
    ends = lake.newest(SOURCE_STATES, "seen_at") if lake.has(SOURCE_STATES) else None
    heard = _heard(lake, ends) if ends else {}
    found = {}
    for name in sorted({*snapshots, *releases, *heard, *alerts, *_left(lake)}):
        row: Row = snapshots.get(name, {})
        found[name] = ClusterSummary(
            cluster=name,
            revision=row.get("revision", 0),
            epoch=row.get("epoch"),
            since=row.get("at"),
            levels=dict(sorted((row.get("finalized") or {}).items())),
            nodes=sum(totals[name].values()),
            releases=dict(sorted(releases[name].items())),
            incompatible=sum(bad[name].values()),
            alerts=dict(sorted(alerts[name].items())),
            heard=heard.get(name),
        )
    return Fleet(found, ends)


def _newest(lake: LakeReader) -> list[Row]:
    return lake.query(
        "SELECT cluster, revision, epoch, at, finalized FROM (SELECT cluster, revision, epoch, at,"
        " finalized, row_number() OVER (PARTITION BY cluster ORDER BY revision DESC) AS nth"
        " FROM epochs) WHERE nth = 1",
        EPOCHS,
    )


# Combined nodes have one id in both roles.
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
# As `history.firing`.
_FIRING: Final = (
    "SELECT cluster, severity AS kind, count(DISTINCT alert_id) AS count FROM (SELECT cluster,"
    " alert_id, since, max(severity) AS severity FROM alerts"
    " GROUP BY cluster, alert_id, since HAVING max(state) = 'firing') GROUP BY cluster, severity"
)


def _counts(lake: LakeReader, query: str, table: str) -> defaultdict[str, dict[str, int]]:
    """Counts by cluster and kind."""
    found: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for row in lake.query(query, table):
        found[row["cluster"]][row["kind"]] = row["count"]
    return found


def _left(lake: LakeReader) -> set[str]:
    """Clusters of which all nodes are gone."""
    rows = lake.query("SELECT DISTINCT cluster FROM capability_intervals", CAPABILITY_INTERVALS)
    return {row["cluster"] for row in rows}


def _heard(lake: LakeReader, ends: datetime) -> dict[str, datetime]:
    rows = lake.query(
        "SELECT cluster, max(seen_at) AS at FROM source_states"
        " WHERE seen_at >= $since GROUP BY cluster",
        SOURCE_STATES,
        since=ends - HEARD_WITHIN,
    )
    return {row["cluster"]: row["at"] for row in rows}
