"""A voter, by hand: permitted transitions, every state with every event, and the hard rules."""

from dataclasses import replace
from itertools import product
from uuid import UUID

import pytest

from featurewatch.reference.kraft.machines.batches import (
    KRAFT_VERSION,
    Batch,
    control_batch,
    data_batch,
)
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Append,
    BecameLeader,
    Committed,
    Flush,
    Flushed,
    Halt,
    InstallSnapshot,
    LostLeadership,
    Persist,
    Propose,
    Proposed,
    QuorumState,
    Reply,
    Resign,
    Send,
    SnapshotTaken,
    Tick,
    Truncate,
    WriteSnapshot,
)
from featurewatch.reference.kraft.machines.replicas import Endpoint, ReplicaKey, VoterSet
from featurewatch.reference.kraft.machines.requests import (
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    DescribeQuorum,
    DescribeQuorumAnswer,
    EndQuorumEpoch,
    EpochAnswer,
    Fetch,
    FetchAnswer,
    FetchSnapshot,
    FetchSnapshotAnswer,
    LeaderView,
    RemoveVoter,
    UpdateVoter,
    VersionsAnswer,
    Vote,
    VoteAnswer,
    VoterAnswer,
)
from featurewatch.reference.kraft.machines.states import TRANSITIONS, State
from featurewatch.streams.types import OffsetAndEpoch, SupportedRange
from tests.reference.kraft.machines.driving import (
    CLUSTER,
    LONG_MS,
    ME,
    VOTERS,
    Driven,
    begin,
    endpoint,
    fetch,
    in_state,
    vote,
)
from tests.simulation.kraft.world import snapshot_of

PERMITTED = """
unattached  -> unattached voted prospective candidate follower
voted       -> unattached prospective candidate follower
prospective -> unattached candidate follower
candidate   -> unattached prospective candidate leader follower
leader      -> unattached follower resigned
follower    -> unattached prospective candidate follower
resigned    -> unattached prospective candidate follower
"""


def test_the_permitted_transitions() -> None:
    """The table is that of KIP-595 and KIP-996, written out a second time."""
    rows = (line.split("->") for line in PERMITTED.strip().splitlines())
    written = {State(left.strip()): {State(one) for one in right.split()} for left, right in rows}
    assert {state: set(row) for state, row in TRANSITIONS.items()} == written


