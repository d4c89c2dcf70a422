"""Elections: how a replica becomes leader or follower, and what it does as time passes.

KIP-595, KIP-996; ``QuorumState`` and the polls of ``KafkaRaftClient``.
"""

from typing import Final

from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    ControlRecord,
)
from featurewatch.reference.kraft.machines.leadership import Leadership
from featurewatch.reference.kraft.machines.membership import Membership
from featurewatch.reference.kraft.machines.protocol import (
    BecameLeader,
    LostLeadership,
    QuorumState,
)
from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey
from featurewatch.reference.kraft.machines.requesting import RequestingReplica
from featurewatch.reference.kraft.machines.requests import (
    NO_LEADER,
    LeaderView,
    Vote,
    VoteAnswer,
)
from featurewatch.reference.kraft.machines.states import TRANSITIONS, State

_ELECTING: Final = frozenset({State.PROSPECTIVE, State.CANDIDATE})
_BACKOFF_STEP_MS: Final = 100
"""``RETRY_BACKOFF_BASE_MS`` of Kafka 3.9."""


class ElectingReplica(RequestingReplica):
    """A replica that elects, leads, follows and resigns."""

    membership: Membership

    def _start(self, remembered: QuorumState) -> None:
        """Enters the state that follows from what was remembered (``QuorumState.initialize``)."""
        self.log.find_voters()
        if remembered.epoch < self.log.last_epoch:
            self._log(
                f"the quorum state has epoch {remembered.epoch}, and the log {self.log.last_epoch}:"
                " starting from that of the log",
                is_warning=True,
            )
            self.epoch, self.voted = self.log.last_epoch, None
        elif remembered.leader_id == self.me.id:
            # It may have lost records of this epoch that it had not flushed.
            self.state, self.leader_id = State.RESIGNED, self.me.id
            self.voted = None
        elif self._remembers_itself(remembered):
            if self._can_stand():
                self.state = State.CANDIDATE
            self._granted = {self.me.id}
        elif remembered.leader_id != NO_LEADER:
            self.leader_id = remembered.leader_id
            leader = self.log.voters.get(remembered.leader_id)
            if leader is not None:
                self.state, self._leader_endpoints = State.FOLLOWER, leader.endpoints
            if not self.settings.rules.remembers_votes:
                self.voted = None
        elif remembered.voted is not None:
            self.state = State.VOTED
        self._deadline_ms = self._now_ms + (
            self.settings.fetch_timeout_ms
            if self.state is State.FOLLOWER
            else self._election_timeout_ms()
        )
        self._update_ms = self._next_update_ms
        self._persist()
        if self._is_alone:
            self._stand_alone()

    def _remembers_itself(self, remembered: QuorumState) -> bool:
        """Whether it has voted for itself; version 0 of the quorum state has no directory."""
        return remembered.voted is not None and remembered.voted.is_matched_by(self.me)

    def _stand_alone(self) -> None:
        """Begins an election at once, as the only voter."""
        if self.state is State.CANDIDATE:
            self._count_votes()
        else:
            self._stand()

    def _enter(self, state: State) -> None:
        assert state in TRANSITIONS[self.state], f"{self.state} to {state}"  # noqa: S101
        if self.leadership is not None and state is not State.LEADER:
            self.membership.on_lost()
            self.leadership = None
            self.emit(LostLeadership(self.epoch))
        self.state = state
        self._busy.clear()
        self._retry_ms.clear()
        self._acknowledged.clear()
        self._backoff_until_ms = None
        self._download = None
        self._has_fetched = False

    def _become_unattached(self, epoch: int) -> None:
        """Enters an epoch of which it knows no leader, or gives a hopeless election up."""
        keeps_timer = self.state in (State.UNATTACHED, State.VOTED, State.CANDIDATE)
        if self.state is State.PROSPECTIVE:
            keeps_timer = not self._is_refused()
        elif self.state is State.RESIGNED:
            keeps_timer = self.settings.rules.has_pre_votes
        self._enter(State.UNATTACHED)
        if epoch > self.epoch:
            self.epoch, self.voted = epoch, None
            self.leader_id = NO_LEADER
        self._leader_endpoints = ()
        if not keeps_timer:
            self._deadline_ms = self._now_ms + self._election_timeout_ms()
        self._persist()

    def _become_voted(self, candidate: ReplicaKey) -> None:
        """Votes for a candidate in the current epoch; its answer must follow the `Persist`.

        A replica that asks for pre-votes counts them again from the beginning
        (``prospectiveAddVotedState``); answers to what it has sent still count.
        """
        if self.state is State.PROSPECTIVE:
            self._granted, self._refused = {self.me.id}, set()
        else:
            assert State.VOTED in TRANSITIONS[self.state], self.state  # noqa: S101
            self.state = State.VOTED
        self.voted = candidate
        self._deadline_ms = self._now_ms + self._election_timeout_ms()
        self._persist()

    def _stand(self) -> None:
        """Stands for election, after pre-votes where the release has them."""
        if self.settings.rules.has_pre_votes:
            self._become_prospective()
        elif self._can_stand_now():
            self._become_candidate()

    def _become_prospective(self) -> None:
        """Asks for pre-votes; it keeps its leader, lest a peer send it back (KIP-996)."""
        if self._can_stand_now():
            self._enter(State.PROSPECTIVE)
            self._deadline_ms = self._now_ms + self._election_timeout_ms()
            self._granted, self._refused = {self.me.id}, set()
            self._persist()
            self._count_votes()

    def _can_stand_now(self) -> bool:
        """Whether it can stand for election; if not, it tries again after a timeout."""
        if not self._can_stand():
            self._deadline_ms = self._now_ms + self._election_timeout_ms()
            if self.log.unreadable_offset is not None:
                self._log(
                    f"not standing for election: the control record at offset"
                    f" {self.log.unreadable_offset} is of no release that is known here",
                    is_warning=True,
                )
            return False
        return True

    def _become_candidate(self) -> None:
        """Votes for itself in a new epoch."""
        self._attempts = self._attempts + 1 if self.state is State.CANDIDATE else 1
        self._enter(State.CANDIDATE)
        self.epoch, self.voted = self.epoch + 1, self.me
        self.leader_id, self._leader_endpoints = NO_LEADER, ()
        self._deadline_ms = self._now_ms + self._election_timeout_ms()
        self._granted, self._refused = {self.me.id}, set()
        self._persist()
        self._count_votes()

    def _become_leader(self) -> None:
        """Begins its epoch with a record of it, behind which the high watermark can follow."""
        voters = self.log.voters
        self._enter(State.LEADER)
        self._known_high_watermark = -1
        self.leader_id, self._leader_endpoints = self.me.id, self.settings.endpoints
        self.voted = None
        self._persist()
        self.leadership = Leadership(
            self.me,
            self.epoch,
            self.log.end,
            self.log.end,
            self._now_ms,
            self.settings.fetch_timeout_ms,
            begin_ms=self._now_ms,
        )
        change = {
            "version": 0,
            "leaderId": self.me.id,
            "voters": [{"voterId": voter} for voter in voters.ids],
            "grantingVoters": [{"voterId": voter} for voter in sorted(self._granted)],
        }
        records: list[ControlRecord] = [(LEADER_CHANGE, change)]
        mine = voters.get(self.me.id)
        node = self.description
        is_wrong = self.log.voters_offset < 0 or (self.is_voter and mine != node)
        if self.log.kraft_version > 0 and is_wrong:
            # The voters of the format are in no replicated log yet, or this one's have changed.
            level = {"version": 0, "kRaftVersion": self.log.kraft_version}
            records += [
                (KRAFT_VERSION, level),
                (KRAFT_VOTERS, voters.with_node(node).to_record()),
            ]
        self.append_control(records)
        self.emit(BecameLeader(self.epoch, self.leadership.start))
        self._lead()

    def _become_follower(self, epoch: int, leader_id: int, endpoints: tuple[Endpoint, ...]) -> None:
        """Follows the leader of an epoch."""
        endpoints = self._endpoints_of(leader_id, endpoints)
        if not endpoints:
            self._log(
                f"replica {leader_id} leads epoch {epoch}, but its address is not known",
                is_warning=True,
            )
            if epoch > self.epoch:
                self._become_unattached(epoch)
            return
        self._enter(State.FOLLOWER)
        if epoch > self.epoch or not self.settings.rules.remembers_votes:
            self.voted = None
        self.epoch = epoch
        self.leader_id, self._leader_endpoints = leader_id, endpoints
        self._deadline_ms = self._now_ms + self.settings.fetch_timeout_ms
        self._update_ms = self._next_update_ms
        self._has_updated = False
        self._persist()
        self._refuse_held(self.view)

    def _become_resigned(self) -> None:
        """Gives the leadership up, and tells the others who should succeed."""
        assert self.leadership is not None  # noqa: S101 - only a leader resigns
        self._successors = self.leadership.successors(self.log.voters)
        self._refuse_held(LeaderView(NO_LEADER, self.epoch))
        self._enter(State.RESIGNED)
        self._known_high_watermark = -1
        self._deadline_ms = self._now_ms + self._election_timeout_ms()
        self._send_end_of_epoch()

    def _lose(self) -> None:
        """Ends an election that a majority refused, or a pre-vote that took too long.

        From 4.0 on a candidate waits until its timeout expires (``maybeHandleElectionLoss``).
        """
        if self.state is State.CANDIDATE:
            if not self.settings.rules.has_pre_votes:
                self._back_off()
        elif self.leader_id != NO_LEADER and self._leader_endpoints:
            self._become_follower(self.epoch, self.leader_id, self._leader_endpoints)
        else:
            self._become_unattached(self.epoch)

    def _back_off(self) -> None:
        """Waits before the next election (``binaryExponentialElectionBackoffMs`` of Kafka 3.9)."""
        if self._backoff_until_ms is None:
            steps = self._random.randrange(2 << min(20, self._attempts - 1))
            longest = self.settings.election_backoff_ms
            self._backoff_until_ms = self._now_ms + min(_BACKOFF_STEP_MS * steps, longest)

    def _learn(self, view: LeaderView) -> None:
        """Takes over what another replica says of its epoch (``maybeTransition``).

        What contradicts an epoch that is known is ignored.
        """
        if not self._is_consistent(view.epoch, view.leader_id):
            return
        if view.leader_id == self.me.id:
            if self.state not in (State.LEADER, State.RESIGNED) or view.epoch > self.epoch:
                self._log(
                    f"another replica says that this one leads epoch {view.epoch}, of which its"
                    " disk has nothing: the disk was replaced or is old",
                    is_warning=True,
                )
                self._become_unattached(max(view.epoch, self.epoch))
                self.leader_id = self.me.id  # as after a restart: no vote and no lead in that epoch
                self._persist()
        elif view.epoch > self.epoch:
            if view.leader_id == NO_LEADER:
                self._become_unattached(view.epoch)
            else:
                self._become_follower(view.epoch, view.leader_id, view.endpoints)
        elif view.leader_id != NO_LEADER:
            endpoints = self._endpoints_of(view.leader_id, view.endpoints)
            if not self._leader_endpoints or len(endpoints) > len(self._leader_endpoints):
                # It follows the leader that it knows again if it learns of more listeners.
                self._become_follower(view.epoch, view.leader_id, endpoints)

    def _endpoints_of(
        self, leader_id: int, endpoints: tuple[Endpoint, ...]
    ) -> tuple[Endpoint, ...]:
        """Where a leader listens: as a message says, or in an old version as the voters' record."""
        node = None if endpoints else self.log.voters.get(leader_id)
        return endpoints if node is None else node.endpoints

    def _lead(self) -> None:
        leadership = self.leadership
        assert leadership is not None  # noqa: S101 - of a leader
        if not leadership.has_quorum(self.log.voters, self._now_ms):
            self._log("a majority of the voters has not fetched for a while", is_warning=True)
            self._become_resigned()
            return
        if self.membership.must_resign:
            self._log("removed from the voters")
            self._become_resigned()
            return
        self.membership.on_tick()
        if self._now_ms >= leadership.begin_ms:
            leadership.begin_ms = self._now_ms + self.settings.fetch_timeout_ms // 2
            self._send_begin_of_epoch(leadership)

    def _on_vote_answer(self, node_id: int, request: Vote, answer: VoteAnswer) -> None:
        if self.state in _ELECTING and request.epoch == self.epoch:
            self._refused.discard(node_id)
            self._granted.discard(node_id)
            (self._granted if answer.is_granted else self._refused).add(node_id)
            self._count_votes()

    def _count_votes(self) -> None:
        voters = self.log.voters
        granted = len(self._granted.intersection(voters.ids))
        if granted >= voters.majority:
            if self.state is State.PROSPECTIVE:
                self._become_candidate()
            else:
                self._become_leader()
        elif self._is_refused():
            self._lose()
        else:
            self._ask_for_votes()
