"""Our voter against Kafka's own, ``KafkaRaftClient``: generated histories, compared step by step.

By day a few hundred on one release; ``python -m tests.conformance.raft`` compares more of them.
"""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path

import pytest

from featurewatch.reference.kraft.machines import rules
from featurewatch.reference.kraft.machines.log import Log, Position
from featurewatch.reference.kraft.machines.membership import Membership
from featurewatch.reference.kraft.machines.replicas import ReplicaKey
from featurewatch.reference.kraft.machines.requests import (
    AddVoter,
    AskVersions,
    BeginQuorumEpoch,
    EndQuorumEpoch,
    Fetch,
    FetchSnapshot,
    RemoveVoter,
    UpdateVoter,
    Vote,
)
from featurewatch.reference.kraft.machines.states import State
from featurewatch.reference.kraft.machines.voter import Voter
from featurewatch.reference.kraft.wire.messages import VERSIONS
from featurewatch.stack.java.jars import Cache
from featurewatch.streams.types import OffsetAndEpoch
from tests.conformance.feature_control.kafka import ControllerHarness
from tests.conformance.raft import ours
from tests.conformance.raft.compare import Comparison, compare
from tests.conformance.raft.differences import ENDS_THE_PROCESS
from tests.conformance.raft.forms import versions_of
from tests.conformance.raft.kafka import RELEASES, raft_voters
from tests.plugins.nightly import case_count, case_seeds, nightly_but

pytestmark = pytest.mark.stack

BY_DAY = "4.3.1"
HISTORIES = case_count(2_000)
PLANTED = range(1_000)
"""The seeds in which a planted difference must be found; the first that shows it is enough."""
RARE = {
    "reads_update_answers": {"3": 5_413},
    "updates_show_life": {"3": 375_055_084_004, "4": 375_055_080_950},
}
"""For rules that few histories show: a seed that does, by the line of a release."""
VOTER_ADDED = 1_088_586_534_636
"""A seed by which a voter is added while its Fetch waits, which few histories show."""


@pytest.fixture(scope="module", params=nightly_but({BY_DAY}, RELEASES))
def release(request: pytest.FixtureRequest) -> str:
    """A release of Kafka."""
    return str(request.param)


@pytest.fixture(scope="module")
def kafka(
    release: str, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """Its voter, ready for histories."""
    directory: Path = tmp_path_factory.mktemp("raft")
    with raft_voters(release, stack_cache, directory) as running:
        yield running


@pytest.fixture(scope="module")
def found(kafka: ControllerHarness, release: str) -> Comparison:
    """The comparison of this run."""
    return compare(kafka, release, case_seeds(2_000))


def test_a_voter_that_is_added_counts_for_the_fetch_that_waits(
    kafka: ControllerHarness, release: str
) -> None:
    """The answer has the high watermark of the voters that are in the log, on the disk or not."""
    assert not compare(kafka, release, range(VOTER_ADDED, VOTER_ADDED + 1)).differences


def test_our_voter_does_what_that_of_kafka_does(found: Comparison) -> None:
    """Answers, requests, states, the quorum state and the log are the same after each step."""
    assert found.histories == HISTORIES
    assert not found.differences, (
        f"{len(found.differences)} of {found.histories} differ\n{found.differences[0]}"
    )


def test_histories_reach_every_state(found: Comparison, release: str) -> None:
    """By requests, answers and time; and most histories do not end early."""
    reached = {kind.split(" -> ")[1] for kind in found.kinds}
    left_out = {State.VOTED, State.PROSPECTIVE if release.startswith("3.") else State.VOTED}
    assert reached >= {str(state) for state in State if state not in left_out}
    assert found.steps > 25 * found.histories
    assert found.deliberate.keys() & ENDS_THE_PROCESS.keys()


@pytest.mark.nightly
def test_the_rules_of_another_release_do_not_pass(
    kafka: ControllerHarness, release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rule that differs between releases is noticed, even if the others are right."""
    right = rules.rules_of((3, 9) if release.startswith("3.") else (4, 3))
    other = rules.rules_of((4, 3) if release.startswith("3.") else (3, 9))
    for rule in fields(rules.RaftRules):
        wrong = replace(right, **{rule.name: getattr(other, rule.name)})
        monkeypatch.setattr(ours, "rules_of", lambda _, wrong=wrong: wrong)
        rare = RARE.get(rule.name, {}).get(release[0])
        seeds = PLANTED if rare is None else range(rare, rare + 1)
        assert compare(kafka, release, seeds, 1).differences, rule.name


def test_histories_have_every_request(found: Comparison, release: str) -> None:
    """In every version that the release knows, and every answer that a voter reads."""
    versions = versions_of(release)
    asked = {kind.split(" -> ")[0] for kind in found.kinds}
    for request, (_, key, (oldest, _)) in VERSIONS.items():
        if request is not AskVersions:
            name = request.__name__
            wanted = {f"ask {name} version {one}" for one in range(oldest, versions[key] + 1)}
            assert asked >= wanted, wanted - asked
    answered = (Vote, BeginQuorumEpoch, EndQuorumEpoch, Fetch, FetchSnapshot, UpdateVoter)
    assert asked >= {f"answer {one.__name__}" for one in (*answered, AskVersions)}


_IS_GRANTED = Voter._is_granted


def any_log(voter: Voter, candidate: ReplicaKey, is_up_to_date: bool) -> bool:
    """Grants a vote whatever log the candidate has."""
    return _IS_GRANTED(voter, candidate, True)


def from_anywhere(log: Log, offset: int, epoch: int) -> Position:
    """Lets a follower read on wherever its log ends."""
    return Position()


def any_snapshot(voter: Voter, snapshot: OffsetAndEpoch) -> bool:
    """Loads a snapshot that ends within the log."""
    return True


def any_time(membership: Membership, request: AddVoter | RemoveVoter | UpdateVoter) -> None:
    """Begins a change of the voters whatever else is under way."""


@pytest.mark.parametrize(
    ("owner", "name", "bug"),
    [
        (Voter, "_is_granted", any_log),
        (Log, "position", from_anywhere),
        (Voter, "_is_newer", any_snapshot),
        (Membership, "_refusal", any_time),
    ],
)
def test_a_planted_bug_is_noticed(
    kafka: ControllerHarness,
    release: str,
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    bug: object,
) -> None:
    """In elections, positions, snapshots and changes of the voters."""
    monkeypatch.setattr(owner, name, bug)
    assert compare(kafka, release, PLANTED, 1).differences
