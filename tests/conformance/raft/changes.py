"""Snapshots, and requests that read them, change the voters or describe the quorum, by chance."""

from collections.abc import Callable
from random import Random
from typing import Final
from uuid import UUID

from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey, VoterSet
from featurewatch.reference.kraft.machines.requests import (
    NONE,
    POSITION_OUT_OF_RANGE,
    SNAPSHOT_NOT_FOUND,
    UNSUPPORTED_VERSION,
    AddVoter,
    DescribeQuorum,
    Fetch,
    FetchSnapshot,
    FetchSnapshotAnswer,
    LeaderView,
    RaftRequest,
    RemoveVoter,
    UpdateVoter,
    VersionsAnswer,
)
from featurewatch.streams.types import LOG_START, UNSUPPORTED, OffsetAndEpoch, SupportedRange
from tests.conformance.raft.forms import key_of, oldest_of
from tests.conformance.raft.ours import OurVoter
from tests.conformance.raft.setting import CLUSTER, Setting, directory_of, endpoint
from tests.simulation.kraft.world import snapshot_of

OBSERVER: Final = 8
STRANGER: Final = 9
_PART: Final = 100
"""Bytes of a snapshot in one answer: some snapshots need several."""


class ChangesByChance:
    """Chooses snapshots and changes of the voters, near to the state of our voter."""

    chance: Random
    setting: Setting
    ours: OurVoter
    downloads: dict[OffsetAndEpoch, bytes]
    """The snapshots that a leader has offered."""
    _key: Callable[[int], ReplicaKey]

    def version_of(self, request: RaftRequest) -> int:
        """The version in which a request arrives: mostly the newest."""
        key = key_of(request)
        newest, chance = self.ours.versions[key], self.chance
        return newest if chance.random() < 0.7 else chance.randint(oldest_of(key), newest)

    # -- requests ----------------------------------------------------------------------------------

    def growing(self) -> RaftRequest:
        """What a leader is asked while voters come and go: mostly what succeeds."""
        chance, voter = self.chance, self.ours.voter
        end, last_epoch = voter.log.end, voter.log.last_epoch
        new = ReplicaKey(STRANGER, directory_of(STRANGER))
        others = [node.key for node in voter.log.voters.nodes if node.key.id != self.setting.me]
        roll = chance.random()
        if roll < 0.2 and voter.log.voters.get(new.id) is None:
            listeners = (endpoint(STRANGER),)
            return AddVoter(CLUSTER, new, listeners, 500, chance.random() < 0.7)
        if roll < 0.35:
            keys = [node.key for node in voter.log.voters.nodes]
            return RemoveVoter(CLUSTER, chance.choice((*keys, new)))
        if roll < 0.45 and others:
            return self._update(CLUSTER, voter.epoch, chance.choice(others).id)
        key = chance.choice((*others, new, new))
        return Fetch(CLUSTER, key, voter.epoch, end, last_epoch, -1, 0, 1 << 20)

    def change(self, cluster: str | None, epoch: int) -> RaftRequest:
        """A request of an operator, a voter, or a replica that loads a snapshot."""
        chance, voters = self.chance, self.ours.voter.log.voters
        epoch = chance.choice((epoch, self.ours.voter.epoch, self.ours.voter.epoch))
        kind = chance.choice(("describe", "add", "add", "remove", "update", "update", "snapshot"))
        ids = [one for one in voters.ids if one != self.setting.me] or [STRANGER]
        if kind == "describe":
            return DescribeQuorum()
        if kind == "add":
            one = chance.choice((OBSERVER, STRANGER, STRANGER, *self.setting.voters))
            key = self._directed(one)
            waits = chance.random() < 0.8
            return AddVoter(
                cluster, key, self._listeners(one), chance.choice((0, 500, 5000)), waits
            )
        if kind == "remove":
            return RemoveVoter(cluster, self._directed(chance.choice((*voters.ids, STRANGER))))
        if kind == "update":
            return self._update(cluster, epoch, chance.choice((*ids, *ids, STRANGER)))
        return self._fetch_snapshot(cluster, epoch, chance.choice((*ids, STRANGER, -1)))

    def _update(self, cluster: str | None, epoch: int, node_id: int) -> UpdateVoter:
        ranges = (SupportedRange(0, 1),) * 6 + (SupportedRange(0, 0), SupportedRange(0, 2))
        key, listeners = self._directed(node_id), self._listeners(node_id)
        return UpdateVoter(cluster, epoch, key, listeners, self.chance.choice(ranges))

    def _directed(self, node_id: int) -> ReplicaKey:
        """A replica with its directory, mostly."""
        known = directory_of(node_id)
        directory = self.chance.choice((known,) * 8 + (None, UUID(int=55)))
        return ReplicaKey(-1 if self.chance.random() < 0.02 else node_id, directory)

    def _listeners(self, node_id: int) -> tuple[Endpoint, ...]:
        """The listeners of a replica: it may have moved, or name another listener only."""
        chance, usual = self.chance, endpoint(max(node_id, 0))
        other = Endpoint("OTHER", "localhost", 9100)
        moved = endpoint(max(node_id, 0) + 50)
        return chance.choice(((usual,), (usual,), (usual,), (moved,), (usual, other), (other,)))

    def _fetch_snapshot(self, cluster: str | None, epoch: int, node_id: int) -> FetchSnapshot:
        chance, log = self.chance, self.ours.voter.log
        known = [at for at in log.snapshots if at.offset > 0]
        unknown = (LOG_START, OffsetAndEpoch(log.end + 3, epoch))
        at = chance.choice((*known, *known, *known, *unknown))
        size = len(log.snapshots.get(at, b""))
        positions = (0, 0, 0, chance.randint(0, size), size - 1, size, size + 1, -1)
        return FetchSnapshot(
            cluster,
            self._key(node_id),
            epoch,
            at,
            chance.choice(positions),
            chance.choice((1, 10, 50, 1000, 1 << 20)),
        )

    # -- answers -----------------------------------------------------------------------------------

    def versions(self) -> VersionsAnswer:
        """The levels of kraft.version that a new voter supports."""
        chance = self.chance
        if chance.random() < 0.1:
            return VersionsAnswer(UNSUPPORTED_VERSION)
        ranges = (SupportedRange(0, 1),) * 6 + (SupportedRange(0, 0), UNSUPPORTED)
        return VersionsAnswer(NONE, chance.choice(ranges))

    def newer_snapshot(self, epoch: int) -> OffsetAndEpoch:
        """The snapshot that a leader of an epoch has where our log should be, mostly."""
        chance, log = self.chance, self.ours.voter.log
        offset = log.end + chance.choice((1, 1, 2, 5))
        at = OffsetAndEpoch(offset, min(epoch, log.last_epoch + chance.choice((0, 0, 1))))
        if chance.random() < 0.05:
            at = OffsetAndEpoch(max(1, log.end - 1), log.last_epoch)
        self.downloads.setdefault(at, snapshot_of(at, self._voters_of_leader()))
        return at

    def _voters_of_leader(self) -> VoterSet | None:
        """The voters in the leader's snapshot: ours, or with one more or one less."""
        log, chance = self.ours.voter.log, self.chance
        if log.kraft_version == 0:
            return None
        ids, roll = log.voters.ids, chance.random()
        if roll < 0.1 and len(ids) > 1:
            return log.voters.without(chance.choice(ids))
        return log.voters

    def part_of_snapshot(self, node_id: int, asked: FetchSnapshot) -> FetchSnapshotAnswer:
        """A part of a snapshot as the leader sends it, or now and then something else."""
        chance = self.chance
        leader = node_id if node_id > 0 else self.ours.voter.leader_id
        view = LeaderView(leader, asked.epoch, (endpoint(leader),))
        roll = chance.random()
        if roll < 0.1:
            return FetchSnapshotAnswer(SNAPSHOT_NOT_FOUND, view)
        if roll < 0.13 and self.ours.line != (3, 9):
            return FetchSnapshotAnswer(POSITION_OUT_OF_RANGE, view)
        data = self.downloads[asked.snapshot]
        at, position = asked.snapshot, asked.position
        if roll < 0.15:
            at = OffsetAndEpoch(at.offset + 1, at.epoch)
        elif roll < 0.17:
            position += 1
        part = data[position : position + chance.choice((_PART, 1 << 20))]
        return FetchSnapshotAnswer(NONE, view, at, len(data), position, part)

    # -- snapshots ---------------------------------------------------------------------------------

    def snapshot(self) -> tuple[OffsetAndEpoch, bytes, bool] | None:
        """A snapshot of what is committed, and whether the log before it is deleted."""
        log = self.ours.voter.log
        newest = log.newest_snapshot or log.start
        ends = [
            OffsetAndEpoch(batch.last + 1, batch.epoch)
            for batch in log.batches
            if newest.offset <= batch.last < log.high_watermark
        ]
        if not ends:
            return None
        at = self.chance.choice(ends)
        level = [level for offset, level in log._levels if offset < at.offset][-1]
        voters = [voters for offset, voters in log._voters if offset < at.offset][-1]
        # More than one beside the log are not compared: ours keeps the newest only.
        trims = newest != log.start or self.chance.random() < 0.6
        return at, snapshot_of(at, voters if level else None), trims
