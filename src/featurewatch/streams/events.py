"""The events that sources publish, one closed union per input topic.

Times are milliseconds since the Unix epoch. Each event has an ``id`` that follows from its cause
alone, so that an event published twice is recognized (it is the ``ce_id`` header on the topic).
``KIND`` is its ``kind`` on the topic. `streams.fields` has the types of fields and what is derived
from them; the first paragraph of a class is its row in ``docs/reference/topics.md``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Final, TypedDict

from featurewatch.common.text import shortened
from featurewatch.streams.fields import (
    AppendMs,
    Checksum,
    ClusterName,
    Detail,
    DetailOrNone,
    Int32,
    Int32OrNone,
    LevelRange,
    Name,
    NotBelow,
    Offset,
    OffsetOrNone,
    Published,
    Rule,
    SeenMs,
    TimeOrNone,
)
from featurewatch.streams.types import (
    NO_CHECKSUM,
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
)
from featurewatch.streams.znodes import Znode

RecordJson = Mapping[str, Any]
"""One metadata record: a `MetadataRecord`. One that could not be read has the type `UNREADABLE`."""

UNREADABLE = "UNREADABLE"


class MetadataRecord(TypedDict):
    """A metadata record: ``type``, ``version`` and ``data`` are what ``kafka-dump-log
    --cluster-metadata-decoder`` prints for it. Control records have the types ``LEADER_CHANGE``,
    ``KRAFT_VERSION`` and ``KRAFT_VOTERS``. A record that could not be read has the type
    ``UNREADABLE`` and ``data`` = ``{"reason": ...}``; its bytes are in the dead letters. If its
    type or version is not known, ``unknown`` names both, ``hidesState`` says whether it may be
    about registrations, levels or voters, and ``repeated`` that an earlier one is in the dead
    letters.
    """

    offset: int
    type: str
    version: int
    data: Mapping[str, Any]


Records = Annotated[Sequence[RecordJson], Rule.RECORDS, Published(tuple[MetadataRecord, ...])]
"""The records of the wanted types."""

Skipped = Annotated[
    Mapping[str, Offset], "The number of records of each type that featurewatch does not need."
]


class CommitKind(StrEnum):
    """How the records of a `LogCommit` were committed together."""

    BATCH = "batch"
    TRANSACTION = "transaction"


@dataclass(frozen=True, slots=True)
class LogCommit:
    """Records that were committed together: a batch, or one whole metadata transaction."""

    cluster: ClusterId
    kind: CommitKind
    first_offset: Offset
    last_offset: Annotated[Offset, NotBelow("first_offset")]
    """Inclusive; not below ``first_offset``."""
    leader_epoch: Int32
    append_ms: AppendMs
    records: Records
    skipped: Skipped
    seen_ms: SeenMs
    checksum: Checksum = NO_CHECKSUM
    """The CRC-32C of the record batch that holds ``last_offset``; -1 or missing: not known."""

    @property
    def id(self) -> str:
        """``cluster/kraft/first-last``."""
        return f"{self.cluster}/kraft/{self.first_offset}-{self.last_offset}"


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """A part of a metadata snapshot: the whole state just before ``end_offset``; after the chunk
    with ``last``, the snapshot replaces all earlier state.
    """

    KIND: ClassVar = "snapshot-chunk"

    cluster: ClusterId
    end_offset: Offset
    leader_epoch: Int32
    index: Int32
    """The number of the chunk, from 0."""
    last: bool
    append_ms: AppendMs
    records: Records
    skipped: Skipped
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/kraft/snapshot-end-epoch/index``."""
        return f"{self.cluster}/kraft/snapshot-{self.end_offset}-{self.leader_epoch}/{self.index}"


