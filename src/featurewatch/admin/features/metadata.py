"""A node's features: ``FeatureMetadata`` of KIP-584, read from ApiVersions."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from featurewatch.kafka.address import Address
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, Role, SupportedRanges


class FeatureMetadata(NamedTuple):
    """One node's supported ranges, and the finalized levels as it has them.

    ``epoch`` is None where the node has none, and the levels are empty then. ``node`` is the
    address of the node.
    """

    supported: SupportedRanges
    finalized: Mapping[FeatureName, FeatureLevel]
    epoch: int | None
    node: Address


class NodeDescription(NamedTuple):
    """A node of a cluster and its features; ``error`` is one line with the reason for none."""

    role: Role
    node_id: NodeId
    metadata: FeatureMetadata | None = None
    error: str | None = None


def read_metadata(answer: Any, node: Address, level: str = "max_version_level") -> FeatureMetadata:
    """Reads the features of an ApiVersions response; versions before 3 have no features.

    ``level`` is the field of a finalized level. Levels without an epoch do not count
    (KIP-778); a level of 0 or less is included, since the drafts of KIP-584 have level 0.
    """
    epoch = int(getattr(answer, "finalized_features_epoch", -1))
    has_epoch = epoch >= 0
    return FeatureMetadata(
        supported=SupportedRanges(
            (FeatureName(feature.name), (int(feature.min_version), int(feature.max_version)))
            for feature in getattr(answer, "supported_features", ())
        ),
        finalized={
            FeatureName(feature.name): FeatureLevel(int(getattr(feature, level)))
            for feature in (getattr(answer, "finalized_features", ()) if has_epoch else ())
        },
        epoch=epoch if has_epoch else None,
        node=node,
    )


class FeatureDialect(StrEnum):
    """As Kafka 2.7 and later, or as a document has it: the reference system has all.

    ``EARLY`` and ``LATE`` are the drafts of KIP-584. KIP-778 as written has the requests of
    released Kafka, with its own types of downgrades and a dry run.
    """

    RELEASED = "released"
    EARLY = "early"
    LATE = "late"
    KIP_778 = "kip-778"

    @property
    def is_draft(self) -> bool:
        """Whether the requests are those of a draft of KIP-584."""
        return self in (FeatureDialect.EARLY, FeatureDialect.LATE)
