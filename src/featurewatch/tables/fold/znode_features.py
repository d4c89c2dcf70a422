"""Derives the finalized levels, and the issues with them, from the features znodes."""

from immutables import Map

from featurewatch.streams.events import ZnodeChange, ZnodeSnapshot
from featurewatch.streams.znodes import FeaturesZnode
from featurewatch.tables.image.features import FeaturesImage
from featurewatch.tables.image.provenance import ZnodeProvenance, znode_provenance
from featurewatch.tables.image.zookeeper import (
    FEATURES_PATHS,
    ZnodeIssue,
    ZnodeResync,
    ZookeeperImage,
    issue_of,
)


def features_from_znode(
    features: FeaturesImage, zookeeper: ZookeeperImage, event: ZnodeChange | ZnodeSnapshot
) -> FeaturesImage:
    """The finalized levels after the features znode was read; the epoch is its version.

    ``features`` are the levels before the event; ``zookeeper`` already includes the event. A znode
    that is absent or disabled finalizes nothing, and that is no error: brokers clear their caches
    (``FinalizedFeatureChangeListener``). They do so for an unreadable znode, too; but this does not
    change the finalized levels, so the levels last read stay, and a rule fires. A lower version
    never replaces a higher one (KIP-584), unless the znode was recreated: then it starts at 0.
    Only in the early draft of KIP-584 is 0 a level, and a feature finalized at it finalized.
    """
    znode = zookeeper.features
    last = features.provenance
    if znode is None:
        if features.epoch < 0 and not features.levels:
            return features
        path = last.path if isinstance(last, ZnodeProvenance) else FEATURES_PATHS[0]
        return features.with_set(
            Map(), -1, ZnodeProvenance(path, -1, event.zxid, -1, event.seen_ms)
        )
    provenance = znode_provenance(znode, event.seen_ms)
    content = znode.content
    if not isinstance(content, FeaturesZnode):
        return features
    if isinstance(last, ZnodeProvenance):
        same_life = (last.path, last.czxid) == (znode.path, znode.czxid)
        if same_life and znode.version < last.version:
            return features
    epoch = znode.version if content.enabled else -1
    lowest = content.form.lowest_level
    levels = {name: level for name, level in content.levels.items() if level >= lowest}
    finalized = Map(levels if content.enabled else {})
    if provenance.same_data(last) and (epoch, finalized) == (features.epoch, features.levels):
        return features
    return features.with_set(finalized, epoch, provenance)


def max_versions(zookeeper: ZookeeperImage) -> Map[str, int]:
    """The highest version of each features znode, updated by the present znodes."""
    versions = zookeeper.max_versions
    for path in FEATURES_PATHS:
        znode = zookeeper.znodes.get(path)
        if znode is not None and znode.version > versions.get(path, -1):
            versions = versions.set(path, znode.version)
    return versions


def with_missed_versions(zookeeper: ZookeeperImage, resync: ZnodeResync) -> Map[str, ZnodeIssue]:
    """The issues of a resync, including the versions of the features znodes that it missed.

    A ``czxid`` of 0 means that the znode existed and reading it was forbidden.
    """
    issues = resync.issues
    for path in FEATURES_PATHS:
        before, after = zookeeper.znodes.get(path), resync.znodes.get(path)
        if after is None or not zookeeper.snapshot or (before is not None and before.czxid == 0):
            continue
        same_life = before is not None and before.czxid == after.czxid
        last = before.version if before is not None and same_life else -1
        issue = issue_of(after, max(0, after.version - last - 1))
        if issue is not None:
            issues = issues.set(path, issue)
    return issues
