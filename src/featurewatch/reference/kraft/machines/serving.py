"""How a replica answers the requests of others (KIP-595, KIP-630; ``KafkaRaftClient``)."""

from featurewatch.reference.kraft.machines.polling import PollingReplica
from featurewatch.reference.kraft.machines.protocol import Reply
from featurewatch.reference.kraft.machines.replica import HeldFetch
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    FENCED_LEADER_EPOCH,
    INCONSISTENT_CLUSTER_ID,
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NO_LEADER,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    POSITION_OUT_OF_RANGE,
    SNAPSHOT_NOT_FOUND,
    UNKNOWN_LEADER_EPOCH,
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    DescribeQuorum,
    DescribeQuorumAnswer,
    EndQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    LeaderView,
    RaftAnswer,
    RaftRequest,
    RemoveVoter,
    UpdateVoter,
    VersionsAnswer,
    Vote,
    VoteAnswer,
)
from featurewatch.reference.kraft.machines.states import State


class ServingReplica(PollingReplica):
    """A replica that answers the requests of others."""

    def _on_request(self, request_id: int, request: RaftRequest) -> None:
        answer: RaftAnswer
        match request:
            case Vote():
                answer = self._on_vote(request)
            case BeginQuorumEpoch():
                answer = self._on_begin(request)
            case EndQuorumEpoch():
                answer = self._on_end(request)
            case Fetch():
                self._on_fetch(request_id, request)
                return
            case FetchSnapshot():
                answer = self._on_fetch_snapshot(request)
            case DescribeQuorum():
                answer = self._describe()
            case AskVersions():
                answer = VersionsAnswer(NONE, self.settings.kraft_versions)
            case AddVoter() | RemoveVoter() | UpdateVoter():
                self.membership.on_request(request_id, request)
                return
        self.emit(Reply(request_id, answer))

    def _is_other_cluster(self, cluster_id: str | None) -> bool:
        return cluster_id not in (None, self.settings.cluster_id)

    def _is_mine(self, voter: ReplicaKey) -> bool:
        """Whether a request that names its receiver is for this replica."""
        return voter.id < 0 or (
            voter.id == self.me.id and voter.directory in (None, self.me.directory)
        )

    def _voter_only_error(self, replica_id: int, epoch: int) -> int:
        if epoch < self.epoch:
            return FENCED_LEADER_EPOCH
        return INVALID_REQUEST if replica_id < 0 else NONE

    def _leader_only_error(self, epoch: int) -> int:
        if epoch < self.epoch:
            return FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return UNKNOWN_LEADER_EPOCH
        return NONE if self.state is State.LEADER else NOT_LEADER_OR_FOLLOWER

    def _on_vote(self, request: Vote) -> VoteAnswer:
        if self._is_other_cluster(request.cluster_id):
            return VoteAnswer(INCONSISTENT_CLUSTER_ID)
        newest = request.epoch if request.is_pre_vote else request.epoch - 1
        error = self._voter_only_error(request.candidate.id, request.epoch)
        if request.end_offset < 0 or not 0 <= request.last_epoch <= newest:
            error = INVALID_REQUEST
        if error:
            return VoteAnswer(error, self.view)
        if request.epoch > self.epoch:
            self._become_unattached(request.epoch)
        if not self._is_mine(request.voter):
            return VoteAnswer(INVALID_VOTER_KEY, self.view)
        position = (request.last_epoch, request.end_offset)
        is_up_to_date = position >= (self.log.last_epoch, self.log.end)
        if request.is_pre_vote:
            return VoteAnswer(NONE, self.view, is_up_to_date and self._would_vote())
        is_granted = self._is_granted(request.candidate, is_up_to_date)
        if is_granted and self.voted is None:
            self._become_voted(request.candidate)
        return VoteAnswer(NONE, self.view, is_granted)

    def _would_vote(self) -> bool:
        """Whether it grants pre-votes: not while it has a leader that answers (KIP-996)."""
        if self.state is State.LEADER:
            return False
        return not (self.state is State.FOLLOWER and self._has_fetched)

    def _is_granted(self, candidate: ReplicaKey, is_up_to_date: bool) -> bool:
        """Whether a candidate of the current epoch gets its vote: one replica in each epoch."""
        if self.state not in (State.UNATTACHED, State.PROSPECTIVE, State.VOTED):
            return False
        if self.voted is not None:
            return self.voted.is_matched_by(candidate)
        return self.leader_id == NO_LEADER and is_up_to_date

    def _on_begin(self, request: BeginQuorumEpoch) -> EpochAnswer:
        if self._is_other_cluster(request.cluster_id):
            return EpochAnswer(INCONSISTENT_CLUSTER_ID)
        error = self._voter_only_error(request.leader_id, request.epoch)
        if not error and not self._is_consistent(request.epoch, request.leader_id):
            error = INVALID_REQUEST
        if error:
            return EpochAnswer(error, self.view)
        self._learn(LeaderView(request.leader_id, request.epoch, request.endpoints))
        error = NONE if self._is_mine(request.voter) else INVALID_VOTER_KEY
        return EpochAnswer(error, self.view)

    def _on_end(self, request: EndQuorumEpoch) -> EpochAnswer:
        if self._is_other_cluster(request.cluster_id):
            return EpochAnswer(INCONSISTENT_CLUSTER_ID)
        error = self._voter_only_error(request.leader_id, request.epoch)
        if not error and not self._is_consistent(request.epoch, request.leader_id):
            error = INVALID_REQUEST
        if error:
            return EpochAnswer(error, self.view)
        self._learn(LeaderView(request.leader_id, request.epoch, request.endpoints))
        if self.state is State.FOLLOWER and self.leader_id == request.leader_id:
            self._deadline_ms = self._now_ms + self._succession_ms(request.successors)
        return EpochAnswer(NONE, self.view)

    def _succession_ms(self, successors: tuple[ReplicaKey, ...]) -> int:
        """How long to wait before an election, in ms: the less this log has, the longer."""
        longest, count = self.settings.election_backoff_ms, len(successors)
        matching = (at for at, key in enumerate(successors) if key.is_matched_by(self.me))
        position = next(matching, count)
        if position == 0:
            return 0
        if position == count:
            return longest
        return min(longest, (longest >> (count - 1)) << (position - 1))

    def _on_fetch(self, request_id: int, request: Fetch) -> None:
        answer = self._checked_fetch(request)
        if self._has_news and self.leadership is not None:
            self._complete_held()
        if self._is_news(answer, request) or request.max_wait_ms <= 0:
            self.emit(Reply(request_id, answer))
        else:
            until_ms = self._now_ms + request.max_wait_ms
            self._held[request_id] = HeldFetch(request, until_ms, answer)

    def _expire_held(self) -> None:
        """Answers the Fetches that have waited for as long as they may."""
        for request_id, held in [*self._held.items()]:
            if self._now_ms >= held.until_ms:
                del self._held[request_id]
                self.emit(Reply(request_id, held.answer))

    def _complete_held(self) -> None:
        """Answers all Fetches that wait: there are records, or a newer high watermark."""
        self._has_news = False
        held, self._held = self._held, {}
        for request_id, one in held.items():
            self.emit(Reply(request_id, self._checked_fetch(one.request)))

    def _checked_fetch(self, request: Fetch) -> FetchAnswer:
        if self._is_other_cluster(request.cluster_id):
            return FetchAnswer(INCONSISTENT_CLUSTER_ID)
        is_possible = request.offset >= 0 and 0 <= request.last_epoch <= request.epoch
        if not is_possible or request.max_wait_ms < 0:
            return self._refused_fetch(INVALID_REQUEST)
        is_valid = self.log.position(request.offset, request.last_epoch).is_valid
        if self.leadership is not None and request.epoch == self.epoch and is_valid:
            self._on_progress_of(request.replica, request.offset)
        return self._fetch_answer(request)

    def _refused_fetch(self, error: int) -> FetchAnswer:
        return FetchAnswer(error, self.view, log_start=self.log.start.offset)

    def _on_progress_of(self, replica: ReplicaKey, offset: int) -> None:
        assert self.leadership is not None  # noqa: S101 - of a leader
        if replica.id >= 0 and replica.id != self.me.id:
            self.leadership.on_fetch(replica, self.log.voters, offset, self.log.end, self._now_ms)
            self.leadership.on_alive(replica, self.log.voters, self._now_ms)
            self._advance_high_watermark()

    def _fetch_answer(self, request: Fetch) -> FetchAnswer:
        error = self._leader_only_error(request.epoch)
        if error:
            return self._refused_fetch(error)
        position = self.log.position(request.offset, request.last_epoch)
        records = b""
        if position.is_valid:
            records = self.log.read(request.offset, request.max_bytes)
        return FetchAnswer(
            NONE,
            self.view,
            self.exposed_high_watermark,
            self.log.start.offset,
            position.diverging,
            position.snapshot,
            records,
        )

    def _on_fetch_snapshot(self, request: FetchSnapshot) -> FetchSnapshotAnswer:
        if self._is_other_cluster(request.cluster_id):
            return FetchSnapshotAnswer(INCONSISTENT_CLUSTER_ID)
        data = self.log.snapshots.get(request.snapshot) if request.snapshot.offset > 0 else None
        error = self._leader_only_error(request.epoch)
        if not error and data is None:
            error = SNAPSHOT_NOT_FOUND
        if not error and data is not None and not 0 <= request.position < len(data):
            error = POSITION_OUT_OF_RANGE
        if error or data is None or self.leadership is None:
            return FetchSnapshotAnswer(error, self.view)
        self.leadership.on_alive(request.replica, self.log.voters, self._now_ms)
        size = min(max(request.max_bytes, 1), self.settings.max_fetch_bytes)
        return FetchSnapshotAnswer(
            NONE,
            self.view,
            request.snapshot,
            len(data),
            request.position,
            data[request.position : request.position + size],
        )

    def _describe(self) -> DescribeQuorumAnswer:
        if self.leadership is None:
            return DescribeQuorumAnswer(NOT_LEADER_OR_FOLLOWER, self.view)
        voters, observers = self.leadership.describe(self.log.voters, self.log.end, self._now_ms)
        listeners = tuple((node.key.id, node.endpoints) for node in self.log.voters.nodes)
        return DescribeQuorumAnswer(
            NONE, self.view, self.exposed_high_watermark, voters, observers, listeners
        )

    def _is_news(self, answer: FetchAnswer, request: Fetch) -> bool:
        """Whether a Fetch is answered at once: there is something that the follower lacks."""
        is_newer = answer.high_watermark > request.high_watermark
        return bool(
            answer.error
            or answer.records
            or answer.diverging
            or answer.snapshot
            or (is_newer and self.settings.rules.announces_commits)
        )
