"""An observer of the KRaft metadata log: a protocol without input, output or clock.

The shell sends the request that `Observer.next_action` returns and passes the response to
`Observer.on_response`, or the failure to `Observer.on_failure`. A response gives outputs, in order.

The protocol (KIP-595, KIP-630, KIP-853; Kafka: ``KafkaRaftClient``). The metadata log is replicated
by Raft, with pull: whoever follows the leader sends Fetch with the offset that it needs next and
the epoch of the record before it. The leader responds with one of three things:

- records from that offset on, and the high watermark: everything below it is on a majority and
  stays; what is above may still be truncated, so it is held back (`UncommittedLog`);
- a diverging epoch: the leader's log has no such record; truncate to the end that it gives, and
  fetch again. What is published is never truncated by a correct leader, so where it must be, the
  log went backwards (a recreated cluster, or lost disks) and is read again from its beginning;
- a snapshot id: the log before the offset was deleted. FetchSnapshot reads that snapshot in parts,
  and fetching continues at its end offset.

Any other controller names the leader and its epoch. An epoch has one leader, and epochs only grow.

Offset and epoch do not prove that a log is the one that was read before: a recreated cluster begins
with epoch 1 as the old one did, and may have grown past our position meanwhile. After a start and
after a lost connection the first fetch is therefore for the last record that was released, and the
checksum of its batch must be unchanged (`is_replaced`).

Why three states suffice: an observer has no vote, so Kafka's voter states (candidate, voted,
leader, resigned) do not exist here. Only the next request matters: which one, and to whom. That is
Fetch to any controller (`SEEKING`), Fetch to the leader (`FETCHING`) or FetchSnapshot to the leader
(`SNAPSHOT`). Positions, the watermark and the leader are data that do not change which responses
are possible. `TRANSITIONS` is the whole machine. The replica id is always -1 on the wire, which no
controller counts or remembers.
"""

from collections.abc import Callable, Sequence
from typing import Final

from featurewatch.kafka.address import Address
from featurewatch.streams.kraft.errors import MalformedLogError
from featurewatch.streams.kraft.observer.failures import FailureRank
from featurewatch.streams.kraft.observer.leadership import Leadership
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
    DEFAULT_TIMING,
    TRANSITIONS,
    Backoff,
    CommittedBatches,
    LogProgress,
    MissingOffsets,
    ObserverOutput,
    ObserverState,
    ObserverTiming,
    ResponseKind,
    SnapshotBytes,
)
from featurewatch.streams.kraft.observer.tail import UncommittedLog
from featurewatch.streams.kraft.records.batch import is_replaced, scan_batches
from featurewatch.streams.types import (
    LOG_START,
    NO_CHECKSUM,
    LastRecord,
    OffsetAndEpoch,
)

PUSHES_WATERMARK: Final = 18
"""From this Fetch version on (Kafka 4.1) a leader answers at once when the high watermark moves."""


