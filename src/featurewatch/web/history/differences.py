"""The differences between two states of a cluster, with names for people. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from featurewatch.controller.levels import finalized_name
from featurewatch.controller.software import software_name
from featurewatch.streams.outputs import CapabilityClass, Snapshot
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, Role
from featurewatch.tables.image.nodes import intern_capabilities

_Nodes = dict[tuple[Role, NodeId], tuple[CapabilityClass, bool]]


def differences(before: Snapshot, after: Snapshot) -> dict[str, Any]:
    """The differences between two revisions, and what is equal.

    A level is 0 where it is not finalized, and its name "off". Nodes that changed in the same way
    are one row; ``before`` or ``after`` is None where they were not registered.
    """
    pairs = [
        (name, before.finalized.get(name), after.finalized.get(name))
        for name in sorted({*before.finalized, *after.finalized})
    ]
    rows = [*_node_rows(before, after)]
    return {
        "cluster": after.cluster,
        "before": revision_row(before),
        "after": revision_row(after),
        "levels": [_level(*pair) for pair in pairs if pair[1] != pair[2]],
        "nodes": [row for row in rows if row["before"] != row["after"]],
        "unchanged_levels": [_level(*pair) for pair in pairs if pair[1] == pair[2]],
        "unchanged_nodes": [row for row in rows if row["before"] == row["after"]],
    }


def revision_row(snapshot: Snapshot) -> dict[str, Any]:
    """A revision as a row of a list: without its classes of nodes."""
    return {
        "revision": snapshot.revision,
        "epoch": snapshot.epoch,
        "at_ms": snapshot.at_ms,
        "authority": snapshot.authority,
        "digest": snapshot.digest,
        "leader_id": snapshot.leader_id,
        "provenance": snapshot.provenance,
        "finalized": snapshot.finalized,
        "nodes": len(_nodes(snapshot)),
        "incompatible": len({(item.role, item.node_id) for item in snapshot.incompatible}),
    }


def _level(
    feature: FeatureName, before: FeatureLevel | None, after: FeatureLevel | None
) -> dict[str, Any]:
    return {
        "feature": feature,
        "before": before or 0,
        "after": after or 0,
        "before_name": finalized_name(feature, before),
        "after_name": finalized_name(feature, after),
    }


def _node_rows(before: Snapshot, after: Snapshot) -> Iterator[dict[str, Any]]:
    """Rows of the nodes by role and by what they were and are."""
    old, new = _nodes(before), _nodes(after)
    groups: dict[tuple[Any, ...], tuple[dict[str, Any], list[NodeId]]] = {}
    for key in sorted({*old, *new}):
        old_row, new_row = _node_row(old, key), _node_row(new, key)
        group_key = key[0], str(old_row), str(new_row)
        row = {"role": key[0], "before": old_row, "after": new_row}
        groups.setdefault(group_key, (row, []))[1].append(key[1])
    for row, nodes in groups.values():
        yield {**row, "nodes": nodes}


def _nodes(snapshot: Snapshot) -> _Nodes:
    return {
        (item.role, node): (item, node in item.fenced)
        for item in snapshot.classes
        for node in item.nodes
    }


def _node_row(nodes: _Nodes, key: tuple[Role, NodeId]) -> Mapping[str, Any] | None:
    if key not in nodes:
        return None
    item, is_fenced = nodes[key]
    software = software_name(intern_capabilities(item.ranges, complete=item.complete))
    return {"software": software, "ranges": item.ranges, "fenced": is_fenced}
