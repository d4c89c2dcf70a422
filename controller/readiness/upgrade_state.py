"""How far the nodes of a cluster have come with each feature: rpk's words, with Kafka's levels.

Everything here follows from the classes of nodes and the finalized levels, and costs what these
cost: ten thousand nodes of two releases are two classes.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from immutables import Map

from featurewatch.controller.compatibility import Verdict, supports
from featurewatch.controller.kraft.releases import production_levels, releases
from featurewatch.controller.software import release_of_capabilities
from featurewatch.streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureLevel, FeatureName
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import CapabilityKey


class UpgradeState(StrEnum):
    """How a feature, or the whole cluster, stands between two releases.

    ``mixed``: the registered nodes do not have the same highest level. ``ready``: they have, and it
    is above what is finalized. ``finalized``: it is what is finalized. ``partly``: metadata.version
    of a release is finalized, and another feature is behind what the release has by default (said
    of clusters). ``unknown``: some node does not tell, or not all was read.
    """

    UNKNOWN = "unknown"
    MIXED = "mixed"
    READY = "ready"
    PARTLY = "partly"
    FINALIZED = "finalized"


class FeatureUpgradeState(NamedTuple):
    """One feature: its finalized level, what all registered nodes support, what any supports.

    ``reach`` is None where it is not known, and where no level at all is common to all nodes.
    """

    state: UpgradeState
    finalized: FeatureLevel
    reach: FeatureLevel | None
    newest: FeatureLevel


class ClusterUpgradeState(NamedTuple):
    """All features of a cluster, and the cluster's own state; ``behind`` are features below the
    default of the release that metadata.version stands for, with that default.
    """

    state: UpgradeState
    features: Mapping[FeatureName, FeatureUpgradeState]
    behind: Mapping[FeatureName, FeatureLevel]


def upgrade_state_of(image: ClusterImage) -> ClusterUpgradeState:
    """How a cluster stands; computed once for a set of classes and a set of levels."""
    return _stands(frozenset(image.nodes.classes), image.features.levels, image.authority)


@lru_cache(maxsize=4096)
def _stands(
    classes: frozenset[CapabilityKey], levels: Map[FeatureName, FeatureLevel], authority: Authority
) -> ClusterUpgradeState:
    names = {name for key in classes for name in key.capabilities.ranges} | {*levels}
    features = {name: _stand(classes, levels, name) for name in sorted(names)}
    behind = _behind(features, levels)
    return ClusterUpgradeState(_whole(features, behind, authority), features, behind)


def _stand(
    classes: frozenset[CapabilityKey],
    levels: Mapping[FeatureName, FeatureLevel],
    feature: FeatureName,
) -> FeatureUpgradeState:
    finalized = levels.get(feature, FeatureLevel(0))
    ranges = [key.capabilities.ranges.of(feature) for key in classes]
    newest = FeatureLevel(max((supported.maximum for supported in ranges), default=0))
    unsure = any(
        feature not in key.capabilities.ranges and not key.capabilities.complete for key in classes
    )
    if unsure or not ranges or not all(supported.is_valid for supported in ranges):
        return FeatureUpgradeState(UpgradeState.UNKNOWN, finalized, None, newest)
    lowest = max(supported.minimum for supported in ranges)
    highest = min(supported.maximum for supported in ranges)
    reach = FeatureLevel(highest) if lowest <= highest else None
    fits = all(supports(key.capabilities, feature, finalized) is Verdict.YES for key in classes)
    if highest != newest or (finalized and not fits):
        return FeatureUpgradeState(UpgradeState.MIXED, finalized, reach, newest)
    state = UpgradeState.READY if highest > finalized else UpgradeState.FINALIZED
    return FeatureUpgradeState(state, finalized, reach, newest)


def _behind(
    features: Mapping[FeatureName, FeatureUpgradeState], levels: Mapping[FeatureName, FeatureLevel]
) -> dict[FeatureName, FeatureLevel]:
    """What a release has by default and all nodes support, and is not finalized.

    kraft.version is left out: whether the quorum shall manage its voters itself is a decision of
    its own, and nothing leads back.
    """
    known = production_levels()
    level = levels.get(METADATA_VERSION, FeatureLevel(0))
    since = known[level - 1].since if 1 <= level <= len(known) else None
    if since is None:
        return {}
    defaults = releases()[since].defaults(level)
    return {
        feature: default
        for feature, default in sorted(defaults.items())
        if feature != KRAFT_VERSION
        and (stand := features.get(feature)) is not None
        and stand.finalized < default <= (stand.reach or 0)
    }


def _whole(
    features: Mapping[FeatureName, FeatureUpgradeState],
    behind: Mapping[FeatureName, FeatureLevel],
    authority: Authority,
) -> UpgradeState:
    """The cluster: metadata.version leads; without it (ZooKeeper) the least of all features."""
    if METADATA_VERSION in features and authority is not Authority.ZOOKEEPER:
        state = features[METADATA_VERSION].state
        return UpgradeState.PARTLY if state is UpgradeState.FINALIZED and behind else state
    order = (UpgradeState.UNKNOWN, UpgradeState.MIXED, UpgradeState.READY)
    found = {stand.state for stand in features.values()}
    return next((state for state in order if state in found), UpgradeState.FINALIZED)


def is_kraft(image: ClusterImage) -> bool:
    """Whether levels are for KRaft's controller to decide, as far as it is known: every node of
    such a cluster offers metadata.version, and none in ZooKeeper mode does."""
    if image.authority is not Authority.ANSWERS:
        return image.authority is not Authority.ZOOKEEPER
    known = image.nodes.classes
    return not known or any(METADATA_VERSION in one.capabilities.ranges for one in known)


def newest_release(image: ClusterImage) -> str | None:
    """The newest release that some registered node runs (None: none is known)."""
    found = [release_of_capabilities(key.capabilities) for key in image.nodes.classes]
    newest = max((one.newest(METADATA_VERSION) for one in found if one is not None), default=None)
    return next((one.name for one in found if one and one.newest(METADATA_VERSION) == newest), None)
