"""What features znodes say of the finalized levels: which count, and what of them is remarkable."""

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
    known: FeaturesImage, zookeeper: ZookeeperImage, event: ZnodeChange | ZnodeSnapshot
) -> FeaturesImage:
    """The finalized levels after the features znode was read; the epoch is its version.

    No znode, or a disabled one, finalizes nothing, and that is no error: brokers clear their caches
    (``FinalizedFeatureChangeListener``). They do so for one that they cannot read, too; but that is
    what brokers do with it and not what it says, so the levels last read stay, and a rule tells.
    Within one life of the znode a lower version never replaces a higher one (KIP-584); made anew it
    begins at 0, and counts. A level of 0 is *not finalized*.
    """
    znode = zookeeper.features
    last = known.provenance
    if znode is None:
        if known.epoch < 0 and not known.levels:
            return known
        path = last.path if isinstance(last, ZnodeProvenance) else FEATURES_PATHS[0]
        return known.with_znode(Map(), -1, ZnodeProvenance(path, -1, event.zxid, -1, event.seen_ms))
    provenance = znode_provenance(znode, event.seen_ms)
    content = znode.content
    if not isinstance(content, FeaturesZnode):
        return known
    if isinstance(last, ZnodeProvenance):
        same_life = (last.path, last.czxid) == (znode.path, znode.czxid)
        if same_life and znode.version < last.version:
            return known
    epoch = znode.version if content.enabled else -1
    levels = {name: level for name, level in content.levels.items() if level > 0}
    found = Map(levels if content.enabled else {})
    if provenance.same_data(last) and (epoch, found) == (known.epoch, known.levels):
        return known
    return known.with_znode(found, epoch, provenance)


def max_versions(zookeeper: ZookeeperImage) -> Map[str, int]:
    """The highest versions, after what is held now."""
    peaks = zookeeper.max_versions
    for path in FEATURES_PATHS:
        znode = zookeeper.held.get(path)
        if znode is not None and znode.version > peaks.get(path, -1):
            peaks = peaks.set(path, znode.version)
    return peaks


def with_missed_versions(known: ZookeeperImage, reading: ZnodeResync) -> Map[str, ZnodeIssue]:
    """The remarks of a reading, with the versions of the features that it jumped over.

    A transaction of 0 says that the znode was there and might not be read.
    """
    remarks = reading.issues
    for path in FEATURES_PATHS:
        before, after = known.held.get(path), reading.held.get(path)
        if after is None or not known.reading or (before is not None and before.czxid == 0):
            continue
        same_life = before is not None and before.czxid == after.czxid
        last = before.version if before is not None and same_life else -1
        remark = issue_of(after, max(0, after.version - last - 1))
        if remark is not None:
            remarks = remarks.set(path, remark)
    return remarks
