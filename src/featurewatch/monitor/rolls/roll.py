"""A roll of a cluster, and the history from which the next roll follows."""

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
    """The progress of a roll."""

    ROLLING = "rolling"
    ROLLED = "rolled"
    FINALIZED = "finalized"
    ABANDONED = "abandoned"


class CapabilityChange(NamedTuple):
    """A node whose capabilities changed; None if it is not registered."""

    key: NodeKey
    before: Capabilities | None
    after: Capabilities | None


class RolledNode(NamedTuple):
    """A node on the new software, since ``at_ms``; ``release`` is None if its ranges match none."""

    role: Role
    node_id: NodeId
    at_ms: int
    release: str | None


@dataclass(frozen=True, slots=True)
class Roll:
    """One roll; times in milliseconds since the Unix epoch, None for what has not happened yet.

    ``levels`` are those that changed in its direction: raised after an upgrade began and before the
    next roll begins, or lowered before or after a downgrade.
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
    rollback_path: RollbackPath | None = None

    @property
    def state(self) -> RollState:
        """The progress of the roll; levels count once all nodes run the new software."""
        if not self.nodes:
            return RollState.ABANDONED
        if self.rolled_ms is None:
            return RollState.ROLLING
        return RollState.ROLLED if self.finalized_ms is None else RollState.FINALIZED

    @property
    def duration_ms(self) -> int | None:
        """The time from the start until levels were finalized, or else until it was rolled."""
        end = self.rolled_ms if self.finalized_ms is None else self.finalized_ms
        return None if end is None or not self.nodes else max(0, end - self.started_ms)


@dataclass(frozen=True, slots=True)
class RollHistory:
    """The part of a cluster's past from which its next roll follows.

    ``before`` is the roll before the current one; it continues if the current one is abandoned.
    ``lowered`` are levels lowered since a roll began, and ``last`` is the last software of nodes
    that left or that no longer identify it, in the order in which they left.
    """

    current: Roll | None = None
    before: Roll | None = None
    lowered: Levels = field(default_factory=dict)
    last: Mapping[NodeKey, Capabilities] = field(default_factory=dict)


NO_ROLLS: Final = RollHistory()


def capability_changes(
    before: ClusterImage, after: ClusterImage, delta: ClusterDelta
) -> list[CapabilityChange]:
    """The nodes of a delta whose capabilities changed, sorted by key; fencing does not count."""
    if before.nodes.classes is after.nodes.classes:
        return []  # fencings, the ordinary case
    changes = []
    nodes_before, nodes = before.nodes.nodes, after.nodes.nodes
    for key in delta.nodes:
        old, new = nodes_before.get(key), nodes.get(key)
        old_capabilities = None if old is None else old.capabilities
        new_capabilities = None if new is None else new.capabilities
        if old_capabilities is not new_capabilities:
            changes.append(CapabilityChange(key, old_capabilities, new_capabilities))
    return sorted(changes, key=lambda change: change.key)
