"""A replica's identity, memory and messages, below its elections (``KafkaRaftClient``)."""

from collections.abc import Iterable
from dataclasses import dataclass
from random import Random
from typing import Final

from featurewatch.reference.kraft.machines.batches import Batch, ControlRecord, control_batch
from featurewatch.reference.kraft.machines.leadership import Leadership
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    Append,
    Committed,
    Effect,
    Flush,
    Persist,
    QuorumState,
    Reply,
    Send,
    WriteLog,
)
from featurewatch.reference.kraft.machines.replicas import (
    ANY_KRAFT_VERSION,
    Endpoint,
    ReplicaKey,
    VoterNode,
)
from featurewatch.reference.kraft.machines.requests import (
    NO_HIGH_WATERMARK,
    NO_LEADER,
    NOT_LEADER_OR_FOLLOWER,
    Fetch,
    FetchAnswer,
    LeaderView,
    RaftRequest,
)
from featurewatch.reference.kraft.machines.rules import NEWEST, RaftRules
from featurewatch.reference.kraft.machines.states import State
from featurewatch.streams.types import OffsetAndEpoch, SupportedRange

_LAST_EPOCH: Final = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class VoterSettings:
    """A replica's identity and times; the defaults are those of ``QuorumConfig``, in ms.

    ``endpoints`` are its own listeners, ``bootstrap`` where a replica that is no voter looks for
    the leader.
    """

    me: ReplicaKey
    cluster_id: str
    endpoints: tuple[Endpoint, ...]
    bootstrap: tuple[Endpoint, ...] = ()
    kraft_versions: SupportedRange = ANY_KRAFT_VERSION
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_ms: int = 1000
    retry_backoff_ms: int = 20
    request_timeout_ms: int = 2000
    fetch_wait_ms: int = 500
    max_fetch_bytes: int = 1 << 20
    max_snapshot_bytes: int = 256 << 20
    rules: RaftRules = NEWEST


@dataclass(frozen=True, slots=True)
class HeldFetch:
    """A Fetch that waits for records or a newer high watermark, at most until ``until_ms``.

    ``answer`` is the answer if nothing happens until then.
    """

    request: Fetch
    until_ms: int
    answer: FetchAnswer


