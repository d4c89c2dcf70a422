"""Compares a fleet with its desired levels."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from featurewatch.pipeline.fleet.clusters import ClusterSummary, Fleet
from featurewatch.pipeline.fleet.desired import DesiredLevels
from featurewatch.pipeline.history.moments import format_time

STALE_AFTER: Final = timedelta(days=1)
"""A lake that ends this long ago does not show the present."""


class DriftKind(StrEnum):
    """How a level or a cluster differs from the file."""

    BEHIND = "behind"
    """The level is lower."""
    AHEAD = "ahead"
    """The level is higher."""
    MISSING = "missing"
    """The feature is not finalized."""
    UNLISTED = "unlisted"
    """The lake has the cluster, but it is in no environment."""
    UNSEEN = "unseen"
    """The file names the cluster, but the lake has no data of it."""
    SILENT = "silent"
    """Its newest heartbeat is older than that of others: its present state is unknown."""
    STALE = "stale"
    """No cluster has had a heartbeat for a day."""

    @property
    def is_level_difference(self) -> bool:
        """Whether a level differs; the other kinds only mean that the present state is unknown."""
        return self in (DriftKind.BEHIND, DriftKind.AHEAD, DriftKind.MISSING)


@dataclass(frozen=True, slots=True)
class Drift:
    """A difference; ``feature``, ``desired`` and ``actual`` are None if it concerns a whole
    cluster.

    ``cluster`` may be a pattern that matches no cluster.
    """

    cluster: str
    name: str
    environment: str | None
    verdict: DriftKind
    feature: str | None = None
    desired: int | None = None
    actual: int | None = None
    detail: str = ""


def drift(fleet: Fleet, desired: DesiredLevels, now: datetime) -> list[Drift]:
    """Returns all differences, by cluster and feature; ``now`` is aware.

    Raises:
        DesiredError: A cluster belongs to two environments.
    """
    differences: list[Drift] = []
    for cluster, summary in fleet.clusters.items():
        differences += _of_cluster(summary, fleet, desired, cluster)
    for name, environment in desired.expected(fleet.clusters).items():
        label = desired.labels_of(name).name
        detail = "the lake has no data about it"
        differences.append(Drift(name, label, environment or None, DriftKind.UNSEEN, detail=detail))
    if fleet.ends is not None and fleet.ends < now - STALE_AFTER:
        detail = f"the lake ends at {format_time(fleet.ends)}: run featurewatch pipeline run"
        differences.append(Drift("*", "", None, DriftKind.STALE, detail=detail))
    return differences


def _of_cluster(
    summary: ClusterSummary, fleet: Fleet, desired: DesiredLevels, cluster: str
) -> Iterator[Drift]:
    name, environment = desired.labels_of(cluster).name, desired.environment_of(cluster)
    if environment is None:
        yield Drift(cluster, name, None, DriftKind.UNLISTED, detail="it is in no environment")
        return
    for feature, wanted in sorted(desired.environments[environment].levels.items()):
        level = summary.levels.get(feature)
        if (level or 0) != wanted:
            yield Drift(
                *(cluster, name, environment, _verdict(level, wanted)),
                *(feature, wanted, level or 0),
            )
    if fleet.ends is not None and summary.last_seen is None:
        detail = f"no heartbeat in the hour before {format_time(fleet.ends)}"
        yield Drift(cluster, name, environment, DriftKind.SILENT, detail=detail)


def _verdict(level: int | None, wanted: int) -> DriftKind:
    if level is None:
        return DriftKind.MISSING
    return DriftKind.BEHIND if level < wanted else DriftKind.AHEAD
