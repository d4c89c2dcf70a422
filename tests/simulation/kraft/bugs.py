"""Planted bugs, each of which the auditor must notice: the patched object, the name and the
replacement."""

from typing import Any

from featurewatch.reference.kraft.machines.leadership import Leadership
from featurewatch.reference.kraft.machines.log import Log, Position
from featurewatch.reference.kraft.machines.protocol import (
    Flush,
    Persist,
    QuorumState,
    Reply,
)
from featurewatch.reference.kraft.machines.replicas import ReplicaKey, VoterSet
from featurewatch.reference.kraft.machines.requests import VoteAnswer
from featurewatch.reference.kraft.machines.states import State
from featurewatch.reference.kraft.machines.voter import Voter
from featurewatch.streams.types import LOG_START
from tests.simulation.kraft.disk import Disk

_RECEIVE = Voter.receive
_START = Voter._start
_APPEND = Voter._append
_TAKE = Voter._commit
_COUNT = Voter._count_votes


def _forgetful(self: Voter) -> None:
    """Remembers the epoch, and no vote in it."""
    state = QuorumState(self.epoch, self.leader_id, None)
    if state != self._persisted:
        self._persisted = state
        self.emit(Persist(state))


def _answers_first(self: Voter, event: Any, now_ms: int) -> Any:
    """Sends the answer to a vote before the vote is on disk."""
    effects = _RECEIVE(self, event, now_ms)
    votes = [
        effect
        for effect in effects
        if isinstance(effect, Reply) and isinstance(effect.answer, VoteAnswer)
    ]
    return [*votes, *(effect for effect in effects if effect not in votes)]


def _without_flush(self: Voter, event: Any, now_ms: int) -> Any:
    """A follower acknowledges what it has not flushed."""
    effects = _RECEIVE(self, event, now_ms)
    return [
        effect for effect in effects if not isinstance(effect, Flush) or self.state is State.LEADER
    ]


def _counts_unflushed(self: Voter, batch: Any) -> int:
    """The leader's log counts before it is flushed."""
    last = _APPEND(self, batch)
    if self.leadership is not None:
        self.leadership.local_end = self.log.end
    return last


def _half(self: Leadership, voters: VoterSet) -> int:
    """Half of the voters is a majority."""
    ends = [one.end for one in self.voter_progress(voters).values()] + [self.local_end]
    return sorted(ends, reverse=True)[max(0, (len(voters.nodes) - 1) // 2 - 1)]


def _any_log(self: Voter, candidate: ReplicaKey, is_up_to_date: bool) -> bool:
    """Votes for a candidate whose log is behind."""
    if self.state not in (State.UNATTACHED, State.PROSPECTIVE, State.VOTED):
        return False
    return self.voted is None or self.voted == candidate


def _any_candidate(self: Voter, candidate: ReplicaKey, is_up_to_date: bool) -> bool:
    """Votes for each candidate of an epoch."""
    return is_up_to_date and self.state is not State.LEADER


def _needs_no_votes(self: Voter) -> None:
    """A candidate leads without waiting for votes."""
    if self.state is State.CANDIDATE:
        self._become_leader()
    else:
        _COUNT(self)


def _restarts_as_candidate(self: Voter, remembered: QuorumState) -> None:
    """A leader that starts again is a candidate again in its epoch."""
    leader_id = -1 if remembered.leader_id == self.me.id else remembered.leader_id
    _START(self, QuorumState(remembered.epoch, leader_id, remembered.voted))


def _ignores_divergence(self: Log, offset: int, epoch: int) -> Position:
    """A follower may read from wherever its log ends."""
    newest = self.newest_snapshot
    return Position(snapshot=newest) if offset < self.start.offset else Position()


def _loses_state(self: Disk, random: Any) -> None:
    """The file system loses the quorum state."""
    self.unflushed.clear()
    self.state = QuorumState()


def _commits_all(self: Voter, offset: int) -> None:
    """A follower takes all that it has for committed."""
    _TAKE(self, self.log.end if self.state is State.FOLLOWER else offset)


def _installs_at_start(self: Log, snapshot: Any, data: bytes) -> None:
    """A snapshot is loaded, and the log continues from its beginning."""
    self.snapshots[snapshot] = data
    self._begin_at(LOG_START, [])


_TWO_VOTES = "votes for two candidates"
_NOT_ON_DISK = "is said to be committed, but only the disks"
BUGS: dict[str, tuple[Any, str, Any, int, str]] = {
    "votes are not remembered": (Voter, "_persist", _forgetful, 4, _TWO_VOTES),
    "a vote is sent before it is on disk": (Voter, "receive", _answers_first, 195, _TWO_VOTES),
    "a voter votes for two candidates": (Voter, "_is_granted", _any_candidate, 8, _TWO_VOTES),
    "a candidate needs no votes": (Voter, "_count_votes", _needs_no_votes, 77, "lead epoch"),
    "a follower acknowledges unflushed records": (
        Voter,
        "receive",
        _without_flush,
        0,
        _NOT_ON_DISK,
    ),
    "a leader counts its unflushed records": (
        Voter,
        "_append",
        _counts_unflushed,
        2,
        _NOT_ON_DISK,
    ),
    "half of the voters commits": (Leadership, "majority_end", _half, 0, _NOT_ON_DISK),
    "logs that diverge are not cut off": (Log, "position", _ignores_divergence, 0, _NOT_ON_DISK),
    "a follower commits everything": (Voter, "_commit", _commits_all, 0, _NOT_ON_DISK),
    "a candidate with an old log gets votes": (
        Voter,
        "_is_granted",
        _any_log,
        65,
        "lacks what is committed",
    ),
    "the quorum state is lost": (Disk, "crash", _loses_state, 19, "two logs differ"),
    "a snapshot does not move the log": (
        Log,
        "install",
        _installs_at_start,
        2,
        "the log ends at 0, and the next batch begins at",
    ),
    "a leader that restarts leads its epoch again": (
        Voter,
        "_start",
        _restarts_as_candidate,
        434,
        "the quorum does not come to an agreement",
    ),
}
"""With each a seed at which it was noticed, which is tried first, and the invariant that it breaks
there."""
