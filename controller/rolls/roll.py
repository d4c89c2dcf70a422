"""What a roll of a cluster is, and what of a cluster's past the next one follows from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from featurewatch.controller.downgrade_path import RollbackPath
from featurewatch.controller.software import Direction
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage
from featurewatch.tables.image.nodes import Capabilities

Levels = Mapping[FeatureName, tuple[FeatureLevel, FeatureLevel]]
"""Levels before and after, by feature."""


class RollState(StrEnum):
    """How far a roll has come."""

    ROLLING = "rolling"
    ROLLED = "rolled"
    FINALIZED = "finalized"
    ABANDONED = "abandoned"


class CapabilityChange(NamedTuple):
    """A node whose capabilities differ; None where it is not registered."""

    key: NodeKey
    before: Capabilities | None
    after: Capabilities | None


class RolledNode(NamedTuple):
    """A node on the new software: since when, and the release by name, if it has one."""

    role: Role
    node_id: NodeId
    at_ms: int
    release: str | None


@dataclass(frozen=True, slots=True)
class Roll:
    """One roll; times in milliseconds, None where it has not come so far.

    ``levels`` are those that changed in its direction: raised after an upgrade began, for as long
    as no other roll begins, and lowered before a downgrade or after it.
    """

    direction: Direction
    cause: str
    started_ms: int
    old: tuple[Capabilities, ...]
    new: tuple[Capabilities, ...]
    nodes: tuple[RolledNode, ...] = ()
    levels: Levels = field(default_factory=dict)
    rolled_ms: int | None = None
    finalized_ms: int | None = None
    ended_ms: int | None = None
    way_back: RollbackPath | None = None

    @property
    def state(self) -> RollState:
        """How far it has come; levels count once all nodes run the new software."""
        if not self.nodes:
            return RollState.ABANDONED
        if self.rolled_ms is None:
            return RollState.ROLLING
        return RollState.ROLLED if self.finalized_ms is None else RollState.FINALIZED

    @property
    def duration_ms(self) -> int | None:
        """From its start until levels were finalized, or else until it was rolled."""
        end = self.rolled_ms if self.finalized_ms is None else self.finalized_ms
        return None if end is None or not self.nodes else max(0, end - self.started_ms)


@dataclass(frozen=True, slots=True)
class RollHistory:
    """What is to be known of a cluster's past to tell its next roll.

    ``before`` is the roll before the current one, which goes on if that one is abandoned.
    ``lowered`` are levels lowered since a roll began, and ``last`` is the software of nodes that
    are gone, or that do not tell what they run, in the order in which they left.
    """

    current: Roll | None = None
    before: Roll | None = None
    lowered: Levels = field(default_factory=dict)
    last: Mapping[NodeKey, Capabilities] = field(default_factory=dict)


NO_ROLLS: Final = RollHistory()


def capability_changes(
    before: ClusterImage, after: ClusterImage, delta: ClusterDelta
) -> list[CapabilityChange]:
    """The nodes of a delta whose capabilities differ, by key; a fencing is none of them."""
    found = []
    nodes_before, nodes = before.nodes.nodes, after.nodes.nodes
    for key in delta.nodes:
        old, new = nodes_before.get(key), nodes.get(key)
        known = None if old is None else old.capabilities
        now = None if new is None else new.capabilities
        if known is not now:
            found.append(CapabilityChange(key, known, now))
    return sorted(found, key=lambda moved: moved.key)
