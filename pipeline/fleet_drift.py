"""Where a fleet is not as it shall be."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from pipeline.desired import Desired
from pipeline.fleet import ClusterLine, Fleet
from pipeline.moments import shown

STALE_AFTER: Final = timedelta(days=1)
"""A lake that ends so long ago says nothing of now."""


class Verdict(StrEnum):
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
        return self in (Verdict.BEHIND, Verdict.AHEAD, Verdict.MISSING)


@dataclass(frozen=True, slots=True)
class Drift:
    """Something that is not as it shall be; ``feature``, ``wanted`` and ``found`` are None where
    it is about a whole cluster. ``cluster`` may be a pattern to which nothing answers."""

    cluster: str
    name: str
    environment: str | None
    verdict: Verdict
    feature: str | None = None
    wanted: int | None = None
    found: int | None = None
    detail: str = ""


def drift(fleet: Fleet, desired: Desired, now: datetime) -> list[Drift]:
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
        found.append(Drift(name, known, environment or None, Verdict.UNHEARD, detail=detail))
    if fleet.ends is not None and fleet.ends < now - STALE_AFTER:
        detail = f"the lake ends at {shown(fleet.ends)}: run featurewatch pipeline run"
        found.append(Drift("*", "", None, Verdict.STALE, detail=detail))
    return found


def _of_cluster(line: ClusterLine, fleet: Fleet, desired: Desired, cluster: str) -> Iterator[Drift]:
    name, environment = desired.named(cluster).name, desired.environment_of(cluster)
    if environment is None:
        yield Drift(cluster, name, None, Verdict.UNLISTED, detail="it is in no environment")
        return
    for feature, wanted in sorted(desired.environments[environment].levels.items()):
        level = line.levels.get(feature, 0)
        if level != wanted:
            yield Drift(
                *(cluster, name, environment, _verdict(level, wanted)),
                *(feature, wanted, level),
            )
    if fleet.ends is not None and line.heard is None:
        detail = f"nothing was heard of it in the hour before {shown(fleet.ends)}"
        yield Drift(cluster, name, environment, Verdict.SILENT, detail=detail)


def _verdict(level: int, wanted: int) -> Verdict:
    if level == 0:
        return Verdict.MISSING
    return Verdict.BEHIND if level < wanted else Verdict.AHEAD
