"""Applies the events of the topic ``featurewatch.zookeeper``.

ZooKeeper is the authority from its first complete snapshot on, unless a metadata log is followed:
then the brokers of ZooKeeper are kept beside those of the log (`ZookeeperImage.nodes`).

A change carries the transaction up to which the source has read (``zxid``), which never decreases:
a change with a lower one was applied before. Only a complete snapshot may have a lower one, since
ZooKeeper may have been restored from a backup.
"""

import re
from dataclasses import replace
from typing import Final

from immutables import Map

from featurewatch.streams.events import ZnodeChange, ZnodeSnapshot
from featurewatch.streams.topics import ZOOKEEPER
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.streams.znodes import BrokerZnode, FeaturesZnode, UnreadableZnode, Znode
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
from featurewatch.tables.image.limits import (
    MAX_ISSUES,
    MAX_NODES,
    BeyondLimitError,
    check_features,
    check_node,
)
from featurewatch.tables.image.nodes import CapabilityKey, Node, NodesImage, intern_capabilities
from featurewatch.tables.image.provenance import ZnodeProvenance, znode_provenance
from featurewatch.tables.image.sources import UnreadableRecords
from featurewatch.tables.image.zookeeper import (
    FEATURES_PATHS,
    ZNODE_PATHS,
    ZnodeIssue,
    ZnodeResync,
    ZookeeperDelta,
    ZookeeperImage,
    issue_of,
)

Folded = tuple[ClusterImage, ClusterDelta]
Changes = dict[NodeKey, Node | None]

OUT_OF_ORDER: Final = "ZNODES"
"""The kind under which a snapshot with a missing chunk is counted as unreadable."""

_BROKER: Final = re.compile(r"/brokers/ids/(\d{1,10})", re.ASCII)


def fold_znode(image: ClusterImage, event: ZnodeChange) -> Folded:
    """Applies one observed change of one znode.

    A change before the first complete snapshot is skipped.
    """
    before = image.zookeeper
    if not before.snapshot or event.zxid < before.zxid:
        return image, SKIPPED
    if event.znode is not None:
        event = replace(event, znode=_bounded(event.znode, image.brokers))
    nodes, changes = _with_broker(image.brokers, event)
    zookeeper = replace(
        before,
        znodes=_with_znode(before.znodes, event),
        issues=_with_issue(before.issues, event),
        zxid=event.zxid,
    )
    zookeeper = replace(zookeeper, max_versions=max_versions(zookeeper))
    if nodes is image.brokers and zookeeper == before:
        return image, SKIPPED
    if image.authority is Authority.LOG:
        zookeeper = replace(zookeeper, nodes=nodes)
        return replace(image, zookeeper=zookeeper), ClusterDelta(zookeeper=ZookeeperDelta(changes))
    after = _under_zookeeper(image, nodes, zookeeper, event)
    levels = level_changes(image.features, after.features)
    return after, ClusterDelta(nodes=changes, levels=levels)


def fold_znode_snapshot(image: ClusterImage, event: ZnodeSnapshot) -> Folded:
    """Applies one chunk of a snapshot of all watched znodes; the last chunk ends the resync.

    The next snapshot replaces one that did not end. A repeated chunk changes nothing, and a chunk
    that does not follow the previous one is counted as unreadable.
    """
    if event.resync == image.zookeeper.snapshot:
        return image, SKIPPED
    resync = image.zookeeper.resync
    if event.index == 0 and (resync is None or resync.name != event.resync):
        serial = image.resyncs + 1
        resync = ZnodeResync(serial, event.resync)
        zookeeper = replace(image.zookeeper, resync=resync)
        image = replace(image, resyncs=serial, zookeeper=zookeeper)
    if resync is None or resync.name != event.resync or event.index > resync.next_index:
        return _out_of_order(image, event), NOTHING
    if event.index < resync.next_index:
        return image, SKIPPED
    resync, changes = _continue_resync(resync, image.brokers, event)
    if not event.last:
        zookeeper = replace(image.zookeeper, resync=resync)
        delta = ZookeeperDelta(resync_nodes=changes)
        return replace(image, zookeeper=zookeeper), ClusterDelta(zookeeper=delta)
    return _end_resync(image, resync, event)