NEWER = LeaderView(2, 9, (endpoint(2),))
SECOND = UUID(int=2)
EVENTS: dict[str, object] = {
    "tick": Tick(),
    "flushed": Flushed(1, 1),
    "propose": Propose(1, (b"\x01\x14\x00\x00",)),
    "snapshot": SnapshotTaken(OffsetAndEpoch(1, 1), snapshot_of(OffsetAndEpoch(1, 1))),
    "resign": Resign(),
}
REQUESTS: dict[str, object] = {
    "vote of an older epoch": vote(0),
    "vote of the epoch": vote(1, 2),
    "vote of a newer epoch": vote(9, 2),
    "vote of the last epoch": vote((1 << 31) - 1, 2),
    "pre-vote": vote(1, 2, is_pre=True),
    "pre-vote of a newer epoch": vote(9, 2, is_pre=True),
    "vote with an old log": vote(9, 2, 0, 0),
    "vote for another": replace(vote(9), voter=ReplicaKey(1)),
    "vote of nobody": vote(9, -1),
    "vote with a log from the future": vote(2, 1, last_epoch=2),
    "vote of another cluster": replace(vote(9), cluster_id="other"),
    "begin of an older epoch": begin(0),
    "begin of the epoch": begin(1),
    "begin by another": begin(1, 2),
    "begin of a newer epoch": begin(9, 2),
    "end of the epoch": EndQuorumEpoch(CLUSTER, 1, 1, (ME,), (endpoint(1),)),
    "end of a newer epoch": EndQuorumEpoch(CLUSTER, 2, 9, (), (endpoint(2),)),
    "fetch": fetch(1, 1, 0, 0),
    "fetch of the end": fetch(1, 1, 1, 1),
    "fetch beyond the end": fetch(1, 1, 99, 1),
    "fetch of an older epoch": fetch(1, 0, 0, 0),
    "fetch of a newer epoch": fetch(1, 9, 0, 0),
    "fetch of nonsense": fetch(1, 1, -1, 7),
    "fetch snapshot": FetchSnapshot(CLUSTER, ME, 1, OffsetAndEpoch(1, 1), 0, 100),
    "describe": DescribeQuorum(),
    "versions": AskVersions(),
    "add": AddVoter(CLUSTER, ReplicaKey(4, SECOND), (endpoint(4),), 100),
    "remove": RemoveVoter(CLUSTER, ReplicaKey(1, SECOND)),
    "update": UpdateVoter(CLUSTER, 1, ReplicaKey(1, SECOND), (endpoint(1),), SupportedRange(0, 1)),
}
ANSWERS: dict[str, object] = {
    "nothing": None,
    "vote": VoteAnswer(0, LeaderView(-1, 1), True),
    "no vote": VoteAnswer(0, LeaderView(-1, 1), False),
    "older": VoteAnswer(0, LeaderView(-1, 0), True),
    "newer": VoteAnswer(74, LeaderView(-1, 9)),
    "newer leader": VoteAnswer(74, NEWER),
    "the leader": VoteAnswer(0, LeaderView(2, 1, (endpoint(2),))),
    "itself as leader": VoteAnswer(74, LeaderView(3, 9, (endpoint(3),))),
    "an unknown leader": VoteAnswer(74, LeaderView(77, 9)),
    "another cluster": VoteAnswer(104),
    "no such version": VoteAnswer(35),
    "epoch": EpochAnswer(0, LeaderView(3, 1)),
    "records": FetchAnswer(0, LeaderView(1, 1), 1, 0, records=data_batch(0, 1, 0, [b"a"]).data),
    "damaged records": FetchAnswer(0, LeaderView(1, 1), 1, 0, records=b"nonsense" * 20),
    "records from the future": FetchAnswer(
        0, LeaderView(1, 1), 1, 0, records=data_batch(0, 2, 0, [b"a"]).data
    ),
    "records after a gap": FetchAnswer(
        0, LeaderView(1, 1), 1, 0, records=data_batch(7, 1, 0, [b"a"]).data
    ),
    "diverging": FetchAnswer(0, LeaderView(1, 1), diverging=OffsetAndEpoch(0, 0)),
    "snapshot": FetchAnswer(0, LeaderView(1, 1), snapshot=OffsetAndEpoch(5, 1)),
    "part": FetchSnapshotAnswer(0, LeaderView(1, 1), OffsetAndEpoch(5, 1), 10, 0, b"part"),
    "voter": VoterAnswer(0, None, LeaderView(1, 1)),
    "versions": VersionsAnswer(0),
}


@pytest.mark.parametrize(("state", "name"), [*product(State, [*EVENTS, *REQUESTS])])
def test_every_state_with_every_event(state: State, name: str) -> None:
    """Whatever arrives, the transition is permitted, and a request is answered or held once."""
    driven = in_state(state)
    if name in EVENTS:
        driven.receive(EVENTS[name])
    else:
        answer = driven.ask(REQUESTS[name])  # type: ignore[arg-type]
        held = "fetch" in name or name in ("add", "update")
        assert held or answer is not None
    assert driven.state() in within_two(state)
    driven.tick(LONG_MS)


def within_two(state: State) -> set[State]:
    """The states that are reached by two transitions, such as to a new epoch and to a vote."""
    after = {state, *TRANSITIONS[state]}
    return after | {last for one in after for last in TRANSITIONS[one]}


@pytest.mark.parametrize(("state", "name"), [*product(State, ANSWERS)])
def test_every_state_with_every_answer(state: State, name: str) -> None:
    """Whatever a peer answers, to whatever was asked, the transition is permitted."""
    driven = in_state(state)
    driven.tick()
    asked = [send for send in driven.sent if send.node_id == 1]
    if not asked:
        return
    driven.receive(AnswerReceived(asked[-1].number, ANSWERS[name]))  # type: ignore[arg-type]
    assert driven.state() in within_two(state)
    assert not driven.voter.is_halted
    driven.tick(LONG_MS)


