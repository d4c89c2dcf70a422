"""The events on the output topics.

Each has an ``id`` that follows from its cause, so that one that is published twice is recognized.
Times are milliseconds since the Unix epoch. `streams.fields` has the types of fields and what is
derived from them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, TypedDict

from featurewatch.streams.fields import (
    INT64_BOUNDS,
    AppendMs,
    ClusterName,
    Detail,
    Int32,
    Int32OrNone,
    Int64,
    Name,
    Offset,
    OffsetOrNone,
    Pattern,
    Published,
    Rule,
    TimeOrNone,
)
from featurewatch.streams.types import (
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRange,
)

_Count = Annotated[Int64, Published(Offset)]
_Position = Annotated[Int64, Published(OffsetOrNone)]
_Number = Annotated[Int64, Published(Int32OrNone)]
_Level = Annotated[FeatureLevel, INT64_BOUNDS, Published(Offset)]


class LogProvenance(TypedDict):
    """A place in the metadata log."""

    offset: OffsetOrNone
    """The last offset of the commit or snapshot; -1: none was read yet."""
    leader_epoch: Int32OrNone
    append_ms: AppendMs


class ZnodeProvenance(TypedDict):
    """A znode as it was read."""

    path: Name
    """Without the chroot."""
    czxid: OffsetOrNone
    """The transaction that created it; -1: it was deleted."""
    zxid: OffsetOrNone
    """The transaction that last changed it; where it was deleted, the newest one known then."""
    version: Int32OrNone
    """The number of changes of its data; -1: it was deleted."""
    seen_ms: TimeOrNone
    """When the source saw it, in milliseconds since the Unix epoch; -1: not known."""


class AnswerProvenance(TypedDict):
    """A node's response to ApiVersions."""

    role: Role
    node_id: NodeId
    epoch: OffsetOrNone
    seen_ms: TimeOrNone
    """When the response was received, in milliseconds since the Unix epoch; -1: not known."""


Provenance = Annotated[
    Mapping[str, Any],
    Published(LogProvenance | ZnodeProvenance | AnswerProvenance, closed=True),
    "Its origin: a position in the metadata log, a znode, or an ApiVersions response.",
]
Epoch = Annotated[
    _Position,
    "The cluster's own version of its set of levels: for a metadata log the offset of the last "
    "commit that changed it, for ZooKeeper the version of the features znode. It is neither a "
    "level nor a count of changes.",
]
Revision = Annotated[_Count, "The number of commits that changed a level of this cluster."]


class ChangeKind(StrEnum):
    """The kinds of changes of a finalized level."""

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
    """One finalized level changed."""

    cluster: ClusterId
    feature: FeatureName
    before: _Level
    """The level before; 0 if it was not finalized, which is the case if ``kind`` is finalized.
    With any other kind 0 is a level: only the early draft of KIP-584, in ZooKeeper mode, finalizes
    features at 0."""
    after: _Level
    """The level after; 0 if it is not finalized any more, which is the case if ``kind`` is
    removed. With any other kind 0 is a level, as before."""
    kind: ChangeKind
    epoch: Epoch
    revision: Revision
    provenance: Provenance
    from_snapshot: bool
    """True: found by comparison with a snapshot, not observed itself."""
    append_ms: AppendMs
    seen_ms: TimeOrNone
    """When the source saw it, in milliseconds since the Unix epoch; -1: not known."""

    @property
    def id(self) -> str:
        """``cluster/change/feature/revision``: one revision changes a feature once."""
        return f"{self.cluster}/change/{self.feature}/{self.revision}"

    @property
    def message_kind(self) -> str:
        """The last part of the ``ce_type`` of its message."""
        return str(self.kind)

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


class AlertSubject(TypedDict, total=False):
    """The subject of an alert."""

    node: int
    role: Role
    feature: str
    source: str
    record: str
    znode: str
    partitions: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition that began, changed or ended."""

    id: Name
    """cluster/rule/subject: the same as long as the condition lasts."""
    cluster: ClusterId
    rule: Name
    severity: Severity
    state: AlertState
    subject: Annotated[Mapping[str, str | int], Published(AlertSubject, closed=True)]
    """The subject: some of node and role, feature, source, record, znode, partitions."""
    summary: Annotated[Detail, Published(Name)]
    """One sentence: what is wrong, and who must do what."""
    evidence: Mapping[str, Any]
    """The facts that prove it; the fields depend on the rule."""
    since_ms: TimeOrNone
    """When the condition began, in milliseconds since the Unix epoch; -1: not known."""
    at_ms: TimeOrNone
    """When this message's cause happened, in milliseconds since the Unix epoch; -1: not known."""
    cause: Annotated[str, Published(Name)]
    """The event, or the place of the message, by which it began, changed or ended."""
    name: ClusterName = ""

    @property
    def message_kind(self) -> str:
        """The last part of the ``ce_type`` of its message."""
        return str(self.state)


@dataclass(frozen=True, slots=True)
class CapabilityClass:
    """Nodes of one role that advertise the same ranges; ids ascending."""

    role: Role
    ranges: Annotated[Mapping[FeatureName, SupportedRange], Rule.RANGES]
    """Supported ranges by feature."""
    complete: bool
    """False: responses may omit supported features."""
    nodes: tuple[NodeId, ...]
    fenced: tuple[NodeId, ...]
    silent: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class IncompatibleNode:
    """A node that a finalized level excludes, or may exclude."""

    role: Role
    node_id: NodeId
    feature: FeatureName
    level: _Level
    range: SupportedRange | None
    """The levels that it supports; null: nothing is known of this feature."""
    verdict: Annotated[str, Published(Literal["no", "unknown"])]


