"""An observer of the KRaft metadata log, as a protocol without input, output or clock.

The shell asks `Observer.next_action` what to do, does it, and hands the answer
(`Observer.on_response`) or the failure (`Observer.on_failure`) back; what follows from an answer
comes out as a list of outputs. The rules are KafkaRaftClient's for an observer (KIP-595, KIP-630,
KIP-853). There is no replica id here: the wire always says -1, which no controller counts or
remembers.
"""

from collections.abc import Callable, Sequence
from typing import Final

from featurewatch.streams.kraft.errors import MalformedLogError
from featurewatch.streams.kraft.observer import requests
from featurewatch.streams.kraft.observer.controllers import LeaderLocator
from featurewatch.streams.kraft.observer.failures import FailureRank, QuorumFailures
from featurewatch.streams.kraft.observer.requests import (
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ObserverRequest,
    ObserverResponse,
    RequestFailure,
)
from featurewatch.streams.kraft.observer.states import (
    DEFAULT_PACE,
    TRANSITIONS,
    Backoff,
    CommittedBatches,
    MissingOffsets,
    ObserverOutput,
    ObserverState,
    ObserverTiming,
    ResponseKind,
    SnapshotBytes,
)
from featurewatch.streams.kraft.observer.tail import UncommittedLog
from featurewatch.streams.kraft.records.batch import scan_batches
from featurewatch.streams.net.address import Address
from featurewatch.streams.source_status import StallReason
from featurewatch.streams.types import LOG_START, LeaderAndEpoch, OffsetAndEpoch

PUSHES_WATERMARK: Final = 18
"""From this Fetch version on (Kafka 4.1) a leader answers at once when the high watermark moves."""


