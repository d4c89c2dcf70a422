"""The requests of Raft and their responses, free of versions (KIP-595, KIP-630, KIP-853, KIP-996).

`wire.messages` translates them from and to Kafka's messages. An ``error`` is Kafka's number; that
of a whole response and that of its one partition are not distinguished, except by `is_top_level`.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey
from featurewatch.streams.types import LOG_START, UNSUPPORTED, OffsetAndEpoch, SupportedRange

NONE: Final = 0
UNKNOWN_SERVER_ERROR: Final = -1
UNKNOWN_TOPIC_OR_PARTITION: Final = 3
NOT_LEADER_OR_FOLLOWER: Final = 6
REQUEST_TIMED_OUT: Final = 7
UNSUPPORTED_VERSION: Final = 35
INVALID_REQUEST: Final = 42
FENCED_LEADER_EPOCH: Final = 74
UNKNOWN_LEADER_EPOCH: Final = 75
SNAPSHOT_NOT_FOUND: Final = 98
POSITION_OUT_OF_RANGE: Final = 99
INCONSISTENT_CLUSTER_ID: Final = 104
UNKNOWN_TOPIC_ID: Final = 100
INVALID_VOTER_KEY: Final = 125
DUPLICATE_VOTER: Final = 126
VOTER_NOT_FOUND: Final = 127

_TOP_LEVEL: Final = frozenset({INCONSISTENT_CLUSTER_ID, UNSUPPORTED_VERSION, UNKNOWN_SERVER_ERROR})

NO_LEADER: Final = -1
NO_HIGH_WATERMARK: Final = -1
ANY_HIGH_WATERMARK: Final = (1 << 63) - 1
"""What a Fetch before version 18 says of the follower's high watermark: never behind."""


def is_top_level(error: int) -> bool:
    """Whether an error is one of the whole response, beside which nothing else is in it."""
    return error in _TOP_LEVEL


@dataclass(frozen=True, slots=True)
class LeaderView:
    """What a replica says of the leader in each response; ``endpoints`` are those of the leader."""

    leader_id: int = NO_LEADER
    epoch: int = 0
    endpoints: tuple[Endpoint, ...] = ()


UNKNOWN_LEADER: Final = LeaderView()


@dataclass(frozen=True, slots=True)
class Vote:
    """Asks for a vote, or with ``is_pre_vote`` whether it would be given (``VoteRequest``)."""

    cluster_id: str | None
    voter: ReplicaKey
    """The replica that is asked; id -1 where an old version does not say."""
    epoch: int
    candidate: ReplicaKey
    last_epoch: int
    end_offset: int
    is_pre_vote: bool


@dataclass(frozen=True, slots=True)
class VoteAnswer:
    """The answer to a `Vote`."""

    error: int
    view: LeaderView = UNKNOWN_LEADER
    is_granted: bool = False


@dataclass(frozen=True, slots=True)
class BeginQuorumEpoch:
    """A leader tells that it leads (``BeginQuorumEpochRequest``)."""

    cluster_id: str | None
    voter: ReplicaKey
    leader_id: int
    epoch: int
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class EndQuorumEpoch:
    """A leader tells that it resigns, and who should succeed it (``EndQuorumEpochRequest``)."""

    cluster_id: str | None
    leader_id: int
    epoch: int
    successors: tuple[ReplicaKey, ...]
    """The best first."""
    endpoints: tuple[Endpoint, ...]


@dataclass(frozen=True, slots=True)
class EpochAnswer:
    """The answer to a `BeginQuorumEpoch` or `EndQuorumEpoch`."""

    error: int
    view: LeaderView = UNKNOWN_LEADER


