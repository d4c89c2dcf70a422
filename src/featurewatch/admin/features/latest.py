"""The levels that "latest" stands for: those of all nodes, or of the controller; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from featurewatch.admin.features.metadata import FeatureMetadata, NodeDescription
from featurewatch.admin.features.updates import FeatureUpdate
from featurewatch.streams.types import KRAFT_VERSION, METADATA_VERSION, FeatureLevel

_RAISES_KRAFT: Final = 26
"""A node that supports this metadata.version (4.1-IV0) can raise kraft.version; older ones only
write a record without effect (KAFKA-18979)."""


@dataclass(frozen=True, slots=True)
class LatestLevels:
    """Updates by feature, and remarks on the features that are left out."""

    updates: tuple[FeatureUpdate, ...] = ()
    remarks: tuple[str, ...] = ()


def highest_common(metadata: FeatureMetadata, answers: Iterable[NodeDescription]) -> LatestLevels:
    """Each feature's highest level that all nodes support, where it is above the finalized one.

    ``metadata`` has the finalized levels. A feature that one node lacks is left out; the caller
    makes sure that every node has responded.
    """
    supporting = [answer.metadata for answer in answers if answer.metadata is not None]
    updates, warnings = [], []
    for feature in sorted({name for node in supporting for name in node.supported}):
        ranges = [node.supported.of(feature) for node in supporting]
        highest = min(supported.maximum for supported in ranges)
        lowest = max(supported.minimum for supported in ranges)
        now = metadata.finalized.get(feature, 0)
        if highest < max(lowest, 1):
            warnings.append(f"{feature} is left out: no level of it is supported by all nodes")
        elif highest < now:
            warnings.append(f"{feature} is at {now}, and some node supports no more than {highest}")
        elif feature == KRAFT_VERSION and not _raises_kraft(supporting):
            if now < highest:
                warnings.append(
                    f"{feature} is left out: controllers before Kafka 4.1 cannot raise it"
                )
        elif highest > now:
            updates.append(FeatureUpdate(feature, FeatureLevel(highest)))
    return LatestLevels(tuple(updates), tuple(warnings))


def highest_supported(metadata: FeatureMetadata) -> tuple[FeatureUpdate, ...]:
    """Every feature of one node's at its maximum: ``enable-latest`` as the later draft has it."""
    return tuple(
        FeatureUpdate(feature, FeatureLevel(supported.maximum))
        for feature, supported in sorted(metadata.supported.items())
    )


def _raises_kraft(nodes: list[FeatureMetadata]) -> bool:
    return all(node.supported.of(METADATA_VERSION).maximum >= _RAISES_KRAFT for node in nodes)