class Observer:
    """Follows the log from ``next_position`` on.

    ``random`` gives numbers from 0 to 1 for the backoff's jitter. ``cluster`` stands in messages.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        next_position: OffsetAndEpoch,
        cluster: str,
        random: Callable[[], float],
        pace: ObserverTiming = DEFAULT_PACE,
    ) -> None:
        self.phase = ObserverState.SEEKING
        self.high_watermark = -1
        self._troubles = QuorumFailures()
        self._cluster = cluster
        self._pace = pace
        self._random = random
        self._controllers = LeaderLocator(bootstrap, next_position.epoch)
        self._tail = UncommittedLog(next_position)
        self._download: FetchSnapshotRequest | None = None
        self._asked: ObserverRequest | None = None
        self._not_before_ms = 0
        self._rounds = 0
        self._looks = 0
        self._max_bytes = self._pace.max_bytes
        self._watermark_epoch = -1
        self._pushes = False
        self._stale_since_ms: int | None = None

    @property
    def next_position(self) -> OffsetAndEpoch:
        """The place after the last record that was given out."""
        return self._tail.committed

    @property
    def fetch_position(self) -> OffsetAndEpoch:
        """The place after the last record that was fetched, committed or not."""
        return self._tail.end

    @property
    def leader(self) -> LeaderAndEpoch:
        """The leader as far as it is known."""
        return self._controllers.leader

    @property
    def caught_up(self) -> bool:
        """Whether all that the present leader calls committed was given out."""
        return (
            self.phase is ObserverState.FETCHING
            and self._watermark_epoch == self.leader.epoch
            and self.next_position.offset >= self.high_watermark
        )

    @property
    def stall_reason(self) -> StallReason | None:
        """Why nothing can be read at present."""
        return self._troubles.worst

    def next_action(self, now_ms: int) -> ObserverRequest | Backoff:
        """What to do now. The clock may be any that does not go back."""
        if now_ms < self._not_before_ms:
            return Backoff(self._not_before_ms - now_ms)
        to = self._controllers.next_address()
        if to is None:
            wait_ms = self._backoff(now_ms)
            self._controllers.new_round()
            return Backoff(wait_ms)
        self._asked = self._question(to)
        return self._asked

    def on_failure(self, failure: RequestFailure, now_ms: int) -> None:
        """No answer came to what was asked."""
        asked = self._take_asked()
        self._controllers.failed(asked.to)
        self._heard(ResponseKind.LOST)
        weight = FailureRank.LASTING if failure.permanent else FailureRank.SILENT
        self._troubles.record(asked.to, failure.message, now_ms, weight)

    def on_response(self, response: ObserverResponse, now_ms: int) -> list[ObserverOutput]:
        """Take the answer to what was asked; gives what is to be passed on, in order."""
        asked = self._take_asked()
        self._controllers.update_endpoints(response.endpoints)
        heard = self._leadership(asked, response, now_ms)
        if heard is not None:
            self._heard(heard)
            return self._rebuilt(now_ms) if heard is ResponseKind.BEHIND else []
        try:
            match asked, response:
                case FetchRequest(), FetchResponse():
                    return self._fetched(asked, response, now_ms)
                case FetchSnapshotRequest(), FetchSnapshotResponse():
                    return self._snapshot_part(asked, response)
                case _:
                    raise RuntimeError(f"{type(response).__name__} does not answer {asked}")
        except MalformedLogError as error:
            self._controllers.failed(asked.to)
            self._heard(ResponseKind.LOST)
            self._tail.drop()
            line = f"{asked.to} sent what cannot be read: {error}"
            self._troubles.record(asked.to, line, now_ms)
            return []

    # -- questions ---------------------------------------------------------------------------

    def _question(self, to: Address) -> ObserverRequest:
        epoch = max(self.leader.epoch, 0)
        if self.phase is ObserverState.SNAPSHOT and self._download is not None:
            part = self._download
            return FetchSnapshotRequest(
                to, epoch, part.snapshot, part.position, self._pace.max_bytes
            )
        return FetchRequest(
            to, epoch, self._tail.end, self.high_watermark, self._wait_ms(), self._max_bytes
        )

    def _wait_ms(self) -> int:
        """Wait at the leader only where it will wake us when something is committed.

        Before 4.1 an advance of the high watermark does not complete a waiting fetch, and one that
        runs out is answered with the watermark of its beginning.
        """
        settled = self._watermark_epoch == self.leader.epoch and not len(self._tail)
        if (
            self.phase is ObserverState.FETCHING
            and (settled or self._pushes)
            and not self._tail_is_full
        ):
            return self._pace.max_wait_ms
        return 0

    def _take_asked(self) -> ObserverRequest:
        asked, self._asked = self._asked, None
        if asked is None:
            raise RuntimeError("nothing was asked")
        return asked

    def _heard(self, heard: ResponseKind) -> None:
        self.phase = TRANSITIONS[self.phase, heard]
        if self.phase is not ObserverState.SNAPSHOT:
            self._download = None

    # -- who leads ---------------------------------------------------------------------------

    def _leadership(
        self, asked: ObserverRequest, response: ObserverResponse, now_ms: int
    ) -> ResponseKind | None:
        """What the answer says about leadership alone; none: the leader itself answers."""
        error = response.error
        gone = isinstance(response, FetchSnapshotResponse) and error in (
            requests.UNKNOWN_SERVER_ERROR,
            requests.SNAPSHOT_NOT_FOUND,
            requests.POSITION_OUT_OF_RANGE,
        )
        # Released controllers stumble over every error of FetchSnapshot and answer -1 without a
        # leader: the next Fetch will say what is the matter.
        if gone:
            line = f"{asked.to} no longer has the snapshot that it named"
            self._troubles.record(asked.to, line, now_ms)
            self._not_before_ms = now_ms + self._backoff_ms()
            return ResponseKind.SNAPSHOT_GONE
        if error in requests.ADVICE:
            self._controllers.mark_tried(asked.to)
            advice = requests.ADVICE[error].format(cluster=self._cluster)
            self._troubles.record(asked.to, f"{asked.to} {advice}", now_ms, FailureRank.LASTING)
            return ResponseKind.REFUSED
        told = response.leader
        # FetchSnapshot leaves the leader out where it is (0, 0), and epochs begin at 1.
        absent = told.epoch <= 0
        if error == requests.UNKNOWN_LEADER_EPOCH or (not absent and told.epoch < asked.epoch):
            self._controllers.mark_behind(asked.to)
            line = f"{asked.to} is behind: it knows no epoch {asked.epoch}"
            self._troubles.record(asked.to, line, now_ms, FailureRank.BEHIND)
            return ResponseKind.BEHIND
        self._stale_since_ms = None
        news = not absent and self._controllers.update_leader(told)
        if news:
            self._troubles.new_epoch()
        if news and (error or told.epoch != asked.epoch):
            if told.id < 0:
                self._troubles.record(asked.to, self._not_leading, now_ms)
            return ResponseKind.NEW_LEADER
        if error == requests.NONE and not absent and told.id != self.leader.id:
            self._controllers.mark_tried(asked.to)
            line = (
                f"{asked.to} names {told.id} as leader of epoch {told.epoch}, others "
                f"{self.leader.id}: two clusters under one id?"
            )
            self._troubles.record(asked.to, line, now_ms, FailureRank.LASTING)
            return ResponseKind.REFUSED
        if error == requests.NONE:
            return None
        self._controllers.not_leader(asked.to)
        if error in (requests.NOT_LEADER_OR_FOLLOWER, requests.FENCED_LEADER_EPOCH):
            self._troubles.record(asked.to, self._not_leading, now_ms)
        else:
            self._troubles.record(asked.to, f"{asked.to} answered with error {error}", now_ms)
        return ResponseKind.NOT_LEADER

    @property
    def _not_leading(self) -> str:
        """What it means that a controller does not lead: it names another as leader, or nobody."""
        if self.leader.id < 0:
            # Without the epoch: a controller that is alone may begin a new one every second.
            return "no leader is elected: are most controllers up?"
        home = self._controllers.leader_address
        at = f" {home}" if home else ""
        # From Kafka 4.0 on a dead leader is named for as long as there is no majority.
        return (
            f"controller {self.leader.id} is named as leader and cannot be found under its "
            f"address{at}: can it be reached from here, and are most controllers up?"
        )

    def _rebuilt(self, now_ms: int) -> list[ObserverOutput]:
        """Begin anew when every controller has forgotten an epoch that was committed in."""
        if self._stale_since_ms is None:
            self._stale_since_ms = now_ms
        waited_ms = now_ms - self._stale_since_ms
        if waited_ms < self._pace.rebuilt_after_ms or not self._controllers.all_behind:
            return []
        self._controllers = self._controllers.reset()
        self._stale_since_ms = None
        return self._begin_anew(0, "every controller is at an older leader epoch")

    def _leads(self, address: Address) -> None:
        """The leader answered: whatever was wrong is over."""
        self._controllers.confirm_leader(address)
        self._rounds = 0
        self._troubles.clear()

    # -- what the leader says ----------------------------------------------------------------

    def _fetched(
        self, asked: FetchRequest, response: FetchResponse, now_ms: int
    ) -> list[ObserverOutput]:
        self._pushes = response.version >= PUSHES_WATERMARK
        if response.snapshot is not None:
            return self._snapshot_named(asked, response, response.snapshot, now_ms)
        self._learn_watermark(response)
        if response.diverging is not None:
            consistent = self._tail.truncate(response.diverging)
            if self._tail.end == asked.place:
                # An unchanged question would have the same answer for ever.
                consistent = consistent and len(self._tail) > 0
                self._tail.drop()
            if not consistent and response.high_watermark < 0:
                return self._doubt(asked, now_ms)
            self._leads(asked.to)
            self._heard(ResponseKind.DIVERGED)
            if consistent:
                return []
            reason = f"the leader's log ends at {response.diverging}"
            return self._begin_anew(response.diverging.offset, reason)
        appended = self._append(response)
        self._leads(asked.to)
        self._heard(ResponseKind.RECORDS)
        released = self._tail.release(self.high_watermark)
        self._pace_looks(now_ms, fresh=bool(appended))
        return [CommittedBatches(released)] if released else []

    def _append(self, response: FetchResponse) -> int:
        if self._tail_is_full:
            return 0
        appended = len(self._tail.append(scan_batches(response.records), self.leader.epoch))
        if appended or not response.records:
            self._max_bytes = self._pace.max_bytes
        elif self._max_bytes < self._pace.most_bytes:
            self._max_bytes = min(self._max_bytes * 8, self._pace.most_bytes)
        else:
            raise MalformedLogError(
                f"no whole batch follows {self._tail.end} in {len(response.records)} bytes"
            )
        return appended

    @property
    def _tail_is_full(self) -> bool:
        return self._tail.size_bytes > self._pace.tail_bytes

    def _learn_watermark(self, response: FetchResponse) -> None:
        # A new leader says -1 until it has committed something of its own; a watermark never
        # goes back, so what the last leader said still holds.
        if response.high_watermark >= 0:
            self.high_watermark = max(self.high_watermark, response.high_watermark)
            self._watermark_epoch = self.leader.epoch

    def _pace_looks(self, now_ms: int, *, fresh: bool) -> None:
        """Look for the high watermark soon after an append, then less and less often."""
        settled = self._watermark_epoch == self.leader.epoch and not len(self._tail)
        behind = self._tail.end.offset < self.high_watermark
        if settled or behind or fresh:
            self._looks = 0
        if settled or behind:
            return
        waits_ms = self._pace.watermark_polls_ms
        if self._tail_is_full or not self._pushes:
            self._not_before_ms = now_ms + waits_ms[min(self._looks, len(waits_ms) - 1)]
        self._looks += 1

    def _doubt(self, asked: FetchRequest, now_ms: int) -> list[ObserverOutput]:
        """Do not let a leader take back what was committed before it committed anything itself.

        It may have lost its epoch unheard. One that has committed in its own epoch holds all that
        was, so its word is good.
        """
        self._controllers.failed(asked.to)
        self._heard(ResponseKind.LOST)
        line = f"{asked.to} leads and has committed nothing yet: asking the others too"
        self._troubles.record(asked.to, line, now_ms)
        return []

    def _begin_anew(self, good_until: int, reason: str) -> list[ObserverOutput]:
        """The log went backwards: what was passed on from ``good_until`` on is not true."""
        last = self._tail.committed.offset - 1
        self._tail.restart(LOG_START)
        self.high_watermark = -1
        self._watermark_epoch = -1
        if last < 0:
            return []
        return [
            MissingOffsets(min(good_until, last), last, f"the log went backwards: {reason}", True)
        ]

    # -- snapshots ---------------------------------------------------------------------------

    def _snapshot_named(
        self, asked: FetchRequest, response: FetchResponse, snapshot: OffsetAndEpoch, now_ms: int
    ) -> list[ObserverOutput]:
        self._controllers.confirm_leader(asked.to)
        if len(self._tail):
            # The question was about records that were never committed: ask from firm ground.
            self._tail.drop()
            self._heard(ResponseKind.DIVERGED)
            return []
        place = self._tail.committed
        contradicted = snapshot.offset <= place.offset or 0 <= response.log_start <= place.offset
        if place != LOG_START and contradicted:
            if response.high_watermark < 0:
                return self._doubt(asked, now_ms)
            self._heard(ResponseKind.DIVERGED)
            return self._begin_anew(0, f"the leader has no {place}")
        self._heard(ResponseKind.SNAPSHOT_NAMED)
        self._download = FetchSnapshotRequest(asked.to, asked.epoch, snapshot, 0, 0)
        return []

    def _snapshot_part(
        self, asked: FetchSnapshotRequest, response: FetchSnapshotResponse
    ) -> list[ObserverOutput]:
        position = asked.position + len(response.data)
        if response.snapshot != asked.snapshot or response.position != asked.position:
            raise MalformedLogError("another part of a snapshot than the one asked for")
        if position > response.size or (not response.data and position < response.size):
            raise MalformedLogError(
                f"a part of {len(response.data)} bytes of a snapshot of {response.size}"
            )
        self._leads(asked.to)
        last = position == response.size
        part = SnapshotBytes(asked.snapshot, asked.position, response.data, last)
        if not last:
            self._heard(ResponseKind.SNAPSHOT_PART)
            self._download = FetchSnapshotRequest(
                asked.to, asked.epoch, asked.snapshot, position, 0
            )
            return [part]
        self._heard(ResponseKind.SNAPSHOT_WHOLE)
        before = self._tail.committed
        self._tail.restart(asked.snapshot)
        self.high_watermark = max(self.high_watermark, asked.snapshot.offset)
        if before == LOG_START:
            return [part]
        reason = "the log no longer has these records: its snapshot takes their place"
        lost = MissingOffsets(before.offset, asked.snapshot.offset - 1, reason, False)
        return [lost, part]

    # -- pauses ------------------------------------------------------------------------------

    def _backoff_ms(self) -> int:
        self._rounds += 1
        pace = self._pace
        wait_ms = min(pace.backoff_ms << min(self._rounds - 1, 20), pace.backoff_cap_ms)
        return int(wait_ms * (0.5 + self._random() / 2))

    def _backoff(self, now_ms: int) -> int:
        wait_ms = self._backoff_ms()
        self._not_before_ms = now_ms + wait_ms
        return wait_ms
