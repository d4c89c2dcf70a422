"""A replica of the metadata quorum (KIP-595, KIP-630, KIP-853, KIP-996; ``KafkaRaftClient``).

A reference, not for production. Given the same events it does what ``KafkaRaftClient`` does
(``tests/conformance/raft``), except where it says so:

- A resigned leader tells nobody that it still leads (Kafka names it until its epoch ends, and sends
  replicas back to it by that).
- A claim that contradicts what is known of an epoch is refused with a line in the log; Kafka ends
  the process (``maybeTransition``).
- A voter whose removal is not committed may stand for election, lest the quorum get stuck.
- A replica with control records that it cannot read does not stand for election.
- The high watermark never falls, and a leader's own log counts for it only once it is on disk.
- A log is not cut off below a snapshot, whose records were committed: the process ends.
- A leader that was removed resigns when that is committed, however long it takes (KIP-853).
- Without bootstrap servers it looks for the leader at the other voters, never at itself.
"""

from random import Random

from featurewatch.reference.kraft.machines.batches import data_batch
from featurewatch.reference.kraft.machines.following import FollowingReplica
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.membership import Membership
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Effect,
    Event,
    Flushed,
    Propose,
    Proposed,
    QuorumState,
    RequestReceived,
    Resign,
    SnapshotTaken,
    Tick,
    WriteSnapshot,
)
from featurewatch.reference.kraft.machines.replica import VoterSettings
from featurewatch.reference.kraft.machines.requests import (
    FENCED_LEADER_EPOCH,
    INVALID_VOTER_KEY,
    NO_LEADER,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    SNAPSHOT_NOT_FOUND,
    UNKNOWN_LEADER_EPOCH,
    UNSUPPORTED_VERSION,
    AskVersions,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    RaftAnswer,
    RaftRequest,
    UpdateVoter,
    VersionsAnswer,
    ViewedAnswer,
    Vote,
    VoteAnswer,
    VoterAnswer,
    is_top_level,
)
from featurewatch.reference.kraft.machines.states import State
from featurewatch.streams.types import OffsetAndEpoch

__all__ = ["Voter", "VoterSettings"]


