"""A replica of the metadata quorum (KIP-595, KIP-630, KIP-853, KIP-996; ``KafkaRaftClient``).

A reference, not for production. It differs from Kafka where it says so:

- A resigned leader tells nobody that it still leads (Kafka names it until its epoch ends, and sends
  replicas back to it by that).
- A claim that contradicts what is known of an epoch is refused with a line in the log; Kafka ends
  the process (``maybeTransition``).
- A voter whose removal is not committed may stand for election, lest the quorum get stuck.
- A replica with control records that it cannot read does not stand for election.
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
    Reply,
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
    NO_LEADER,
    NOT_LEADER_OR_FOLLOWER,
    UNKNOWN_LEADER_EPOCH,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    RaftAnswer,
    RaftRequest,
    VersionsAnswer,
    ViewedAnswer,
    Vote,
    VoteAnswer,
    is_top_level,
)
from featurewatch.reference.kraft.machines.serving import ServingReplica, is_news
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
            case Propose():
                self._on_propose(event)
            case SnapshotTaken(snapshot, data, trims):
                self._on_snapshot_taken(snapshot, data, trims=trims)
            case Resign():
                if self.state is State.LEADER:
                    self._become_resigned()

    def _settle(self) -> None:
        """Derives what follows from an event: the high watermark and Fetches that can end."""
        if self.leadership is not None:
            self._advance_high_watermark()
            self.membership.on_progress()
        for request_id, held in [*self._held.items()]:
            answer = self._fetch_answer(held.request)
            if is_news(answer, held.request) or self._now_ms >= held.until_ms:
                del self._held[request_id]
                self.emit(Reply(request_id, answer))

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
        is_old = snapshot <= max((self.log.newest_snapshot or self.log.start), self.log.start)
        if is_old or snapshot.offset > self.log.high_watermark:
            self._log(f"no snapshot at {snapshot}: not committed, or not the newest")
            return
        self.log.add_snapshot(snapshot, data, trims=trims)
        self.emit(WriteSnapshot(snapshot, data, trims))

    def _on_answer(self, number: int, answer: RaftAnswer | None) -> None:
        node_id, request = self._sent.pop(number)
        is_current = self._busy.get(node_id) == number
        if is_current:
            del self._busy[node_id]
        if answer is None or is_top_level(answer.error):
            if is_current:
                self._retry_ms[node_id] = self._now_ms + self.settings.retry_backoff_ms
            if isinstance(request, Vote) and request.is_pre_vote and answer is not None:
                self._on_pre_vote_unknown(node_id, answer.error, request)
            return
        if isinstance(answer, VersionsAnswer):
            self.membership.on_versions(node_id, answer.kraft_versions)
        elif not self._is_settled_by_view(node_id, answer, is_current=is_current):
            is_of_leader = is_current and self.state is State.FOLLOWER and node_id == self.leader_id
            self._on_content(node_id, request, answer, is_of_leader=is_of_leader)

    def _is_settled_by_view(self, node_id: int, answer: ViewedAnswer, *, is_current: bool) -> bool:
        """Takes over the epoch and the leader of an answer; True if its content is of no use."""
        view, error = answer.view, answer.error
        is_behind = view.epoch < self.epoch or error == UNKNOWN_LEADER_EPOCH
        is_stale = error in (FENCED_LEADER_EPOCH, NOT_LEADER_OR_FOLLOWER)
        is_ahead = view.epoch > self.epoch or is_stale
        if is_current and (is_behind or is_ahead or error):
            self._retry_ms[node_id] = self._now_ms + self.settings.retry_backoff_ms
        if is_behind:
            return True
        finds_leader = view.leader_id != NO_LEADER and not self._leader_endpoints
        if is_ahead or finds_leader:
            self._learn(view)
        if error and is_current and isinstance(answer, FetchSnapshotAnswer):
            self._download = None
        return is_ahead or bool(error)

    def _on_content(
        self, node_id: int, request: RaftRequest, answer: RaftAnswer, *, is_of_leader: bool
    ) -> None:
        match request, answer:
            case Vote(), VoteAnswer():
                self._on_vote_answer(node_id, request, answer)
            case ((BeginQuorumEpoch() | EndQuorumEpoch()), EpochAnswer()):
                self._on_epoch_answer(node_id, request)
            case Fetch(), FetchAnswer() if is_of_leader:
                self._on_fetch_answer(request, answer)
            case FetchSnapshot(), FetchSnapshotAnswer() if is_of_leader:
                self._on_snapshot_answer(answer)
            case _:
                pass

    def _on_epoch_answer(self, node_id: int, request: BeginQuorumEpoch | EndQuorumEpoch) -> None:
        if request.epoch != self.epoch:
            return
        if isinstance(request, EndQuorumEpoch):
            self._acknowledged.add(node_id)
        elif self.leadership is not None:
            self.leadership.progress_of(request.voter).has_acknowledged = True

    def _on_fetch_answer(self, request: Fetch, answer: FetchAnswer) -> None:
        self._deadline_ms = self._now_ms + self.settings.fetch_timeout_ms
        self._has_fetched = True
        if (request.offset, request.last_epoch) != (self.log.end, self.log.last_epoch):
            pass  # it is about another end of the log: following it could cut off what is committed
        elif answer.diverging is not None:
            if not self._cut_off(answer.diverging):
                return
        elif answer.snapshot is not None:
            self._log(f"loading the snapshot at {answer.snapshot} of replica {self.leader_id}")
            self._download = (answer.snapshot, bytearray())
        elif not self._take_over(answer.records):
            self._retry_ms[self.leader_id] = self._now_ms + self.settings.retry_backoff_ms
        else:
            self._commit(min(answer.high_watermark, self.log.end))
        self._fetch()

    def _cut_off(self, diverging: OffsetAndEpoch) -> bool:
        """Cuts the log off where it leaves the leader's; False if that would lose records."""
        mine = self.log.end_of_epoch(diverging.epoch)
        offset = min(mine.offset, diverging.offset)
        if offset < max(self.log.high_watermark, self.log.start.offset):
            self.is_halted = True
            reason = (
                f"replica {self.leader_id} of epoch {self.epoch} has the log only up to {offset},"
                f" and records up to {self.log.high_watermark} are committed here: a majority of"
                " the voters has lost them, so restore their disks"
            )
            self.emit(Halt(reason))
            return False
        end = self.log.truncate(offset)
        self._log(f"cut the log off at {end}, where it leaves that of replica {self.leader_id}")
        self.emit(Truncate(end))
        return True

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
        self._deadline_ms = self._now_ms + self.settings.fetch_timeout_ms
        self._has_fetched = True
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
        self._fetch()

    def _install(self, snapshot: OffsetAndEpoch, data: bytes) -> None:
        if snapshot.offset <= self.log.high_watermark:
            self._log(f"the snapshot at {snapshot} is not newer than what is committed here")
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
        self.emit(InstallSnapshot(snapshot, data))
        self.emit(Committed(self.log.high_watermark))
