"""Requests and answers by chance.

They are mostly what a quorum would send, and sometimes what it never would.
"""

from dataclasses import replace
from random import Random
from typing import Any, Final
from uuid import UUID

from featurewatch.reference.kraft.machines.batches import data_batch
from featurewatch.reference.kraft.machines.protocol import QuorumState
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    ANY_HIGH_WATERMARK,
    FENCED_LEADER_EPOCH,
    INCONSISTENT_CLUSTER_ID,
    INVALID_VOTER_KEY,
    NO_LEADER,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
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
    LeaderView,
    RaftAnswer,
    RaftRequest,
    UpdateVoter,
    ViewedAnswer,
    Vote,
    VoteAnswer,
    VoterAnswer,
)
from featurewatch.reference.kraft.machines.states import State
from featurewatch.streams.types import LOG_START, OffsetAndEpoch
from tests.conformance.raft.changes import OBSERVER, STRANGER, ChangesByChance
from tests.conformance.raft.ours import OurVoter, Request
from tests.conformance.raft.setting import CLUSTER, Setting, directory_of, endpoint

_UPDATE_ERRORS: Final = (NOT_LEADER_OR_FOLLOWER, UNSUPPORTED_VERSION, INCONSISTENT_CLUSTER_ID)


def _setting(chance: Random, release: str) -> Setting:
    grows = chance.random() < 0.25
    count = chance.choice((1, 1, 1, 2, 3) if grows else (1, 2, 3, 3, 3, 3, 3, 4, 5))
    voters = tuple(range(1, count + 1))
    me = OBSERVER if chance.random() < 0.1 else chance.choice(voters)
    is_formatted = grows or chance.random() < 0.4
    form: dict[str, Any] = {
        "is_formatted": is_formatted,
        "grows": grows,
        "is_moved": is_formatted and chance.random() < 0.2,
        "has_new_disk": is_formatted and chance.random() < 0.1,
    }
    if chance.random() < 0.4:
        return Setting(me, voters, None, (), **form)
    epochs = sorted(chance.sample(range(1, 6), chance.randint(0, 3)))
    if chance.random() < 0.2:
        at = chance.randint(0, epochs[0] if epochs else 3)
        form["start"] = OffsetAndEpoch(chance.randint(1, 5), at)
    log = [(epoch, chance.randint(1, 2)) for epoch in epochs for _ in range(chance.randint(1, 2))]
    last = epochs[-1] if epochs else form.get("start", LOG_START).epoch
    epoch = max(0, last + chance.choice((0, 0, 0, 1, 2, -1)))
    leader = chance.choice((NO_LEADER, NO_LEADER, me, *voters))
    voted = chance.choice((None, None, me, *voters))
    key = None if voted is None else ReplicaKey(voted, _directory(is_formatted, voted))
    if release.startswith("3.") and leader != NO_LEADER:
        key = None
    if me == OBSERVER or form["has_new_disk"]:
        key, leader = (None, NO_LEADER if leader == me else leader)
    if leader == me:
        key = None
    return Setting(me, voters, QuorumState(epoch, leader, key), tuple(log), **form)


def _directory(is_formatted: bool, node_id: int) -> UUID | None:
    return directory_of(node_id) if is_formatted else None


