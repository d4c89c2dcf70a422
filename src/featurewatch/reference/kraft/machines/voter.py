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

from featurewatch.reference.kraft.machines.batches import (
    InvalidBatchesError,
    data_batch,
    read_batches,
)
from featurewatch.reference.kraft.machines.log import InvalidAppendError, Log
from featurewatch.reference.kraft.machines.membership import Membership
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Append,
    Committed,
    Effect,
    Event,
    Flush,
    Flushed,
    Halt,
    InstallSnapshot,
    Propose,
    Proposed,
    QuorumState,
    RequestReceived,
    Resign,
    SnapshotTaken,
    Tick,
    Truncate,
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
from featurewatch.reference.kraft.machines.serving import ServingReplica
from featurewatch.reference.kraft.machines.states import State
from featurewatch.streams.types import OffsetAndEpoch

__all__ = ["Voter", "VoterSettings"]


class Voter(ServingReplica):
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

    def _on_leader_answered(self) -> None:
        """Notes that the leader is alive (``resetFetchTimeoutForSuccessfulFetch``)."""
        self._deadline_ms = self._now_ms + self.settings.fetch_timeout_ms
        self._has_fetched = True

    def _on_epoch_answer(self, node_id: int, request: BeginQuorumEpoch | EndQuorumEpoch) -> None:
        if isinstance(request, EndQuorumEpoch) and request.epoch == self.epoch:
            self._acknowledged.add(node_id)

    def _on_fetch_answer(self, request: Fetch, answer: FetchAnswer) -> None:
        self._on_leader_answered()
        # About another end of the log it could cut off what is committed, or append it again.
        is_current = (request.offset, request.last_epoch) == (self.log.end, self.log.last_epoch)
        if answer.diverging is not None:
            if is_current and not self._cut_off(answer.diverging):
                return
        elif answer.snapshot in self.log.snapshots:
            self._log(f"the snapshot at {answer.snapshot} is there already")
        elif answer.snapshot is not None:
            self._log(f"loading the snapshot at {answer.snapshot} of replica {self.leader_id}")
            self._download = (answer.snapshot, bytearray())
        elif is_current and not self._take_over(answer.records):
            self._retry_ms[self.leader_id] = self._now_ms + self.settings.retry_backoff_ms
        elif is_current:
            self._commit(min(answer.high_watermark, self.log.end))

    def _cut_off(self, diverging: OffsetAndEpoch) -> bool:
        """Cuts the log off where it leaves the leader's; False if that would lose records."""
        offset = self._divergence(diverging)
        newest = self.log.newest_snapshot or self.log.start
        committed = max(self.log.high_watermark, self.log.start.offset, newest.offset)
        if offset < committed:
            self.is_halted = True
            reason = (
                f"replica {self.leader_id} of epoch {self.epoch} has the log only up to {offset},"
                f" and records up to {committed} are committed here: a majority of"
                " the voters has lost them, so restore their disks"
            )
            self.emit(Halt(reason))
            return False
        end = self.log.truncate(offset)
        self._log(f"cut the log off at {end}, where it leaves that of replica {self.leader_id}")
        self.emit(Truncate(end))
        return True

    def _divergence(self, diverging: OffsetAndEpoch) -> int:
        """The offset from which on the logs differ (``ReplicatedLog.truncateToEndOffset``)."""
        if diverging.epoch == 0:
            return min(diverging.offset, self.log.end)
        mine = self.log.end_of_epoch(diverging.epoch)
        is_same = mine.epoch == diverging.epoch
        return min(mine.offset, diverging.offset) if is_same else mine.offset

    def _take_over(self, records: bytes) -> bool:
        """Appends the leader's records; False if they are damaged or do not follow."""
        if not records:
            return True
        end = self.log.end
        try:
            batches = read_batches(records)
            if any(batch.epoch > self.epoch for batch in batches):
                raise InvalidAppendError("a batch is of an epoch that has not begun")
            # A leader answers with whole batches, the first of which may have begun before.
            batches = [batch for batch in batches if batch.last >= end]
            self.log.append(batches)
        except (InvalidBatchesError, InvalidAppendError) as error:
            self._log(f"ignored the records of replica {self.leader_id}: {error}", is_warning=True)
            batches = [batch for batch in self.log.batches if batch.base >= end]
            if not batches:
                return False
        if batches:
            self.emit(Append(tuple(batches)))
            self.emit(Flush(self.log.end, self.epoch))
        return True

    def _on_snapshot_answer(self, answer: FetchSnapshotAnswer) -> None:
        self._on_leader_answered()
        if self._download is None:
            return
        snapshot, data = self._download
        is_next = (answer.snapshot, answer.position) == (snapshot, len(data))
        if not is_next or not answer.data or answer.size > self.settings.max_snapshot_bytes:
            self._log(
                f"gave the snapshot at {snapshot} of replica {self.leader_id} up: another part was"
                f" sent, or it has more than {self.settings.max_snapshot_bytes} bytes",
                is_warning=True,
            )
            self._download = None
            self._retry_ms[self.leader_id] = self._now_ms + self.settings.retry_backoff_ms
            return
        data += answer.data
        if len(data) >= answer.size:
            self._download = None
            self._install(snapshot, bytes(data))

    def _is_newer(self, snapshot: OffsetAndEpoch) -> bool:
        """Whether a snapshot has more than the log: the leader may count on every record in it.

        ``ReplicatedLog.truncateToLatestSnapshot``.
        """
        position = (snapshot.epoch, snapshot.offset)
        is_longer = position > (self.log.last_epoch, self.log.end)
        return is_longer and snapshot.offset >= self.log.high_watermark

    def _install(self, snapshot: OffsetAndEpoch, data: bytes) -> None:
        if not self._is_newer(snapshot):
            self._log(f"the snapshot at {snapshot} is not newer than the log here")
            return
        try:
            self.log.install(snapshot, data)
        except InvalidBatchesError as error:
            self._log(
                f"ignored the snapshot at {snapshot} of replica {self.leader_id}: {error}",
                is_warning=True,
            )
            self._retry_ms[self.leader_id] = self._now_ms + self.settings.retry_backoff_ms
            return
        self._known_high_watermark = max(self._known_high_watermark, self.log.high_watermark)
        self.emit(InstallSnapshot(snapshot, data))
        self.emit(Committed(self.log.high_watermark))
