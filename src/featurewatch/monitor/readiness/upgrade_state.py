"""The upgrade state of each feature of a cluster: rpk's terms, with Kafka's levels.

It follows from the classes of nodes and the finalized levels, and so does the cost: ten thousand
nodes of two releases are two classes.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from immutables import Map

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.controller.compatibility import Verdict, supports_finalized
from featurewatch.controller.kraft.releases import production_levels, releases
from featurewatch.controller.software import newest_software
from featurewatch.kafka.releases import on_reread
from featurewatch.streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    NodeKey,
)
from featurewatch.tables.image.cluster import Authority, ClusterImage
from featurewatch.tables.image.nodes import Capabilities, CapabilityKey


class UpgradeState(StrEnum):
    """The upgrade state of a feature or of the whole cluster.

    ``mixed``: the registered nodes do not have the same highest level, or exclude the finalized
    one. ``ready``: they have the same, above the finalized level. ``finalized``: it is the
    finalized level. ``partly`` (clusters only): metadata.version is finalized, and another feature
    is below the default of that release. ``unknown``: a node's ranges are incomplete or invalid, or
    not everything has been read.
    """

    UNKNOWN = "unknown"
    MIXED = "mixed"
    READY = "ready"
    PARTLY = "partly"
    FINALIZED = "finalized"


class FeatureUpgradeState(NamedTuple):
    """The upgrade state of one feature.

    ``supported_by_all`` is the highest level that all registered nodes support (None: not known, or
    no common level), ``supported_by_any`` the highest that any node supports.
    """

    state: UpgradeState
    finalized: FeatureLevel
    supported_by_all: FeatureLevel | None
    supported_by_any: FeatureLevel


class ClusterUpgradeState(NamedTuple):
    """The upgrade state of a cluster and of its features.

    ``behind`` has the features below the default of metadata.version's release, with that default.
    """

    state: UpgradeState
    features: Mapping[FeatureName, FeatureUpgradeState]
    behind: Mapping[FeatureName, FeatureLevel]


def upgrade_state_of(image: ClusterImage) -> ClusterUpgradeState:
    """The upgrade state of a cluster; cached by its classes of nodes and its levels."""
    return upgrade_state_of_classes(
        frozenset(image.nodes.classes), image.features.levels, image.authority
    )


@weighted_cache(
    lambda classes, levels, _: len(levels) + sum(len(key.capabilities.ranges) for key in classes)
)
def upgrade_state_of_classes(
    classes: frozenset[CapabilityKey], levels: Map[FeatureName, FeatureLevel], authority: Authority
) -> ClusterUpgradeState:
    """The upgrade state of a cluster of which only this is known, as of a snapshot."""
    names = {name for key in classes for name in key.capabilities.ranges} | {*levels}
    features = {name: _feature_upgrade_state(classes, levels, name) for name in sorted(names)}
    behind = _behind(features, levels)
    return ClusterUpgradeState(_cluster_state(features, behind, authority), features, behind)


def _feature_upgrade_state(
    classes: frozenset[CapabilityKey],
    levels: Mapping[FeatureName, FeatureLevel],
    feature: FeatureName,
) -> FeatureUpgradeState:
    finalized = levels.get(feature, FeatureLevel(0))
    ranges = [key.capabilities.ranges.of(feature) for key in classes]
    supported_by_any = FeatureLevel(max((supported.maximum for supported in ranges), default=0))
    is_unsure = any(
        feature not in key.capabilities.ranges and not key.capabilities.complete for key in classes
    )
    if is_unsure or not ranges or not all(supported.is_valid for supported in ranges):
        return FeatureUpgradeState(UpgradeState.UNKNOWN, finalized, None, supported_by_any)
    lowest = max(supported.minimum for supported in ranges)
    highest = min(supported.maximum for supported in ranges)
    supported_by_all = FeatureLevel(highest) if lowest <= highest else None
    fits = feature not in levels or all(
        supports_finalized(key.capabilities, feature, finalized) is Verdict.YES for key in classes
    )
    if highest != supported_by_any or not fits:
        return FeatureUpgradeState(
            UpgradeState.MIXED, finalized, supported_by_all, supported_by_any
        )
    state = UpgradeState.READY if highest > finalized else UpgradeState.FINALIZED
    return FeatureUpgradeState(state, finalized, supported_by_all, supported_by_any)


def _behind(
    features: Mapping[FeatureName, FeatureUpgradeState], levels: Mapping[FeatureName, FeatureLevel]
) -> dict[FeatureName, FeatureLevel]:
    """The defaults of a release that all nodes support and that are not finalized.

    kraft.version is left out: dynamic voters are a separate decision, and cannot be reverted.
    """
    metadata_levels = production_levels()
    level = levels.get(METADATA_VERSION, FeatureLevel(0))
    since = metadata_levels[level - 1].since if 1 <= level <= len(metadata_levels) else None
    if since is None:
        return {}
    defaults = releases()[since].defaults(level)
    return {
        feature: default
        for feature, default in sorted(defaults.items())
        if feature != KRAFT_VERSION
        and (feature_state := features.get(feature)) is not None
        and feature_state.finalized < default <= (feature_state.supported_by_all or 0)
    }


def _cluster_state(
    features: Mapping[FeatureName, FeatureUpgradeState],
    behind: Mapping[FeatureName, FeatureLevel],
    authority: Authority,
) -> UpgradeState:
    """The state of the cluster: that of metadata.version, or else the least of all features."""
    if METADATA_VERSION in features and authority is not Authority.ZOOKEEPER:
        state = features[METADATA_VERSION].state
        return UpgradeState.PARTLY if state is UpgradeState.FINALIZED and behind else state
    order = (UpgradeState.UNKNOWN, UpgradeState.MIXED, UpgradeState.READY)
    states = {feature_state.state for feature_state in features.values()}
    return next((state for state in order if state in states), UpgradeState.FINALIZED)


def is_kraft(image: ClusterImage) -> bool:
    """Whether a KRaft controller decides levels, as far as it is known.

    Every node of a KRaft cluster advertises metadata.version, and none in ZooKeeper mode does.
    """
    if image.authority is not Authority.ANSWERS:
        return image.authority is not Authority.ZOOKEEPER
    classes = image.nodes.classes
    return not classes or any(METADATA_VERSION in key.capabilities.ranges for key in classes)


def newest_running(
    classes: Iterable[tuple[CapabilityKey, Iterable[NodeId]]], ghosts: Collection[NodeKey] = ()
) -> Capabilities | None:
    """The capabilities of the newest software that some node runs; None: none tells.

    ``classes`` are the ids of the registered nodes by class; registrations of ``ghosts`` do not
    count. The release may be unknown: see `featurewatch.controller.software.newest_software`.
    """
    return newest_software(
        key.capabilities
        for key, ids in classes
        if any(NodeKey(key.role, node_id) not in ghosts for node_id in ids)
    )


on_reread(upgrade_state_of_classes.cache_clear)
