"""The replicated log in memory (``ReplicatedLog``, ``KafkaMetadataLog``, ``VoterSetHistory``)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from featurewatch.reference.kraft.machines.batches import (
    Batch,
    control_records,
    read_batches,
)
from featurewatch.reference.kraft.machines.replicas import VoterSet
from featurewatch.streams.types import LOG_START, OffsetAndEpoch

_STATIC: Final = -1
"""The offset of the voters that are configured, not in the log."""


class InvalidAppendError(ValueError):
    """Batches that do not follow the log; the text is one phrase."""


@dataclass(frozen=True, slots=True)
class Position:
    """Whether a follower may read from a position (``ValidOffsetAndEpoch``).

    At most one of the fields is set: where its log diverges, or the snapshot that it must load.
    """

    diverging: OffsetAndEpoch | None = None
    snapshot: OffsetAndEpoch | None = None

    @property
    def is_valid(self) -> bool:
        """Whether it may read on."""
        return self.diverging is None and self.snapshot is None


_VALID: Final = Position()


class Log:
    """The batches after the snapshot at its start, and what follows from them.

    ``high_watermark`` is the end of what is known to be committed, -1 until it is known.
    """

    def __init__(self, static_voters: VoterSet) -> None:
        self.batches: list[Batch] = []
        self.start = LOG_START
        """The position before the first batch: the snapshot that the log begins with."""
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.high_watermark = -1
        self.unreadable_offset: int | None = None
        """The first control record that no known release has, if there is one."""
        self._is_formatted = False
        """Whether the voters are those of a snapshot at offset 0, not configured (KIP-853)."""
        self._bases: list[int] = []
        self._epochs: list[tuple[int, int]] = []  # an epoch and its first offset, ascending
        self._voters: list[tuple[int, VoterSet]] = [(_STATIC, static_voters)]
        self._levels: list[tuple[int, int]] = [(_STATIC, 0)]

    # -- what it holds -----------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The offset of the next record."""
        return self.batches[-1].last + 1 if self.batches else self.start.offset

    @property
    def last_epoch(self) -> int:
        """The epoch of the last record."""
        return self.batches[-1].epoch if self.batches else self.start.epoch

    @property
    def voters(self) -> VoterSet:
        """The newest voters in the log, committed or not (KIP-853)."""
        return self._voters[-1][1]

    @property
    def voters_offset(self) -> int:
        """The offset of the record with the newest voters; -1 if they are configured."""
        return self._voters[-1][0]

    @property
    def earlier_voters(self) -> VoterSet | None:
        """The voters before the newest ones, if these are not known to be committed."""
        is_committed = self.voters_offset < self.high_watermark
        return None if is_committed or len(self._voters) < 2 else self._voters[-2][1]

    @property
    def kraft_version(self) -> int:
        """The newest kraft.version in the log."""
        return self._levels[-1][1]

    @property
    def newest_snapshot(self) -> OffsetAndEpoch | None:
        """The newest snapshot beside the log; one at offset 0 is of the format, never sent."""
        return max((one for one in self.snapshots if one.offset > 0), default=None)

    @property
    def _earliest_snapshot(self) -> OffsetAndEpoch:
        """The oldest snapshot beside the log; that of the format is one, too."""
        return LOG_START if self._is_formatted and self.start == LOG_START else min(self.snapshots)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """The newest epoch up to this one that the log has, and its end (``endOffsetForEpoch``)."""
        at = bisect_right(self._epochs, (epoch, self.end))
        if at == 0:
            first = self._epochs[0][1] if self._epochs else self.end
            begins_with_snapshot = self.start.offset > 0 or self._is_formatted
            if not self._epochs or (begins_with_snapshot and first == self.start.offset):
                return OffsetAndEpoch(first, self.start.epoch)
            return OffsetAndEpoch(first, epoch)
        end = self._epochs[at][1] if at < len(self._epochs) else self.end
        return OffsetAndEpoch(end, self._epochs[at - 1][0])

    def position(self, offset: int, epoch: int) -> Position:
        """What a follower whose log ends at a position must do (``validateOffsetAndEpoch``).

        Where a snapshot exists, an empty log loads it, which is shorter than the log.
        """
        newest = self.newest_snapshot
        if offset == 0 and newest is not None:
            return Position(snapshot=newest)
        if offset == 0 == self.start.offset:
            return _VALID
        if newest is not None:
            is_before = offset < self.start.offset or epoch < self._earliest_snapshot.epoch
            is_other = offset == self.start.offset and epoch != self.start.epoch
            if is_before or is_other:
                return Position(snapshot=newest)
        found = self.end_of_epoch(epoch)
        if found.epoch != epoch or found.offset < offset:
            return Position(diverging=found)
        return _VALID

    def read(self, offset: int, max_bytes: int) -> bytes:
        """The batches from an offset on; the first even if it is longer than ``max_bytes``."""
        parts, size = list[bytes](), 0
        for batch in self.batches[self._index(offset) :]:
            if parts and size + len(batch.data) > max_bytes:
                break
            parts.append(batch.data)
            size += len(batch.data)
        return b"".join(parts)

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record before an offset within the log."""
        if offset <= self.start.offset:
            return self.start.epoch
        return self.batches[self._index(offset - 1)].epoch

    # -- changes -----------------------------------------------------------------------------------

    def append(self, batches: Iterable[Batch]) -> None:
        """Appends batches that follow.

        Raises:
            InvalidAppendError: if one does not; those before it are appended.
        """
        for batch in batches:
            if batch.base != self.end:
                raise InvalidAppendError(
                    f"the log ends at {self.end}, and the next batch begins at {batch.base}"
                )
            if batch.epoch < self.last_epoch:
                raise InvalidAppendError(
                    f"the log is at epoch {self.last_epoch}, and the next batch at {batch.epoch}"
                )
            if not self._epochs or self._epochs[-1][0] < batch.epoch:
                self._epochs.append((batch.epoch, batch.base))
            self.batches.append(batch)
            self._bases.append(batch.base)
            if batch.is_control:
                self._note(batch)

    def truncate(self, offset: int) -> int:
        """Cuts off the batches that reach beyond an offset; returns the new end."""
        keep = self._index(offset)
        del self.batches[keep:], self._bases[keep:]
        end = self.end
        self._epochs = [entry for entry in self._epochs if entry[1] < end]
        self._voters = [entry for entry in self._voters if entry[0] < end]
        self._levels = [entry for entry in self._levels if entry[0] < end]
        if self.unreadable_offset is not None and self.unreadable_offset >= end:
            self.unreadable_offset = None
        return end

    def add_snapshot(self, snapshot: OffsetAndEpoch, data: bytes, *, trims: bool) -> None:
        """Adds a snapshot of what the log holds; with ``trims`` deletes the log before it.

        The oldest one stays until then: by its epoch it is decided who may read on (`position`).
        """
        self.snapshots[snapshot] = data
        if trims:
            self._begin_at(snapshot, self.batches[self._index(snapshot.offset) :])
        kept = (self.start, min(self.snapshots), max(self.snapshots))
        self.snapshots = {one: content for one, content in self.snapshots.items() if one in kept}

    def find_voters(self) -> None:
        """Looks for voters that no record in the log has in the newest snapshot beside it.

        A process that starts reads its newest snapshot first (``KRaftControlRecordStateMachine``).
        """
        newest = self.newest_snapshot
        if newest is None or self.voters_offset >= 0:
            return
        for record in control_records(read_batches(self.snapshots[newest])):
            self._note_record(newest.offset - 1, record)

    def begin_with(self, data: bytes) -> None:
        """Takes over the voters of the format, the snapshot at offset 0 (KIP-853).

        Raises:
            InvalidBatchesError: if it is not made of valid batches.
        """
        for record in control_records(read_batches(data)):
            self._note_record(_STATIC, record)
        self._is_formatted = True

    def install(self, snapshot: OffsetAndEpoch, data: bytes) -> None:
        """Replaces the log by a snapshot.

        Raises:
            InvalidBatchesError: if it is not made of valid batches.
        """
        found = control_records(read_batches(data))
        self.snapshots[snapshot] = data
        static = self._voters[0]
        self._voters, self._levels = [static], self._levels[:1]
        self.unreadable_offset = None
        at = snapshot.offset - 1
        for record in found:
            self._note_record(at, record)
        self._begin_at(snapshot, [])
        self.high_watermark = max(self.high_watermark, snapshot.offset)

    def _begin_at(self, start: OffsetAndEpoch, batches: Sequence[Batch]) -> None:
        self.start = start
        self.batches = list(batches)
        self._bases = [batch.base for batch in batches]
        self._epochs = []
        for batch in batches:
            if not self._epochs or self._epochs[-1][0] < batch.epoch:
                self._epochs.append((batch.epoch, batch.base))
        self.snapshots = {one: data for one, data in self.snapshots.items() if one >= start}

    def _note(self, batch: Batch) -> None:
        for record in control_records([batch]):
            self._note_record(record["offset"], record)

    def _note_record(self, offset: int, record: dict[str, Any]) -> None:
        data = record["data"]
        match record["type"]:
            case "KRAFT_VOTERS":
                self._voters.append((offset, VoterSet.from_record(data)))
            case "KRAFT_VERSION":
                self._levels.append((offset, data["kRaftVersion"]))
            case "LEADER_CHANGE":
                pass
            case _:
                if self.unreadable_offset is None:
                    self.unreadable_offset = offset

    def _index(self, offset: int) -> int:
        """The index of the batch that holds an offset, or of the first after it."""
        index = bisect_left(self._bases, offset)
        if index > 0 and self.batches[index - 1].last >= offset:
            index -= 1
        return index
