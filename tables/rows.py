"""An image as rows of a table, and back: the form in which it outlives the process.

Rows are written so that their *order* keeps an image whole. The rows of one event come nodes first
and the cluster's own row, which holds the place in the log, after them; so whatever prefix of the
rows survives a crash, the place never claims more than the rows hold, and the event is taken in
again. Only rows that the cluster's row has made void are deleted after it: each row of a reading
anew has the serial number of its reading, and counts only while that one goes on.

A row of nodes holds `PAGE` neighbours by id: one changed node costs one small row, and ten thousand
nodes are read back in a second.
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
"""Nodes in a row. Measured: below, recovery grows; above, a single change does."""

Row = tuple[str, bytes | None]
"""A key and its value; None deletes the row."""

AnyResync = Resync | ZnodeResync | None
"""What is being read anew, of the log or of ZooKeeper."""

_Pick = Callable[[ClusterImage], NodesImage | None]
_FAMILIES: Final[Mapping[str, _Pick]] = {
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
    """The cluster of a row's key, and the row's name."""
    cluster, _, name = key.partition("|")
    return ClusterId(cluster.replace("%7C", "|").replace("%25", "%")), name


def keys_of_page(role: Role, page: int) -> list[NodeKey]:
    """The keys that share a row, by id."""
    ids: Iterable[Any] = range(page * PAGE, (page + 1) * PAGE)  # `NodeId` costs a call for each
    return [NodeKey(role, node_id) for node_id in ids]


def rows_of_change(before: ClusterImage, after: ClusterImage, delta: ClusterDelta) -> list[Row]:
    """The rows that an event changes, in the order in which they must be written."""
    if after is before:
        return []
    touched = {
        "nodes": delta.nodes,
        "answers": delta.answers,
        "pending": delta.pending,
        "znodes": delta.znodes,
        "reading": delta.reading,
    }
    rows: list[Row] = []
    for family, keys in touched.items():
        if keys:
            rows.extend(_pages(after, family, _FAMILIES[family](after), keys))
    rows.append((row_key(after.cluster, "cluster"), orjson.dumps(after.to_row())))
    rows.extend(_void_pages(after, "pending", before.resync, after.resync, delta.pending))
    rows.extend(_void_pages(after, "reading", before.reading, after.reading, delta.reading))
    return rows


def image_of_rows(cluster: ClusterId, rows: Mapping[str, bytes]) -> ClusterImage:
    """The image that rows hold; ``rows`` maps names, as `cluster_of` gives them, to values."""
    head = orjson.loads(rows["cluster"]) if "cluster" in rows else None
    pending = {"pending": head and head["resync"], "reading": head and head.get("reading")}
    tags = {family: found["serial"] for family, found in pending.items() if found}
    nodes: dict[str, list[Node]] = {family: [] for family in _FAMILIES}
    for name, value in rows.items():
        family = name.partition("/")[0]
        if family in nodes:
            tag, members = orjson.loads(value)
            if tag == tags.get(family):
                role = Role(name.split("/")[1])
                nodes[family].extend(Node.from_row(role, member) for member in members)
    images = {family: NodesImage.of(found) for family, found in nodes.items()}
    if head is None:
        return ClusterImage(cluster, nodes=images["nodes"], answers=images["answers"])
    return ClusterImage.from_row(cluster, head, images)


def _void_pages(
    after: ClusterImage, family: str, old: AnyResync, new: AnyResync, written: Iterable[NodeKey]
) -> Iterator[Row]:
    """Deletes the pages of a reading anew that ended, or whose place another one took."""
    if old is None or (new is not None and new.serial == old.serial):
        return
    kept = {(key.role, key.node_id // PAGE) for key in written}
    for role, page in dict.fromkeys((key.role, key.node_id // PAGE) for key in old.nodes.nodes):
        if (role, page) not in kept:
            yield row_key(after.cluster, f"{family}/{role}/{page}"), None


def _pages(
    image: ClusterImage, family: str, nodes: NodesImage | None, keys: Iterable[NodeKey]
) -> Iterator[Row]:
    known = NO_NODES.nodes if nodes is None else nodes.nodes
    for role, page in dict.fromkeys((key.role, key.node_id // PAGE) for key in keys):
        found = [known.get(key) for key in keys_of_page(role, page)]
        members = [node.to_row() for node in found if node is not None]
        key = row_key(image.cluster, f"{family}/{role}/{page}")
        yield key, orjson.dumps((_tag(image, family), members)) if members else None


def _tag(image: ClusterImage, family: str) -> int | None:
    """Which reading anew nodes belong to: those of one that came to nothing count no more."""
    anew: Mapping[str, AnyResync] = {"pending": image.resync, "reading": image.reading}
    found = anew.get(family)
    return None if found is None else found.serial
