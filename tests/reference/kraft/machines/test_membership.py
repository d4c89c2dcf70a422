"""Changes of the voters (KIP-853): one at a time, by the leader, when the last is committed."""

from dataclasses import replace
from uuid import UUID

import pytest

from featurewatch.reference.kraft.machines.batches import KRAFT_VOTERS, control_batch
from featurewatch.reference.kraft.machines.log import Log
from featurewatch.reference.kraft.machines.protocol import (
    AnswerReceived,
    Propose,
    QuorumState,
    Reply,
)
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    AddVoter,
    AskVersions,
    DescribeQuorum,
    DescribeQuorumAnswer,
    RemoveVoter,
    UpdateVoter,
    VersionsAnswer,
    VoteAnswer,
    VoterAnswer,
)
from featurewatch.reference.kraft.machines.rules import rules_of
from featurewatch.reference.kraft.machines.states import State
from featurewatch.streams.types import SupportedRange
from tests.reference.kraft.machines.driving import (
    CLUSTER,
    LONG_MS,
    VOTERS,
    Driven,
    endpoint,
    fetch,
    formatted,
    in_state,
    key,
    leading,
    vote,
)

SECOND = UUID(int=2)
ANY = SupportedRange(0, 1)
REQUEST_TIMEOUT_MS = 2000


def update(node_id: int, epoch: int = 1) -> UpdateVoter:
    """A voter tells its listeners and versions."""
    return UpdateVoter(CLUSTER, epoch, key(node_id), (endpoint(node_id),), ANY)


def error_of(answer: object) -> int:
    """The error of an answer to a change."""
    assert isinstance(answer, VoterAnswer)
    return answer.error


def errors(driven: Driven) -> list[int]:
    """The errors of the answers in the effects of the last event."""
    return [error_of(effect.answer) for effect in driven.effects if isinstance(effect, Reply)]


def test_a_voter_is_added() -> None:
    """When it has caught up; it counts from then on, and the answer waits for the commit."""
    driven = leading(3)
    request = AddVoter(CLUSTER, key(1), (endpoint(1),), 1000)
    assert driven.ask(request) is None
    driven.answer(1, VersionsAnswer(0, SupportedRange(0, 1)))
    (reply,) = driven.of_kind(Reply)
    assert isinstance(reply, Reply)
    assert isinstance(reply.answer, VoterAnswer)
    assert (reply.answer.error, reply.answer.message) == (
        7,
        f"the voter {key(1)} has not caught up",
    )
    end = driven.voter.log.end
    driven.ask(replace(fetch(1, 1, end, 1), replica=key(1)))
    assert driven.ask(request) is None
    driven.answer(1, VersionsAnswer(0, SupportedRange(0, 1)))
    assert driven.voter.log.voters.ids == (1, 3)
    assert driven.voter.log.high_watermark == end
    driven.ask(replace(fetch(1, 1, end + 1, 1), replica=key(1)))
    answers = [effect.answer for effect in driven.effects if isinstance(effect, Reply)]
    assert VoterAnswer(0, None, driven.voter.view) in answers


def test_a_leader_that_is_removed_resigns() -> None:
    """When that is committed by the voters that remain."""
    driven = leading(1, 3)
    assert driven.ask(RemoveVoter(CLUSTER, key(3))) is None
    assert driven.state() is State.LEADER
    end = driven.voter.log.end
    driven.ask(replace(fetch(1, 1, end, 1), replica=key(1)))
    driven.tick()
    assert driven.state() is State.RESIGNED


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (RemoveVoter(CLUSTER, key(2)), 127),
        (RemoveVoter(CLUSTER, ReplicaKey(1, SECOND)), 127),
        (RemoveVoter(CLUSTER, ReplicaKey(1)), 42),
        (RemoveVoter("other", key(1)), 104),
        (AddVoter(CLUSTER, key(1), (endpoint(1),), 1), 126),
        (AddVoter(CLUSTER, key(2), (), 1), 42),
        (UpdateVoter(CLUSTER, 0, key(1), (endpoint(1),), SupportedRange(0, 1)), 74),
        (UpdateVoter(CLUSTER, 1, key(1), (endpoint(1),), SupportedRange(0, 0)), 42),
        (UpdateVoter(CLUSTER, 1, ReplicaKey(1, SECOND), (endpoint(1),), SupportedRange(0, 1)), 127),
    ],
)
def test_changes_that_are_refused(request_: RemoveVoter | AddVoter, error: int) -> None:
    """By Kafka's errors, without a record in the log."""
    driven = leading(1, 3)
    end = driven.voter.log.end
    answer = driven.ask(request_)
    assert isinstance(answer, VoterAnswer)
    assert answer.error == error
    assert driven.voter.log.end == end