class Voter(FollowingReplica):
    """A replica with all its events; the first `receive` returns the effects of the start, too."""

    def __init__(
        self,
        settings: VoterSettings,
        log: Log,
        remembered: QuorumState,
        random: Random,
        now_ms: int,
    ) -> None:
        super().__init__(settings, log, remembered, random, now_ms)
        self.membership = Membership(self)
        self._told = (State.UNATTACHED, -1, NO_LEADER)
        self._start(remembered)

    def receive(self, event: Event, now_ms: int) -> list[Effect]:
        """Processes one event and returns its effects; none after a `Halt`."""
        self._now_ms = now_ms
        self._expire_held()
        if not self.is_halted:
            self._on_event(event)
        if not self.is_halted:
            self._settle()
        self._tell()
        out, self._out = self._out, []
        return out

    def _on_event(self, event: Event) -> None:
        match event:
            case Tick():
                self._on_tick()
            case RequestReceived(request_id, request):
                self._on_request(request_id, request)
            case AnswerReceived(number, answer):
                self._on_answer(number, answer)
            case Flushed(offset, epoch):
                if self.leadership is not None and epoch == self.epoch:
                    self.leadership.local_end = max(self.leadership.local_end, offset)
                    self._has_news = self._has_news or self._is_alone
            case Propose():
                self._on_propose(event)
            case SnapshotTaken(snapshot, data, trims):
                self._on_snapshot_taken(snapshot, data, trims=trims)
            case Resign():
                if self.state is State.LEADER:
                    self._become_resigned()

    def _settle(self) -> None:
        """Derives what follows from an event: the next request of a follower, the high watermark,
        and Fetches that can end."""
        if self.state is State.FOLLOWER and self._now_ms < self._deadline_ms:
            self._fetch()
        if self.leadership is not None:
            self._advance_high_watermark()
            self.membership.on_progress()
        while self._has_news and self.leadership is not None:
            self._complete_held()

    def _tell(self) -> None:
        """Logs a new state."""
        now = (self.state, self.epoch, self.leader_id)
        if now != self._told:
            self._told = now
            is_following = self.state is State.FOLLOWER
            whom = f" of replica {self.leader_id}" if is_following else ""
            self._log(f"{self.state}{whom} in epoch {self.epoch}")

    def _on_propose(self, propose: Propose) -> None:
        last, end = -1, self.log.end
        is_valid = propose.epoch in (None, self.epoch) and propose.offset in (None, end)
        if self.state is State.LEADER and propose.values and is_valid:
            last = self._append(data_batch(end, self.epoch, self._now_ms, propose.values))
        self.emit(Proposed(propose.token, last, self.log.end))

    def _on_snapshot_taken(self, snapshot: OffsetAndEpoch, data: bytes, *, trims: bool) -> None:
        newest = max((self.log.newest_snapshot or self.log.start), self.log.start)
        # The newest one may be given again to delete the log before it.
        is_old = snapshot < newest or (snapshot == newest and not trims)
        if is_old or snapshot == self.log.start or snapshot.offset > self.log.high_watermark:
            self._log(f"no snapshot at {snapshot}: not committed, or not the newest")
            return
        self.log.add_snapshot(snapshot, data, trims=trims)
        self.emit(WriteSnapshot(snapshot, data, trims))

    def _on_answer(self, number: int, answer: RaftAnswer | None) -> None:
        node_id, request = self._sent.pop(number)
        if self._busy.get(node_id) != number:
            return  # from before the last transition (``isResponseExpected``)
        del self._busy[node_id]
        if isinstance(request, AskVersions):
            versions = answer if isinstance(answer, VersionsAnswer) else None
            if not self.membership.on_versions(node_id, versions):
                self._wait_for(node_id)
        elif isinstance(answer, VersionsAnswer):
            pass  # an answer to another request
        elif isinstance(request, Vote) and self._is_without_pre_votes(answer):
            self._become_candidate()
        elif isinstance(request, UpdateVoter):
            # Its answer has the leader beside every error, and a failure looks like an old epoch.
            reads = self.settings.rules.reads_update_answers
            if answer is not None and not self._is_settled_by_view(answer) and reads:
                self._on_content(node_id, request, answer)
        elif answer is None or is_top_level(answer.error):
            self._wait_for(node_id)
        elif not self._is_settled_by_view(answer):
            self._on_content(node_id, request, answer)

    def _wait_for(self, node_id: int) -> None:
        """Sends a node nothing for a while."""
        self._retry_ms[node_id] = self._now_ms + self.settings.retry_backoff_ms

    def _is_without_pre_votes(self, answer: RaftAnswer | None) -> bool:
        """Whether a voter does not know pre-votes: then an election begins at once (KIP-996)."""
        is_refusal = answer is not None and answer.error == UNSUPPORTED_VERSION
        return is_refusal and self.state is State.PROSPECTIVE

    def _is_settled_by_view(self, answer: ViewedAnswer) -> bool:
        """Takes over the epoch and the leader of an answer; True if its content is of no use.

        ``maybeHandleCommonResponse``.
        """
        view, error = answer.view, answer.error
        if view.epoch < self.epoch or error == UNKNOWN_LEADER_EPOCH:
            return True
        is_stale = error in (FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER)
        if view.epoch > self.epoch or is_stale:
            self._learn(view)
            return True
        if view.leader_id != NO_LEADER and self.leader_id == NO_LEADER:
            self._learn(view)
            return bool(error)
        return error == INVALID_VOTER_KEY

    def _on_content(self, node_id: int, request: RaftRequest, answer: RaftAnswer) -> None:
        is_follower = self.state is State.FOLLOWER
        match request, answer:
            case FetchSnapshot(), FetchSnapshotAnswer(error) if error == SNAPSHOT_NOT_FOUND:
                if is_follower:
                    self._download = None
                    self._on_leader_answered()
            case UpdateVoter(), VoterAnswer(error) if error in (NONE, UNSUPPORTED_VERSION):
                if is_follower:
                    self._has_updated = True
                    self._on_leader_answered()
            case _ if answer.error:
                self._wait_for(node_id)
            case Vote(), VoteAnswer():
                self._on_vote_answer(node_id, request, answer)
            case ((BeginQuorumEpoch() | EndQuorumEpoch()), EpochAnswer()):
                self._on_epoch_answer(node_id, request)
            case Fetch(), FetchAnswer() if is_follower:
                self._on_fetch_answer(request, answer)
            case FetchSnapshot(), FetchSnapshotAnswer() if is_follower:
                self._on_snapshot_answer(answer)
            case _:
                pass

    def _on_epoch_answer(self, node_id: int, request: BeginQuorumEpoch | EndQuorumEpoch) -> None:
        if isinstance(request, EndQuorumEpoch) and request.epoch == self.epoch:
            self._acknowledged.add(node_id)
