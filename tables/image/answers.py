"""The part of an image that the nodes' own ApiVersions responses provide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from immutables import Map

from featurewatch.streams.events import FeatureView
from featurewatch.streams.types import FeatureName
from featurewatch.tables.image.nodes import NO_NODES, NodeChanges, NodesImage

Disagreements = Map[FeatureName, tuple[FeatureView, ...]]
"""The features for which nodes report different levels, with the views of the nodes."""


@dataclass(frozen=True, slots=True)
class AnswersImage:
    """The nodes as their own ApiVersions responses describe them, and their disagreements.

    While these responses are the authority, ``nodes`` is empty: they are the cluster's nodes.
    """

    nodes: NodesImage = NO_NODES
    disagreements: Disagreements = field(default_factory=Map)

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row; the nodes have rows of their own."""
        return {"disagreements": dict(self.disagreements.items())}

    @classmethod
    def from_row(cls, row: Mapping[str, Any], nodes: NodesImage) -> Self:
        """The part of the image that these fields and its rows of nodes hold."""
        disagreements = {
            feature: tuple(FeatureView(view["level"], tuple(view["nodes"])) for view in views)
            for feature, views in row["disagreements"].items()
        }
        return cls(nodes, Map(disagreements))


NO_ANSWERS: Final = AnswersImage()


@dataclass(frozen=True, slots=True)
class AnswersDelta:
    """What an event changed in an `AnswersImage`, among the nodes."""

    nodes: NodeChanges = field(default_factory=dict)


ANSWERS_UNCHANGED: Final = AnswersDelta()
