"""The fold of what stands on ``featurewatch.zookeeper``.

What ZooKeeper knows counts as the cluster's own word from the first whole reading on, unless a
metadata log is followed: then its brokers are kept beside the log's (`ClusterImage.znodes`).

A change tells the transaction up to which the source has read (``zxid``), and that does not go
back: one that is behind was taken in before. Only a whole reading may lead back, since ZooKeeper
itself may have been put back.
"""

import re
from dataclasses import replace
from typing import Final

from immutables import Map

from featurewatch.streams.events import ZnodeChange, ZnodeSnapshot
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.streams.znodes import BrokerZnode, UnreadableZnode, Znode
from featurewatch.tables.fold.znode_features import (
    features_from_znode,
    max_versions,
    with_missed_versions,
)
from featurewatch.tables.image.cluster import (
    NOTHING,
    SKIPPED,
    Authority,
    ClusterDelta,
    ClusterImage,
)
from featurewatch.tables.image.features import level_changes
from featurewatch.tables.image.log import UnreadableRecords
from featurewatch.tables.image.nodes import Node, NodesImage, intern_capabilities
from featurewatch.tables.image.provenance import ZnodeProvenance, znode_provenance
from featurewatch.tables.image.zookeeper import (
    FEATURES_PATHS,
    HELD_PATHS,
    ZnodeIssue,
    ZnodeResync,
    ZookeeperImage,
    issue_of,
)

Folded = tuple[ClusterImage, ClusterDelta]
Changes = dict[NodeKey, Node | None]

OUT_OF_ORDER: Final = "ZNODES"
"""The kind under which a reading with a part missing is counted as unreadable."""

_BROKER: Final = re.compile(r"/brokers/ids/(\d{1,10})", re.ASCII)


def fold_znode(image: ClusterImage, event: ZnodeChange) -> Folded:
    """Takes in one observed change of one znode.

    Before the first whole reading nothing is known of which it could be a change.
    """
    known = image.zookeeper
    if not known.reading or event.zxid < known.zxid:
        return image, SKIPPED
    nodes, changes = _with_broker(image.brokers, event)
    zookeeper = replace(
        known,
        held=_with_held(known.held, event),
        issues=_with_remark(known.issues, event),
        zxid=event.zxid,
    )
    zookeeper = replace(zookeeper, max_versions=max_versions(zookeeper))
    if nodes is image.brokers and zookeeper == known:
        return image, SKIPPED
    if image.authority is Authority.LOG:
        return replace(image, znodes=nodes, zookeeper=zookeeper), ClusterDelta(znodes=changes)
    after = _under_zookeeper(image, nodes, zookeeper, event)
    levels = level_changes(image.features, after.features)
    return after, ClusterDelta(nodes=changes, levels=levels)


def fold_znode_snapshot(image: ClusterImage, event: ZnodeSnapshot) -> Folded:
    """Takes in a part of all that is watched; the last one makes it what is known.

    A reading that was begun and not ended is replaced by the next. A repeated part changes nothing,
    and one that does not follow the part before is counted as unreadable.
    """
    if event.reading == image.zookeeper.reading:
        return image, SKIPPED
    reading = image.reading
    if event.index == 0 and (reading is None or reading.name != event.reading):
        serial = image.resyncs + 1
        reading = ZnodeResync(serial, event.reading)
        image = replace(image, resyncs=serial, reading=reading)
    if reading is None or reading.name != event.reading or event.index > reading.next_index:
        return _out_of_order(image, event), NOTHING
    if event.index < reading.next_index:
        return image, SKIPPED
    reading, changes = _gathered(reading, image.brokers, event)
    if not event.last:
        return replace(image, reading=reading), ClusterDelta(reading=changes)
    return _whole(image, reading, event)


def _gathered(
    reading: ZnodeResync, known: NodesImage, event: ZnodeSnapshot
) -> tuple[ZnodeResync, Changes]:
    changes: Changes = {}
    held, remarks = reading.held.mutate(), reading.issues.mutate()
    for znode in event.znodes:
        key = _broker_key(znode.path)
        if key is not None:
            changes[key] = _node(key, znode, known.get(key), event.seen_ms)
        elif znode.path in HELD_PATHS:
            held[znode.path] = znode
        remark = issue_of(znode, missed=0)
        if remark is not None:
            remarks[znode.path] = remark
    after = replace(
        reading,
        next_index=event.index + 1,
        nodes=reading.nodes.with_changes(changes),
        held=held.finish(),
        issues=remarks.finish(),
    )
    return after, changes


