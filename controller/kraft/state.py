"""What a controller knows when it is asked: its own software, the levels, and who registered."""

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
    """How far a cluster has come from ZooKeeper to KRaft (``ZkMigrationState``; up to 3.9)."""

    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3
    ZK = 4

    @property
    def in_progress(self) -> bool:
        """Whether metadata.version must stand still."""
        return self in (ZkMigrationState.PRE_MIGRATION, ZkMigrationState.MIGRATION)


class RegisteredBroker(NamedTuple):
    """A broker as the log has it, the fenced and the long gone too; a tuple, of which ten thousand
    are made at once.

    ``session`` says that it was heard of within the session timeout: the active controller alone
    knows. ``directories`` are the ids of its log directories.
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
    """A controller as the log has it (from metadata.version 15 on)."""

    id: NodeId
    ranges: SupportedRanges


@dataclass(frozen=True, slots=True)
class MinInsync:
    """Where min.insync.replicas is set: enabling ELR moves it (``maybeGenerateElrSafetyRecords``).

    ``static`` is what the controller's own configuration says, ``cluster`` whether the dynamic
    default of the cluster is set, ``brokers`` those with a dynamic setting of their own.
    """

    static: int = 1
    cluster: bool = False
    brokers: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class ControllerState:
    """The active controller's view.

    ``local`` are the ranges of its own software; ``levels`` come from FeatureLevelRecords, in the
    log's order; ``brokers`` and ``controllers`` stand in the order of their registration.
    ``quorum`` are the ids in ``controller.quorum.voters``, none where voters are dynamic.
    ``kraft_version`` is raft's own, from its control records, and ``voters_support_kraft`` whether
    every voter could work with the next one. ``java`` is the version of Java that it runs on.
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

    def metadata_version(self, otherwise: FeatureLevel | None = None) -> FeatureLevel | None:
        """The finalized metadata.version; ``otherwise`` where the log has none."""
        return self.levels.get(METADATA_VERSION, otherwise)