@dataclass(frozen=True, slots=True)
class ZookeeperController:
    """The controller of a cluster according to ZooKeeper."""

    node_id: _Number = -1
    """-1: no controller is active, or ZooKeeper is not watched."""
    epoch: _Number = -1
    """The controller epoch; -1: not known."""
    kraft_epoch: _Number = -1
    """The leader epoch of a KRaft controller, as while a cluster migrates; -1: it is a broker."""


@dataclass(frozen=True, slots=True)
class Migration:
    """The progress of a migration from ZooKeeper to KRaft (KIP-866)."""

    state: Annotated[
        str,
        Published(Literal["none", "migration", "pre-migration", "post-migration", "unknown"]),
    ] = "unknown"
    """The state in the metadata log."""
    in_progress: bool = False
    """It has begun and is not over."""
    kraft_controller_id: _Number = -1
    """The KRaft controller that wrote the migration znode; -1: there is no such znode."""
    brokers_in_zookeeper: Annotated[Int64, Published(Int32)] = 0
    """The number of live brokers in ZooKeeper."""
    missing: tuple[NodeId, ...] = ()
    """Brokers in ZooKeeper that have not registered with the KRaft controllers as migrating,
    ascending; only while it is in progress."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a cluster at a feature revision."""

    cluster: ClusterId
    epoch: Epoch
    revision: Revision
    provenance: Provenance
    ready: bool
    """Whether the source of authority has caught up, and read no record that hides state; false:
    this may be a part of the cluster."""
    leader_id: _Number
    """The leader of the controller quorum; -1: not known."""
    leader_epoch: _Number
    """The leader's epoch; -1: not known."""
    finalized: Mapping[FeatureName, _Level]
    """Finalized levels by feature; one that is missing is not finalized. Only the early draft of
    KIP-584, in ZooKeeper mode, finalizes features at 0."""
    classes: tuple[CapabilityClass, ...]
    """Nodes of one role that advertise the same ranges."""
    incompatible: tuple[IncompatibleNode, ...]
    """Nodes that a finalized level excludes, or may exclude: the first 50,000 by role and id."""
    sources: Mapping[
        Name,
        Annotated[str, Published(Literal["catching-up", "following", "stalled", "silent"])],
    ]
    """The state of each source."""
    digest: Annotated[str, Published(Annotated[str, Pattern("^[0-9a-f]+$")])]
    """SHA-256 over cluster, epoch, revision, levels, classes, incompatible nodes and migration, and
    no times or positions: two snapshots with one digest have the same content."""
    at_ms: TimeOrNone
    """When its cause happened, or when it was taken, in milliseconds since the Unix epoch; -1: not
    known."""
    authority: Annotated[str, Published(Literal["none", "api-versions", "zookeeper", "kraft"])] = (
        "none"
    )
    """The source that registrations and levels are taken from."""
    controller: ZookeeperController = ZookeeperController()
    migration: Migration = Migration()
    name: ClusterName = ""

    @property
    def id(self) -> str:
        """``cluster/revision/revision``."""
        return f"{self.cluster}/revision/{self.revision}"

    @property
    def message_kind(self) -> str:
        """The last part of the ``ce_type`` of its message."""
        return "snapshot"


class OperationKind(StrEnum):
    """The kinds of a controller's operations."""

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
    """It continues with another target."""
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
    """Their leader is no longer a replica."""
    RETURN = "return"
    """They had none, and a broker that may lead came back."""
    OFFLINE_REPLICA = "offline-replica"
    """Their leader left the ISR while its broker lives: a log directory failed."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One step of an operation of a cluster's controller."""

    id: Name
    """operation/phase/offset: the same if the step is published twice."""
    cluster: ClusterId
    operation: Name
    """The same for all steps of one operation."""
    kind: OperationKind
    phase: OperationPhase
    """The progress; replaced: it continues with another target. An operation of a single step is
    completed at once."""
    reason: Annotated[str, Published(Literal[""] | ElectionReason)]
    """Why partitions have other leaders; empty for other kinds, and where the log does not show
    it."""
    topic: str
    """The name of the topic; empty: the step is not about one."""
    partition: Int32OrNone
    """The number of the partition; -1: the step is not about one."""
    broker: Int32OrNone
    """The broker that shuts down, or that led; -1: the step is not about one."""
    summary: Detail
    """One sentence for people."""
    details: Mapping[str, Any]
    """By kind; lists are cut at twenty. Creation, addition and deletion: topic_id, partitions,
    replicas, first. Reassignment: replicas, target, adding, removing, isr, and the number of those
    in adding that caught up. Election: partitions, those of them without a leader, and up to twenty
    as [partition, leader before, leader after]. Shutdown: broker_epoch."""
    offset: _Position
    """The offset of its first record in the metadata log."""
    leader_epoch: Int32OrNone
    append_ms: AppendMs
    seen_ms: TimeOrNone
    """When the source saw it, in milliseconds since the Unix epoch; -1: not known."""

    @property
    def message_kind(self) -> str:
        """The last part of the ``ce_type`` of its message."""
        return f"{self.kind}.{self.phase}"