@dataclass(frozen=True, slots=True)
class LogGap:
    """A range of offsets that cannot be read; with ``reset``, the log itself starts over."""

    KIND: ClassVar = "gap"

    cluster: ClusterId
    from_offset: Offset
    to_offset: Offset
    """Inclusive; below ``from_offset`` if the position was lost without a record in between."""
    reason: Detail
    reset: bool
    """The log itself went backwards (committed records were lost): what follows is its content from
    the beginning, and replaces what was known."""
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/kraft/gap-from-to``."""
        return f"{self.cluster}/kraft/gap-{self.from_offset}-{self.to_offset}"


class SourceState(StrEnum):
    """Whether a source is up to date with the cluster that it follows."""

    CATCHING_UP = "catching-up"
    FOLLOWING = "following"
    STALLED = "stalled"
    """The source runs and cannot read: ``detail`` says why and what to do."""
    SILENT = "silent"
    """The source published nothing for too long; published by the worker, not by the source."""
    RETIRED = "retired"
    """The source will not return; published by a person. If it does, it counts again."""


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The source's heartbeat, or a change of its state.

    A source resumes after ``offset``.
    """

    KIND: ClassVar = "status"

    cluster: ClusterId
    source: Name
    state: SourceState
    offset: OffsetOrNone
    """The last offset published or skipped; -1: none, or not a log."""
    offset_epoch: Int32OrNone
    """The leader epoch under which that offset was appended; -1: none."""
    high_watermark: OffsetOrNone
    """The cluster's; -1: not known, or not a log."""
    leader_id: Int32OrNone
    """The leader of the cluster's controller quorum; -1: not known."""
    leader_epoch: Int32OrNone
    """The leader's epoch; -1: not known."""
    detail: Detail
    seen_ms: SeenMs
    offset_checksum: Checksum = NO_CHECKSUM
    """The CRC-32C of the record batch that holds ``offset``; -1 or missing: not known."""
    name: ClusterName = ""
    addresses: DetailOrNone = ""
    """The addresses of the cluster in the configuration of the source's process; empty: not known.
    Two processes that publish one source from different addresses may follow different clusters."""

    @property
    def id(self) -> str:
        """``cluster/source/state-seen_ms``: a heartbeat is its own cause."""
        return f"{self.cluster}/{self.source}/{self.state}-{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person ended an ``alert`` about something that is over, with who and why
    (``featurewatch alerts acknowledge``).
    """

    KIND: ClassVar = "acknowledgement"

    cluster: ClusterId
    alert: Name
    """The alert's id."""
    by: Detail
    """The person who acknowledged it."""
    reason: Detail
    seen_ms: SeenMs
    """When it was acknowledged, in milliseconds since the Unix epoch."""

    @property
    def id(self) -> str:
        """``alert/acknowledged-seen_ms``."""
        return f"{self.alert}/acknowledged-{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class SourceResync:
    """The source publishes its whole state again, which replaces all earlier state once it is
    complete: on ``metadata-log`` when the source is following again, on ``api-versions`` at the
    ``resync`` with ``finished``.

    ZooKeeper's source publishes a `ZnodeSnapshot` instead.
    """

    KIND: ClassVar = "resync"

    cluster: ClusterId
    source: Name
    finished: bool
    """Whether the whole state has been published."""
    reason: Detail
    seen_ms: SeenMs
    """When the source began or finished, in milliseconds since the Unix epoch."""

    @property
    def id(self) -> str:
        """``cluster/source/resync-seen_ms``, or ``resynced-…`` at the end."""
        verb = "resynced" if self.finished else "resync"
        return f"{self.cluster}/{self.source}/{verb}-{self.seen_ms}"


