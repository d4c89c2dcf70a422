"""The one compatibility function: does a node support a finalized level? (KIP-584)"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from immutables import Map

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
    """An answer; unknown never counts as yes."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def supports(known: Capabilities, feature: FeatureName, level: FeatureLevel) -> Verdict:
    """Whether nodes with these capabilities can work with a level that is finalized.

    Level 0 is *not finalized*, and Kafka's controller asks for it as for any other: a node whose
    minimum is above 0 cannot register while the feature is not finalized
    (``ClusterControlManager.registerBroker``). A node that lacks the feature supports 0-0 of it
    (KIP-584; `QuorumFeatures` in Kafka). Unknown are a range that is none
    (`SupportedRange.is_valid`), and a feature that may have been left out.
    """
    supported = known.ranges.get(feature)
    if supported is None:
        if UNSUPPORTED.includes(level):
            return Verdict.YES
        return Verdict.NO if known.complete else Verdict.UNKNOWN
    if not supported.is_valid:
        return Verdict.UNKNOWN
    return Verdict.YES if supported.includes(level) else Verdict.NO


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A finalized level that some nodes do not, or perhaps not, support."""

    feature: FeatureName
    level: FeatureLevel
    range: SupportedRange | None
    verdict: Verdict


@lru_cache(maxsize=65536)  # classes × sets of levels; both are few, and one entry is small
def incompatibilities(
    known: Capabilities, levels: Map[FeatureName, FeatureLevel]
) -> tuple[Incompatibility, ...]:
    """The finalized levels that nodes with these capabilities do not surely support, by name."""
    found = (
        Incompatibility(feature, level, known.ranges.get(feature), supports(known, feature, level))
        for feature, level in sorted(levels.items())
    )
    return tuple(item for item in found if item.verdict is not Verdict.YES)


def controllers_register(image: ClusterImage) -> bool:
    """Whether controllers register, and are asked before a level changes (KIP-919)."""
    finalized = image.features.levels.get(METADATA_VERSION, FeatureLevel(0))
    return finalized >= CONTROLLER_REGISTRATION


def excluded_classes(
    image: ClusterImage,
) -> Iterator[tuple[CapabilityKey, tuple[Incompatibility, ...]]]:
    """The classes of nodes that some finalized level excludes, or may exclude."""
    for key in image.nodes.classes:
        found = incompatibilities(key.capabilities, image.features.levels)
        if found:
            yield key, found