def _continue_resync(
    resync: ZnodeResync, brokers: NodesImage, event: ZnodeSnapshot
) -> tuple[ZnodeResync, Changes]:
    changes: Changes = {}
    nodes, znodes, issues = resync.nodes, resync.znodes.mutate(), resync.issues
    for read in event.znodes:
        znode = _bounded(read, nodes)
        key = _broker_key(znode.path)
        if key is not None and _has_place(nodes, key):
            changes[key] = _node(key, znode, brokers.get(key), event.seen_ms)
            nodes = nodes.with_changes({key: changes[key]})
        elif znode.path in ZNODE_PATHS:
            znodes[znode.path] = znode
        issue = issue_of(znode, missed=0)
        if issue is not None:
            issues = _set_issue(issues, znode.path, issue)
    after = replace(
        resync,
        next_index=event.index + 1,
        nodes=nodes,
        znodes=znodes.finish(),
        issues=issues,
    )
    return after, changes


def _end_resync(image: ClusterImage, resync: ZnodeResync, event: ZnodeSnapshot) -> Folded:
    """Replaces the znodes by those of the resync; the delta holds the real differences."""
    before = image.zookeeper
    zookeeper = replace(
        before,
        resync=None,
        znodes=resync.znodes,
        issues=with_missed_versions(before, resync),
        snapshot=resync.name,
        zxid=event.zxid,
    )
    zookeeper = replace(zookeeper, max_versions=max_versions(zookeeper))
    unreadable = image.sources.unreadable
    if OUT_OF_ORDER in unreadable:
        unreadable = unreadable.delete(OUT_OF_ORDER)
    sources = image.sources.with_unreadable(unreadable).without_lost(ZOOKEEPER.short_name)
    after = image.with_sources(sources)
    if image.authority is Authority.LOG:
        delta = ZookeeperDelta(resync.nodes.difference(before.nodes))
        after = replace(after, zookeeper=replace(zookeeper, nodes=resync.nodes))
        return after, ClusterDelta(zookeeper=delta)
    after = replace(after, authority=Authority.ZOOKEEPER)
    after = _under_zookeeper(after, resync.nodes, zookeeper, event)
    return after, ClusterDelta(
        nodes=after.nodes.difference(image.nodes),
        levels=level_changes(image.features, after.features),
        from_snapshot=True,
    )


def _under_zookeeper(
    image: ClusterImage,
    nodes: NodesImage,
    zookeeper: ZookeeperImage,
    event: ZnodeChange | ZnodeSnapshot,
) -> ClusterImage:
    """The image with ZooKeeper as the authority: its brokers are the nodes, and its levels
    count."""
    features = features_from_znode(image.features, zookeeper, event)
    znode = zookeeper.features
    if zookeeper.disabled is not None:
        deleted = image.features.levels or zookeeper.deleted
        zookeeper = replace(zookeeper, deleted=deleted)
    elif zookeeper.deleted and not (znode and isinstance(znode.content, UnreadableZnode)):
        zookeeper = replace(zookeeper, deleted=Map())
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
        if not _has_place(nodes, key):
            return nodes, {}
        node = _node(key, event.znode, before, event.seen_ms)
        if node is before or _is_behind(event.znode, before):
            return nodes, {}
        changes = {key: node}
    return nodes.with_changes(changes), changes


def _with_znode(znodes: Map[str, Znode], event: ZnodeChange) -> Map[str, Znode]:
    if event.path not in ZNODE_PATHS:
        return znodes
    before = znodes.get(event.path)
    if event.znode is None:
        return znodes if before is None else znodes.delete(event.path)
    if before is not None and _version_key(event.znode) < _version_key(before):
        return znodes
    return znodes.set(event.path, event.znode)


