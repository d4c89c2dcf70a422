"""Where a fleet is not as it shall be."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from featurewatch.pipeline.fleet.clusters import ClusterSummary, Fleet
from featurewatch.pipeline.fleet.desired import DesiredLevels
from featurewatch.pipeline.history.moments import format_time

STALE_AFTER: Final = timedelta(days=1)
"""A lake that ends so long ago says nothing of now."""


class DriftKind(StrEnum):
    """How a level, or a cluster, is not as the file says."""

    BEHIND = "behind"
    """The level is lower."""
    AHEAD = "ahead"
    """The level is higher."""
    MISSING = "missing"
    """The feature is not finalized."""
    UNLISTED = "unlisted"
    """The lake has the cluster, and it is in no environment."""
    UNHEARD = "unheard"
    """The file names it, and the lake has never heard of it."""
    SILENT = "silent"
    """Its last word is older than that of others: how it is now is not known."""
    STALE = "stale"
    """Nothing was heard of any cluster for a day."""

    @property
    def known(self) -> bool:
        """Whether it is known that something differs."""
        return self in (DriftKind.BEHIND, DriftKind.AHEAD, DriftKind.MISSING)


@dataclass(frozen=True, slots=True)
class Drift:
    """Something that is not as it shall be; ``feature``, ``wanted`` and ``found`` are None where
    it is about a whole cluster. ``cluster`` may be a pattern to which nothing answers."""

    cluster: str
    name: str
    environment: str | None
    verdict: DriftKind
    feature: str | None = None
    wanted: int | None = None
    found: int | None = None
    detail: str = ""


def drift(fleet: Fleet, desired: DesiredLevels, now: datetime) -> list[Drift]:
    """Everything that differs, by cluster and feature; ``now`` is aware.

    Raises:
        DesiredError: A cluster belongs to two environments.
    """
    found: list[Drift] = []
    for cluster, line in fleet.clusters.items():
        found += _of_cluster(line, fleet, desired, cluster)
    for name, environment in desired.expected(fleet.clusters).items():
        known = desired.named(name).name
        detail = "the lake has never heard of it"
        found.append(Drift(name, known, environment or None, DriftKind.UNHEARD, detail=detail))
    if fleet.ends is not None and fleet.ends < now - STALE_AFTER:
        detail = f"the lake ends at {format_time(fleet.ends)}: run featurewatch pipeline run"
        found.append(Drift("*", "", None, DriftKind.STALE, detail=detail))
    return found


def _of_cluster(
    line: ClusterSummary, fleet: Fleet, desired: DesiredLevels, cluster: str
) -> Iterator[Drift]:
    name, environment = desired.named(cluster).name, desired.environment_of(cluster)
    if environment is None:
        yield Drift(cluster, name, None, DriftKind.UNLISTED, detail="it is in no environment")
        return
    for feature, wanted in sorted(desired.environments[environment].levels.items()):
        level = line.levels.get(feature, 0)
        if level != wanted:
            yield Drift(
                *(cluster, name, environment, _verdict(level, wanted)),
                *(feature, wanted, level),
            )
    if fleet.ends is not None and line.heard is None:
        detail = f"nothing was heard of it in the hour before {format_time(fleet.ends)}"
        yield Drift(cluster, name, environment, DriftKind.SILENT, detail=detail)


def _verdict(level: int, wanted: int) -> DriftKind:
    if level == 0:
        return DriftKind.MISSING
    return DriftKind.BEHIND if level < wanted else DriftKind.AHEAD
