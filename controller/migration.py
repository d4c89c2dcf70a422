"""A cluster's way from ZooKeeper to KRaft (KIP-866), as it can be seen from both sides."""

from collections.abc import Collection, Mapping
from typing import Final

from featurewatch.streams.outputs import Migration
from featurewatch.streams.types import NodeId, NodeKey, Role
from featurewatch.tables.image.cluster import Authority, ClusterImage

STATES: Final[Mapping[int, str]] = {
    0: "none",
    1: "migration",
    2: "pre-migration",
    3: "post-migration",
}
"""The log's states (``ZkMigrationState``). What 3.4 wrote as 1 was *pre-migration*."""

_UNHEARD: Final = 0
PRE_MIGRATION: Final = 2
_IN_PROGRESS: Final = (1, PRE_MIGRATION)


def in_progress(image: ClusterImage) -> bool:
    """Whether a migration has begun and is not known to be over.

    The log says so, if it has heard of one. Without its word a migration znode or a KRaft
    controller says that it began; both stay when all is done, so that ZooKeeper alone never tells
    the end.
    """
    known = image.zookeeper
    if image.authority is Authority.LOG:
        unheard = image.migration == _UNHEARD and known.migration is not None
        return image.migration in _IN_PROGRESS or (unheard and len(image.brokers) > 0)
    controller = known.controller
    return known.migration is not None or (controller is not None and controller.kraft_epoch >= 0)


def missing_brokers(image: ClusterImage) -> Collection[NodeId]:
    """The brokers in ZooKeeper that the KRaft controllers do not know, while it matters.

    Before the metadata is copied each must register as migrating. Later a broker may have come back
    as a KRaft broker while its ZooKeeper session lasts, and only those are missing that have not
    registered at all.
    """
    if image.authority is not Authority.LOG or not in_progress(image):
        return ()
    if image.migration == PRE_MIGRATION:
        return image.unregistered
    nodes = image.nodes
    return [id_ for id_ in image.unregistered if nodes.get(NodeKey(Role.BROKER, id_)) is None]


def state_name(image: ClusterImage) -> str:
    """The state in the log's words; ``unknown`` where no log tells."""
    if image.authority is not Authority.LOG:
        return "unknown"
    return STATES.get(image.migration, "unknown")


def migration_of(image: ClusterImage) -> Migration:
    """The migration as a snapshot has it. Its cost is that of the brokers that are missing."""
    znode = image.zookeeper.migration
    return Migration(
        state=state_name(image),
        under_way=in_progress(image),
        kraft_controller_id=-1 if znode is None else znode.kraft_controller_id,
        brokers_in_zookeeper=len(image.brokers),
        missing=tuple(sorted(missing_brokers(image))),
    )
