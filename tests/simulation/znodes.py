"""Builders of znodes and ZooKeeper events, for tests."""

from collections.abc import Iterable, Mapping

import orjson

from featurewatch.streams.events import SourceState, SourceStatus, ZnodeChange, ZnodeSnapshot
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, SupportedRanges
from featurewatch.streams.znodes import (
    BrokerZnode,
    ControllerEpochZnode,
    ControllerZnode,
    FeaturesForm,
    FeaturesZnode,
    MigrationZnode,
    PartitionStateZnode,
    UnreadableZnode,
    Znode,
    ZnodeContent,
)
from featurewatch.streams.zookeeper.decoding.features import decode_draft
from tests.simulation.records import CLUSTER, Ranges

FEATURE = "/feature"
DRAFT = "/features"


def znode(
    path: str, content: ZnodeContent, czxid: int = 1, version: int = 0, *, mzxid: int = 0
) -> Znode:
    """A znode with any content."""
    return Znode(path, czxid, mzxid or czxid + version, version, 0, content)


def broker(node_id: int, ranges: Ranges, czxid: int = 1, version: int = 0) -> Znode:
    """A live broker."""
    content = BrokerZnode(
        NodeId(node_id), 5, SupportedRanges(ranges), {"PLAINTEXT": "h:9092"}, None, 1
    )
    return znode(f"/brokers/ids/{node_id}", content, czxid, version)


def features(
    levels: Mapping[str, int],
    czxid: int = 1,
    version: int = 0,
    *,
    path: str = FEATURE,
    enabled: bool = True,
) -> Znode:
    """The finalized features."""
    form = FeaturesForm.RELEASED_2 if path == FEATURE else FeaturesForm.LATER_DRAFT
    named = {FeatureName(name): FeatureLevel(level) for name, level in levels.items()}
    return znode(path, FeaturesZnode(form, 2, enabled, named), czxid, version)


def early_features(version: int, **levels: int) -> Znode:
    """``/features`` as a controller of the early draft writes it."""
    features = {name: {"version": level} for name, level in levels.items()}
    content = {"version": 0, "data": {"epoch": version, "features": features}}
    return znode(DRAFT, decode_draft(orjson.dumps(content)), 5, version)


def unreadable(path: str, czxid: int = 1, version: int = 0) -> Znode:
    """An unreadable znode."""
    return znode(path, UnreadableZnode("not JSON"), czxid, version)


def controller(node_id: int, czxid: int = 1, *, kraft_epoch: int = -1) -> Znode:
    """The controller's znode."""
    return znode("/controller", ControllerZnode(NodeId(node_id), kraft_epoch, 1), czxid)


def controller_epoch(epoch: int, version: int = 0) -> Znode:
    """The controller epoch's znode."""
    return znode("/controller_epoch", ControllerEpochZnode(epoch), 1, version)


def migration(kraft_controller_id: int, czxid: int = 1, version: int = 0) -> Znode:
    """The znode of a migration's progress."""
    return znode("/migration", MigrationZnode(NodeId(kraft_controller_id), 1, 9, 1), czxid, version)


def partition(leader: int, version: int = 0) -> Znode:
    """The state of a partition, which is watched only on request."""
    content = PartitionStateZnode("t", 0, NodeId(leader), 1, 1, (NodeId(leader),), recovering=False)
    return znode("/brokers/topics/t/partitions/0/state", content, 1, version)


def change(
    znode: Znode, zxid: int, seen_ms: int = 0, *, missed: int = 0, recreated: bool = False
) -> ZnodeChange:
    """A znode was created or changed."""
    return ZnodeChange(CLUSTER, znode.path, znode, missed, recreated, zxid, seen_ms or zxid * 10)


def deleted(path: str, zxid: int, seen_ms: int = 0) -> ZnodeChange:
    """A znode was deleted."""
    return ZnodeChange(CLUSTER, path, None, 0, False, zxid, seen_ms or zxid * 10)


def reading(
    name: str, znodes: Iterable[Znode], zxid: int, *, chunks: int = 1, seen_ms: int = 0
) -> list[ZnodeSnapshot]:
    """A complete snapshot of all watched znodes, in a number of chunks."""
    all_ = list(znodes)
    size = -(-len(all_) // chunks) or 1
    parts = [tuple(all_[i * size : (i + 1) * size]) for i in range(chunks)]
    return [
        ZnodeSnapshot(
            CLUSTER, name, i, i == chunks - 1, part, "the start", zxid, seen_ms or zxid * 10
        )
        for i, part in enumerate(parts)
    ]


def status(state: SourceState, seen_ms: int) -> SourceStatus:
    """The source's status."""
    return SourceStatus(CLUSTER, "zookeeper", state, -1, -1, -1, -1, -1, "a detail", seen_ms)


def following(seen_ms: int = 1) -> SourceStatus:
    """The source has caught up."""
    return status(SourceState.FOLLOWING, seen_ms)


def catching_up(seen_ms: int = 1) -> SourceStatus:
    """The source is reading a snapshot."""
    return status(SourceState.CATCHING_UP, seen_ms)
