"""Nodes, their classes, and what is interned."""

from hypothesis import given
from hypothesis import strategies as st

from featurewatch.streams.types import FeatureName, NodeId, NodeKey, Role
from featurewatch.tables.image.nodes import Capabilities, Node, NodesImage, intern_capabilities
from featurewatch.tables.image.provenance import NO_PROVENANCE
from tests import strategies as some
from tests.simulation.records import MV


def node(node_id: int, capabilities: Capabilities, *, fenced: bool = False) -> Node:
    """A broker."""
    key = NodeKey(Role.BROKER, NodeId(node_id))
    return Node(key, capabilities, "i", 1, fenced, False, False, False, NO_PROVENANCE)


def test_equal_capabilities_are_one_object() -> None:
    """However many others there were in between, as long as some node has them."""
    first = intern_capabilities({MV: (1, 21)})
    for high in range(5000):
        intern_capabilities({MV: (2, high)})
    assert intern_capabilities({MV: (1, 21)}) is first
    assert intern_capabilities({MV: (1, 21)}, complete=False) is not first


@given(st.lists(st.tuples(st.integers(0, 5), some.ranges | st.none()), max_size=20))
def test_classes_follow_nodes(
    changes: list[tuple[int, dict[FeatureName, tuple[int, int]] | None]],
) -> None:
    """Changed one by one or built at once, nodes and classes are the same; no class is empty."""
    image = NodesImage.of(())
    for node_id, ranges in changes:
        key = NodeKey(Role.BROKER, NodeId(node_id))
        change = None if ranges is None else node(node_id, intern_capabilities(ranges))
        image = image.with_changes({key: change})
    assert image == NodesImage.of(image.nodes.values())
    assert all(len(members) for members in image.classes.values())
    assert sum(len(members) for members in image.classes.values()) == len(image)


@given(*[st.dictionaries(st.integers(0, 5), some.ranges, max_size=5)] * 2)
def test_a_difference_turns_one_map_into_the_other(
    ranges_before: dict[int, dict[FeatureName, tuple[int, int]]],
    ranges_after: dict[int, dict[FeatureName, tuple[int, int]]],
) -> None:
    """It has the differences, and nothing else."""
    before, after = (
        NodesImage.of(node(i, intern_capabilities(ranges)) for i, ranges in nodes.items())
        for nodes in (ranges_before, ranges_after)
    )
    difference = after.difference(before)
    assert before.with_changes(difference) == after
    assert all(before.nodes.get(key) != value for key, value in difference.items())
