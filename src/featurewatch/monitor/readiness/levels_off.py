"""What the software of a cluster has and its finalized levels leave off, by KIP. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from featurewatch.controller.compatibility import Verdict
from featurewatch.controller.kraft.consequences import Consequence, consequences
from featurewatch.controller.kraft.releases import releases
from featurewatch.controller.levels import level_name
from featurewatch.monitor.readiness.upgrade_state import (
    FeatureUpgradeState,
    is_kraft,
    upgrade_state_of,
)
from featurewatch.streams.types import FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import ClusterImage


@dataclass(frozen=True, slots=True)
class LevelOff:
    """A level that some node supports and that is not finalized, with what it would bring.

    ``name`` is the level for people. ``proposals`` are its KIPs, or tickets, ``change`` is what it
    changes in an existing cluster. ``supported_by_all`` is whether every registered node supports
    it. ``needs`` has levels of other features that must be finalized before it, and are not.
    """

    feature: FeatureName
    level: FeatureLevel
    name: str
    proposals: tuple[str, ...]
    change: str
    costs: tuple[str, ...]
    sources: tuple[str, ...]
    supported_by_all: Verdict
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LevelsOff:
    """The levels of a cluster that are off, by KIP; ``unknown`` are features with newer levels
    than are known here, with the highest."""

    cluster: str
    levels: tuple[LevelOff, ...]
    unknown: tuple[tuple[FeatureName, FeatureLevel], ...]


def levels_off(image: ClusterImage) -> LevelsOff:
    """The levels that are off in a cluster, whose registered nodes count as they are.

    Levels that change nothing in an existing cluster are left out. In ZooKeeper mode there are
    none: levels of released Kafka have no meaning there.
    """
    if not is_kraft(image):
        return LevelsOff(image.cluster, (), ())
    found: list[LevelOff] = []
    unknown: list[tuple[FeatureName, FeatureLevel]] = []
    for feature, state in upgrade_state_of(image).features.items():
        found += _levels_of(image, feature, state)
        known = max((level for name, level in consequences() if name == feature), default=0)
        if known < state.supported_by_any:
            unknown.append((feature, state.supported_by_any))
    found.sort(key=lambda item: (_number(item.proposals), item.feature, item.level))
    return LevelsOff(image.cluster, tuple(found), tuple(unknown))


def _levels_of(
    image: ClusterImage, feature: FeatureName, state: FeatureUpgradeState
) -> Iterator[LevelOff]:
    # Over the catalogue, not over the levels: a node may claim any number.
    for (name, level), item in consequences().items():
        is_off = state.finalized < level <= state.supported_by_any
        if name == feature and is_off and item.change_in_existing:
            yield LevelOff(
                feature,
                level,
                level_name(feature, level),
                item.proposals,
                item.change_in_existing,
                item.costs,
                item.sources,
                _is_supported(image, state, level),
                _needs(image, item),
            )


def _is_supported(image: ClusterImage, state: FeatureUpgradeState, level: int) -> Verdict:
    if state.supported_by_all is not None and level > state.supported_by_all:
        return Verdict.NO
    if state.supported_by_all is None or not image.ready or image.incomplete:
        return Verdict.UNKNOWN
    return Verdict.YES


def _needs(image: ClusterImage, item: Consequence) -> tuple[str, ...]:
    """The dependencies that are not met, by the newest release that has the level."""
    for release in reversed([*releases().values()]):
        for version in release.features.get(item.feature, ()):
            if version.level == item.level:
                return tuple(
                    f"{feature} {level_name(feature, level)}"
                    for feature, level in version.dependencies.items()
                    if image.features.levels.get(feature, 0) < level
                )
    return ()


def _number(proposals: tuple[str, ...]) -> tuple[bool, int]:
    """By number, KIPs before tickets."""
    if not proposals:
        return (True, 1 << 31)
    kind, _, number = proposals[0].partition("-")
    return (kind != "KIP", int(number))