# -- elections -------------------------------------------------------------------------------------


def test_an_election() -> None:
    """Pre-votes change nothing; votes are on disk before they are asked for; the epoch begins with
    a record."""
    driven = Driven()
    driven.tick(LONG_MS)
    assert (driven.state(), driven.voter.epoch) == (State.PROSPECTIVE, 0)
    assert not driven.of_kind(Persist)
    asked = [send.request for send in driven.sent if isinstance(send.request, Vote)]
    assert [request.is_pre_vote for request in asked] == [True, True]
    driven.grant(1)
    assert (driven.state(), driven.voter.epoch) == (State.CANDIDATE, 1)
    kinds = [type(effect) for effect in driven.effects]
    assert kinds.index(Persist) < kinds.index(Send)
    assert driven.of_kind(Persist) == [Persist(QuorumState(1, -1, ME))]
    driven.grant(2)
    assert driven.state() is State.LEADER
    kinds = [type(effect) for effect in driven.effects]
    assert kinds.index(Persist) < kinds.index(Append) < kinds.index(Flush)
    assert driven.of_kind(BecameLeader) == [BecameLeader(1, 0)]
    (append,) = driven.of_kind(Append)
    assert isinstance(append, Append)
    assert append.batches[0].is_control


def test_a_vote_is_on_disk_before_it_is_given() -> None:
    """The answer follows the `Persist`, and no other candidate of the epoch gets a vote."""
    driven = Driven()
    answer = driven.ask(vote(5))
    assert isinstance(answer, VoteAnswer)
    assert answer.is_granted
    kinds = [type(effect) for effect in driven.effects]
    persisted = [effect for effect in driven.effects if isinstance(effect, Persist)]
    assert persisted[-1].state == QuorumState(5, -1, ReplicaKey(1))
    last = max(at for at, kind in enumerate(kinds) if kind is Persist)
    assert last < kinds.index(Reply)
    for candidate, is_granted in ((1, True), (2, False)):
        answer = driven.ask(vote(5, candidate))
        assert isinstance(answer, VoteAnswer)
        assert answer.is_granted is is_granted


@pytest.mark.parametrize(
    ("last_epoch", "end", "is_granted"),
    [(1, 3, True), (1, 4, True), (2, 1, True), (1, 2, False), (0, 9, False)],
)
def test_votes_need_a_log_that_is_not_behind(last_epoch: int, end: int, is_granted: bool) -> None:
    """By the epoch of the last record first, then by the end (Raft 5.4.1)."""
    driven = Driven(log_of(batch(0, 1), batch(1, 1), batch(2, 1)), QuorumState(1))
    for is_pre in (True, False):
        answer = driven.ask(vote(3, 1, last_epoch, end, is_pre=is_pre))
        assert isinstance(answer, VoteAnswer)
        assert answer.is_granted is is_granted


def test_pre_votes_of_a_follower() -> None:
    """A follower grants them until its leader has answered it once (KIP-996)."""
    driven = in_state(State.FOLLOWER)
    answer = driven.ask(vote(1, 2, is_pre=True))
    assert isinstance(answer, VoteAnswer)
    assert answer.is_granted
    driven.answer(1, FetchAnswer(0, LeaderView(1, 1, (endpoint(1),)), 0, 0))
    answer = driven.ask(vote(1, 2, is_pre=True))
    assert isinstance(answer, VoteAnswer)
    assert not answer.is_granted
    assert driven.state() is State.FOLLOWER


def test_a_refused_pre_vote_returns_to_the_leader() -> None:
    """A prospective voter keeps knowing its leader, so that peers are not sent elsewhere."""
    driven = in_state(State.FOLLOWER)
    driven.tick(LONG_MS)
    assert driven.state() is State.PROSPECTIVE
    assert driven.voter.view.leader_id == 1
    for peer in (1, 2):
        driven.answer(peer, VoteAnswer(0, LeaderView(1, 1, (endpoint(1),)), False))
    assert (driven.state(), driven.voter.leader_id) == (State.FOLLOWER, 1)


