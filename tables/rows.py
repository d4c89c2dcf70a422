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
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

import orjson
from immutables import Map

from featurewatch.streams.events import FeatureView, SourceState, SourceStatus
from featurewatch.streams.types import ClusterId, NodeKey, Role
from featurewatch.tables.image.cluster import (
    Authority,
    ClusterDelta,
    ClusterImage,
    MessagePosition,
    Quorum,
    Resync,
    UnreadableRecords,
)
from featurewatch.tables.image.features import FeaturesImage
from featurewatch.tables.image.nodes import (
    NO_NODES,
    Capabilities,
    Node,
    NodesImage,
    intern_capabilities,
)
from featurewatch.tables.image.provenance import (
    AnswerProvenance,
    LogProvenance,
    Provenance,
    ZnodeProvenance,
)
from featurewatch.tables.image.zookeeper import ZnodeResync
from featurewatch.tables.zookeeper_rows import (
    resync_fields,
    resync_of,
    zookeeper_fields,
    zookeeper_of,
)

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
    rows.append((row_key(after.cluster, "cluster"), orjson.dumps(_cluster(after))))
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
                nodes[family].extend(_nodes(name, members))
    images = {family: NodesImage.of(found) for family, found in nodes.items()}
    if head is None:
        return ClusterImage(cluster, nodes=images["nodes"], answers=images["answers"])
    return _image(cluster, head, images)


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
        members = [_packed(node) for node in found if node is not None]
        key = row_key(image.cluster, f"{family}/{role}/{page}")
        yield key, orjson.dumps((_tag(image, family), members)) if members else None


def _tag(image: ClusterImage, family: str) -> int | None:
    """Which reading anew nodes belong to: those of one that came to nothing count no more."""
    anew: Mapping[str, AnyResync] = {"pending": image.resync, "reading": image.reading}
    found = anew.get(family)
    return None if found is None else found.serial


@lru_cache(maxsize=4096)
def _ranges_json(capabilities: Capabilities) -> orjson.Fragment:
    return orjson.Fragment(orjson.dumps(capabilities.ranges, default=list))


def _packed(node: Node) -> tuple[Any, ...]:
    known = node.capabilities
    return (
        node.key.node_id,
        _ranges_json(known),
        known.complete,
        node.incarnation,
        node.epoch,
        node.fenced,
        node.shutting_down,
        node.migrating,
        node.silent,
        _provenance_fields(node.provenance),
    )


def _nodes(name: str, members: list[list[Any]]) -> Iterator[Node]:
    role = Role(name.split("/")[1])
    for node_id, ranges, complete, *rest, provenance in members:
        bounds = {name: (low, high) for name, (low, high) in ranges.items()}
        known = intern_capabilities(bounds, complete=complete)
        incarnation, epoch, fenced, shutting_down, migrating, silent = rest
        yield Node(
            NodeKey(role, node_id),
            known,
            incarnation,
            epoch,
            fenced,
            shutting_down,
            migrating,
            silent,
            _provenance(provenance),
        )


def _provenance_fields(provenance: Provenance) -> tuple[Any, ...]:
    if isinstance(provenance, LogProvenance):
        return provenance.offset, provenance.leader_epoch, provenance.append_ms
    if isinstance(provenance, ZnodeProvenance):
        at = provenance
        return at.path, at.czxid, at.zxid, at.version, at.seen_ms
    return provenance.role, provenance.node_id, provenance.epoch, provenance.seen_ms


def _provenance(fields: list[Any]) -> Provenance:
    if len(fields) == 3:
        return LogProvenance(*fields)
    if len(fields) == 5:
        return ZnodeProvenance(*fields)
    return AnswerProvenance(Role(fields[0]), *fields[1:])


def _cluster(image: ClusterImage) -> dict[str, Any]:
    resync = image.resync
    return {
        "authority": image.authority,
        "levels": dict(image.features.levels.items()),
        "epoch": image.features.epoch,
        "revision": image.features.revision,
        "provenance": _provenance_fields(image.features.provenance),
        "log": _provenance_fields(image.log),
        "log_high": image.log_high,
        "quorum": image.quorum,
        "migration": image.migration,
        "sources": list(image.sources.values()),
        "disagreements": dict(image.disagreements.items()),
        "unreadable": dict(image.unreadable.items()),
        "gap": image.gap,
        "caught_up": sorted(image.caught_up),
        "read": {topic: (last.offset, last.time_ms) for topic, last in image.read.items()},
        "resyncs": image.resyncs,
        "resync": resync
        and {
            "serial": resync.serial,
            "end_offset": resync.end_offset,
            "leader_epoch": resync.leader_epoch,
            "next_index": resync.next_index,
            "levels": dict(resync.levels.items()),
            "unreadable": dict(resync.unreadable.items()),
        },
        "zookeeper": zookeeper_fields(image.zookeeper),
        "reading": resync_fields(image.reading),
    }


def _image(
    cluster: ClusterId, head: dict[str, Any], images: Mapping[str, NodesImage]
) -> ClusterImage:
    log = _provenance(head["log"])
    assert isinstance(log, LogProvenance)  # noqa: S101 - three fields make one
    quorum = head["quorum"]
    resync = head["resync"]
    # Rows that an older release wrote have nothing of ZooKeeper; and brokers beside a log, and
    # answers beside either, count from the row on that says that there is one.
    authority = Authority(head["authority"])
    znodes = images["znodes"] if authority is Authority.LOG else NO_NODES
    answers = NO_NODES if authority is Authority.ANSWERS else images["answers"]
    image = ClusterImage(
        cluster=cluster,
        authority=authority,
        features=FeaturesImage(
            Map(head["levels"]), head["epoch"], head["revision"], _provenance(head["provenance"])
        ),
        nodes=images["nodes"],
        log=log,
        log_high=head["log_high"],
        quorum=Quorum(quorum["leader_id"], quorum["leader_epoch"], tuple(quorum["voters"])),
        migration=head["migration"],
        sources=Map({item["source"]: _status(item) for item in head["sources"]}),
        answers=answers,
        disagreements=Map(
            {
                feature: tuple(FeatureView(view["level"], tuple(view["nodes"])) for view in views)
                for feature, views in head["disagreements"].items()
            }
        ),
        unreadable=_unreadable(head["unreadable"]),
        gap=head["gap"],
        caught_up=frozenset(head["caught_up"]),
        read=Map({topic: MessagePosition(topic, *last) for topic, last in head["read"].items()}),
        resyncs=head["resyncs"],
        resync=resync
        and Resync(
            resync["serial"],
            resync["end_offset"],
            resync["leader_epoch"],
            resync["next_index"],
            Map(resync["levels"]),
            images["pending"],
            _unreadable(resync["unreadable"]),
        ),
        znodes=znodes,
        zookeeper=zookeeper_of(head.get("zookeeper")),
        reading=resync_of(head.get("reading"), images["reading"]),
    )
    ids = (key.node_id for key in znodes.nodes if image.is_unregistered(key))
    return replace(image, unregistered=Map(dict.fromkeys(ids)))


def _status(item: dict[str, Any]) -> SourceStatus:
    return SourceStatus(**{**item, "state": SourceState(item["state"])})


def _unreadable(fields: dict[str, Any]) -> Map[str, UnreadableRecords]:
    return Map({kind: UnreadableRecords(**found) for kind, found in fields.items()})
