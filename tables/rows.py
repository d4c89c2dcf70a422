"""Converts an image to rows of a table and back; the rows persist it across restarts.

The *order* of the rows keeps an image consistent. The rows of one event start with the nodes; the
cluster's own row, which holds the log offset, comes after them. So whatever prefix of the rows
survives a crash, the offset never covers more than the rows hold, and the event is applied again.
Only rows that the cluster's row has made void are deleted after it: each row of a resync has the
serial number of the resync, and counts only while that resync goes on.

A row of nodes is a page of up to `PAGE` nodes with adjacent ids: one changed node costs one small
row, and ten thousand nodes are restored in a second.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from featurewatch.streams.types import ClusterId, NodeKey, Role
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage
from featurewatch.tables.image.log import Resync
from featurewatch.tables.image.nodes import NO_NODES, Node, NodesImage
from featurewatch.tables.image.zookeeper import ZnodeResync

PAGE: Final = 16
"""Nodes per row. Measured: fewer make recovery slower, more make a single change slower."""

Row = tuple[str, bytes | None]
"""A key and its value; None deletes the row."""

AnyResync = Resync | ZnodeResync | None
"""A resync of the log or of ZooKeeper (None: none goes on)."""

_NodesGetter = Callable[[ClusterImage], NodesImage | None]
_FAMILIES: Final[Mapping[str, _NodesGetter]] = {
    "nodes": lambda image: image.nodes,
    "answers": lambda image: image.answers,
    "pending": lambda image: None if image.resync is None else image.resync.nodes,
    "znodes": lambda image: image.znodes,
    "reading": lambda image: None if image.reading is None else image.reading.nodes,
}


def row_key(cluster: ClusterId, name: str) -> str:
    """The key of a row; `cluster_of` reads the cluster back from it."""
    return f"{cluster.replace('%', '%25').replace('|', '%7C')}|{name}"


def cluster_of(key: str) -> tuple[ClusterId, str]:
    """The cluster of a row's key, and the row's name; the inverse of `row_key`."""
    cluster, _, name = key.partition("|")
    return ClusterId(cluster.replace("%7C", "|").replace("%25", "%")), name


def keys_of_page(role: Role, page: int) -> list[NodeKey]:
    """The keys that share a row, by id."""
    ids: Iterable[Any] = range(
        page * PAGE, (page + 1) * PAGE
    )  # `NodeId(...)` would cost a call per id
    return [NodeKey(role, node_id) for node_id in ids]


def rows_of_change(before: ClusterImage, after: ClusterImage, delta: ClusterDelta) -> list[Row]:
    """The rows that an event changes, in the order in which they must be written.

    ``delta`` must be what turns ``before`` into ``after``.
    """
    if after is before:
        return []
    changed_keys = {
        "nodes": delta.nodes,
        "answers": delta.answers,
        "pending": delta.pending,
        "znodes": delta.znodes,
        "reading": delta.reading,
    }
    rows: list[Row] = []
    for family, keys in changed_keys.items():
        if keys:
            rows.extend(_pages(after, family, _FAMILIES[family](after), keys))
    rows.append((row_key(after.cluster, "cluster"), orjson.dumps(after.to_row())))
    rows.extend(_void_pages(after, "pending", before.resync, after.resync, delta.pending))
    rows.extend(_void_pages(after, "reading", before.reading, after.reading, delta.reading))
    return rows


def image_of_rows(cluster: ClusterId, rows: Mapping[str, bytes]) -> ClusterImage:
    """The image that rows hold; ``rows`` maps names, as `cluster_of` gives them, to values.

    Without the cluster's own row the image has nodes and answers only.
    """
    cluster_row = orjson.loads(rows["cluster"]) if "cluster" in rows else None
    resyncs = {
        "pending": cluster_row and cluster_row["resync"],
        "reading": cluster_row and cluster_row.get("reading"),
    }
    serials = {family: resync["serial"] for family, resync in resyncs.items() if resync}
    nodes: dict[str, list[Node]] = {family: [] for family in _FAMILIES}
    for name, value in rows.items():
        family = name.partition("/")[0]
        if family in nodes:
            serial, members = orjson.loads(value)
            if serial == serials.get(family):
                role = Role(name.split("/")[1])
                nodes[family].extend(Node.from_row(role, member) for member in members)
    images = {family: NodesImage.of(members) for family, members in nodes.items()}
    if cluster_row is None:
        return ClusterImage(cluster, nodes=images["nodes"], answers=images["answers"])
    return ClusterImage.from_row(cluster, cluster_row, images)


def _void_pages(
    after: ClusterImage, family: str, old: AnyResync, new: AnyResync, written: Iterable[NodeKey]
) -> Iterator[Row]:
    """Deletes the pages of a resync that ended or was replaced by another one."""
    if old is None or (new is not None and new.serial == old.serial):
        return
    rewritten = {(key.role, key.node_id // PAGE) for key in written}
    for role, page in dict.fromkeys((key.role, key.node_id // PAGE) for key in old.nodes.nodes):
        if (role, page) not in rewritten:
            yield row_key(after.cluster, f"{family}/{role}/{page}"), None


def _pages(
    image: ClusterImage, family: str, nodes: NodesImage | None, keys: Iterable[NodeKey]
) -> Iterator[Row]:
    members = NO_NODES if nodes is None else nodes
    for role, page in dict.fromkeys((key.role, key.node_id // PAGE) for key in keys):
        page_nodes = [members.get(key) for key in keys_of_page(role, page)]
        node_rows = [node.to_row() for node in page_nodes if node is not None]
        key = row_key(image.cluster, f"{family}/{role}/{page}")
        yield key, orjson.dumps((_serial(image, family), node_rows)) if node_rows else None


def _serial(image: ClusterImage, family: str) -> int | None:
    """The serial number of the resync that a family of rows belongs to (None: to no resync)."""
    resyncs: Mapping[str, AnyResync] = {"pending": image.resync, "reading": image.reading}
    resync = resyncs.get(family)
    return None if resync is None else resync.serial
