"""A cluster's way from ZooKeeper to KRaft (KIP-866), as it can be seen from both sides."""

from collections.abc import Mapping
from typing import Final

from streams.outputs import Migration
from tables.image import Authority, ClusterImage

STATES: Final[Mapping[int, str]] = {
    0: "none",
    1: "migration",
    2: "pre-migration",
    3: "post-migration",
}
"""The log's states (``ZkMigrationState``). What 3.4 wrote as 1 was *pre-migration*."""

_IN_PROGRESS: Final = (1, 2)
_POST: Final = 3


def under_way(image: ClusterImage) -> bool:
    """Whether a migration has begun and is not over.

    The log says so; without its word it is a migration znode while brokers are still in ZooKeeper
    (the znode stays when all is done).
    """
    if image.authority is Authority.LOG and image.migration in _IN_PROGRESS:
        return True
    if image.authority is Authority.LOG and image.migration == _POST:
        return False
    return image.zookeeper.migration is not None and len(image.brokers) > 0


def state_name(image: ClusterImage) -> str:
    """The state in the log's words; ``unknown`` where no log tells."""
    if image.authority is not Authority.LOG:
        return "unknown"
    return STATES.get(image.migration, "unknown")


def migration_of(image: ClusterImage) -> Migration:
    """The migration as a snapshot has it. Its cost is that of the brokers that are missing."""
    znode = image.zookeeper.migration
    missing = image.unregistered if under_way(image) else ()
    return Migration(
        state=state_name(image),
        under_way=under_way(image),
        kraft_controller_id=-1 if znode is None else znode.kraft_controller_id,
        brokers_in_zookeeper=len(image.brokers),
        missing=tuple(sorted(missing)),
    )
