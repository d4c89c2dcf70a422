"""The events on the output topics.

Each has an ``id`` that follows from its cause, so that one that is published twice is recognized.
``provenance`` is one of ``{"offset", "leader_epoch", "append_ms"}`` (the metadata log),
``{"path", "czxid", "zxid", "version", "seen_ms"}`` (a znode) or
``{"role", "node_id", "epoch", "seen_ms"}`` (an ApiVersions response). Times are milliseconds since
the Unix epoch, -1 where not known.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRange,
)


class ChangeKind(StrEnum):
    """What happened to a finalized level."""

    FINALIZED = "finalized"
    UPGRADED = "upgraded"
    DOWNGRADED = "downgraded"
    REMOVED = "removed"


def change_kind(before: int | None, after: int | None) -> ChangeKind:
    """The kind of a change from one level to another; None: not finalized."""
    if after is None:
        return ChangeKind.REMOVED
    if before is None:
        return ChangeKind.FINALIZED
    return ChangeKind.UPGRADED if after > before else ChangeKind.DOWNGRADED


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """One finalized level changed; ``before`` and ``after`` are 0 where it is not finalized.

    It was not finalized before if ``kind`` is finalized, and is not any more if it is removed. In
    any other case a 0 is a level: the early draft of KIP-584 finalizes features at 0.
    ``from_snapshot``: it follows from a comparison, it was not observed.
    """

    cluster: ClusterId
    feature: FeatureName
    before: FeatureLevel
    after: FeatureLevel
    kind: ChangeKind
    epoch: int
    revision: int
    provenance: Mapping[str, Any]
    from_snapshot: bool
    append_ms: int
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/change/feature/revision``: one revision changes a feature once."""
        return f"{self.cluster}/change/{self.feature}/{self.revision}"

    @property
    def finalized_before(self) -> FeatureLevel | None:
        """The level before; None where the feature was not finalized."""
        return None if self.kind is ChangeKind.FINALIZED else self.before

    @property
    def finalized_after(self) -> FeatureLevel | None:
        """The level after; None where the feature is not finalized."""
        return None if self.kind is ChangeKind.REMOVED else self.after


class Severity(StrEnum):
    """How soon a person must look."""

    CRITICAL = "critical"
    WARNING = "warning"


class AlertState(StrEnum):
    """Whether the condition holds now."""

    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition that began (firing) or ended (resolved); the key on the topic is its ``id``.

    ``subject`` names what it is about: some of ``node``, ``role``, ``feature``, ``source``,
    ``record``, ``znode``. ``summary`` is one sentence that says who must do what. ``since_ms`` is
    the time at which the condition began, ``at_ms`` the time of this message's cause, and ``cause``
    names the event that it was. ``name`` is what people call the cluster (empty: nothing).
    """

    id: str
    cluster: ClusterId
    rule: str
    severity: Severity
    state: AlertState
    subject: Mapping[str, str | int]
    summary: str
    evidence: Mapping[str, Any]
    since_ms: int
    at_ms: int
    cause: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class CapabilityClass:
    """Nodes of one role that advertise the same ranges; ids ascending.

    ``complete`` is false where responses may omit supported features.
    """

    role: Role
    ranges: Mapping[FeatureName, SupportedRange]
    complete: bool
    nodes: tuple[NodeId, ...]
    fenced: tuple[NodeId, ...]
    silent: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class IncompatibleNode:
    """A node that a finalized level excludes; ``verdict`` is "no" or "unknown"."""

    role: Role
    node_id: NodeId
    feature: FeatureName
    level: FeatureLevel
    range: SupportedRange | None
    verdict: str


@dataclass(frozen=True, slots=True)
class ZookeeperController:
    """The controller of a cluster according to ZooKeeper; all -1 where it has none, or is not
    watched.

    ``epoch`` is the controller epoch, and ``kraft_epoch`` is not -1 where the controller is a KRaft
    one, as it is while a cluster migrates.
    """

    node_id: int = -1
    epoch: int = -1
    kraft_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Migration:
    """How far a cluster is on its way from ZooKeeper to KRaft (KIP-866).

    ``state`` is the log's: none, pre-migration, migration, post-migration, or unknown.
    ``kraft_controller_id`` wrote the migration znode (-1: there is none). While it is in progress,
    ``missing`` are the brokers in ZooKeeper that have not registered with the KRaft controllers.
    """

    state: str = "unknown"
    in_progress: bool = False
    kraft_controller_id: int = -1
    brokers_in_zookeeper: int = 0
    missing: tuple[NodeId, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at a feature revision.

    ``digest`` covers cluster, epoch, revision, levels, classes, incompatible nodes and migration,
    and no times or positions: two snapshots with one digest are equal. ``sources`` maps
    each source to its state, and ``authority`` is the one that registrations and levels are taken
    from (none, api-versions, zookeeper, kraft). ``leader_id`` leads the controller quorum. ``name``
    is what people call the cluster (empty: nothing).
    """

    cluster: ClusterId
    epoch: int
    revision: int
    provenance: Mapping[str, Any]
    ready: bool
    leader_id: int
    leader_epoch: int
    finalized: Mapping[FeatureName, FeatureLevel]
    classes: tuple[CapabilityClass, ...]
    incompatible: tuple[IncompatibleNode, ...]
    sources: Mapping[str, str]
    digest: str
    at_ms: int
    authority: str = "none"
    controller: ZookeeperController = ZookeeperController()
    migration: Migration = Migration()
    name: str = ""

    @property
    def id(self) -> str:
        """``cluster/revision/revision``."""
        return f"{self.cluster}/revision/{self.revision}"


class OperationKind(StrEnum):
    """What a controller does."""

    TOPIC_CREATION = "topic-creation"
    PARTITION_ADDITION = "partition-addition"
    TOPIC_DELETION = "topic-deletion"
    REASSIGNMENT = "reassignment"
    ELECTION = "election"
    CONTROLLED_SHUTDOWN = "controlled-shutdown"


class OperationPhase(StrEnum):
    """How far an operation is; one of a single step is completed at once."""

    BEGAN = "began"
    PROGRESSED = "progressed"
    REPLACED = "replaced"
    """It goes on with another target."""
    COMPLETED = "completed"
    CANCELED = "canceled"


class ElectionReason(StrEnum):
    """Why partitions have other leaders."""

    FAILURE = "failure"
    """Their leader was fenced or unregistered, or another process took its place."""
    CONTROLLED_SHUTDOWN = "controlled-shutdown"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"
    REASSIGNMENT = "reassignment"
    """Their leader is no replica any more."""
    RETURN = "return"
    """They had none, and a broker that may lead came back."""
    OFFLINE_REPLICA = "offline-replica"
    """Their leader left the ISR while its broker lives: a log directory failed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of an operation of a controller.

    ``operation`` is the same for all steps of one operation. ``reason`` is why, where the log shows
    it: an `ElectionReason`, or empty. ``topic`` is empty and ``partition`` and ``broker`` are -1
    where the step is not about one. ``summary`` is one sentence. ``details`` depend on the kind;
    lists in it are cut at twenty. ``offset`` and ``leader_epoch`` are those of the record.
    """

    id: str
    cluster: ClusterId
    operation: str
    kind: OperationKind
    phase: OperationPhase
    reason: str
    topic: str
    partition: int
    broker: int
    summary: str
    details: Mapping[str, Any]
    offset: int
    leader_epoch: int
    append_ms: int
    seen_ms: int
