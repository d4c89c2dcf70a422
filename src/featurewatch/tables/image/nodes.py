"""The registered nodes of a cluster, and their classes by supported ranges."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self
from weakref import WeakValueDictionary

import orjson
from immutables import Map

from featurewatch.common.json_bytes import json_bytes
from featurewatch.common.weighted_cache import weighted_cache
from featurewatch.streams.types import FeatureName, NodeId, NodeKey, Role, SupportedRanges
from featurewatch.tables.image.provenance import Provenance, provenance_from_row, provenance_to_row


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Capabilities:
    """The supported ranges that one or many nodes advertise.

    Interned by `intern_capabilities`: equal capabilities are one object, so that ten thousand
    brokers of two releases share two objects, and a comparison compares identities.

    ``complete`` is false if the response omitted features whose minimum is 0 (ApiVersions below
    version 4, KAFKA-17492): a missing feature may then be supported after all. ``broken`` is true
    if some range is invalid, so that nothing can be concluded from it.
    """

    ranges: SupportedRanges
    complete: bool = True
    broken: bool = field(init=False)

    def __post_init__(self) -> None:
        broken = not all(supported.is_valid for supported in self.ranges.values())
        object.__setattr__(self, "broken", broken)


def intern_capabilities(
    ranges: Mapping[FeatureName, tuple[int, int]], *, complete: bool = True
) -> Capabilities:
    """The shared `Capabilities` object for these supported ranges."""
    key = (tuple(sorted(ranges.items())), complete)
    capabilities = _INTERNED.get(key)
    if capabilities is None:
        capabilities = _INTERNED[key] = Capabilities(SupportedRanges(key[0]), complete)
    return capabilities


_INTERNED: Final[
    WeakValueDictionary[tuple[tuple[tuple[FeatureName, tuple[int, int]], ...], bool], Capabilities]
] = WeakValueDictionary()
"""Weak, and unbounded: a second object for equal ranges in use would count as a change."""


@weighted_cache(lambda capabilities: len(capabilities.ranges))
def _ranges_json(capabilities: Capabilities) -> orjson.Fragment:
    """The ranges as JSON, encoded once for all nodes that share them."""
    return orjson.Fragment(json_bytes(capabilities.ranges, default=list))


class Node(NamedTuple):
    """One registered node; a tuple, since a fencing storm creates ten thousand per second.

    ``epoch`` is the broker epoch (-1 for controllers and for nodes known by ApiVersions only);
    ``incarnation`` changes with every start of its process. ``fenced`` and ``shutting_down`` apply
    to brokers. ``silent`` is true if the node does not respond to ApiVersions.
    """

    key: NodeKey
    capabilities: Capabilities
    incarnation: str
    epoch: int
    fenced: bool
    shutting_down: bool
    migrating: bool
    silent: bool
    provenance: Provenance

    def with_fencing(self, *, fenced: bool, shutting_down: bool) -> Self:
        """This node after a change of its fencing."""
        # A constructor, since `_replace` takes twice as long.
        return type(self)(
            self.key,
            self.capabilities,
            self.incarnation,
            self.epoch,
            fenced,
            shutting_down,
            self.migrating,
            self.silent,
            self.provenance,
        )

    def to_row(self) -> tuple[Any, ...]:
        """The node's fields in a row of nodes; the row's key holds the role."""
        return (
            self.key.node_id,
            _ranges_json(self.capabilities),
            self.capabilities.complete,
            self.incarnation,
            self.epoch,
            self.fenced,
            self.shutting_down,
            self.migrating,
            self.silent,
            provenance_to_row(self.provenance),
        )

    @classmethod
    def from_row(cls, role: Role, row: Sequence[Any]) -> Self:
        """The node that these fields of a row of nodes hold."""
        node_id, ranges, complete, incarnation, epoch, *flags, provenance = row
        bounds = {feature: (low, high) for feature, (low, high) in ranges.items()}
        fenced, shutting_down, migrating, silent = flags
        return cls(
            NodeKey(role, node_id),
            intern_capabilities(bounds, complete=complete),
            incarnation,
            epoch,
            fenced,
            shutting_down,
            migrating,
            silent,
            provenance_from_row(provenance),
        )


NodeChanges = Mapping[NodeKey, Node | None]
"""Nodes that are new or changed; None: removed."""


class CapabilityKey(NamedTuple):
    """Nodes of one role with the same supported ranges."""

    role: Role
    capabilities: Capabilities


_NO_NODES: Final[Map[NodeId, None]] = Map()


@dataclass(frozen=True, slots=True)
class NodesImage:
    """All registered nodes, and their ids by class.

    ``classes`` follows from ``nodes``: an event that touches one node touches one or two of them,
    whatever the size of the cluster.
    """

    nodes: Map[NodeKey, Node]
    classes: Map[CapabilityKey, Map[NodeId, None]]

    def __len__(self) -> int:
        return len(self.nodes)

    def get(self, key: NodeKey) -> Node | None:
        """The node, or None if it is not registered."""
        return self.nodes.get(key)

    def members(self, key: CapabilityKey) -> Iterator[Node]:
        """The nodes of one class."""
        return (self.nodes[NodeKey(key.role, node_id)] for node_id in self.classes.get(key, ()))

    def with_changes(self, changes: NodeChanges) -> Self:
        """This image with nodes set, or removed where the value is None."""
        nodes, classes = self.nodes.mutate(), self.classes
        for key, node in changes.items():
            before = nodes.get(key)
            if node is not None:
                nodes[key] = node
            elif before is not None:
                del nodes[key]
            if before is None or node is None or before.capabilities is not node.capabilities:
                classes = _update_classes(classes, key, before, node)
        return type(self)(nodes.finish(), classes)

    def difference(self, before: Self) -> dict[NodeKey, Node | None]:
        """The changes that turn ``before`` into this image (None: removed); reads both in full."""
        removed: dict[NodeKey, Node | None] = {
            key: None for key in before.nodes if key not in self.nodes
        }
        updated = {key: node for key, node in self.nodes.items() if before.nodes.get(key) != node}
        return {**removed, **updated}

    @classmethod
    def of(cls, nodes: Iterable[Node]) -> Self:
        """The image of these nodes."""
        return cls(Map(), Map()).with_changes({node.key: node for node in nodes})


def _update_classes(
    classes: Map[CapabilityKey, Map[NodeId, None]],
    key: NodeKey,
    before: Node | None,
    after: Node | None,
) -> Map[CapabilityKey, Map[NodeId, None]]:
    if before is not None:
        old = CapabilityKey(key.role, before.capabilities)
        rest = classes[old].delete(key.node_id)
        classes = classes.set(old, rest) if rest else classes.delete(old)
    if after is not None:
        new = CapabilityKey(key.role, after.capabilities)
        classes = classes.set(new, classes.get(new, _NO_NODES).set(key.node_id, None))
    return classes


NO_NODES: Final = NodesImage(Map(), Map())