@dataclass(frozen=True, slots=True)
class Fetch:
    """Reads the log of the leader (``FetchRequest``)."""

    cluster_id: str | None
    replica: ReplicaKey
    """Id -1: none of the quorum's, such as one that only watches."""
    epoch: int
    """The leader's epoch as known; -1: any."""
    offset: int
    last_epoch: int
    high_watermark: int
    max_wait_ms: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The answer to a `Fetch`: records, or what is wrong with the position."""

    error: int
    view: LeaderView = UNKNOWN_LEADER
    high_watermark: int = NO_HIGH_WATERMARK
    log_start: int = -1
    diverging: OffsetAndEpoch | None = None
    """The end of the newest epoch of the leader's log up to the one that was fetched."""
    snapshot: OffsetAndEpoch | None = None
    """The snapshot to load first."""
    records: bytes = b""


@dataclass(frozen=True, slots=True)
class FetchSnapshot:
    """Reads a part of a snapshot of the leader (``FetchSnapshotRequest``)."""

    cluster_id: str | None
    replica: ReplicaKey
    epoch: int
    snapshot: OffsetAndEpoch
    position: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class FetchSnapshotAnswer:
    """The answer to a `FetchSnapshot`; ``size`` is that of the whole snapshot, in bytes."""

    error: int
    view: LeaderView = UNKNOWN_LEADER
    snapshot: OffsetAndEpoch = LOG_START
    size: int = 0
    position: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class DescribeQuorum:
    """Asks the leader for the state of the replicas (``DescribeQuorumRequest``)."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica as the leader knows it; times are in ms, -1 where there is none."""

    key: ReplicaKey
    end_offset: int
    fetched_ms: int
    caught_up_ms: int


@dataclass(frozen=True, slots=True)
class DescribeQuorumAnswer:
    """The answer to a `DescribeQuorum`."""

    error: int
    view: LeaderView = UNKNOWN_LEADER
    high_watermark: int = NO_HIGH_WATERMARK
    voters: tuple[ReplicaState, ...] = ()
    observers: tuple[ReplicaState, ...] = ()
    endpoints: tuple[tuple[int, tuple[Endpoint, ...]], ...] = ()
    """The listeners of each voter."""


@dataclass(frozen=True, slots=True)
class AddVoter:
    """Adds a voter that has caught up (``AddRaftVoterRequest``, KIP-853)."""

    cluster_id: str | None
    voter: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    timeout_ms: int
    waits_for_commit: bool = True


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    """Removes a voter (``RemoveRaftVoterRequest``, KIP-853)."""

    cluster_id: str | None
    voter: ReplicaKey


@dataclass(frozen=True, slots=True)
class UpdateVoter:
    """A voter tells its listeners and versions (``UpdateRaftVoterRequest``, KIP-853)."""

    cluster_id: str | None
    epoch: int
    voter: ReplicaKey
    endpoints: tuple[Endpoint, ...]
    kraft_versions: SupportedRange


@dataclass(frozen=True, slots=True)
class AskVersions:
    """Asks a replica which kraft.version it supports (``ApiVersionsRequest``)."""


@dataclass(frozen=True, slots=True)
class VersionsAnswer:
    """The answer to an `AskVersions`, which says nothing of the leader."""

    error: int
    kraft_versions: SupportedRange = UNSUPPORTED


@dataclass(frozen=True, slots=True)
class VoterAnswer:
    """The answer to an `AddVoter`, `RemoveVoter` or `UpdateVoter`."""

    error: int
    message: str | None = None
    view: LeaderView = UNKNOWN_LEADER


RaftRequest = (
    Vote
    | BeginQuorumEpoch
    | EndQuorumEpoch
    | Fetch
    | FetchSnapshot
    | DescribeQuorum
    | AddVoter
    | RemoveVoter
    | UpdateVoter
    | AskVersions
)
ViewedAnswer = (
    VoteAnswer
    | EpochAnswer
    | FetchAnswer
    | FetchSnapshotAnswer
    | DescribeQuorumAnswer
    | VoterAnswer
)
"""An answer that says who leads."""
RaftAnswer = ViewedAnswer | VersionsAnswer

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = UUID(int=1)
