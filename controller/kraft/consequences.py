"""What a level changes for those who run the cluster, and what it costs: ``consequences.json``.

Unlike the table of levels this is written by hand; each entry names the KIPs, classes or threads
that it rests on. Whether there is a way back is not here: `Release.floor` of the table says it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from featurewatch.streams.types import FeatureLevel, FeatureName


@dataclass(frozen=True, slots=True)
class Consequence:
    """One level of a feature: what is different from it on, what to beware of, and who says so."""

    feature: FeatureName
    level: FeatureLevel
    change: str
    costs: tuple[str, ...]
    sources: tuple[str, ...]


@lru_cache(maxsize=1)
def consequences() -> Mapping[tuple[FeatureName, FeatureLevel], Consequence]:
    """Every entry of the catalogue, by feature and level."""
    entries = json.loads(files(__package__).joinpath("consequences.json").read_text())
    found = (
        Consequence(
            FeatureName(one["feature"]),
            FeatureLevel(one["level"]),
            one["change"],
            tuple(one["costs"]),
            tuple(one["sources"]),
        )
        for one in entries
    )
    return {(one.feature, one.level): one for one in found}


def between(feature: FeatureName, low: int, high: int) -> tuple[Consequence, ...]:
    """What comes with an upgrade from ``low`` to ``high``, or goes with the way back, in order.

    A level that is newer than the catalogue has no entry: nothing is said of it.
    """
    # Over the catalogue, never over the levels: what ZooKeeper holds may be any number.
    levels = sorted(at for name, at in consequences() if name == feature and low < at <= high)
    return tuple(consequences()[feature, level] for level in levels)
