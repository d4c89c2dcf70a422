"""What a follower does with its leader's answers: it appends, cuts off, and loads snapshots.

KIP-595, KIP-630; the handlers of responses of ``KafkaRaftClient``.
"""

from featurewatch.reference.kraft.machines.batches import InvalidBatchesError, read_batches
from featurewatch.reference.kraft.machines.log import InvalidAppendError
from featurewatch.reference.kraft.machines.protocol import (
    Append,
    Committed,
    Flush,
    Halt,
    InstallSnapshot,
    Truncate,
)
from featurewatch.reference.kraft.machines.requests import (
    Fetch,
    FetchAnswer,
    FetchSnapshotAnswer,
)
from featurewatch.reference.kraft.machines.serving import ServingReplica
from featurewatch.streams.types import OffsetAndEpoch


class FollowingReplica(ServingReplica):
    """A replica that takes over its leader's log."""

    def _on_leader_answered(self) -> None:
        """Notes that the leader is alive (``resetFetchTimeoutForSuccessfulFetch``)."""
        self._deadline_ms = self._now_ms + self.settings.fetch_timeout_ms
        self._has_fetched = True

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