class Chance(ChangesByChance):
    """Chooses requests and answers by chance, near to the state of our voter."""

    def __init__(self, chance: Random, release: str) -> None:
        self.chance = chance
        self.has_pre_vote = not release.startswith("3.")
        self.setting = _setting(chance, release)
        self.ours = OurVoter(self.setting, release)
        self.downloads = {}

    def _other(self) -> int:
        """Another voter, mostly."""
        others = [one for one in self.setting.voters if one != self.setting.me] or [STRANGER]
        return self.chance.choice(others)

    def _near(self, epoch: int) -> int:
        return max(0, epoch + self.chance.choice((-1, 0, 0, 0, 0, 1, 1, 2)))

    def _leader(self, epoch: int) -> int:
        """Who may lead an epoch, mostly as it is known."""
        voter = self.ours.voter
        is_known = epoch == voter.epoch and voter.leader_id not in (NO_LEADER, self.setting.me)
        return voter.leader_id if is_known and self.chance.random() < 0.98 else self._other()

    def request(self) -> RaftRequest:
        """A request that arrives."""
        chance, voter = self.chance, self.ours.voter
        if self.setting.grows and voter.state is State.LEADER and chance.random() < 0.8:
            return self.growing()
        kind = chance.choice(("vote", "vote", "begin", "end", "fetch", "fetch", "change"))
        if voter.state is State.LEADER:
            kind = chance.choice((kind, kind, "fetch", "fetch", "fetch", "change"))
        cluster = chance.choice((CLUSTER,) * 20 + (None, "another"))
        epoch = self._near(voter.epoch)
        me = chance.choice(
            (ReplicaKey(self.setting.me, self.setting.directory),) * 8
            + (ReplicaKey(self.setting.me), ReplicaKey(-1), ReplicaKey(STRANGER))
        )
        if kind == "change":
            return self.change(cluster, epoch)
        if kind == "vote":
            return self._vote(cluster, me, epoch)
        if kind == "begin":
            leader = self._leader(epoch)
            leader = -1 if chance.random() < 0.02 else leader
            return BeginQuorumEpoch(cluster, me, leader, epoch, self._endpoints(leader))
        if kind == "end":
            leader = self._leader(epoch)
            keys = [self._key(one) for one in self.setting.voters if one != leader]
            chance.shuffle(keys)
            successors = tuple(keys[: chance.randint(0, len(keys))])
            return EndQuorumEpoch(cluster, leader, epoch, successors, self._endpoints(leader))
        return self._fetch(cluster, epoch)

    def _endpoints(self, leader: int) -> tuple[Any, ...]:
        is_known = leader in self.setting.voters
        return () if is_known and self.chance.random() < 0.2 else (endpoint(leader),)

    def _vote(self, cluster: str | None, me: ReplicaKey, epoch: int) -> Vote:
        chance, log = self.chance, self.ours.voter.log
        last_epoch = max(-1, log.last_epoch + chance.choice((0, 0, 0, 0, -1, 1)))
        end = max(-1, log.end + chance.choice((0, 0, 0, -1, 1, 3)))
        candidate = chance.choice((self._other(), self._other(), self._other(), OBSERVER, -1))
        if candidate == self.setting.me:
            candidate = STRANGER
        is_pre_vote = self.has_pre_vote and chance.random() < 0.5
        return Vote(cluster, me, epoch, self._key(candidate), last_epoch, end, is_pre_vote)

    def _key(self, node_id: int) -> ReplicaKey:
        """A replica with its directory, mostly."""
        ours = self.setting.directory
        known = directory_of(node_id)
        return ReplicaKey(node_id, self.chance.choice((known, known, known, known, None, ours)))

    def _position(self) -> OffsetAndEpoch:
        """Where a log like ours may end: between two batches."""
        log = self.ours.voter.log
        ends = [(0, 0), log.start, *((batch.last + 1, batch.epoch) for batch in log.batches)]
        offset, epoch = self.chance.choice([*ends, ends[-1], ends[-1], ends[-1]])
        return OffsetAndEpoch(offset, epoch)

    def _fetch(self, cluster: str | None, epoch: int) -> Fetch:
        chance, voter = self.chance, self.ours.voter
        if voter.state is State.LEADER and chance.random() < 0.8:
            epoch = voter.epoch
        at = self._position()
        if chance.random() < 0.15:
            at = OffsetAndEpoch(at.offset + chance.choice((0, 3)), max(-1, at.epoch - 1))
        elif chance.random() < 0.05:
            at = OffsetAndEpoch(at.offset, at.epoch + 1)
        replica = chance.choice((self._other(),) * 6 + (STRANGER, -1))
        highs = (-1, 0, max(0, voter.log.high_watermark), voter.log.end, ANY_HIGH_WATERMARK)
        return Fetch(
            cluster,
            self._key(replica),
            epoch,
            at.offset,
            at.epoch,
            chance.choice(highs),
            chance.choice((0, 100, 500, 500, -1) if chance.random() < 0.1 else (0, 500, 500)),
            1 << 20,
        )

    def _view(self, node: int, epoch: int) -> LeaderView:
        """What a node says of the leader of an epoch."""
        chance, voter = self.chance, self.ours.voter
        if epoch == voter.epoch and voter.leader_id == self.setting.me:
            leader = chance.choice((voter.leader_id, NO_LEADER))
        else:
            leader = chance.choice((NO_LEADER, self._leader(epoch), self._leader(epoch)))
        if leader == NO_LEADER:
            return LeaderView(NO_LEADER, epoch)
        known = leader in self.setting.voters and chance.random() < 0.3
        return LeaderView(leader, epoch, () if known else (endpoint(leader),))

    def answer(self, request: Request) -> RaftAnswer | None:
        """The answer to a request of our voter; None if there is none."""
        chance, asked, node = self.chance, request.send.request, request.send.node_id
        epoch: int = getattr(asked, "epoch", 0)
        roll = chance.random()
        if roll < 0.08:
            return None
        kind: Any = {Vote: VoteAnswer, Fetch: FetchAnswer}.get(type(asked), EpochAnswer)
        if isinstance(asked, UpdateVoter):
            kind = VoterAnswer
        elif isinstance(asked, FetchSnapshot):
            kind = FetchSnapshotAnswer
        elif isinstance(asked, AskVersions):
            return self.versions()
        if roll < 0.11 and kind is not VoterAnswer:
            is_pre_vote = isinstance(asked, Vote) and asked.is_pre_vote
            is_old = is_pre_vote and roll >= 0.1
            refused: RaftAnswer = kind(UNSUPPORTED_VERSION if is_old else INCONSISTENT_CLUSTER_ID)
            return refused
        other: ViewedAnswer = kind(NONE)
        if roll < 0.17:
            view = self._view(node, epoch + chance.choice((1, 1, 2)))
            return replace(other, error=chance.choice((FENCED_LEADER_EPOCH, NONE)), view=view)
        if roll < 0.20:
            view = self._view(node, max(0, epoch - 1))
            return replace(other, error=chance.choice((UNKNOWN_LEADER_EPOCH, NONE)), view=view)
        if roll < 0.23 and isinstance(asked, Vote | BeginQuorumEpoch):
            view = self._view(node, epoch)
            return replace(other, error=INVALID_VOTER_KEY, view=view)
        return self._fitting(node, asked, epoch)

    def _fitting(self, node: int, asked: RaftRequest, epoch: int) -> RaftAnswer:
        """An answer that fits the request."""
        chance = self.chance
        match asked:
            case Vote():
                is_granted = chance.random() < 0.6
                view = LeaderView(NO_LEADER, epoch)
                if not is_granted and chance.random() < 0.3:
                    view = self._view(node, epoch)
                return VoteAnswer(NONE, view, is_granted)
            case Fetch():
                return self._fetched(node, asked)
            case FetchSnapshot():
                return self.part_of_snapshot(node, asked)
            case UpdateVoter():
                leader = LeaderView(node, epoch, (endpoint(node),))
                return VoterAnswer(chance.choice((NONE, NONE, *_UPDATE_ERRORS)), None, leader)
            case _:
                return EpochAnswer(NONE, LeaderView(self.setting.me, epoch))

    def _fetched(self, node: int, asked: Fetch) -> FetchAnswer:
        chance, voter = self.chance, self.ours.voter
        leader = node if node > 0 else self.setting.bootstrap[-2 - node].port - 9000
        is_leader = voter.leader_id in (leader, NO_LEADER)
        if not is_leader or chance.random() < 0.1:
            view = self._view(node, asked.epoch)
            return FetchAnswer(NOT_LEADER_OR_FOLLOWER, view)
        view = LeaderView(leader, asked.epoch, (endpoint(leader),))
        log = voter.log
        committed = max(0, log.high_watermark)
        if chance.random() < 0.08:
            return FetchAnswer(NONE, view, committed, 0, snapshot=self.newer_snapshot(asked.epoch))
        if chance.random() < 0.1 and log.batches:
            ends = [(batch.last + 1, batch.epoch) for batch in log.batches]
            offset, epoch = chance.choice([(0, 0), *ends])
            kept = max(committed, (log.newest_snapshot or log.start).offset)
            if offset >= kept or chance.random() < 0.02:
                at = OffsetAndEpoch(offset, max(0, epoch + chance.choice((0, 0, -1))))
                return FetchAnswer(NONE, view, committed, 0, at)
        records = b""
        base = asked.offset
        epoch = asked.last_epoch
        for _ in range(chance.choice((0, 0, 1, 1, 2))):
            epoch = min(asked.epoch, epoch + chance.choice((0, 0, 1)))
            count = chance.randint(1, 3)
            records += data_batch(base, epoch, 0, [b"r"] * count).data
            base += count
        high = chance.choice((-1, committed, base, chance.randint(committed, max(committed, base))))
        if committed and high < 0:
            high = committed
        return FetchAnswer(NONE, view, high, 0, records=records)
