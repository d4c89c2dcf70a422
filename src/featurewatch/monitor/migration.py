"""The migration of a cluster from ZooKeeper to KRaft (KIP-866), as the log and znodes show it."""

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
"""The states in the log (``ZkMigrationState``). Kafka 3.4 wrote *pre-migration* as 1."""

_NO_STATE: Final = 0
PRE_MIGRATION: Final = 2
_IN_PROGRESS: Final = (1, PRE_MIGRATION)


def in_progress(image: ClusterImage) -> bool:
    """Whether a migration has begun and is not known to be over.

    The log decides if it has a migration state. Otherwise a migration znode or a KRaft controller
    in ZooKeeper shows that a migration has begun; both remain after it, so ZooKeeper alone never
    shows the end.
    """
    zookeeper = image.zookeeper
    if image.authority is Authority.LOG:
        only_in_zookeeper = image.log.migration == _NO_STATE and zookeeper.migration is not None
        return image.log.migration in _IN_PROGRESS or (only_in_zookeeper and len(image.brokers) > 0)
    controller = zookeeper.controller
    return zookeeper.migration is not None or (
        controller is not None and controller.kraft_epoch >= 0
    )


def missing_brokers(image: ClusterImage) -> Collection[NodeId]:
    """The brokers in ZooKeeper without a registration in the log; empty outside a migration.

    Before the metadata is copied, each must register as migrating. Later a broker may have
    restarted as a KRaft broker while its ZooKeeper session lasts, so only brokers without any
    registration are missing.
    """
    if image.authority is not Authority.LOG or not in_progress(image):
        return ()
    if image.log.migration == PRE_MIGRATION:
        return image.zookeeper.unregistered
    nodes = image.nodes
    return [
        node_id
        for node_id in image.zookeeper.unregistered
        if nodes.get(NodeKey(Role.BROKER, node_id)) is None
    ]


def state_name(image: ClusterImage) -> str:
    """The name of the state in the log; ``unknown`` where the log is not the authority."""
    if image.authority is not Authority.LOG:
        return "unknown"
    return STATES.get(image.log.migration, "unknown")


def migration_of(image: ClusterImage) -> Migration:
    """The migration for a snapshot. The cost follows the unregistered brokers."""
    znode = image.zookeeper.migration
    return Migration(
        state=state_name(image),
        in_progress=in_progress(image),
        kraft_controller_id=-1 if znode is None else znode.kraft_controller_id,
        brokers_in_zookeeper=len(image.brokers),
        missing=tuple(sorted(missing_brokers(image))),
    )
