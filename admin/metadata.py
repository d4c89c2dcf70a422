"""What a node answers about features: ``FeatureMetadata`` of KIP-584, read from ApiVersions."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from featurewatch.streams.net.address import Address
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, Role, SupportedRanges


@dataclass(frozen=True, slots=True)
class FeatureMetadata:
    """One node's answer: its own supported ranges, and the finalized levels as it knows them.

    ``epoch`` is None where the node has none, and the levels are empty then. ``node`` is where the
    answer came from: the address that was asked.
    """

    supported: SupportedRanges
    finalized: Mapping[FeatureName, FeatureLevel]
    epoch: int | None
    node: Address


@dataclass(frozen=True, slots=True)
class NodeDescription:
    """A node of a cluster and its answer; ``error`` says in one line why there is none."""

    role: Role
    node_id: NodeId
    metadata: FeatureMetadata | None = None
    error: str | None = None


def read_metadata(answer: Any, node: Address, level: str = "max_version_level") -> FeatureMetadata:
    """What an ApiVersions answer of any version says; before version 3 it says nothing.

    ``level`` is the field that a finalized level stands in. Levels without an epoch do not count
    (KIP-778); a level of 0 or less is told, since the drafts of KIP-584 have level 0.
    """
    epoch = int(getattr(answer, "finalized_features_epoch", -1))
    known = epoch >= 0
    return FeatureMetadata(
        supported=SupportedRanges(
            (FeatureName(feature.name), (int(feature.min_version), int(feature.max_version)))
            for feature in getattr(answer, "supported_features", ())
        ),
        finalized={
            FeatureName(each.name): FeatureLevel(int(getattr(each, level)))
            for each in (getattr(answer, "finalized_features", ()) if known else ())
        },
        epoch=epoch if known else None,
        node=node,
    )


class FeatureDialect(StrEnum):
    """As Kafka 2.7 and later, or as a draft of KIP-584 has it: the reference system speaks all."""

    RELEASED = "released"
    EARLY = "early"
    LATE = "late"
