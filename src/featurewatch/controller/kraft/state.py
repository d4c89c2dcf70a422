"""The state that a controller decides on: its software, the levels and the registrations."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from featurewatch.streams.types import (
    METADATA_VERSION,
    FeatureLevel,
    FeatureName,
    NodeId,
    SupportedRanges,
)

KRAFT_VERSION_0: Final = FeatureLevel(0)


class ZkMigrationState(IntEnum):
    """The migration state from ZooKeeper to KRaft (``ZkMigrationState``; up to 3.9)."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3
    ZK = 4

    @property
    def in_progress(self) -> bool:
        """Whether metadata.version must not change."""
        return self in (ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION)


class RegisteredBroker(NamedTuple):
    """A broker's registration in the log, whether it is fenced or has been gone for long.

    ``session``: it sent a heartbeat within the session timeout, which only the active controller
    knows. ``directories`` are the ids of its log directories. A tuple, since ten thousand are
    created at a time.
    """

    id: NodeId
    ranges: SupportedRanges
    fenced: bool = False
    shutting_down: bool = False
    epoch: int = 0
    incarnation: str = ""
    directories: tuple[str, ...] = ()
    session: bool = False


class RegisteredController(NamedTuple):
    """A controller's registration in the log (from metadata.version 15 on)."""

    id: NodeId
    ranges: SupportedRanges


@dataclass(frozen=True, slots=True)
class MinInsync:
    """Where min.insync.replicas is set: enabling ELR moves it (``maybeGenerateElrSafetyRecords``).

    ``static`` is the value in the controller's own configuration, ``cluster`` whether the dynamic
    default of the cluster is set, ``brokers`` are the brokers with a dynamic setting.
    """

    static: int = 1
    cluster: bool = False
    brokers: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class ControllerState:
    """The state of the active controller.

    ``local`` are the ranges of its own software; ``levels`` come from FeatureLevelRecords, in the
    log's order; ``brokers`` and ``controllers`` are in the order of their registration.
    ``quorum`` are the ids in ``controller.quorum.voters``, empty if voters are dynamic.
    ``kraft_version`` comes from raft's control records; ``voters_support_kraft``: every voter
    supports the next one. ``java`` is the major version of Java that the controller runs on.
    """

    id: NodeId
    local: SupportedRanges
    levels: Mapping[FeatureName, FeatureLevel]
    brokers: tuple[RegisteredBroker, ...] = ()
    controllers: tuple[RegisteredController, ...] = ()
    quorum: tuple[NodeId, ...] = ()
    cluster: str = ""
    kraft_version: FeatureLevel = KRAFT_VERSION_0
    voters_support_kraft: bool = True
    migration: ZkMigrationState = ZkMigrationState.NONE
    migration_enabled: bool = False
    listener: str = "PLAINTEXT"
    min_insync: MinInsync = field(default_factory=MinInsync)
    java: int = 17

    def metadata_version(self, default: FeatureLevel | None = None) -> FeatureLevel | None:
        """The finalized metadata.version; ``default`` if the log has none."""
        return self.levels.get(METADATA_VERSION, default)
