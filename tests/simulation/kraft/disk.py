"""The disk of a simulated replica: what is flushed survives a crash, the rest may in part."""

from random import Random

from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    Batch,
    ControlRecord,
    control_batch,
)
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    Append,
    InstallSnapshot,
    QuorumState,
    Truncate,
    WriteSnapshot,
)
from featurewatch.reference.kraft.machines.replicas import VoterSet
from featurewatch.streams.types import LOG_START, OffsetAndEpoch

_Change = Append | Truncate


class Disk:
    """The quorum state, the snapshots and the batches of a replica.

    Appending and cutting off are lost in a crash from some point on, unless they were flushed; the
    other changes are durable when they are done.
    """

    def __init__(self) -> None:
        self.state = QuorumState()
        self.start = LOG_START
        self.snapshots: dict[OffsetAndEpoch, bytes] = {}
        self.batches: list[Batch] = []
        self.unflushed: list[_Change] = []

    def change(self, change: _Change) -> None:
        """Writes without flushing."""
        self.unflushed.append(change)

    def flush(self) -> None:
        """Makes everything durable that was written."""
        for change in self.unflushed:
            self._apply(change)
        self.unflushed.clear()

    def write_snapshot(self, effect: WriteSnapshot) -> None:
        """Writes a snapshot of the log, and deletes the log before it."""
        self.flush()
        self.snapshots[effect.snapshot] = effect.data
        if effect.trims:
            self._begin_at(effect.snapshot)

    def install(self, effect: InstallSnapshot) -> None:
        """Replaces the log by a snapshot."""
        self.unflushed.clear()
        self.snapshots[effect.snapshot] = effect.data
        self.batches = []
        self._begin_at(effect.snapshot)

    def _begin_at(self, start: OffsetAndEpoch) -> None:
        self.start = start
        self.batches = [batch for batch in self.batches if batch.base >= start.offset]
        self.snapshots = {one: data for one, data in self.snapshots.items() if one >= start}

    def crash(self, random: Random) -> None:
        """Loses what was not flushed, from a random point on; a torn batch is lost as a whole."""
        kept = random.randint(0, len(self.unflushed))
        changes, lost = self.unflushed[:kept], self.unflushed[kept:]
        if lost and isinstance(lost[0], Append):
            batches = lost[0].batches
            changes.append(Append(batches[: random.randint(0, len(batches))]))
        self.unflushed = changes
        self.flush()

    def _apply(self, change: _Change) -> None:
        if isinstance(change, Append):
            self.batches += change.batches
        else:
            self.batches = [batch for batch in self.batches if batch.last < change.offset]

    def end(self) -> OffsetAndEpoch:
        """The end of the log as a process that runs sees it, flushed or not."""
        batches = self.batches
        for change in self.unflushed:
            if isinstance(change, Append):
                batches = [*batches, *change.batches]
            else:
                batches = [batch for batch in batches if batch.last < change.offset]
        return OffsetAndEpoch(batches[-1].last + 1, batches[-1].epoch) if batches else self.start

    def load(self, static_voters: VoterSet) -> Log:
        """The log as a process that starts reads it."""
        has_directories = any(node.key.directory for node in static_voters.nodes)
        log = Log(VoterSet(()) if has_directories else static_voters)
        if has_directories:
            records: list[ControlRecord] = [
                (KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}),
                (KRAFT_VOTERS, static_voters.to_record()),
            ]
            log.begin_with(control_batch(0, 0, 0, records).data)
        if self.start.offset:
            log.install(self.start, self.snapshots[self.start])
        log.append(self.batches)
        for snapshot, data in self.snapshots.items():
            if snapshot not in log.snapshots:
                log.add_snapshot(snapshot, data, trims=False)
        return log

    def has(self, batch: Batch) -> bool:
        """Whether a batch is durable, or in a durable snapshot."""
        return batch.last < self.start.offset or any(
            one.base == batch.base and one.epoch == batch.epoch and one.data == batch.data
            for one in reversed(self.batches)
        )