class Replica:
    """A replica: a voter where the newest voters in its log have it, else an observer.

    ``log`` and ``remembered`` are what the disk has.
    """

    def __init__(
        self,
        settings: VoterSettings,
        log: Log,
        remembered: QuorumState,
        random: Random,
        now_ms: int,
    ) -> None:
        self.settings = settings
        self.me = settings.me
        self.log = log
        self.state = State.UNATTACHED
        self.epoch = remembered.epoch
        self.leader_id = NO_LEADER
        self.voted: ReplicaKey | None = remembered.voted
        self.leadership: Leadership | None = None
        self.is_halted = False
        self._leader_endpoints: tuple[Endpoint, ...] = ()
        self._random = random
        self._now_ms = now_ms
        self._deadline_ms = 0
        self._has_fetched = False
        """Whether the leader that it follows has answered a Fetch (KIP-996)."""
        self._granted: set[int] = set()
        self._refused: set[int] = set()
        self._acknowledged: set[int] = set()
        self._held: dict[int, HeldFetch] = {}
        self._known_high_watermark = -1
        """What its state knows of the high watermark: at first nothing if it leads or resigns."""
        self._has_news = False
        """Whether the Fetches that wait can be answered (``fetchPurgatory``)."""
        self._attempts = 1
        """The elections in a row in which it stood."""
        self._backoff_until_ms: int | None = None
        """When a candidate of Kafka 3.9 that lost begins the next election."""
        self._has_updated = False
        """Whether the leader that it follows knows its listeners (``hasUpdatedLeader``)."""
        self._numbers = 0
        self._sent: dict[int, tuple[int, RaftRequest]] = {}
        self._busy: dict[int, int] = {}  # a node and the number of the request that it has
        self._retry_ms: dict[int, int] = {}
        self._download: tuple[OffsetAndEpoch, bytearray] | None = None
        self._successors: tuple[ReplicaKey, ...] = ()
        """The voters that a resigned leader recommends, the best first."""
        self._update_ms = 0
        """When a voter whose description in the log is wrong tells the leader again."""
        self._persisted = remembered
        self._out: list[Effect] = []

    def emit(self, effect: Effect) -> None:
        """Appends an effect of the current event."""
        self._out.append(effect)

    @property
    def now_ms(self) -> int:
        """The time of the current event."""
        return self._now_ms

    @property
    def is_voter(self) -> bool:
        """Whether it is one of the newest voters in the log."""
        return self.log.voters.has(self.me)

    @property
    def view(self) -> LeaderView:
        """What it says of the leader in responses."""
        if self.leader_id == self.me.id and self.state is not State.LEADER:
            return LeaderView(NO_LEADER, self.epoch)
        if self.leader_id == NO_LEADER:
            return LeaderView(NO_LEADER, self.epoch)
        return LeaderView(self.leader_id, self.epoch, self._leader_endpoints)

    @property
    def exposed_high_watermark(self) -> int:
        """The high watermark that a leader tells: unknown until its own epoch has one.

        What it knew as a follower may be behind what its predecessor told others.
        """
        if self.leadership is None or self.log.high_watermark <= self.leadership.start:
            return NO_HIGH_WATERMARK
        return self.log.high_watermark

    def _peers(self) -> Iterable[VoterNode]:
        return (node for node in self.log.voters.nodes if node.key.id != self.me.id)

    @property
    def is_needed(self) -> bool:
        """Whether it takes part in elections: a voter, also one whose removal is not committed.

        Without the latter a leader that removed itself and lost its epoch could not be replaced
        where every other voter is behind it (section 4.2.2 of Ongaro's thesis on Raft).
        """
        earlier = self.log.earlier_voters
        return self.is_voter or (earlier is not None and earlier.has(self.me))

    def _can_stand(self) -> bool:
        return self.is_needed and self.log.unreadable_offset is None and self.epoch < _LAST_EPOCH

    def _is_consistent(self, epoch: int, leader_id: int) -> bool:
        """Whether a claim about a leader agrees with what is known of its epoch."""
        if epoch != self.epoch or NO_LEADER in (leader_id, self.leader_id):
            return True
        if leader_id == self.leader_id:
            return True
        self._log(
            f"ignored: replica {leader_id} would lead epoch {epoch}, which replica"
            f" {self.leader_id} leads",
            is_warning=True,
        )
        return False

    def _persist(self) -> None:
        state = QuorumState(self.epoch, self.leader_id, self.voted)
        if state != self._persisted:
            self._persisted = state
            self.emit(Persist(state))

    def append_control(self, records: list[ControlRecord]) -> int:
        """Appends control records of the leader; returns the offset of the last."""
        return self._append(control_batch(self.log.end, self.epoch, self._now_ms, records))

    def _append(self, batch: Batch) -> int:
        self.log.append([batch])
        self._has_news = not self._is_alone
        self.emit(Append((batch,)))
        self.emit(Flush(self.log.end, self.epoch))
        return batch.last

    @property
    def _is_alone(self) -> bool:
        """Whether it is the only voter, so that what it flushes is committed."""
        return self.is_voter and len(self.log.voters.nodes) == 1

    def _advance_high_watermark(self) -> None:
        assert self.leadership is not None  # noqa: S101 - of a leader
        if self._is_alone and self.log.voters_offset >= self.leadership.local_end:
            return  # of a voter that has become the only one all is committed that is on its disk
        end = self.leadership.majority_end(self.log.voters)
        if end > self.leadership.start:
            self._commit(end)

    def _commit(self, offset: int) -> None:
        self._known_high_watermark = max(self._known_high_watermark, offset)
        if offset > self.log.high_watermark:
            self._has_news = self._has_news or self.settings.rules.announces_commits
            self.log.high_watermark = offset
            self.emit(Committed(offset))

    @property
    def description(self) -> VoterNode:
        """This replica as the voters' record should have it."""
        return VoterNode(self.me, self.settings.endpoints, self.settings.kraft_versions)

    def _is_waiting(self, node_id: int) -> bool:
        return self._now_ms < self._retry_ms.get(node_id, 0)

    def send(self, node_id: int, endpoints: tuple[Endpoint, ...], request: RaftRequest) -> bool:
        """Sends a request, unless the node has one or failed a moment ago; True if it was sent."""
        if node_id in self._busy or self._is_waiting(node_id) or not endpoints:
            return False
        self._numbers += 1
        self._sent[self._numbers] = (node_id, request)
        self._busy[node_id] = self._numbers
        self.emit(Send(self._numbers, node_id, endpoints[0], request))
        return True

    def _refuse_held(self, view: LeaderView) -> None:
        """Answers all Fetches that wait: this replica does not lead any more."""
        for request_id in self._held:
            answer = FetchAnswer(NOT_LEADER_OR_FOLLOWER, view, log_start=self.log.start.offset)
            self.emit(Reply(request_id, answer))
        self._held.clear()

    def _election_timeout_ms(self) -> int:
        timeout = self.settings.election_timeout_ms
        return timeout + self._random.randrange(timeout)

    def _log(self, line: str, *, is_warning: bool = False) -> None:
        self.emit(WriteLog(f"raft: {line}", is_warning))
