"""Converts an image to rows of a table and back; the rows persist it across restarts.

The *order* of the rows keeps an image consistent. The rows of one event start with the nodes; the
cluster's own row, which holds the log offset, comes after them. Whichever prefix of the rows
survives a crash, the offset never covers more than the rows hold, and the event is applied again.
Only rows that the cluster's row has made void are deleted after it: each row of a resync has the
serial number of the resync, and counts only while that resync is in progress.

A row of nodes is a page of up to `PAGE` nodes with adjacent ids: one changed node costs one small
row, and ten thousand nodes are restored in a second.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson

from featurewatch.common.json_bytes import json_bytes
from featurewatch.streams.topics import Topic
from featurewatch.streams.types import ClusterId, NodeKey, Role
from featurewatch.tables.image.answers import AnswersImage
from featurewatch.tables.image.cluster import ClusterDelta, ClusterImage
from featurewatch.tables.image.log import Resync
from featurewatch.tables.image.nodes import Node, NodeChanges, NodesImage
from featurewatch.tables.image.zookeeper import ZnodeResync

PAGE: Final = 16
"""Nodes per row. Measured: fewer make recovery slower, more make a single change slower."""

Row = tuple[str, bytes | None]
"""A key and its value; None deletes the row."""

AnyResync = Resync | ZnodeResync | None
"""A resync of the log or of ZooKeeper (None: none is in progress)."""


class _Family(NamedTuple):
    """A family of rows of nodes: its nodes, what changed in them, and the resync they belong to."""

    nodes: Callable[[ClusterImage], NodesImage]
    changes: Callable[[ClusterDelta], NodeChanges]
    resync: Callable[[ClusterImage], AnyResync] = lambda _image: None


_FAMILIES: Final[Mapping[str, _Family]] = {
    "nodes": _Family(lambda image: image.nodes, lambda delta: delta.nodes),
    "answers": _Family(lambda image: image.answers.nodes, lambda delta: delta.answers.nodes),
    "resync": _Family(
        lambda image: image.log.resync_nodes,
        lambda delta: delta.log.resync_nodes,
        lambda image: image.log.resync,
    ),
    "znodes": _Family(lambda image: image.zookeeper.nodes, lambda delta: delta.zookeeper.nodes),
    "znode_resync": _Family(
        lambda image: image.zookeeper.resync_nodes,
        lambda delta: delta.zookeeper.resync_nodes,
        lambda image: image.zookeeper.resync,
    ),
}

IMAGE_ROWS: Final = frozenset({"cluster", *_FAMILIES})
"""The families of rows that an image has."""


TABLE: Final = "image"
"""The name of the table that the rows are in."""


def changelog_topic(app_id: str) -> str:
    """The full name of the table's changelog topic."""
    return f"{app_id}-{TABLE}-changelog"


class ChangelogTopic(Topic):
    """The rows of the workers' states; their topic is named by the workers' group."""

    def name(self, prefix: str = "") -> str:
        """The full name under a prefix."""
        return changelog_topic(f"{prefix}-worker")


WORKER_ROWS: Final = ChangelogTopic("image-changelog", "what the workers know, as rows")


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
    rows: list[Row] = []
    for name, family in _FAMILIES.items():
        if keys := family.changes(delta):
            rows.extend(_pages(after, name, family, keys))
    rows.append((row_key(after.cluster, "cluster"), json_bytes(after.to_row())))
    for name, family in _FAMILIES.items():
        if old := family.resync(before):
            rows.extend(_void_pages(after, name, family, old, family.changes(delta)))
    return rows


def image_of_rows(cluster: ClusterId, rows: Mapping[str, bytes]) -> ClusterImage:
    """The image that rows hold; ``rows`` maps names, as `cluster_of` gives them, to values.

    Without the cluster's own row the image has nodes and answers only.
    """
    cluster_row = orjson.loads(rows["cluster"]) if "cluster" in rows else None
    resyncs = {
        "resync": cluster_row and cluster_row["log"]["resync"],
        "znode_resync": cluster_row and cluster_row["zookeeper"]["resync"],
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
        answers = AnswersImage(images["answers"])
        return ClusterImage(cluster, nodes=images["nodes"], answers=answers)
    return ClusterImage.from_row(cluster, cluster_row, images)


def _void_pages(
    after: ClusterImage,
    name: str,
    family: _Family,
    old: Resync | ZnodeResync,
    written: Iterable[NodeKey],
) -> Iterator[Row]:
    """Deletes the pages of a resync that ended or was replaced by another one."""
    if _serial(after, family) == old.serial:
        return
    rewritten = {(key.role, key.node_id // PAGE) for key in written}
    for role, page in dict.fromkeys((key.role, key.node_id // PAGE) for key in old.nodes.nodes):
        if (role, page) not in rewritten:
            yield row_key(after.cluster, f"{name}/{role}/{page}"), None


def _pages(
    image: ClusterImage, name: str, family: _Family, keys: Iterable[NodeKey]
) -> Iterator[Row]:
    members = family.nodes(image)
    for role, page in dict.fromkeys((key.role, key.node_id // PAGE) for key in keys):
        page_nodes = [members.get(key) for key in keys_of_page(role, page)]
        node_rows = [node.to_row() for node in page_nodes if node is not None]
        key = row_key(image.cluster, f"{name}/{role}/{page}")
        yield key, json_bytes((_serial(image, family), node_rows)) if node_rows else None


def _serial(image: ClusterImage, family: _Family) -> int | None:
    """The serial number of the resync that a family of rows belongs to (None: to no resync)."""
    resync = family.resync(image)
    return None if resync is None else resync.serial