def test_voters_without_pre_votes_count_as_granting() -> None:
    """As voters of Kafka 3.9 do not know them (KIP-996)."""
    driven = in_state(State.PROSPECTIVE)
    driven.answer(1, VoteAnswer(35))
    assert driven.state() is State.CANDIDATE


@pytest.mark.parametrize(
    ("remembered", "state"),
    [
        (QuorumState(0), State.UNATTACHED),
        (QuorumState(4, 3, ME), State.RESIGNED),
        (QuorumState(4, -1, ME), State.CANDIDATE),
        (QuorumState(4, -1, ReplicaKey(1)), State.VOTED),
        (QuorumState(4, 1), State.FOLLOWER),
        (QuorumState(4, 1, ME), State.CANDIDATE),
        (QuorumState(4, 77, ME), State.CANDIDATE),
        (QuorumState(4, 77), State.UNATTACHED),
    ],
)
def test_restarts(remembered: QuorumState, state: State) -> None:
    """The state follows from the quorum state; a former leader may not lead its epoch again."""
    driven = Driven(remembered=remembered)
    assert (driven.state(), driven.voter.epoch) == (state, remembered.epoch)


def test_a_log_that_is_ahead_of_the_quorum_state() -> None:
    """The epoch is that of the log, in which it may have voted for anybody: it knows no more."""
    driven = Driven(log_of(batch(0, 7)), QuorumState(3, -1, ReplicaKey(1)))
    assert driven.voter.epoch == 7
    assert driven.state() is State.UNATTACHED


def test_a_lone_voter_leads_at_once() -> None:
    """Also after a restart, then in a new epoch, and commits what it has flushed."""
    voters = VoterSet.of(node for node in VOTERS.nodes if node.key == ME)
    driven = Driven(voters=voters)
    assert (driven.state(), driven.voter.epoch) == (State.LEADER, 1)
    assert driven.voter.log.high_watermark == 1
    again = Driven(driven.voter.log, QuorumState(1, 3, ME), voters)
    assert again.state() is State.LEADER
    assert again.voter.epoch > 1


def test_a_leader_without_a_majority_resigns() -> None:
    """After one and a half fetch timeouts without a Fetch of a majority."""
    driven = in_state(State.LEADER)
    driven.tick(2900)
    driven.ask(fetch(1, 1, 0, 0))
    driven.tick(2900)
    assert driven.state() is State.LEADER
    driven.tick(200)
    assert driven.state() is State.RESIGNED
    assert driven.of_kind(LostLeadership) == [LostLeadership(1)]
    ends = [send.request for send in driven.sent if isinstance(send.request, EndQuorumEpoch)]
    assert [key.id for key in ends[0].successors] == [1, 2]
    assert driven.voter.view.leader_id == -1


def test_the_successor_is_the_first_candidate() -> None:
    """A follower that the leader recommends becomes a candidate at once, another one waits."""
    for successors, waits_ms in (((ME, ReplicaKey(2)), 0), ((ReplicaKey(2), ME), 500)):
        driven = in_state(State.FOLLOWER)
        driven.ask(EndQuorumEpoch(CLUSTER, 1, 1, successors, (endpoint(1),)))
        driven.tick(max(waits_ms - 1, 0))
        assert (driven.state() is State.PROSPECTIVE) is (waits_ms == 0)
        driven.tick(1)
        assert driven.state() is State.PROSPECTIVE


def test_more_listeners_of_its_leader_make_a_voter_follow_it_again() -> None:
    """As in ``maybeTransition``: it sends its Fetch again. As many or fewer change nothing."""
    other = Endpoint("OTHER", "localhost", 9100)
    for listeners in ((endpoint(1),), (endpoint(1), other), (other,)):
        driven = in_state(State.FOLLOWER)
        sent = driven.last_to(1)
        assert isinstance(sent.request, Fetch)
        driven.ask(BeginQuorumEpoch(CLUSTER, ME, 1, 1, listeners))
        assert driven.state() is State.FOLLOWER
        again = [one for one in driven.of_kind(Send) if isinstance(one, Send)]
        is_again = len(listeners) > 1
        assert [one.request for one in again] == ([sent.request] if is_again else [])
        assert (driven.last_to(1) is sent) is not is_again