def test_one_change_at_a_time() -> None:
    """A second one is refused until the first is committed."""
    driven = leading(1, 2, 3)
    assert driven.ask(RemoveVoter(CLUSTER, key(2))) is None
    answer = driven.ask(RemoveVoter(CLUSTER, key(1)))
    assert isinstance(answer, VoterAnswer)
    assert answer.error == 7


def test_a_voter_with_another_directory_is_another_replica() -> None:
    """A Vote or BeginQuorumEpoch for the old disk is refused, and its Fetch counts for nothing."""
    driven = leading(1, 3)
    other = replace(vote(9), voter=ReplicaKey(3, SECOND))
    answer = driven.ask(other)
    assert isinstance(answer, VoteAnswer)
    assert answer.error == 125
    driven = leading(1, 3)
    driven.receive(Propose(1, (b"a",)))
    end = driven.voter.log.end
    driven.ask(replace(fetch(1, 1, end, 1), replica=ReplicaKey(1, SECOND)))
    assert driven.voter.log.high_watermark == end - 1


def test_a_removed_leader_may_be_elected_until_the_removal_is_committed() -> None:
    """Else nobody could lead where it alone has the record of its removal (Raft thesis 4.2.2)."""
    log = formatted(1, 3)
    voters = log.voters.without(3)
    log.append([control_batch(0, 1, 0, [(KRAFT_VOTERS, voters.to_record())])])
    driven = Driven(log, QuorumState(1, -1, None), me=key(3))
    driven.tick(LONG_MS)
    assert driven.state() is State.PROSPECTIVE
    driven.grant(1)
    driven.grant(1)
    assert driven.state() is State.LEADER


# -- as Kafka's own voter does it (`tests/conformance/raft`) ---------------------------------------


def test_the_last_voter_is_not_removed() -> None:
    """Kafka answers as if it were no voter (``VoterSet.removeVoter``)."""
    assert error_of(leading(3).ask(RemoveVoter(CLUSTER, key(3)))) == 127


def test_an_update_is_written_even_if_nothing_changes() -> None:
    """``UpdateVoterHandler`` does not compare."""
    driven = leading(1, 3)
    end = driven.voter.log.end
    assert error_of(driven.ask(update(1))) == 0
    assert driven.voter.log.end == end + 1


@pytest.mark.parametrize(("line", "leads"), [((4, 3), True), ((3, 9), False)])
def test_an_update_shows_that_its_voter_lives(line: tuple[int, int], leads: bool) -> None:
    """A leader of 4.3 counts it as a Fetch; one of 3.9 resigns if nobody fetches."""
    driven = leading(1, 3)
    driven.voter.settings = replace(driven.voter.settings, rules=rules_of(line))
    driven.tick(2000)
    assert error_of(driven.ask(update(1))) == 0
    driven.tick(1500)
    assert (driven.state() is State.LEADER) is leads


def test_an_update_before_kraft_version_1() -> None:
    """It is accepted, and kept nowhere; 3.9 refuses it (KIP-1170)."""
    driven = in_state(State.LEADER)
    driven.ask(fetch(1, 1, 1, 1))
    assert error_of(driven.ask(update(1))) == 0
    assert error_of(driven.ask(update(7))) == 127
    assert driven.voter.log.end == 1
    driven.voter.settings = replace(driven.voter.settings, rules=rules_of((3, 9)))
    assert error_of(driven.ask(update(1))) == 35


