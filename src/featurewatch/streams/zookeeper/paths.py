"""The paths of the followed znodes, without the chroot (Kafka: ``kafka.zk.ZkData``)."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

BROKER_IDS: Final = "/brokers/ids"
TOPICS: Final = "/brokers/topics"
FEATURE: Final = "/feature"
"""The finalized features in released Kafka."""
FEATURES: Final = "/features"
"""The finalized features in both drafts of KIP-584."""
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
CLUSTER_ID: Final = "/cluster/id"
MIGRATION: Final = "/migration"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
PREFERRED_ELECTION: Final = "/admin/preferred_replica_election"
DELETE_TOPICS: Final = "/admin/delete_topics"


class TargetKind(StrEnum):
    """Which part of a znode is read and watched."""

    DATA = "data"
    CHILDREN = "children"


class WatchTarget(NamedTuple):
    """A znode's data or children, to read and watch."""

    path: str
    kind: TargetKind


@dataclass(frozen=True, slots=True)
class WatchScope:
    """The znodes followed beside brokers, features, controller, cluster id and migration.

    ``partitions``: the state of every partition, one znode each. ``tasks``: the znodes
    below ``/admin``.
    """

    partitions: bool = False
    tasks: bool = False

    def roots(self) -> list[WatchTarget]:
        """Where a sweep begins: these may be absent, and are then watched for."""
        data = [FEATURE, FEATURES, CONTROLLER, CONTROLLER_EPOCH, CLUSTER_ID, MIGRATION]
        directories = [BROKER_IDS]
        if self.tasks:
            data += [REASSIGN_PARTITIONS, PREFERRED_ELECTION]
            directories.append(DELETE_TOPICS)
        if self.partitions:
            directories.append(TOPICS)
        return [
            *(WatchTarget(path, TargetKind.DATA) for path in data),
            *(WatchTarget(path, TargetKind.CHILDREN) for path in directories),
        ]


def child_target(directory: str, name: str) -> WatchTarget:
    """The target for the child ``name`` of a followed directory."""
    path = f"{directory}/{name}"
    if directory == TOPICS:
        return WatchTarget(f"{path}/partitions", TargetKind.CHILDREN)
    if directory.startswith(f"{TOPICS}/"):
        return WatchTarget(f"{path}/state", TargetKind.DATA)
    return WatchTarget(path, TargetKind.DATA)


def ordered(paths: Iterable[str]) -> list[str]:
    """Paths in the order of a snapshot: brokers by number, the rest by name."""
    return sorted(paths, key=lambda path: (path.count("/"), len(path), path))


def is_listed(target: WatchTarget) -> bool:
    """Whether the znode is a child of a followed directory.

    Then the directory's watch triggers when it is created again: it needs no separate watch.
    """
    parent = target.path.rpartition("/")[0]
    return target.kind is TargetKind.DATA and parent in (BROKER_IDS, DELETE_TOPICS)