def test_a_forged_leader_is_refused() -> None:
    """Two leaders of one epoch cannot be: the second is refused, and nothing changes."""
    for state in (State.FOLLOWER, State.LEADER):
        driven = in_state(state)
        answer = driven.ask(begin(1, 2))
        assert isinstance(answer, EpochAnswer)
        assert answer.error == 42
        assert driven.state() is state


def test_a_replaced_disk_does_not_vote_twice() -> None:
    """A voter that is said to have led an epoch of which it knows nothing does not vote in it."""
    driven = in_state(State.PROSPECTIVE)
    driven.answer(1, VoteAnswer(74, LeaderView(3, 9, (endpoint(3),))))
    assert (driven.state(), driven.voter.epoch) == (State.UNATTACHED, 9)
    answer = driven.ask(vote(9))
    assert isinstance(answer, VoteAnswer)
    assert not answer.is_granted


# -- replication -----------------------------------------------------------------------------------


def batch(offset: int, epoch: int, count: int = 1) -> Batch:
    """A batch of the log."""
    return data_batch(offset, epoch, 0, [b"%d" % at for at in range(offset, offset + count)])


def log_of(*batches: Batch) -> Log:
    """A log."""
    log = Log(VOTERS)
    log.append(batches)
    return log


def test_a_commit_needs_a_majority_of_disks() -> None:
    """The leader's own log counts when it is flushed, a follower's by its next Fetch."""
    driven = in_state(State.LEADER)
    voter = driven.voter
    effects = voter.receive(Propose(7, (b"record",)), driven.now_ms)
    assert Proposed(7, 1, 2) in effects
    driven.ask(fetch(1, 1, 2, 1))
    assert voter.log.high_watermark == 1
    driven.receive(Flushed(2, 1))
    assert driven.of_kind(Committed) == [Committed(2)]


@pytest.mark.parametrize(
    ("epoch", "offset", "is_appended"),
    [(1, 1, True), (None, 1, True), (1, None, True), (0, 1, False), (2, 1, False), (1, 2, False)],
)
def test_a_proposal_names_its_leadership(
    epoch: int | None, offset: int | None, *, is_appended: bool
) -> None:
    """What was decided in another epoch, or for another offset, is not appended."""
    driven = in_state(State.LEADER)
    effects = driven.voter.receive(Propose(7, (b"a",), epoch, offset), driven.now_ms)
    assert (Proposed(7, 1, 2) if is_appended else Proposed(7, -1, 1)) in effects
    assert driven.voter.log.end == (2 if is_appended else 1)


def test_earlier_epochs_are_committed_by_this_one() -> None:
    """A majority that has the log before the leader's epoch commits nothing (Raft 5.4.2)."""
    driven = Driven(log_of(batch(0, 1), batch(1, 1)), QuorumState(1))
    driven.tick(LONG_MS)
    driven.grant(1)
    driven.grant(1)
    assert driven.state() is State.LEADER
    driven.ask(fetch(1, 2, 2, 1))
    assert driven.voter.log.high_watermark == -1
    driven.ask(fetch(1, 2, 3, 2))
    assert driven.voter.log.high_watermark == 3


def test_a_new_leader_tells_no_high_watermark() -> None:
    """Until its epoch has one: followers may know a higher one than it does."""
    driven = in_state(State.FOLLOWER)
    records = batch(0, 1).data
    driven.answer(1, FetchAnswer(0, LeaderView(1, 1, (endpoint(1),)), 1, 0, records=records))
    assert driven.voter.log.high_watermark == 1
    driven.tick(LONG_MS)
    driven.grant(2)
    driven.grant(2)
    answer = driven.ask(fetch(2, 2, 0, 0))
    assert isinstance(answer, FetchAnswer)
    assert answer.high_watermark == -1