@pytest.mark.parametrize(("epoch", "error"), [(0, 74), (1, 6), (2, 75)])
def test_an_update_of_another_epoch(epoch: int, error: int) -> None:
    """The epoch is looked at before the leadership; the answer tells the epoch."""
    driven = in_state(State.FOLLOWER)
    answer = driven.ask(update(1, epoch))
    assert error_of(answer) == error
    assert isinstance(answer, VoterAnswer)
    assert answer.view.epoch == 1


def test_a_leader_whose_epoch_is_not_committed_changes_nothing() -> None:
    """Whatever the level, the request is to be sent again."""
    driven = in_state(State.LEADER)
    add = AddVoter(CLUSTER, key(7), (endpoint(7),), 100)
    assert [error_of(driven.ask(one)) for one in (add, RemoveVoter(CLUSTER, key(1)))] == [7, 7]
    driven.ask(fetch(1, 1, 1, 1))
    assert [error_of(driven.ask(one)) for one in (add, RemoveVoter(CLUSTER, key(1)))] == [35, 35]


@pytest.mark.parametrize("answer", [None, VersionsAnswer(35)])
def test_a_new_voter_that_tells_no_versions(answer: VersionsAnswer | None) -> None:
    """The change ends at once, and the next one finds the replica in its backoff."""
    driven = leading(3)
    request = AddVoter(CLUSTER, key(1), (endpoint(1),), 60_000)
    assert driven.ask(request) is None
    driven.answer(1, answer)
    assert errors(driven) == [7]
    assert error_of(driven.ask(request)) == 7


def test_a_change_ends_with_the_request_timeout() -> None:
    """The timeout in the request is of no effect; the record of a removal stays."""
    driven = leading(1, 3)
    add = AddVoter(CLUSTER, key(2), (endpoint(2),), 60_000)
    assert driven.ask(add) is None
    driven.tick(REQUEST_TIMEOUT_MS - 1)
    assert errors(driven) == []
    driven.tick(1)
    assert errors(driven) == [7]
    driven = leading(1, 2, 3)
    assert driven.ask(RemoveVoter(CLUSTER, key(2))) is None
    driven.tick(REQUEST_TIMEOUT_MS)
    assert errors(driven) == [7]
    assert driven.voter.log.voters.ids == (1, 3)


def test_versions_are_asked_for_at_the_usual_listener() -> None:
    """A new voter may name others before it."""
    driven = leading(3)
    other = endpoint(1)._replace(name="OTHER")
    assert driven.ask(AddVoter(CLUSTER, key(1), (other, endpoint(1)), 100)) is None
    assert driven.last_to(1).endpoint == endpoint(1)
    assert isinstance(driven.last_to(1).request, AskVersions)


def test_the_second_voter_has_time_to_fetch() -> None:
    """Time runs for the only voter, too, and begins again at the fetch of an observer."""
    driven = leading(3)
    driven.tick(LONG_MS)
    end = driven.voter.log.end
    driven.ask(replace(fetch(1, 1, end, 1), replica=key(1)))
    assert driven.ask(AddVoter(CLUSTER, key(1), (endpoint(1),), 100)) is None
    driven.answer(1, VersionsAnswer(0, ANY))
    driven.tick()
    assert driven.voter.log.voters.ids == (1, 3)
    assert driven.state() is State.LEADER
    driven.tick(3000)
    assert driven.state() is State.RESIGNED


def test_the_quorum_is_described_as_the_voters_record_names_it() -> None:
    """Before kraft.version 1 no directory is told, that of the leader neither."""
    for driven, directory in ((in_state(State.LEADER), None), (leading(1, 3), UUID(int=3))):
        answer = driven.ask(DescribeQuorum())
        assert isinstance(answer, DescribeQuorumAnswer)
        assert answer.voters[-1].key == ReplicaKey(3, directory)


def test_an_answer_of_another_kind_is_ignored() -> None:
    """Versions, where a vote was asked for."""
    driven = Driven(Log(VOTERS))
    driven.tick(LONG_MS)
    driven.receive(AnswerReceived(driven.last_to(1).number, VersionsAnswer(0, ANY)))
    assert driven.state() is State.PROSPECTIVE
