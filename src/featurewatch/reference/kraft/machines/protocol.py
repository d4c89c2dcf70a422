"""The events and effects of a voter, and the contract of its shell.

``voter.receive(event, now_ms)`` processes one event and returns the effects that follow, in order.
A shell guarantees:

- Effects are performed in order, those of an earlier event first, each to its end before the next:
  `Persist`, `Flush` and `InstallSnapshot` return when the disk has it. The process may end between
  any two. The machine may receive further events while earlier effects wait.
- Each `Send` gets one `AnswerReceived` with its number; ``answer`` None if it failed or took longer
  than the request timeout.
- After each `Flush` a `Flushed` with its offset follows.
- `Tick` comes many times a second; timeouts expire only then. ``now_ms`` never goes back.
- After `Halt` the machine gets no more events and the process ends.
"""

from dataclasses import dataclass

from featurewatch.reference.kraft.machines.batches import Batch
from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey
from featurewatch.reference.kraft.machines.requests import RaftAnswer, RaftRequest
from featurewatch.streams.types import OffsetAndEpoch


@dataclass(frozen=True, slots=True)
class QuorumState:
    """What a replica must remember of elections (``QuorumStateData``); leader -1: unknown."""

    epoch: int = 0
    leader_id: int = -1
    voted: ReplicaKey | None = None


# -- events ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True, slots=True)
class RequestReceived:
    """A request; one `Reply` carries its ``request_id``, at once or later."""

    request_id: int
    request: RaftRequest


@dataclass(frozen=True, slots=True)
class AnswerReceived:
    """The answer to the `Send` with this number; None: it failed."""

    number: int
    answer: RaftAnswer | None


@dataclass(frozen=True, slots=True)
class Flushed:
    """The log before this offset, as it was at the `Flush`, is on disk.

    ``epoch`` is that of the `Flush`: one from before the log was cut off says nothing any more.
    """

    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class Propose:
    """The leader should append a batch of metadata records, given as bytes.

    It is not appended unless the replica leads ``epoch``, and the log ends at ``offset``, where
    they are given: so what was decided in an old leadership, or for another place in the log, is
    never appended. One `Proposed` carries the token.
    """

    token: int
    values: tuple[bytes, ...]
    epoch: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class SnapshotTaken:
    """The state before an offset that is committed is in a snapshot, with its footer (KIP-630).

    With ``trims`` the log before it is deleted.
    """

    snapshot: OffsetAndEpoch
    data: bytes
    trims: bool = False


@dataclass(frozen=True, slots=True)
class Resign:
    """The leader should resign, because its process ends or it cannot lead."""


Event = Tick | RequestReceived | AnswerReceived | Flushed | Propose | SnapshotTaken | Resign


# -- effects ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Persist:
    """Replace the quorum state on disk."""

    state: QuorumState


@dataclass(frozen=True, slots=True)
class Append:
    """Append batches to the log; they are durable at the next `Flush`."""

    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log off: the batches from this offset on."""

    offset: int


@dataclass(frozen=True, slots=True)
class Flush:
    """Make the log before this offset durable; `Flushed` follows with the same epoch."""

    offset: int
    epoch: int


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Write a snapshot; with ``trims`` delete the log before it afterwards."""

    snapshot: OffsetAndEpoch
    data: bytes
    trims: bool


@dataclass(frozen=True, slots=True)
class InstallSnapshot:
    """Write a snapshot of the leader, then replace the whole log by an empty one that follows it.

    Whoever applies the log loads the snapshot.
    """

    snapshot: OffsetAndEpoch
    data: bytes


@dataclass(frozen=True, slots=True)
class Send:
    """Send a request to a node; ``node_id`` is -1 where only the address is known."""

    number: int
    node_id: int
    endpoint: Endpoint
    request: RaftRequest


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a request."""

    request_id: int
    answer: RaftAnswer


@dataclass(frozen=True, slots=True)
class Proposed:
    """A `Propose` was appended; ``last_offset`` -1: it was not.

    ``end`` is where the log ends then. A refusal without the loss of the leadership means that the
    leader wrote control records itself.
    """

    token: int
    last_offset: int
    end: int


@dataclass(frozen=True, slots=True)
class BecameLeader:
    """This replica leads; all records before ``start_offset`` will be committed or already are."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class LostLeadership:
    """This replica no longer leads the epoch; what is not committed may be cut off."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Committed:
    """The log before this offset is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Write one line to the log of the process."""

    line: str
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class Halt:
    """End the process, because going on would lose or change what is committed."""

    reason: str


Effect = (
    Persist
    | Append
    | Truncate
    | Flush
    | WriteSnapshot
    | InstallSnapshot
    | Send
    | Reply
    | Proposed
    | BecameLeader
    | LostLeadership
    | Committed
    | WriteLog
    | Halt
)
