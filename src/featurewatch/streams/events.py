"""The events that sources publish, one closed union per input topic.

Times are milliseconds since the Unix epoch. ``seen_ms`` is when the source saw the change;
``append_ms`` is when Kafka's controller appended it (-1: not known). Each event has an ``id`` that
follows from its cause alone, so that an event published twice is recognized (it is the ``ce_id``
header on the topic).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from featurewatch.common.text import shortened
from featurewatch.streams.types import (
    NO_CHECKSUM,
    ClusterId,
    FeatureLevel,
    FeatureName,
    NodeId,
    Role,
    SupportedRange,
)
from featurewatch.streams.znodes import Znode

RecordJson = Mapping[str, Any]
"""One metadata record: ``{"offset", "type", "version", "data"}``.

``type``, ``version`` and ``data`` are what ``kafka-dump-log --cluster-metadata-decoder`` prints for
it. Control records have the types ``LEADER_CHANGE``, ``KRAFT_VERSION`` and ``KRAFT_VOTERS``. A
record that could not be read has the type `UNREADABLE` and ``data`` = ``{"reason": ...}``; its
bytes are in the dead letters.
"""

UNREADABLE = "UNREADABLE"


class CommitKind(StrEnum):
    """How the records of a `LogCommit` were committed together."""

    BATCH = "batch"
    TRANSACTION = "transaction"


@dataclass(frozen=True, slots=True)
class LogCommit:
    """One committed metadata batch, or one whole metadata transaction.

    Offsets are inclusive. ``records`` are those of the wanted types; ``skipped`` counts the others
    by type. ``checksum`` is the CRC-32C of the record batch that holds the last offset.
    """

    cluster: ClusterId
    kind: CommitKind
    first_offset: int
    last_offset: int
    leader_epoch: int
    append_ms: int
    records: Sequence[RecordJson]
    skipped: Mapping[str, int]
    seen_ms: int
    checksum: int = NO_CHECKSUM

    @property
    def id(self) -> str:
        """``cluster/kraft/first-last``."""
        return f"{self.cluster}/kraft/{self.first_offset}-{self.last_offset}"


@dataclass(frozen=True, slots=True)
class SnapshotChunk:
    """A part of a metadata snapshot: the whole state just before ``end_offset``.

    Chunks are numbered from 0 and ``last`` marks the final one; together they replace what was
    known from the log before.
    """

    cluster: ClusterId
    end_offset: int
    leader_epoch: int
    index: int
    last: bool
    append_ms: int
    records: Sequence[RecordJson]
    skipped: Mapping[str, int]
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/kraft/snapshot-end-epoch/index``."""
        return f"{self.cluster}/kraft/snapshot-{self.end_offset}-{self.leader_epoch}/{self.index}"


@dataclass(frozen=True, slots=True)
class LogGap:
    """A stretch of the log that cannot be had any more, or that turned out not to be true.

    ``reset`` says that the log itself went backwards (committed records are gone): what follows is
    its content from the beginning, and it replaces what was known.
    """

    cluster: ClusterId
    from_offset: int
    to_offset: int
    reason: str
    reset: bool
    seen_ms: int

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
    """A source's heartbeat, and each change of its state.

    ``offset`` is the last offset that the source has published or skipped (-1: none) and
    ``offset_epoch`` the leader epoch under which it was appended, ``offset_checksum`` the CRC-32C
    of its record batch (-1: not known): a source resumes after it.
    ``high_watermark``, ``leader_id`` and ``leader_epoch`` are the cluster's now (-1: not known, or
    not a log). ``name`` is what the source's configuration calls the cluster (empty: nothing).
    """

    cluster: ClusterId
    source: str
    state: SourceState
    offset: int
    offset_epoch: int
    high_watermark: int
    leader_id: int
    leader_epoch: int
    detail: str
    seen_ms: int
    offset_checksum: int = NO_CHECKSUM
    name: str = ""

    @property
    def id(self) -> str:
        """``cluster/source/state-seen_ms``: a heartbeat is its own cause."""
        return f"{self.cluster}/{self.source}/{self.state}-{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person has seen an alert about something that is over, which ends it.

    ``alert`` is the alert's id, ``by`` who acknowledged it, ``reason`` why.
    """

    cluster: ClusterId
    alert: str
    by: str
    reason: str
    seen_ms: int

    @property
    def id(self) -> str:
        """``alert/acknowledged-seen_ms``."""
        return f"{self.alert}/acknowledged-{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class SourceResync:
    """A source publishes its whole state again, in the events between two of these.

    It replaces what the source published before, once all of it is there: for the metadata log when
    the source is following again, for ApiVersions at the event with ``finished``. ZooKeeper's
    source publishes a `ZnodeSnapshot` instead.
    """

    cluster: ClusterId
    source: str
    finished: bool
    reason: str
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/source/resync-seen_ms``, or ``resynced-…`` at the end."""
        verb = "resynced" if self.finished else "resync"
        return f"{self.cluster}/{self.source}/{verb}-{self.seen_ms}"


