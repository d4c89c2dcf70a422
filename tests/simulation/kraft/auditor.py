"""Checks what must always be true of a quorum, independently of its machines (Raft, figure 3)."""

from collections.abc import Mapping

from featurewatch.reference.kraft.machines.batches import Batch
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from tests.simulation.kraft.disk import Disk
from tests.simulation.kraft.process import Process, committed_voters


class Auditor:
    """Knows every batch that was ever written, and everything that was ever committed."""

    def __init__(self) -> None:
        self.leaders: dict[int, tuple[int, int]] = {}
        """The replica and incarnation that led an epoch."""
        self.votes: dict[tuple[int, int], ReplicaKey] = {}
        """The candidate that a replica's answers gave its vote in an epoch."""
        self.written: dict[tuple[int, int], tuple[bytes, int]] = {}
        """The content of a batch by offset and epoch, and the epoch of the batch before it."""
        self.committed: list[Batch] = []
        self.elections = 0

    @property
    def committed_end(self) -> int:
        """The end of everything that was ever committed."""
        return self.committed[-1].last + 1 if self.committed else 0

    def on_vote(self, process: Process, epoch: int, candidate: ReplicaKey) -> None:
        """A replica tells a candidate that it votes for it: for no other in this epoch."""
        known = self.votes.setdefault((process.node_id, epoch), candidate)
        assert known == candidate, f"{process.node_id} votes for two candidates of epoch {epoch}"

    def on_leader(self, process: Process, epoch: int) -> None:
        """A replica leads: alone in this epoch, in one life, and with all that is committed."""
        leader = (process.node_id, process.incarnation)
        known = self.leaders.setdefault(epoch, leader)
        assert known == leader, f"{known} and {leader} lead epoch {epoch}"
        self.elections += 1
        if self.committed:
            log, last = process.voter.log, self.committed[-1]
            has = last.last < log.start.offset or any(
                batch.base == last.base and batch.epoch == last.epoch for batch in log.batches
            )
            assert has, f"the leader of epoch {epoch} lacks what is committed at {last.base}"

    def on_append(self, process: Process, batches: tuple[Batch, ...]) -> None:
        """A replica writes: a batch of one offset and epoch is the same in all logs, and so is
        what precedes it."""
        end, before = process.disk.end()
        for batch in batches:
            assert end == batch.base, f"{process.node_id} leaves a gap before {batch.base}"
            content = (batch.data, before)
            known = self.written.setdefault((batch.base, batch.epoch), content)
            assert known == content, f"two logs differ at {batch.base} of epoch {batch.epoch}"
            end, before = batch.last + 1, batch.epoch

    def on_committed(self, process: Process, offset: int, disks: Mapping[int, Disk]) -> None:
        """A replica learns of a high watermark: a majority has everything before it on disk, and
        what was committed stays as it was."""
        log = process.voter.log
        assert offset <= log.end, f"{process.node_id} is told of {offset} beyond its log"
        new = [batch for batch in log.batches if self.committed_end <= batch.base < offset]
        last = next((batch for batch in reversed(log.batches) if batch.last < offset), None)
        if last is not None and last.base < self.committed_end:
            same = [batch for batch in self.committed if batch.base == last.base]
            assert [batch.data for batch in same] == [last.data], f"{last.base} has changed"
        if not new:
            return
        assert new[0].base == self.committed_end, "a commit leaves a gap"
        for batch in new:
            holders = {one for one, disk in disks.items() if disk.has(batch)}
            # Two sets that follow each other have a majority in common (KIP-853).
            assert any(
                len(holders.intersection(voters.ids)) >= voters.majority
                for voters in (log.voters, committed_voters(log))
            ), f"{batch.base} is said to be committed, but only the disks {holders} have it"
        self.committed += new