def _with_issue(issues: Map[str, ZnodeIssue], event: ZnodeChange) -> Map[str, ZnodeIssue]:
    """The issues after a change; missed versions are an issue of the features znodes only.

    A missed version of the features may have had other levels. For other znodes missed versions are
    normal: a starting broker writes its znode twice, and a KRaft controller writes the migration's
    with every write (KIP-866). The topic has their versions.
    """
    missed = event.missed if event.path in FEATURES_PATHS else 0
    issue = None if event.znode is None else issue_of(event.znode, missed)
    if issue is not None:
        return _set_issue(issues, event.path, issue)
    return issues.delete(event.path) if event.path in issues else issues


def _set_issue(issues: Map[str, ZnodeIssue], path: str, issue: ZnodeIssue) -> Map[str, ZnodeIssue]:
    """Issues of brokers beyond the limit are left out: those before them fire already."""
    is_full = len(issues) >= MAX_ISSUES and path not in issues and path not in FEATURES_PATHS
    return issues if is_full else issues.set(path, issue)


def _has_place(nodes: NodesImage, key: NodeKey) -> bool:
    return len(nodes) < MAX_NODES or nodes.get(key) is not None


def _bounded(znode: Znode, nodes: NodesImage) -> Znode:
    """The znode, or as an unreadable one if it holds more than an image does.

    ``nodes`` are those before it.
    """
    content, key = znode.content, _broker_key(znode.path)
    try:
        if isinstance(content, BrokerZnode) and key is not None:
            check_features(content.features, len(content.features))
            capabilities = CapabilityKey(key.role, intern_capabilities(content.features))
            is_known = capabilities in nodes.classes
            check_node(
                key,
                0 if nodes.get(key) else len(nodes),
                0 if is_known else len(nodes.classes),
            )
        elif isinstance(content, FeaturesZnode):
            check_features(content.levels, len(content.levels))
    except BeyondLimitError as error:
        return replace(znode, content=UnreadableZnode(str(error)))
    return znode


def _node(key: NodeKey, znode: Znode, before: Node | None, seen_ms: int) -> Node:
    """The node of a live broker; ``before`` itself if its znode has not changed.

    The ranges of an unreadable znode are those of an earlier version of the same znode, and unknown
    if there was no such version.
    """
    provenance = znode_provenance(znode, seen_ms)
    content = znode.content
    if isinstance(content, BrokerZnode):
        capabilities = intern_capabilities(content.features)
    elif before is not None and before.epoch == znode.czxid:
        capabilities = before.capabilities
    else:
        capabilities = intern_capabilities({}, complete=False)
    # A restored ZooKeeper may reuse a version for other content: compare the capabilities, too.
    is_same = before is not None and provenance.same_data(before.provenance)
    if before is not None and is_same and capabilities is before.capabilities:
        return before
    return Node(
        key=key,
        capabilities=capabilities,
        incarnation=f"{znode.czxid:#x}",
        epoch=znode.czxid,
        fenced=False,
        shutting_down=False,
        migrating=False,
        silent=False,
        provenance=provenance,
    )


def _out_of_order(image: ClusterImage, event: ZnodeSnapshot) -> ClusterImage:
    reason = f"part {event.index} of reading {event.resync} does not follow the one before"
    first = UnreadableRecords(1, f"reading {event.resync}", reason)
    unreadable = image.sources.unreadable.set(OUT_OF_ORDER, first)
    return image.with_unreadable(unreadable)


def _broker_key(path: str) -> NodeKey | None:
    match = _BROKER.fullmatch(path)
    return NodeKey(Role.BROKER, NodeId(int(match[1]))) if match else None


def _version_key(znode: Znode) -> tuple[int, int]:
    return znode.czxid, znode.version


def _is_behind(znode: Znode, node: Node | None) -> bool:
    last = node and node.provenance
    return isinstance(last, ZnodeProvenance) and _version_key(znode) < (last.czxid, last.version)
