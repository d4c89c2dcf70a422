"""The one compatibility function: does a node support a finalized level? (KIP-584)"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from immutables import Map

from controller.kraft.state import KRAFT_VERSION_0
from controller.kraft.support import NOT_AT_ALL, includes
from controller.levels import CONTROLLER_REGISTRATION
from streams.types import (
    KRAFT_VERSION,
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    Range,
    Role,
)
from tables.image import ClusterImage
from tables.nodes import Capabilities, ClassKey, NodeKey, is_range


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
    (`tables.nodes.is_range`), and a feature that may have been left out.
    """
    supported = known.ranges.get(feature)
    if supported is None:
        if includes(NOT_AT_ALL, level):
            return Verdict.YES
        return Verdict.NO if known.complete else Verdict.UNKNOWN
    if not is_range(supported):
        return Verdict.UNKNOWN
    return Verdict.YES if includes(supported, level) else Verdict.NO


@dataclass(frozen=True, slots=True)
class Incompatibility:
    """A finalized level that some nodes do not, or perhaps not, support."""

    feature: FeatureName
    level: FeatureLevel
    range: Range | None
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


def suspicious(known: Capabilities, levels: Map[FeatureName, FeatureLevel]) -> bool:
    """Whether any rule about nodes can have something to say of nodes with these capabilities."""
    return bool(incompatibilities(known, levels)) or known.broken


@dataclass(frozen=True, slots=True)
class Blocker:
    """A node that stands in the way of a level; no range where it has not registered at all."""

    node: NodeKey
    registered: bool
    fenced: bool
    range: Range | None
    verdict: Verdict


def blockers(image: ClusterImage, feature: FeatureName, level: FeatureLevel) -> tuple[Blocker, ...]:
    """Every node because of which Kafka's controller would refuse a level, in the order it asks.

    All registered brokers count, the fenced ones too; controllers count from metadata.version 15
    on, and then, while the voters are those of ``controller.quorum.voters``, those of them that
    have not registered as well (``FeatureControlManager.reasonNotSupported``, which names the first
    of all of them only; `controller.kraft.decide_update` says which).
    """
    found = sorted(_excluded(image, feature, level), key=lambda blocker: blocker.node)
    return (*found, *_unregistered(image))


def _excluded(image: ClusterImage, feature: FeatureName, level: FeatureLevel) -> Iterator[Blocker]:
    for key in image.nodes.classes:
        verdict = supports(key.capabilities, feature, level)
        if verdict is Verdict.YES or (key.role is Role.CONTROLLER and not asks_controllers(image)):
            continue
        for node in image.nodes.members(key):
            supported = key.capabilities.ranges.get(feature)
            yield Blocker(
                node.key, registered=True, fenced=node.fenced, range=supported, verdict=verdict
            )


def _unregistered(image: ClusterImage) -> Iterator[Blocker]:
    """The voters that have not registered; a quorum that keeps them itself does not tell them."""
    if not asks_controllers(image) or image.features.levels.get(KRAFT_VERSION, KRAFT_VERSION_0):
        return
    for voter in image.quorum.voters:
        key = NodeKey(Role.CONTROLLER, NodeId(voter))
        if image.nodes.get(key) is None and voter != image.quorum.leader_id:
            yield Blocker(key, registered=False, fenced=False, range=None, verdict=Verdict.UNKNOWN)


def asks_controllers(image: ClusterImage) -> bool:
    """Whether controllers register, and are asked before a level changes (KIP-919)."""
    finalized = image.features.levels.get(METADATA_VERSION, FeatureLevel(0))
    return finalized >= CONTROLLER_REGISTRATION


def excluded_classes(image: ClusterImage) -> Iterator[tuple[ClassKey, tuple[Incompatibility, ...]]]:
    """The classes of nodes that some finalized level excludes, or may exclude."""
    for key in image.nodes.classes:
        found = incompatibilities(key.capabilities, image.features.levels)
        if found:
            yield key, found