LogEvent = LogCommit | SnapshotChunk | LogGap | SourceResync | SourceStatus | Acknowledgement
"""The events on ``featurewatch.metadata-log``."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """A node's supported ranges, and the finalized levels that it reports."""

    KIND: ClassVar = "node-answer"

    cluster: ClusterId
    role: Role
    node_id: NodeId
    address: str
    """host:port."""
    supported: Mapping[FeatureName, LevelRange]
    """Supported ranges by feature."""
    finalized: Mapping[FeatureName, FeatureLevel]
    """Finalized levels by feature."""
    epoch: OffsetOrNone
    """The finalized features epoch; -1: the finalized levels do not count."""
    complete: bool
    """False for requests below version 4: the supported features whose minimum is 0 are missing
    (KAFKA-17492)."""
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/api-versions/role-node/seen_ms``: a response is its own cause."""
        return f"{self.cluster}/api-versions/{self.role}-{self.node_id}/{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class NodeSilent:
    """A node does not respond; with ``gone``, the cluster no longer lists it."""

    KIND: ClassVar = "node-silent"

    cluster: ClusterId
    role: Role
    node_id: NodeId
    address: str
    """host:port."""
    gone: bool
    detail: Detail
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/api-versions/role-node/silent-seen_ms``."""
        return f"{self.cluster}/api-versions/{self.role}-{self.node_id}/silent-{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class FeatureView:
    """A finalized level of one feature as some nodes see it."""

    level: FeatureLevel
    """0: not finalized."""
    nodes: tuple[Name, ...]
    """``role-id``, sorted."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Nodes report different finalized levels of a feature in the same round; with fewer than two
    ``views``, they agree again.
    """

    KIND: ClassVar = "disagreement"

    cluster: ClusterId
    feature: FeatureName
    views: tuple[FeatureView, ...]
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/api-versions/disagreement-feature/seen_ms``."""
        return f"{self.cluster}/api-versions/disagreement-{self.feature}/{self.seen_ms}"


class ReplicaState(StrEnum):
    """How a replica of the metadata log follows the active controller."""

    FOLLOWING = "following"
    """It fetches and has the whole log, or is the active controller."""
    BEHIND = "behind"
    """It fetches and has not had the whole log for ten seconds."""
    SILENT = "silent"
    """It has not fetched for five seconds."""
    UNKNOWN = "unknown"
    """The active controller does not report when replicas fetched."""


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """A voter or an observer of the metadata quorum, as the active controller knows it."""

    node_id: NodeId
    directory_id: str
    """The id of the directory with its log, as Kafka prints it; empty: not known, as where voters
    are static."""
    state: ReplicaState
    lag: OffsetOrNone
    """How many records it was behind when this was published; 0 while it follows; -1: not known."""
    since_ms: TimeOrNone
    """By the active controller's clock, in milliseconds since the Unix epoch: of one that is behind
    when it last had the whole log, of a silent one when it last fetched; -1: neither, or not
    known."""
    endpoints: tuple[Name, ...]
    """The listeners of a voter, as ``name://host:port``."""


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """The metadata quorum as the active controller describes it: published when its members or the
    state of one change, and once a minute while one is behind.

    Brokers observe the quorum too; those that the cluster lists are left out.
    """

    KIND: ClassVar = "quorum"

    cluster: ClusterId
    leader_id: Int32OrNone
    """The active controller; -1: not known."""
    leader_epoch: Int32OrNone
    """Its epoch; -1: not known."""
    voters: tuple[ReplicaStatus, ...]
    """By id."""
    observers: tuple[ReplicaStatus, ...]
    """By id."""
    detail: Detail
    """Why the quorum cannot be described now; the rest is then what was known last."""
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/api-versions/quorum/seen_ms``: a response is its own cause."""
        return f"{self.cluster}/api-versions/quorum/{self.seen_ms}"


ApiVersionsEvent = (
    NodeAnswer | NodeSilent | Disagreement | QuorumStatus | SourceResync | SourceStatus
)
"""The events on ``featurewatch.api-versions``."""


@dataclass(frozen=True, slots=True)
class ZnodeChange:
    """One observed change of one znode: created, written, or, if ``znode`` is null, deleted.

    A watch triggers once and carries no data, so between two reads a znode may change more than
    once.
    """

    KIND: ClassVar = "znode-change"

    cluster: ClusterId
    path: Name
    """Without the chroot."""
    znode: Znode | None
    """Its state then; null: it was deleted."""
    missed: Offset
    """The number of versions since the previous read that were never read."""
    recreated: bool
    """It was deleted and created again since the previous read."""
    zxid: Offset
    """The newest transaction that the source knew of; it does not go back."""
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/zookeeper/path/czxid-version``, or ``…/gone-zxid``."""
        if self.znode is None:
            return f"{self.cluster}/zookeeper{self.path}/gone-{self.zxid}"
        return f"{self.cluster}/zookeeper{self.path}/{self.znode.czxid}-{self.znode.version}"


