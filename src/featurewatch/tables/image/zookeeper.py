"""ZooKeeper's part of an image: brokers, single znodes, and the issues with some."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from immutables import Map

from featurewatch.streams.codec.shapes import a_znode
from featurewatch.streams.types import FeatureLevel, FeatureName, NodeId, NodeKey, Role
from featurewatch.streams.znodes import (
    ControllerEpochZnode,
    ControllerZnode,
    FeaturesZnode,
    MigrationZnode,
    UnreadableZnode,
    Znode,
)
from featurewatch.tables.image.nodes import NO_NODES, NodeChanges, NodesImage

FEATURES_PATHS: Final = ("/feature", "/features")
"""The paths of finalized features; the first, of released Kafka, counts if both exist."""

CONTROLLER_PATH: Final = "/controller"
CONTROLLER_EPOCH_PATH: Final = "/controller_epoch"
MIGRATION_PATH: Final = "/migration"

ZNODE_PATHS: Final = frozenset(
    {*FEATURES_PATHS, CONTROLLER_PATH, CONTROLLER_EPOCH_PATH, MIGRATION_PATH, "/cluster/id"}
)
"""The single znodes that an image has; brokers are nodes, all other znodes are ignored."""


@dataclass(frozen=True, slots=True)
class ZnodeIssue:
    """An issue with one znode; it stays until the znode is read cleanly or deleted.

    ``missed`` is the number of versions of the features before ``version`` that the source did not
    read; ``unreadable`` is the reason why the newest version could not be read.
    """

    missed: int = 0
    version: int = -1
    unreadable: str = ""

    def to_row(self) -> dict[str, Any]:
        """The fields of a row."""
        return {"missed": self.missed, "version": self.version, "unreadable": self.unreadable}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The issue that a row's fields hold."""
        return cls(row["missed"], row["version"], row["unreadable"])