def test_a_follower_flushes_before_it_fetches_on() -> None:
    """Its next Fetch says that it has what it received, so that must be on disk."""
    driven = in_state(State.FOLLOWER)
    records = batch(0, 1, 3).data
    driven.answer(1, FetchAnswer(0, LeaderView(1, 1, (endpoint(1),)), 0, 0, records=records))
    kinds = [type(effect) for effect in driven.effects]
    assert kinds.index(Append) < kinds.index(Flush) < kinds.index(Send)
    request = driven.last_to(1).request
    assert isinstance(request, Fetch)
    assert (request.offset, request.last_epoch) == (3, 1)


def test_a_fetch_is_held() -> None:
    """Until there are records, a higher high watermark (Fetch 18), or its time is over."""
    driven = in_state(State.LEADER)
    assert isinstance(driven.ask(fetch(1, 1, 0, 0)), FetchAnswer)
    assert driven.ask(fetch(1, 1, 1, 1, high_watermark=1)) is None
    driven.receive(Propose(1, (b"a",)))
    (reply,) = driven.of_kind(Reply)
    assert isinstance(reply, Reply)
    assert isinstance(reply.answer, FetchAnswer)
    assert reply.answer.records
    assert driven.ask(fetch(2, 1, 2, 1, high_watermark=1)) is not None
    assert driven.ask(fetch(1, 1, 2, 1, high_watermark=2)) is None
    driven.tick(499)
    assert not driven.of_kind(Reply)
    driven.tick(1)
    assert len(driven.of_kind(Reply)) == 1


def test_a_held_fetch_ends_with_the_leadership() -> None:
    """It is answered with who leads now, after the new epoch is on disk."""
    driven = in_state(State.LEADER)
    driven.ask(fetch(1, 1, 0, 0))
    assert driven.ask(fetch(1, 1, 1, 1, high_watermark=9)) is None
    driven.ask(begin(4, 2))
    replies = [effect for effect in driven.effects if isinstance(effect, Reply)]
    answer = next(reply.answer for reply in replies if isinstance(reply.answer, FetchAnswer))
    assert (answer.error, answer.view.leader_id, answer.view.epoch) == (6, 2, 4)


def test_a_diverging_log_is_cut_off() -> None:
    """At the end of the newest epoch that both logs have."""
    log = log_of(batch(0, 1), batch(1, 1), batch(2, 2), batch(3, 2))
    driven = Driven(log, QuorumState(2))
    driven.ask(begin(3))
    view = LeaderView(1, 3, (endpoint(1),))
    driven.answer(1, FetchAnswer(0, view, diverging=OffsetAndEpoch(3, 1)))
    assert driven.of_kind(Truncate) == [Truncate(2)]
    assert (driven.voter.log.end, driven.voter.log.last_epoch) == (2, 1)


def test_what_is_committed_is_never_cut_off() -> None:
    """A leader that lacks it ends this process with one line; the log stays as it is."""
    driven = in_state(State.FOLLOWER)
    view = LeaderView(1, 1, (endpoint(1),))
    driven.answer(1, FetchAnswer(0, view, 3, 0, records=batch(0, 1, 3).data))
    driven.answer(1, FetchAnswer(0, view, 3, 0, diverging=OffsetAndEpoch(1, 1)))
    (halt,) = driven.of_kind(Halt)
    assert isinstance(halt, Halt)
    assert "\n" not in halt.reason
    assert "up to 3 are committed" in halt.reason
    assert driven.voter.log.end == 3
    assert driven.tick() == []


def test_a_late_answer_is_ignored() -> None:
    """An answer to a Fetch from another end of the log cuts nothing off."""
    driven = in_state(State.FOLLOWER)
    view = LeaderView(1, 1, (endpoint(1),))
    first = driven.last_to(1).number
    driven.tick(LONG_MS)
    driven.answer(2, VoteAnswer(0, view, False))
    driven.answer(1, VoteAnswer(0, view, False))
    assert driven.state() is State.FOLLOWER
    driven.answer(1, FetchAnswer(0, view, 0, 0, records=batch(0, 1, 3).data))
    driven.receive(AnswerReceived(first, FetchAnswer(0, view, diverging=OffsetAndEpoch(0, 0))))
    assert driven.voter.log.end == 3


