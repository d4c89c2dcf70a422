"""The effects of a level for operators, and its cost: the consequences of `kafka.releases`.

They are written by hand. Each entry names the KIPs, classes or threads that support it. Whether
a level can be lowered again is not here: see `Release.floor`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from featurewatch.kafka.releases import from_releases, release_files
from featurewatch.streams.types import FeatureLevel, FeatureName


@dataclass(frozen=True, slots=True)
class Consequence:
    """One level of a feature: what it changes, its costs and risks, and the sources."""

    feature: FeatureName
    level: FeatureLevel
    change: str
    costs: tuple[str, ...]
    sources: tuple[str, ...]

    @property
    def change_in_existing(self) -> str:
        """What it changes in an existing cluster; empty if that is nothing."""
        if self.change.startswith("Nothing"):
            return ""
        if self.change.startswith("New clusters get"):
            return self.change.partition("; ")[2]
        return self.change

    @property
    def proposals(self) -> tuple[str, ...]:
        """The KIPs of the sources, or else the tickets; empty if there are neither."""
        kips = tuple(source for source in self.sources if source.startswith("KIP-"))
        return kips or tuple(source for source in self.sources if source.startswith("KAFKA-"))


@from_releases
def consequences() -> Mapping[tuple[FeatureName, FeatureLevel], Consequence]:
    """Every entry of the catalogue, by feature and level."""
    catalogue = (
        Consequence(
            FeatureName(entry["feature"]),
            FeatureLevel(entry["level"]),
            entry["change"],
            tuple(entry["costs"]),
            tuple(entry["sources"]),
        )
        for file in release_files()
        for entry in file.content.get("consequences", ())
    )
    return {(consequence.feature, consequence.level): consequence for consequence in catalogue}


@from_releases
def between(feature: FeatureName, low: int, high: int) -> tuple[Consequence, ...]:
    """The consequences of the levels above ``low`` up to ``high``, in ascending order.

    A level newer than the catalogue has none.
    """
    # Iterates over the catalogue, not over the levels: ZooKeeper may hold any number.
    levels = sorted(
        level for name, level in consequences() if name == feature and low < level <= high
    )
    return tuple(consequences()[feature, level] for level in levels)