def _whole(image: ClusterImage, reading: ZnodeResync, event: ZnodeSnapshot) -> Folded:
    """Makes what was read anew the known; the delta holds what really differs."""
    known = image.zookeeper
    zookeeper = replace(
        known,
        held=reading.held,
        issues=with_missed_versions(known, reading),
        reading=reading.name,
        zxid=event.zxid,
    )
    zookeeper = replace(zookeeper, max_versions=max_versions(zookeeper))
    unreadable = image.unreadable
    if OUT_OF_ORDER in unreadable:
        unreadable = unreadable.delete(OUT_OF_ORDER)
    image = replace(image, reading=None, unreadable=unreadable)
    if image.authority is Authority.LOG:
        after = replace(image, znodes=reading.nodes, zookeeper=zookeeper)
        return after, ClusterDelta(znodes=reading.nodes.difference(image.znodes))
    after = replace(image, authority=Authority.ZOOKEEPER)
    after = _under_zookeeper(after, reading.nodes, zookeeper, event)
    delta = ClusterDelta(
        nodes=after.nodes.difference(image.nodes),
        levels=level_changes(image.features, after.features),
        from_snapshot=True,
    )
    return after, delta


def _under_zookeeper(
    image: ClusterImage,
    nodes: NodesImage,
    zookeeper: ZookeeperImage,
    event: ZnodeChange | ZnodeSnapshot,
) -> ClusterImage:
    """The image where ZooKeeper is the authority: its brokers are the nodes, its levels count."""
    features = features_from_znode(image.features, zookeeper, event)
    znode = zookeeper.features
    if zookeeper.disabled is not None:
        erased = image.features.levels or zookeeper.erased
        zookeeper = replace(zookeeper, erased=erased)
    elif zookeeper.erased and not (znode and isinstance(znode.content, UnreadableZnode)):
        zookeeper = replace(zookeeper, erased=Map())
    return replace(image, nodes=nodes, features=features, zookeeper=zookeeper)


def _with_broker(nodes: NodesImage, event: ZnodeChange) -> tuple[NodesImage, Changes]:
    key = _broker_key(event.path)
    if key is None:
        return nodes, {}
    before = nodes.get(key)
    if event.znode is None:
        if before is None:
            return nodes, {}
        changes: Changes = {key: None}
    else:
        node = _node(key, event.znode, before, event.seen_ms)
        if node is before or _is_behind(event.znode, before):
            return nodes, {}
        changes = {key: node}
    return nodes.with_changes(changes), changes


def _with_held(held: Map[str, Znode], event: ZnodeChange) -> Map[str, Znode]:
    if event.path not in HELD_PATHS:
        return held
    before = held.get(event.path)
    if event.znode is None:
        return held if before is None else held.delete(event.path)
    if before is not None and _place(event.znode) < _place(before):
        return held
    return held.set(event.path, event.znode)


def _with_remark(remarks: Map[str, ZnodeIssue], event: ZnodeChange) -> Map[str, ZnodeIssue]:
    """Versions that nobody saw are remarkable of the features, since levels may hide in them.

    Of other znodes they are the course of things: a starting broker writes its own twice, and a
    KRaft controller the migration's with every write (KIP-866). The topic has their numbers.
    """
    missed = event.missed if event.path in FEATURES_PATHS else 0
    remark = None if event.znode is None else issue_of(event.znode, missed)
    if remark is not None:
        return remarks.set(event.path, remark)
    return remarks.delete(event.path) if event.path in remarks else remarks


def _node(key: NodeKey, znode: Znode, before: Node | None, seen_ms: int) -> Node:
    """A live broker; the known one where the znode is the same.

    Of one whose znode cannot be read it is not known what it supports, unless an earlier version of
    this life of it told.
    """
    provenance = znode_provenance(znode, seen_ms)
    content = znode.content
    if isinstance(content, BrokerZnode):
        known = intern_capabilities(content.features)
    elif before is not None and before.epoch == znode.czxid:
        known = before.capabilities
    else:
        known = intern_capabilities({}, complete=False)
    # What a ZooKeeper that was put back numbers again need not hold the same.
    same = before is not None and provenance.same_data(before.provenance)
    if before is not None and same and known is before.capabilities:
        return before
    return Node(
        key=key,
        capabilities=known,
        incarnation=f"{znode.czxid:#x}",
        epoch=znode.czxid,
        fenced=False,
        shutting_down=False,
        migrating=False,
        silent=False,
        provenance=provenance,
    )


def _out_of_order(image: ClusterImage, event: ZnodeSnapshot) -> ClusterImage:
    reason = f"part {event.index} of reading {event.reading} does not follow the one before"
    found = UnreadableRecords(1, f"reading {event.reading}", reason)
    return replace(image, unreadable=image.unreadable.set(OUT_OF_ORDER, found))


def _broker_key(path: str) -> NodeKey | None:
    found = _BROKER.fullmatch(path)
    return NodeKey(Role.BROKER, NodeId(int(found[1]))) if found else None


def _place(znode: Znode) -> tuple[int, int]:
    return znode.czxid, znode.version


def _is_behind(znode: Znode, node: Node | None) -> bool:
    last = node and node.provenance
    return isinstance(last, ZnodeProvenance) and _place(znode) < (last.czxid, last.version)