def test_a_follower_loads_a_snapshot() -> None:
    """Part by part; it replaces the log, and brings the voters."""
    driven = in_state(State.FOLLOWER)
    view, at = LeaderView(1, 1, (endpoint(1),)), OffsetAndEpoch(90, 1)
    data = snapshot_of(at, VOTERS)
    driven.answer(1, FetchAnswer(0, view, 90, 90, snapshot=at))
    for position, end in ((0, 50), (50, len(data))):
        request = driven.last_to(1).request
        assert isinstance(request, FetchSnapshot)
        assert request.position == position
        part = data[position:end]
        driven.answer(1, FetchSnapshotAnswer(0, view, at, len(data), position, part))
    assert InstallSnapshot(at, data) in driven.effects
    assert (driven.voter.log.end, driven.voter.log.last_epoch) == (90, 1)
    assert driven.voter.log.high_watermark == 90


def test_a_snapshot_of_what_is_committed() -> None:
    """One that reaches beyond the high watermark is not written; a written one trims the log."""
    driven = in_state(State.LEADER)
    driven.receive(Propose(1, (b"a",)))
    data = snapshot_of(OffsetAndEpoch(2, 1))
    driven.receive(SnapshotTaken(OffsetAndEpoch(2, 1), data, trims=True))
    assert not driven.of_kind(WriteSnapshot)
    driven.ask(fetch(1, 1, 2, 1))
    driven.receive(SnapshotTaken(OffsetAndEpoch(2, 1), data, trims=True))
    assert driven.of_kind(WriteSnapshot) == [WriteSnapshot(OffsetAndEpoch(2, 1), data, True)]
    answer = driven.ask(fetch(2, 1, 1, 1))
    assert isinstance(answer, FetchAnswer)
    assert answer.snapshot == (2, 1)


def test_the_newest_snapshot_trims_the_log_later() -> None:
    """It is given again; once the log begins there, no more."""
    driven = in_state(State.LEADER)
    driven.receive(Propose(1, (b"a",)))
    driven.ask(fetch(1, 1, 2, 1))
    at = OffsetAndEpoch(2, 1)
    found: list[object] = []
    for trims in (False, False, True, True):
        driven.receive(SnapshotTaken(at, snapshot_of(at), trims=trims))
        found += driven.of_kind(WriteSnapshot)
    assert found == [
        WriteSnapshot(at, snapshot_of(at), False),
        WriteSnapshot(at, snapshot_of(at), True),
    ]
    assert driven.voter.log.start == at


def test_describing_the_quorum() -> None:
    """The leader tells how far each replica is."""
    driven = in_state(State.LEADER)
    driven.ask(fetch(1, 1, 1, 1))
    driven.ask(fetch(77, 1, 0, 0))
    answer = driven.ask(DescribeQuorum())
    assert isinstance(answer, DescribeQuorumAnswer)
    assert [(one.key.id, one.end_offset) for one in answer.voters] == [(1, 1), (2, -1), (3, 1)]
    assert [one.key.id for one in answer.observers] == [77]


def test_an_unknown_control_record() -> None:
    """A voter that cannot read one follows and votes, but does not stand for election."""
    driven = in_state(State.FOLLOWER)
    unknown = control_batch(0, 1, 0, [(KRAFT_VERSION, {"version": 0, "kRaftVersion": 1})]).data
    damaged = bytearray(unknown)
    at = damaged.index(b"\x00\x00\x00\x05")
    damaged[at + 3] = 99
    view = LeaderView(1, 1, (endpoint(1),))
    driven.answer(1, FetchAnswer(0, view, 0, 0, records=with_checksum(bytes(damaged))))
    assert driven.voter.log.unreadable_offset == 0
    driven.tick(LONG_MS)
    assert driven.state() is State.FOLLOWER
    answer = driven.ask(vote(2, 2, 1, 1))
    assert isinstance(answer, VoteAnswer)
    assert answer.is_granted


def with_checksum(data: bytes) -> bytes:
    """A batch with the checksum of its content."""
    from crc32c import crc32c

    return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]