class Observer:
    """Follows the log from ``next_position`` on; ``checksum`` is that of the batch before it.

    ``random`` gives numbers from 0 to 1 for the backoff's jitter. ``cluster`` is for messages.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        next_position: OffsetAndEpoch,
        cluster: str,
        random: Callable[[], float],
        timing: ObserverTiming = DEFAULT_TIMING,
        checksum: int = NO_CHECKSUM,
    ) -> None:
        self.state = ObserverState.SEEKING
        self._high_watermark = -1
        self._timing = timing
        self._random = random
        self._leadership = Leadership(
            bootstrap, next_position.epoch, cluster, timing.rebuilt_after_ms
        )
        self._log = UncommittedLog(next_position, checksum)
        self._unverified: LastRecord | None = None
        self._require_check()
        self._download: FetchSnapshotRequest | None = None
        self._pending: ObserverRequest | None = None
        self._not_before_ms = 0
        self._backoff_count = 0
        self._poll_count = 0
        self._max_bytes = self._timing.max_bytes
        self._watermark_epoch = -1
        self._pushes_watermark = False

    @property
    def progress(self) -> LogProgress:
        """How far the log has been read, and what prevents more."""
        committed = self._log.committed
        caught_up = (
            self.state is ObserverState.FETCHING
            and self._watermark_epoch == self._leader_epoch
            and committed.offset >= self._high_watermark
        )
        leadership = self._leadership
        return LogProgress(
            committed,
            self._log.end,
            self._high_watermark,
            leadership.leader,
            caught_up,
            leadership.stall_reason,
        )

    def learn(self, addresses: Sequence[Address]) -> None:
        """Use these addresses of controllers beside the configured ones, after them."""
        self._leadership.learn(addresses)

    def next_action(self, now_ms: int) -> ObserverRequest | Backoff:
        """The request to send now, or how long to wait; ``now_ms`` is of any monotonic clock."""
        if now_ms < self._not_before_ms:
            return Backoff(self._not_before_ms - now_ms)
        to = self._leadership.next_address()
        if to is None:
            wait_ms = self._backoff(now_ms)
            self._leadership.new_round()
            return Backoff(wait_ms)
        self._pending = self._request_to(to)
        return self._pending

    def on_failure(self, failure: RequestFailure, now_ms: int) -> None:
        """The pending request got no response."""
        request = self._take_pending()
        self._move(ResponseKind.LOST)
        self._require_check()
        rank = FailureRank.PERMANENT if failure.permanent else FailureRank.SILENT
        self._leadership.on_failure(request.to, failure.message, now_ms, rank)

    def on_response(self, response: ObserverResponse, now_ms: int) -> list[ObserverOutput]:
        """Apply the response to the pending request; returns the outputs, in order."""
        request = self._take_pending()
        kind = self._leadership.on_response(request, response, now_ms)
        if kind is not None:
            self._move(kind)
            if kind is ResponseKind.SNAPSHOT_NOT_FOUND:
                self._backoff(now_ms)
            if kind is ResponseKind.BEHIND and self._leadership.has_log_restarted(now_ms):
                return self._restart(0, "every controller is at an older leader epoch")
            return []
        try:
            match request, response:
                case FetchRequest(), FetchResponse():
                    return self._on_fetch(request, response, now_ms)
                case FetchSnapshotRequest(), FetchSnapshotResponse():
                    return self._on_snapshot_bytes(request, response)
                case _:
                    raise RuntimeError(f"{type(response).__name__} does not answer {request}")
        except MalformedLogError as error:
            self._move(ResponseKind.LOST)
            self._log.drop()
            message = f"{request.to} sent an unreadable response: {error}"
            self._leadership.on_failure(request.to, message, now_ms)
            return []

    # -- requests ----------------------------------------------------------------------------

    def _request_to(self, to: Address) -> ObserverRequest:
        epoch = max(self._leader_epoch, 0)
        if self.state is ObserverState.SNAPSHOT and self._download is not None:
            part = self._download
            return FetchSnapshotRequest(
                to, epoch, part.snapshot, part.position, self._timing.max_bytes
            )
        last = self._unverified
        position = OffsetAndEpoch(last.offset, last.epoch) if last else self._log.end
        return FetchRequest(
            to, epoch, position, self._high_watermark, self._wait_ms(), self._max_bytes
        )

    def _require_check(self) -> None:
        """Requires that the next response has the last released record unchanged."""
        last = self._log.last_record
        if last.checksum != NO_CHECKSUM:
            self._log.drop()
            self._unverified = last

    def _wait_ms(self) -> int:
        """Let the leader hold a fetch only where it completes when something is committed.

        Before 4.1 an advance of the high watermark does not complete a waiting fetch, and the
        response to one that times out has the watermark of when it arrived.
        """
        is_settled = self._watermark_epoch == self._leader_epoch and not len(self._log)
        if (
            self.state is ObserverState.FETCHING
            and (is_settled or self._pushes_watermark)
            and not self._log_is_full
        ):
            return self._timing.max_wait_ms
        return 0

    @property
    def _leader_epoch(self) -> int:
        return self._leadership.leader.epoch

    def _take_pending(self) -> ObserverRequest:
        request, self._pending = self._pending, None
        if request is None:
            raise RuntimeError("nothing was asked")
        return request

    def _move(self, kind: ResponseKind) -> None:
        self.state = TRANSITIONS[self.state, kind]
        if self.state is not ObserverState.SNAPSHOT:
            self._download = None

    # -- the leader's responses --------------------------------------------------------------

    def _on_fetch(
        self, request: FetchRequest, response: FetchResponse, now_ms: int
    ) -> list[ObserverOutput]:
        self._pushes_watermark = response.version >= PUSHES_WATERMARK
        if response.snapshot is not None:
            return self._on_snapshot_id(request, response, response.snapshot, now_ms)
        self._learn_watermark(response)
        if response.diverging is not None:
            is_consistent = self._log.truncate(response.diverging)
            if self._log.end == request.position or self._unverified is not None:
                # The same request would get the same response for ever.
                is_consistent = is_consistent and len(self._log) > 0
                self._log.drop()
            if not is_consistent and response.high_watermark < 0:
                return self._distrust_leader(request, now_ms)
            self._confirm_leader(request.to)
            self._move(ResponseKind.DIVERGED)
            if is_consistent:
                return []
            reason = f"the leader's log ends at {response.diverging}"
            return self._restart(response.diverging.offset, reason)
        if self._unverified is not None and self._has_replaced(response, self._unverified):
            if response.high_watermark < 0:
                return self._distrust_leader(request, now_ms)
            self._confirm_leader(request.to)
            self._move(ResponseKind.DIVERGED)
            offset = self._unverified.offset
            return self._restart(0, f"the leader has another log, with another offset {offset}")
        appended = self._append(response)
        self._confirm_leader(request.to)
        self._move(ResponseKind.RECORDS)
        released = self._log.release(self._high_watermark)
        self._schedule_watermark_poll(now_ms, fresh=bool(appended))
        return [CommittedBatches(released)] if released else []

    def _has_replaced(self, response: FetchResponse, last: LastRecord) -> bool:
        """Whether the leader does not have the last released record as it was."""
        if not response.records:
            return True  # its log ends there, or the record would be in the response
        batches = scan_batches(response.records).batches
        if not batches or is_replaced(batches, last):
            return bool(batches)
        self._unverified = None
        return False

    def _append(self, response: FetchResponse) -> int:
        if self._log_is_full:
            return 0
        appended = len(self._log.append(scan_batches(response.records), self._leader_epoch))
        if appended or not response.records:
            self._max_bytes = self._timing.max_bytes
        elif self._max_bytes < self._timing.max_batch_bytes:
            self._max_bytes = min(self._max_bytes * 8, self._timing.max_batch_bytes)
        else:
            raise MalformedLogError(
                f"no whole batch follows {self._log.end} in {len(response.records)} bytes"
            )
        return appended

    @property
    def _log_is_full(self) -> bool:
        return self._log.size_bytes > self._timing.tail_bytes

    def _learn_watermark(self, response: FetchResponse) -> None:
        # A new leader has -1 until it has committed something in its own epoch; a watermark never
        # goes back, so the last leader's is still valid.
        if response.high_watermark >= 0:
            self._high_watermark = max(self._high_watermark, response.high_watermark)
            self._watermark_epoch = self._leader_epoch

    def _schedule_watermark_poll(self, now_ms: int, *, fresh: bool) -> None:
        """Poll the high watermark soon after an append, then less and less often."""
        is_settled = self._watermark_epoch == self._leader_epoch and not len(self._log)
        is_behind = self._log.end.offset < self._high_watermark
        if is_settled or is_behind or fresh:
            self._poll_count = 0
        if is_settled or is_behind:
            return
        waits_ms = self._timing.watermark_polls_ms
        if self._log_is_full or not self._pushes_watermark:
            self._not_before_ms = now_ms + waits_ms[min(self._poll_count, len(waits_ms) - 1)]
        self._poll_count += 1

    def _distrust_leader(self, request: FetchRequest, now_ms: int) -> list[ObserverOutput]:
        """Do not let a leader truncate what was committed before it has committed anything itself.

        It may have been replaced without noticing. A leader that has committed in its own epoch
        holds everything that was committed before (Raft), so its response is valid.
        """
        self._move(ResponseKind.LOST)
        message = f"{request.to} leads and has committed nothing yet: asking the others too"
        self._leadership.on_failure(request.to, message, now_ms)
        return []

    def _restart(self, valid_until: int, reason: str) -> list[ObserverOutput]:
        """The log went backwards: what was released from ``valid_until`` on is not in it."""
        last = self._log.committed.offset - 1
        self._log.restart(LOG_START)
        self._unverified = None
        self._high_watermark = -1
        self._watermark_epoch = -1
        if last < 0:
            return []
        return [
            MissingOffsets(min(valid_until, last), last, f"the log went backwards: {reason}", True)
        ]

    # -- snapshots ---------------------------------------------------------------------------

    def _on_snapshot_id(
        self, request: FetchRequest, response: FetchResponse, snapshot: OffsetAndEpoch, now_ms: int
    ) -> list[ObserverOutput]:
        self._leadership.locate(request.to)
        if len(self._log) or self._unverified is not None:
            # The request was for what follows uncommitted records, or for a record that is only in
            # the snapshot: fetch after committed ones.
            self._log.drop()
            self._unverified = None
            self._move(ResponseKind.DIVERGED)
            return []
        position = self._log.committed
        has_position = 0 <= response.log_start <= position.offset
        is_contradiction = snapshot.offset <= position.offset or has_position
        if position != LOG_START and is_contradiction:
            if response.high_watermark < 0:
                return self._distrust_leader(request, now_ms)
            self._move(ResponseKind.DIVERGED)
            return self._restart(0, f"the leader has no {position}")
        self._move(ResponseKind.SNAPSHOT_NAMED)
        self._download = FetchSnapshotRequest(request.to, request.epoch, snapshot, 0, 0)
        return []

    def _on_snapshot_bytes(
        self, request: FetchSnapshotRequest, response: FetchSnapshotResponse
    ) -> list[ObserverOutput]:
        position = request.position + len(response.data)
        if response.snapshot != request.snapshot or response.position != request.position:
            raise MalformedLogError("another part of a snapshot than the one asked for")
        if position > response.size or (not response.data and position < response.size):
            raise MalformedLogError(
                f"a part of {len(response.data)} bytes of a snapshot of {response.size}"
            )
        self._confirm_leader(request.to)
        last = position == response.size
        part = SnapshotBytes(request.snapshot, request.position, response.data, last, response.size)
        if not last:
            self._move(ResponseKind.SNAPSHOT_PART)
            self._download = FetchSnapshotRequest(
                request.to, request.epoch, request.snapshot, position, 0
            )
            return [part]
        self._move(ResponseKind.SNAPSHOT_WHOLE)
        before = self._log.committed
        self._log.restart(request.snapshot)
        self._high_watermark = max(self._high_watermark, request.snapshot.offset)
        if before == LOG_START:
            return [part]
        reason = "the log no longer has these records: its snapshot takes their place"
        missing = MissingOffsets(before.offset, request.snapshot.offset - 1, reason, False)
        return [missing, part]

    # -- backoff -----------------------------------------------------------------------------

    def _confirm_leader(self, address: Address) -> None:
        self._leadership.confirm(address)
        self._backoff_count = 0

    def _backoff(self, now_ms: int) -> int:
        """Wait before the next request; returns how long, in milliseconds."""
        self._backoff_count += 1
        timing = self._timing
        wait_ms = min(timing.backoff_ms << min(self._backoff_count - 1, 20), timing.backoff_cap_ms)
        wait_ms = int(wait_ms * (0.5 + self._random() / 2))
        self._not_before_ms = now_ms + wait_ms
        return wait_ms
