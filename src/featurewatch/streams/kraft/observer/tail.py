"""The batches that an observer has fetched and holds back until they are committed."""

from featurewatch.streams.kraft.errors import MalformedLogError
from featurewatch.streams.kraft.records.batch import BatchScan, RecordBatch
from featurewatch.streams.types import NO_CHECKSUM, LastRecord, OffsetAndEpoch


class UncommittedLog:
    """Whole batches in order; those below the high watermark are released.

    ``committed`` is the position after the last released batch, and ``checksum`` that batch's.
    """

    def __init__(self, committed: OffsetAndEpoch, checksum: int = NO_CHECKSUM) -> None:
        self.committed = committed
        self._checksum = checksum
        self.size_bytes = 0
        self._batches: list[RecordBatch] = []
        self._after_fault = False

    def __len__(self) -> int:
        return len(self._batches)

    @property
    def end(self) -> OffsetAndEpoch:
        """The position after the last batch held: where to fetch next."""
        return _after(self._batches[-1]) if self._batches else self.committed

    @property
    def last_record(self) -> LastRecord:
        """The record before `committed`."""
        return LastRecord(self.committed.offset - 1, self.committed.epoch, self._checksum)

    @property
    def batches(self) -> tuple[RecordBatch, ...]:
        """The batches held, in order."""
        return tuple(self._batches)

    def append(self, scan: BatchScan, newest_epoch: int) -> list[RecordBatch]:
        """Hold the batches that follow `end`, and return them.

        Batches wholly before `end` are skipped, and one that is cut off at the end is left for the
        next fetch. A gap in the offsets, an epoch that goes back or is newer than ``newest_epoch``,
        or no batch at all raise `MalformedLogError`, and nothing is held. A corrupt batch is held
        like any other: the decoder reports it.
        """
        if scan.error and not scan.batches:
            raise MalformedLogError(scan.error)
        appended: list[RecordBatch] = []
        end, after_fault = self.end, self._after_fault
        for batch in scan.batches:
            if batch.last_offset < end.offset:
                continue
            # The number of offsets of a corrupt batch is unknown: the next batch shows it.
            if batch.base_offset > end.offset and not after_fault:
                raise MalformedLogError(
                    f"offsets {end.offset} to {batch.base_offset - 1} are missing"
                )
            if not end.epoch <= batch.leader_epoch <= newest_epoch:
                raise MalformedLogError(
                    f"the batch at offset {batch.base_offset} has epoch {batch.leader_epoch} after "
                    f"epoch {end.epoch}, in the leader's epoch {newest_epoch}"
                )
            appended.append(batch)
            end, after_fault = _after(batch), bool(batch.error)
        self._hold(self._batches + appended)
        self._after_fault = after_fault
        return appended

    def release(self, high_watermark: int) -> tuple[RecordBatch, ...]:
        """Remove and return the batches that lie wholly below ``high_watermark``."""
        count = 0
        while count < len(self._batches) and self._batches[count].last_offset < high_watermark:
            count += 1
        released = tuple(self._batches[:count])
        if released:
            self._hold(self._batches[count:])
            self.committed = _after(released[-1])
            self._checksum = released[-1].checksum
        return released

    def truncate(self, diverging: OffsetAndEpoch) -> bool:
        """Drop what is not in the leader's log; returns whether `committed` is in it.

        ``diverging`` is the end of the newest epoch, not above the requested one, that the leader
        has (ReplicatedLog.truncateToEndOffset).
        """
        self._hold(
            [
                batch
                for batch in self._batches
                if batch.leader_epoch <= diverging.epoch and batch.last_offset < diverging.offset
            ]
        )
        return diverging.epoch >= self.committed.epoch and diverging.offset >= self.committed.offset

    def drop(self) -> None:
        """Forget everything above `committed`."""
        self._hold([])

    def restart(self, position: OffsetAndEpoch) -> None:
        """Forget everything and continue from ``position``."""
        self.drop()
        self.committed = position
        self._checksum = NO_CHECKSUM
        self._after_fault = False

    def _hold(self, batches: list[RecordBatch]) -> None:
        self._batches = batches
        self.size_bytes = sum(batch.end - batch.at for batch in batches)


def _after(batch: RecordBatch) -> OffsetAndEpoch:
    return OffsetAndEpoch(batch.last_offset + 1, batch.leader_epoch)
