"""The part of an image that nodes provide when they are asked: ApiVersions, DescribeQuorum."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final, Self

from immutables import Map

from featurewatch.streams.events import FeatureView, QuorumStatus, ReplicaState, ReplicaStatus
from featurewatch.streams.types import ClusterId, FeatureName, NodeKey, Role
from featurewatch.tables.image.nodes import NO_NODES, NodeChanges, NodesImage

Disagreements = Map[FeatureName, tuple[FeatureView, ...]]
"""The features for which nodes report different levels, with the views of the nodes."""


@dataclass(frozen=True, slots=True)
class AnswersResync:
    """A resync of the responses: the nodes and disagreements that were not published again yet,
    and whether the quorum was not.

    What remains at its end is dropped.
    """

    nodes: frozenset[NodeKey] = frozenset()
    features: frozenset[FeatureName] = frozenset()
    quorum: bool = False

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row."""
        nodes = [[key.role, key.node_id] for key in sorted(self.nodes)]
        quorum = {"quorum": True} if self.quorum else {}
        return {"nodes": nodes, "features": sorted(self.features), **quorum}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The resync that these fields hold."""
        nodes = frozenset(NodeKey(Role(role), node_id) for role, node_id in row["nodes"])
        return cls(nodes, frozenset(row["features"]), row.get("quorum", False))


@dataclass(frozen=True, slots=True)
class AnswersImage:
    """The nodes as their own ApiVersions responses describe them, and their disagreements.

    While these responses are the authority, ``nodes`` is empty: they are the cluster's nodes.
    ``resync`` is a resync in progress. ``quorum`` is the quorum as the active controller described
    it last; None: it never did.
    """

    nodes: NodesImage = NO_NODES
    disagreements: Disagreements = field(default_factory=Map)
    resync: AnswersResync | None = None
    quorum: QuorumStatus | None = None

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row; the nodes have separate rows."""
        return {
            "disagreements": dict(self.disagreements.items()),
            "resync": self.resync and self.resync.to_row(),
            **({"quorum": asdict(self.quorum)} if self.quorum is not None else {}),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], nodes: NodesImage) -> Self:
        """The part of the image that these fields and its rows of nodes hold."""
        disagreements = {
            feature: tuple(FeatureView(view["level"], tuple(view["nodes"])) for view in views)
            for feature, views in row["disagreements"].items()
        }
        resync, quorum = row["resync"], row.get("quorum")
        return cls(
            nodes,
            Map(disagreements),
            resync and AnswersResync.from_row(resync),
            quorum and _quorum_from_row(quorum),
        )

    def published(self, key: NodeKey) -> Self:
        """This part with a node that the resync, if one is in progress, has published again."""
        if self.resync is None or key not in self.resync.nodes:
            return self
        return replace(self, resync=replace(self.resync, nodes=self.resync.nodes - {key}))


def _quorum_from_row(row: Mapping[str, Any]) -> QuorumStatus:
    voters, observers = (
        tuple(
            ReplicaStatus(
                **{
                    **one,
                    "state": ReplicaState(one["state"]),
                    "endpoints": tuple(one["endpoints"]),
                }
            )
            for one in row[name]
        )
        for name in ("voters", "observers")
    )
    cluster = ClusterId(row["cluster"])
    return QuorumStatus(**{**row, "cluster": cluster, "voters": voters, "observers": observers})


NO_ANSWERS: Final = AnswersImage()


@dataclass(frozen=True, slots=True)
class AnswersDelta:
    """Changes of an event to an `AnswersImage`, among the nodes."""

    nodes: NodeChanges = field(default_factory=dict)


ANSWERS_UNCHANGED: Final = AnswersDelta()