LogEvent = LogCommit | SnapshotChunk | LogGap | SourceResync | SourceStatus | Acknowledgement
"""The events on ``featurewatch.metadata-log``."""


@dataclass(frozen=True, slots=True)
class NodeAnswer:
    """A node's features and the levels it sees, by ApiVersions.

    ``epoch`` is the finalized features epoch (-1: the finalized levels do not count).
    ``complete`` is false for requests below version 4, which leave out every supported feature
    whose minimum is 0 (KAFKA-17492). ``address`` is ``host:port``.
    """

    cluster: ClusterId
    role: Role
    node_id: NodeId
    address: str
    supported: Mapping[FeatureName, SupportedRange]
    finalized: Mapping[FeatureName, FeatureLevel]
    epoch: int
    complete: bool
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/api-versions/role-node/seen_ms``: a response is its own cause."""
        return f"{self.cluster}/api-versions/{self.role}-{self.node_id}/{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class NodeSilent:
    """A node that does not respond (``gone`` false) or that the cluster no longer lists (true)."""

    cluster: ClusterId
    role: Role
    node_id: NodeId
    address: str
    gone: bool
    detail: str
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/api-versions/role-node/silent-seen_ms``."""
        return f"{self.cluster}/api-versions/{self.role}-{self.node_id}/silent-{self.seen_ms}"


@dataclass(frozen=True, slots=True)
class FeatureView:
    """A finalized level of one feature as some nodes see it (level 0: not finalized)."""

    level: FeatureLevel
    nodes: tuple[str, ...]
    """``role-id``, sorted."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Nodes that respond in the same round with different finalized levels of one feature.

    ``views`` with fewer than two entries means that they agree again.
    """

    cluster: ClusterId
    feature: FeatureName
    views: tuple[FeatureView, ...]
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/api-versions/disagreement-feature/seen_ms``."""
        return f"{self.cluster}/api-versions/disagreement-{self.feature}/{self.seen_ms}"


ApiVersionsEvent = NodeAnswer | NodeSilent | Disagreement | SourceResync | SourceStatus
"""The events on ``featurewatch.api-versions``."""


@dataclass(frozen=True, slots=True)
class ZnodeChange:
    """One observed change of one znode: it was created, its data changed, or it was deleted.

    ``znode`` is its state then (None: deleted). A watch triggers once and carries no data, so
    between two reads a znode may change more than once: ``missed`` counts the versions that were
    not read, and ``recreated`` means that it was deleted and created again in between. ``zxid``
    is the newest transaction that the source knew of; it does not go back.
    """

    cluster: ClusterId
    path: str
    znode: Znode | None
    missed: int
    recreated: bool
    zxid: int
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/zookeeper/path/czxid-version``, or ``…/gone-zxid``."""
        if self.znode is None:
            return f"{self.cluster}/zookeeper{self.path}/gone-{self.zxid}"
        return f"{self.cluster}/zookeeper{self.path}/{self.znode.czxid}-{self.znode.version}"


@dataclass(frozen=True, slots=True)
class ZnodeSnapshot:
    """A chunk of all watched znodes, read again: at the start, or after a session was lost.

    Chunks are numbered from 0 and ``last`` marks the final one; together they replace what was
    known from ZooKeeper before. ``resync`` identifies a snapshot: it is the ZooKeeper session with
    a count, and so is never used twice.
    """

    cluster: ClusterId
    resync: str
    index: int
    last: bool
    znodes: tuple[Znode, ...]
    reason: str
    zxid: int
    seen_ms: int

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
    """Bytes that could not be read, with the reason and where they came from.

    ``location`` is a topic, partition and offset, or a log and its offset, as text. ``payload``
    is base64 on the topic, where only its first `MAX_PAYLOAD_BYTES` stand; ``payload_bytes`` and
    ``payload_sha256`` are the length and the SHA-256 of all of it.
    """

    cluster: str
    location: str
    reason: str
    payload: bytes
    seen_ms: int
    headers: Mapping[str, str] = field(default_factory=dict)
    payload_bytes: int = -1
    payload_sha256: str = ""

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
    """A source is to publish the whole state of its cluster anew.

    ``source`` is kraft, zookeeper or api-versions, or empty for every source of the cluster.
    ``reason`` is for people. ``seen_ms`` is the time of the request in Unix milliseconds.
    """

    cluster: ClusterId
    source: str
    reason: str
    seen_ms: int

    @property
    def id(self) -> str:
        """``cluster/resync/source/time``."""
        return f"{self.cluster}/resync/{self.source or 'all'}/{self.seen_ms}"