@dataclass(frozen=True, slots=True)
class ZnodeSnapshot:
    """A part of all watched znodes; after the chunk with ``last``, the chunks of one ``resync``
    replace all earlier state.

    Znodes are read again at the start, and after a session was lost.
    """

    KIND: ClassVar = "znode-snapshot"

    cluster: ClusterId
    resync: Name
    """Identifies the snapshot: the ZooKeeper session with a count, which is never used twice."""
    index: Int32
    """The number of the chunk, from 0."""
    last: bool
    znodes: tuple[Znode, ...]
    reason: Detail
    """Why all znodes were read again."""
    zxid: Offset
    """The newest transaction that the source knew of."""
    seen_ms: SeenMs

    @property
    def id(self) -> str:
        """``cluster/zookeeper/snapshot-resync/index``."""
        return f"{self.cluster}/zookeeper/snapshot-{self.resync}/{self.index}"


ZookeeperEvent = ZnodeChange | ZnodeSnapshot | SourceStatus
"""The events on ``featurewatch.zookeeper``."""

Event = LogEvent | ApiVersionsEvent | ZookeeperEvent


def begins_state(event: Event) -> bool:
    """Whether a source's whole state begins with an event: nothing before it is needed."""
    match event:
        case LogCommit():
            return event.first_offset == 0
        case SnapshotChunk() | ZnodeSnapshot():
            return event.index == 0
        case LogGap():
            return event.reset
        case SourceResync():
            return not event.finished
        case _:
            return False


MAX_PAYLOAD_BYTES: Final = 4 << 20
"""The bytes that a dead letter carries: a whole znode, and of a damaged batch, which may have 20
MiB, the first of them. In base64 they take a third more, which the bus accepts."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Bytes that could not be read, with the reason and where they came from."""

    KIND: ClassVar = "dead-letter"

    cluster: str
    """Kafka's cluster id; empty if it is not known."""
    location: str
    """A topic, partition and offset, or a log and its offset."""
    reason: Detail
    payload: bytes
    """The first 4 MiB of the bytes, as base64 (RFC 4648, padded)."""
    seen_ms: SeenMs
    headers: Mapping[str, str] = field(default_factory=dict)
    """The headers of the message that the bytes came in."""
    payload_bytes: Offset = -1
    """The length of all the bytes."""
    payload_sha256: str = ""
    """The SHA-256 of all the bytes, as hexadecimal digits."""

    def __post_init__(self) -> None:
        """Takes length and digest of a payload that is whole, as a dead letter's maker has it."""
        if self.payload_bytes < 0:
            object.__setattr__(self, "payload_bytes", len(self.payload))
            object.__setattr__(self, "payload_sha256", sha256(self.payload).hexdigest())

    @property
    def id(self) -> str:
        """``cluster/dead/location/digest``: a node may fail at one place in several ways."""
        content = f"{self.payload_sha256} {shortened(self.reason)}"
        digest = sha256(content.encode(errors="backslashreplace")).hexdigest()
        return f"{self.cluster}/dead/{self.location}/{digest[:16]}"


@dataclass(frozen=True, slots=True)
class ResyncRequest:
    """A request that a source publish the whole state of its cluster again."""

    KIND: ClassVar = "resync-request"

    cluster: ClusterId
    source: str
    """The source: kraft, zookeeper or api-versions; empty: every source of the cluster."""
    reason: Detail
    """Why the state is needed, for people."""
    seen_ms: SeenMs
    """When it was requested, in milliseconds since the Unix epoch."""

    @property
    def id(self) -> str:
        """``cluster/resync/source/time``."""
        return f"{self.cluster}/resync/{self.source or 'all'}/{self.seen_ms}"
