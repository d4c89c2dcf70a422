"""A cluster's levels as each node reports them, compared with the log. Pure."""

from collections.abc import Iterator
from typing import Any

from featurewatch.controller.levels import level_name
from featurewatch.controller.software import software_name
from featurewatch.monitor.readiness.divergence import (
    MAX_FEATURES_NAMED,
    disagreeing_views,
    divergences,
    has_applied_levels,
)
from featurewatch.streams.types import NodeKey
from featurewatch.tables.image.cluster import ClusterImage
from featurewatch.tables.image.provenance import AnswerProvenance


def node_views(image: ClusterImage, now_ms: int) -> list[dict[str, Any]]:
    """A row for each node, those that differ first.

    ``is_current`` is yes, no or unknown: whether the node has applied the newest levels.
    ``levels`` are those that differ between nodes, as the node reports them, of the first
    `MAX_FEATURES_NAMED` such features. ``epoch`` is that of its ApiVersions response, or -1.
    """
    differing: dict[NodeKey, list[str]] = {}
    for divergence in divergences(image, now_ms):
        key = NodeKey(divergence.role, divergence.node_id)
        differing.setdefault(key, []).append(divergence.difference)
    levels = _levels_by_node(image)
    keys = {*image.nodes.nodes, *image.answers.nodes.nodes, *differing}
    rows = [_row(image, key, differing.get(key, []), levels, now_ms) for key in keys]
    return sorted(rows, key=view_order)


def view_order(row: dict[str, Any]) -> tuple[int, int, str, int]:
    """The key by which rows are sorted: those that differ first, then those that are unknown."""
    differs = bool(row["differences"]) or bool(row["levels"])
    rank = ("no", "unknown", "yes").index(row["is_current"])
    return int(not differs), rank, row["role"], row["node_id"]


def _row(
    image: ClusterImage,
    key: NodeKey,
    differences: list[str],
    levels: dict[str, dict[str, str]],
    now_ms: int,
) -> dict[str, Any]:
    answer = image.answers.nodes.get(key)
    node = answer or image.nodes.get(key)
    provenance = node.provenance if node else None
    epoch, seen_ms = (
        (provenance.epoch, provenance.seen_ms)
        if isinstance(provenance, AnswerProvenance)
        else (-1, -1)
    )
    return {
        "role": str(key.role),
        "node_id": key.node_id,
        "software": software_name(node.capabilities) if node else "unknown",
        "epoch": epoch,
        "seen_ms": seen_ms,
        "silent": bool(node and node.silent),
        "is_current": str(has_applied_levels(image, key, now_ms)),
        "levels": levels.get(str(key), {}),
        "differences": differences,
    }


def _levels_by_node(image: ClusterImage) -> dict[str, dict[str, str]]:
    """The levels on which nodes disagree, by node."""
    found: dict[str, dict[str, str]] = {}
    for node, feature, name in _disagreeing_levels(image):
        found.setdefault(node, {})[feature] = name
    return found


def _disagreeing_levels(image: ClusterImage) -> Iterator[tuple[str, str, str]]:
    for feature, views in disagreeing_views(image)[:MAX_FEATURES_NAMED]:
        for view in views:
            name = level_name(feature, view.level)
            for node in view.nodes:
                yield node, feature, name