@dataclass(frozen=True, slots=True)
class ZnodeResync:
    """A resync of all watched znodes; it replaces the image's znodes at its last chunk.

    ``name`` identifies the snapshot and ``next_index`` is the expected chunk. ``serial`` is for
    rows, as in `tables.image.log.Resync`.
    """

    serial: int = field(compare=False)
    name: str
    next_index: int = 0
    nodes: NodesImage = NO_NODES
    znodes: Map[str, Znode] = field(default_factory=Map)
    issues: Map[str, ZnodeIssue] = field(default_factory=Map)

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row; the brokers have separate rows."""
        return {
            "serial": self.serial,
            "name": self.name,
            "next_index": self.next_index,
            "znodes": list(self.znodes.values()),
            "issues": _issues_to_row(self.issues),
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], nodes: NodesImage) -> Self:
        """The resync that these fields and its rows of brokers hold."""
        return cls(
            serial=row["serial"],
            name=row["name"],
            next_index=row["next_index"],
            nodes=nodes,
            znodes=_znodes_from_row(row["znodes"]),
            issues=_issues_from_row(row["issues"]),
        )


@dataclass(frozen=True, slots=True)
class ZookeeperImage:
    """The brokers of ``/brokers/ids``, and the single znodes as they were last read, by path.

    ``nodes`` is empty while ZooKeeper is the authority: its brokers are then the cluster's nodes.
    ``unregistered`` are the brokers without a migrating registration in the log; it follows from
    ``nodes`` and the cluster's nodes. ``resync`` is a resync in progress. ``snapshot`` is the name
    of the last complete snapshot (empty: none yet) and ``zxid`` the newest transaction that the
    source has published. ``max_versions`` has the highest version that each features znode ever
    had, deletions included. ``deleted`` are the levels that were lost when the features were
    disabled; enabling them later does not restore the levels.
    """

    nodes: NodesImage = NO_NODES
    unregistered: Map[NodeId, None] = field(default_factory=Map)
    resync: ZnodeResync | None = None
    znodes: Map[str, Znode] = field(default_factory=Map)
    issues: Map[str, ZnodeIssue] = field(default_factory=Map)
    max_versions: Map[str, int] = field(default_factory=Map)
    deleted: Map[FeatureName, FeatureLevel] = field(default_factory=Map)
    snapshot: str = ""
    zxid: int = -1

    @property
    def features(self) -> Znode | None:
        """The features znode that counts (None: no features znode exists)."""
        return next((self.znodes[path] for path in FEATURES_PATHS if path in self.znodes), None)

    @property
    def has_level_zero(self) -> bool:
        """Whether 0 is a level of the features znode that counts, as in KIP-584's early draft."""
        content = self.features and self.features.content
        return isinstance(content, FeaturesZnode) and content.form.lowest_level == 0

    @property
    def disabled(self) -> Znode | None:
        """The features znode that counts, if its status is disabled."""
        znode = self.features
        is_disabled = (
            znode and isinstance(znode.content, FeaturesZnode) and not znode.content.enabled
        )
        return znode if is_disabled else None

    @property
    def controller(self) -> ControllerZnode | None:
        """The active controller (None: no controller is active, or its znode is unreadable)."""
        znode = self.znodes.get(CONTROLLER_PATH)
        content = znode and znode.content
        return content if isinstance(content, ControllerZnode) else None

    @property
    def controller_epoch(self) -> int:
        """The controller epoch (-1: unknown)."""
        znode = self.znodes.get(CONTROLLER_EPOCH_PATH)
        content = znode and znode.content
        return content.epoch if isinstance(content, ControllerEpochZnode) else -1

    @property
    def migration(self) -> MigrationZnode | None:
        """The progress of a migration to KRaft (None: no migration has begun)."""
        znode = self.znodes.get(MIGRATION_PATH)
        content = znode and znode.content
        return content if isinstance(content, MigrationZnode) else None

    @property
    def resync_nodes(self) -> NodesImage:
        """The brokers of the resync in progress; empty without one."""
        return NO_NODES if self.resync is None else self.resync.nodes

    def with_unregistered(self, nodes: NodesImage, keys: Iterable[NodeKey]) -> Self:
        """This image with ``unregistered`` updated for these keys of the log's ``nodes``.

        Kafka's controllers do not begin a migration while a broker is in ZooKeeper and has no
        migrating registration (``KRaftMigrationDriver.areZkBrokersReadyForMigration``).
        """
        unregistered = self.unregistered.mutate()
        for key in keys:
            node = nodes.get(key)
            if self.nodes.get(key) is not None and (node is None or not node.migrating):
                unregistered[key.node_id] = None
            elif key.role is Role.BROKER:
                unregistered.pop(key.node_id, None)
        return replace(self, unregistered=unregistered.finish())

    def regressed(self) -> Iterator[tuple[Znode, int]]:
        """The features znodes whose version is below their highest one, with that version.

        Unreadable znodes are left out: if reading is forbidden, their versions are 0.
        """
        for path, max_version in sorted(self.max_versions.items()):
            znode = self.znodes.get(path)
            if znode is None or isinstance(znode.content, UnreadableZnode):
                continue
            if znode.version < max_version:
                yield znode, max_version

    def to_row(self) -> dict[str, Any]:
        """The fields in the cluster's row; the brokers have separate rows."""
        return {
            "resync": self.resync and self.resync.to_row(),
            "znodes": list(self.znodes.values()),
            "issues": _issues_to_row(self.issues),
            "max_versions": dict(self.max_versions.items()),
            "deleted": dict(self.deleted.items()),
            "snapshot": self.snapshot,
            "zxid": self.zxid,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any], nodes: NodesImage, resync_nodes: NodesImage) -> Self:
        """The part of the image that these fields and its rows of brokers hold.

        ``unregistered`` is left empty.
        """
        resync = row["resync"]
        return cls(
            nodes=nodes,
            resync=resync and ZnodeResync.from_row(resync, resync_nodes),
            znodes=_znodes_from_row(row["znodes"]),
            issues=_issues_from_row(row["issues"]),
            max_versions=Map(row["max_versions"]),
            deleted=Map(row["deleted"]),
            snapshot=row["snapshot"],
            zxid=row["zxid"],
        )


NO_ZOOKEEPER: Final = ZookeeperImage()


@dataclass(frozen=True, slots=True)
class ZookeeperDelta:
    """Changes of an event to a `ZookeeperImage`, among the brokers."""

    nodes: NodeChanges = field(default_factory=dict)
    resync_nodes: NodeChanges = field(default_factory=dict)


ZOOKEEPER_UNCHANGED: Final = ZookeeperDelta()


def _znodes_from_row(row: Iterable[dict[str, Any]]) -> Map[str, Znode]:
    return Map({znode.path: znode for znode in map(a_znode, row)})


def _issues_to_row(issues: Map[str, ZnodeIssue]) -> dict[str, Any]:
    return {path: issue.to_row() for path, issue in issues.items()}


def _issues_from_row(row: Mapping[str, Any]) -> Map[str, ZnodeIssue]:
    return Map({path: ZnodeIssue.from_row(issue) for path, issue in row.items()})


def issue_of(znode: Znode, missed: int) -> ZnodeIssue | None:
    """The issue with a znode as it was read (None: no version missed, and readable).

    ``missed`` is the number of versions that the source did not read.
    """
    content = znode.content
    reason = content.reason or "no reason is given" if isinstance(content, UnreadableZnode) else ""
    return ZnodeIssue(missed, znode.version, reason) if missed or reason else None
