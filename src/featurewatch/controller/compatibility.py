"""Decides whether a node supports a finalized level (KIP-584)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from immutables import Map

from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.controller.levels import CONTROLLER_REGISTRATION
from featurewatch.streams.types import (
    METADATA_VERSION,
    UNSUPPORTED,
    FeatureLevel,
    FeatureName,
    SupportedRange,
)
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.nodes import Capabilities, CapabilityKey


class Verdict(StrEnum):
    """The result of a check; unknown never counts as yes."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def supports(capabilities: Capabilities, feature: FeatureName, level: FeatureLevel) -> Verdict:
    """Whether nodes with these capabilities support a finalized level.

    Level 0 means *not finalized*, and Kafka's controller checks it as any other level: a node whose
    minimum is above 0 cannot register while the feature is not finalized
    (``ClusterControlManager.registerBroker``). A node without the feature supports 0-0 of it
    (KIP-584; ``QuorumFeatures``). The verdict is unknown for an invalid range
    (`SupportedRange.is_valid`), and for a feature that incomplete capabilities may have left out.
    """
    supported = capabilities.ranges.get(feature)
    if supported is None:
        if UNSUPPORTED.includes(level):
            return Verdict.YES
        return Verdict.NO if capabilities.complete else Verdict.UNKNOWN
    if not supported.is_valid:
        return Verdict.UNKNOWN
    return Verdict.YES if supported.includes(level) else Verdict.NO


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A finalized level that some nodes do not support, or may not."""

    feature: FeatureName
    level: FeatureLevel
    range: SupportedRange | None
    verdict: Verdict


def supports_finalized(
    capabilities: Capabilities, feature: FeatureName, level: FeatureLevel
) -> Verdict:
    """Whether nodes with these capabilities support a level that is finalized.

    It is `supports` for any level but 0, which only the early draft of KIP-584 finalizes: there it
    is an ordinary level, which must lie in the range, and a node without the feature has none.
    """
    if level == 0 and feature not in capabilities.ranges:
        return Verdict.NO if capabilities.complete else Verdict.UNKNOWN
    return supports(capabilities, feature, level)


def _size(capabilities: Capabilities, levels: Map[FeatureName, FeatureLevel]) -> int:
    return len(capabilities.ranges) + len(levels)


@weighted_cache(_size)  # classes × sets of levels; both are few
def incompatibilities(
    capabilities: Capabilities, levels: Map[FeatureName, FeatureLevel]
) -> tuple[Incompatibility, ...]:
    """The finalized levels whose verdict for these capabilities is not yes, sorted by feature."""
    return _incompatibilities(capabilities, levels, supports_finalized)


@weighted_cache(_size)
def target_incompatibilities(
    capabilities: Capabilities, target: Map[FeatureName, FeatureLevel]
) -> tuple[Incompatibility, ...]:
    """The levels that are to be finalized (0: *not finalized*) whose verdict is not yes."""
    return _incompatibilities(capabilities, target, supports)


def _incompatibilities(
    capabilities: Capabilities,
    levels: Map[FeatureName, FeatureLevel],
    check: Callable[[Capabilities, FeatureName, FeatureLevel], Verdict],
) -> tuple[Incompatibility, ...]:
    candidates = (
        Incompatibility(
            feature, level, capabilities.ranges.get(feature), check(capabilities, feature, level)
        )
        for feature, level in sorted(levels.items())
    )
    return tuple(candidate for candidate in candidates if candidate.verdict is not Verdict.YES)


def controllers_register(image: ClusterImage) -> bool:
    """Whether controllers register, and are checked before a level changes (KIP-919)."""
    finalized = image.features.levels.get(METADATA_VERSION, FeatureLevel(0))
    return finalized >= CONTROLLER_REGISTRATION


def excluded_classes(
    image: ClusterImage,
) -> Iterator[tuple[CapabilityKey, tuple[Incompatibility, ...]]]:
    """The classes of nodes that some finalized level excludes, or may exclude."""
    for key in image.nodes.classes:
        unsupported = incompatibilities(key.capabilities, image.features.levels)
        if unsupported:
            yield key, unsupported
