"""What a leader knows of the replicas of its epoch (``LeaderState``)."""

from dataclasses import dataclass, field
from typing import Final

from featurewatch.reference.kraft.machines.replicas import ReplicaKey, VoterSet
from featurewatch.reference.kraft.machines.requests import ReplicaState

CHECK_QUORUM_FACTOR: Final = 1.5
"""A leader resigns if no majority has fetched for this many fetch timeouts (KAFKA-15489)."""
OBSERVER_MS: Final = 300_000
"""An observer that has not fetched for this long is forgotten."""


@dataclass(slots=True)
class Progress:
    """How far a replica has fetched; offsets and times are -1 until it has."""

    key: ReplicaKey
    end: int = -1
    fetched_ms: int = -1
    caught_up_ms: int = -1
    leader_end: int = -1
    """The end of the leader's log at its last fetch."""


@dataclass(slots=True)
class Leadership:
    """The replicas of one epoch, and what follows from their fetches.

    ``local_end`` is the end of the leader's own log on disk. ``start`` is where its epoch begins.
    """

    me: ReplicaKey
    epoch: int
    start: int
    local_end: int
    now_ms: int
    fetch_timeout_ms: int
    replicas: dict[ReplicaKey, Progress] = field(default_factory=dict)
    begin_ms: int = 0
    """When BeginQuorumEpoch is sent next."""
    _fetched: set[int] = field(default_factory=set)
    _check_ms: int = 0

    def __post_init__(self) -> None:
        self._restart_check(self.now_ms)

    def progress_of(self, key: ReplicaKey) -> Progress:
        """The progress of a replica, which is new if it was not known.

        A voter whose directory the voters' record does not have may be of any directory.
        """
        return self.replicas.setdefault(key, Progress(key))

    def voter_progress(self, voters: VoterSet) -> dict[int, Progress]:
        """The most advanced replica of each voter except the leader."""
        found: dict[int, Progress] = {}
        for node in voters.nodes:
            if node.key.id == self.me.id:
                continue
            known = [p for p in self.replicas.values() if node.key.is_matched_by(p.key)]
            # Of several with one id and no known directory, the one that fetched last is alive.
            best = max(known, key=lambda one: one.fetched_ms, default=None)
            found[node.key.id] = best or Progress(node.key)
        return found

    def on_fetch(
        self, key: ReplicaKey, voters: VoterSet, end: int, log_end: int, now_ms: int
    ) -> None:
        """Notes that a replica has everything before ``end`` on disk.

        A voter without a directory in the voters' record is one replica, whatever directory it
        tells (``getOrCreateReplicaState``).
        """
        node = voters.get(key.id)
        one = self.progress_of(node.key if node and node.key.is_matched_by(key) else key)
        if end >= log_end:
            one.caught_up_ms = now_ms
        elif 0 < one.leader_end <= end:
            one.caught_up_ms = max(one.caught_up_ms, one.fetched_ms)
        one.end, one.fetched_ms, one.leader_end = end, now_ms, log_end

    def on_alive(self, key: ReplicaKey, voters: VoterSet, now_ms: int) -> None:
        """Notes that a replica is alive, for the check of the quorum.

        That of an observer begins the time of the only voter again: it may become a voter.
        """
        if voters.has(key):
            self._fetched.add(key.id)
        needed = voters.majority - (1 if voters.has(self.me) else 0)
        if len(self._fetched) >= needed:
            self._restart_check(now_ms)

    def _restart_check(self, now_ms: int) -> None:
        self._fetched.clear()
        self._check_ms = now_ms + int(self.fetch_timeout_ms * CHECK_QUORUM_FACTOR)

    def has_quorum(self, voters: VoterSet, now_ms: int) -> bool:
        """Whether a majority of the voters has fetched recently."""
        is_alone = voters.has(self.me) and len(voters.nodes) == 1
        return is_alone or now_ms < self._check_ms

    def majority_end(self, voters: VoterSet) -> int:
        """The offset before which a majority of the voters has the log on disk.

        It may be the new high watermark if it is beyond the start of the epoch: a record of an
        earlier epoch is committed by one of this epoch after it (KIP-595, Raft 5.4.2).
        """
        ends = [progress.end for progress in self.voter_progress(voters).values()]
        if voters.has(self.me):
            ends.append(self.local_end)
        return sorted(ends, reverse=True)[voters.majority - 1]

    def successors(self, voters: VoterSet) -> tuple[ReplicaKey, ...]:
        """The other voters, the one that has fetched most first."""
        others = sorted(
            self.voter_progress(voters).values(), key=lambda one: (-one.end, one.key.id)
        )
        return tuple(one.key for one in others)

    def describe(
        self, voters: VoterSet, log_end: int, now_ms: int
    ) -> tuple[tuple[ReplicaState, ...], tuple[ReplicaState, ...]]:
        """The voters, as the voters' record names them, and the observers, for DescribeQuorum."""
        node = voters.get(self.me.id)
        is_voter = node is not None and voters.has(self.me)
        key = node.key if node is not None and is_voter else self.me
        mine = ReplicaState(key, log_end, now_ms, now_ms)
        others = self.voter_progress(voters)
        rows = [_row(one) for one in others.values()]
        if is_voter:
            rows.append(mine)
        observers = [] if is_voter else [mine]
        observers += [
            _row(one)
            for one in self.replicas.values()
            if not any(one is voter for voter in others.values())
            and now_ms - one.fetched_ms < OBSERVER_MS
        ]
        return _by_id(rows), _by_id(observers)


def _row(one: Progress) -> ReplicaState:
    return ReplicaState(one.key, one.end, one.fetched_ms, one.caught_up_ms)


def _by_id(rows: list[ReplicaState]) -> tuple[ReplicaState, ...]:
    return tuple(sorted(rows, key=lambda row: row.key.id))
