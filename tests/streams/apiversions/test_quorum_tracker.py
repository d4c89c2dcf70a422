"""Which descriptions of the quorum are published: scripted answers, without a network."""

from uuid import UUID

from featurewatch.streams.apiversions.quorum_tracker import MAX_REPLICAS, QuorumTracker
from featurewatch.streams.codec.events import decode, encode
from featurewatch.streams.events import QuorumStatus, ReplicaState
from featurewatch.streams.quorum import (
    QuorumDescription,
    QuorumReplica,
    VoterEndpoint,
    directory_text,
)
from featurewatch.streams.topics import API_VERSIONS
from featurewatch.streams.types import ClusterId, NodeId

CLUSTER = ClusterId("c")
DIRECTORIES = {n: UUID(int=n) for n in range(1, 300)}
NOW_MS = 1_000_000


def replica(
    node_id: int, *, silent_ms: int = 100, behind_ms: int = 100, end: int = 500, times: bool = True
) -> QuorumReplica:
    """A replica that fetched and had the whole log this long ago."""
    return QuorumReplica(
        NodeId(node_id),
        DIRECTORIES[node_id],
        end,
        NOW_MS - silent_ms if times else None,
        NOW_MS - behind_ms if times else None,
    )


def leader(node_id: int = 1, *, times: bool = True) -> QuorumReplica:
    """The active controller, whose times are those of its answer."""
    return replica(node_id, silent_ms=0, behind_ms=0, times=times)


def described(*others: QuorumReplica, observers: tuple[QuorumReplica, ...] = (), times=True):
    """A quorum that controller 1 leads."""
    endpoints = {NodeId(2): (VoterEndpoint("CONTROLLER", "::1", 9093),)}
    voters = (leader(times=times), *others)
    return QuorumDescription(NodeId(1), 7, 500, voters, observers, endpoints)


def states(events: list[QuorumStatus]) -> dict[int, str]:
    """The states of all replicas in the one event."""
    (event,) = events
    assert decode(API_VERSIONS, encode(API_VERSIONS, event).value) == event, "the worker reads it"
    return {one.node_id: str(one.state) for one in (*event.voters, *event.observers)}


def test_the_state_of_each_replica() -> None:
    """By its last fetch, and by when it last had the whole log."""
    tracker = QuorumTracker(CLUSTER)
    quorum = described(
        replica(2), replica(3, behind_ms=10_001, end=90), observers=(replica(4, silent_ms=5_001),)
    )
    events = tracker.on_description(quorum, (), (), 5)
    assert states(events) == {1: "following", 2: "following", 3: "behind", 4: "silent"}
    (event,) = events
    one, two, three = event.voters
    assert (one.lag, two.lag, three.lag) == (0, 0, 410)
    assert (two.since_ms, three.since_ms) == (-1, NOW_MS - 10_001)
    assert event.observers[0].since_ms == NOW_MS - 5_001
    assert two.directory_id == directory_text(DIRECTORIES[2])
    assert two.endpoints == ("CONTROLLER://[::1]:9093",)
    assert (event.leader_id, event.leader_epoch, event.detail) == (1, 7, "")


def test_without_times_nothing_is_known_of_the_others() -> None:
    """As of a leader that reports no times: silence is not concluded."""
    quorum = described(replica(2, times=False), times=False)
    events = QuorumTracker(CLUSTER).on_description(quorum, (), (), 5)
    assert states(events) == {1: "following", 2: "unknown"}


def test_answers_that_differ_in_offsets_and_times_are_published_once() -> None:
    """A thousand answers are one message."""
    tracker, published = QuorumTracker(CLUSTER), 0
    for step in range(1000):
        quorum = described(replica(2, silent_ms=step % 500, end=500 - step % 9), replica(3))
        published += len(tracker.on_description(quorum, (), (), 3000 * step))
    assert published == 1


def test_lags_are_published_once_a_minute_while_a_replica_is_behind() -> None:
    """Five minutes of a replica that catches up are six messages."""
    tracker, published = QuorumTracker(CLUSTER), 0
    for step in range(101):
        quorum = described(replica(2, behind_ms=20_000, end=step))
        published += len(tracker.on_description(quorum, (), (), 3000 * step))
    assert published == 6
    events = tracker.on_description(described(replica(2)), (), (), 303_001)
    assert states(events) == {1: "following", 2: "following"}


def test_a_change_is_published_at_once() -> None:
    """Of a state, of the members, of a directory, and of the leader."""
    tracker = QuorumTracker(CLUSTER)
    two, other_disk = replica(2), replica(2)._replace(directory_id=UUID(int=99))
    for quorum in (
        described(two),
        described(replica(2, silent_ms=9_000)),
        described(two),
        described(two, replica(3)),
        described(other_disk, replica(3)),
        described(other_disk, observers=(replica(3),)),
    ):
        assert len(tracker.on_description(quorum, (), (), 5)) == 1
        assert tracker.on_description(quorum, (), (), 6) == []


def test_brokers_are_left_out_unless_they_are_controllers_too() -> None:
    """Brokers that start are no change of the quorum."""
    tracker = QuorumTracker(CLUSTER)
    observers = tuple(replica(n) for n in range(4, 260))
    events = tracker.on_description(described(observers=observers), range(4, 260), (1, 5), 5)
    assert states(events) == {1: "following", 5: "following"}
    few = described(observers=(replica(5), replica(6)))
    assert tracker.on_description(few, range(4, 260), (1, 5), 6) == []
    unlisted = tracker.on_description(described(observers=observers), (), (5,), 7)
    assert unlisted == [], "of more than a quorum ever has, the known ones count"


def test_a_failure_counts_when_it_repeats() -> None:
    """While a leader is elected nobody answers for a moment; then the last description is dated."""
    tracker = QuorumTracker(CLUSTER)
    assert [tracker.on_failure("refused", n) for n in range(3)] == [[], [], []], "never described"
    tracker.on_description(described(replica(2)), (), (), 3)
    assert tracker.on_failure("no leader", 4) == []
    events = tracker.on_failure("no leader", 5)
    assert states(events) == {1: "following", 2: "following"}
    assert (events[0].detail, events[0].seen_ms) == ("no leader", 5)
    assert tracker.on_failure("no leader", 6) == []
    assert tracker.on_description(described(replica(2)), (), (), 7)[0].detail == ""


def test_too_many_voters_are_a_failure() -> None:
    """Whoever answers as a controller does not fill the bus."""
    tracker = QuorumTracker(CLUSTER)
    tracker.on_description(described(replica(2)), (), (), 1)
    hostile = described(*[replica(2)] * MAX_REPLICAS)
    assert tracker.on_description(hostile, (), (), 2) == []
    assert "201 voters" in tracker.on_description(hostile, (), (), 3)[0].detail


def test_numbers_out_of_range_are_not_known() -> None:
    """The worker would refuse them."""
    odd = replica(2, silent_ms=9_000)._replace(last_fetch_ms=-5, log_end_offset=2**63 - 1)
    negative = replica(3)._replace(node_id=NodeId(-4))
    (event,) = QuorumTracker(CLUSTER).on_description(described(odd, negative), (), (), 5)
    assert states([event]) == {1: "following", 2: "silent"}
    assert (event.voters[1].lag, event.voters[1].since_ms) == (0, -1)


def test_a_resync_publishes_it_again_and_a_withdrawal_drops_it() -> None:
    """Of another cluster nothing holds."""
    tracker = QuorumTracker(CLUSTER)
    assert tracker.republish(1) == tracker.withdraw("another cluster", 1) == []
    (event,) = tracker.on_description(described(replica(2)), (), (), 2)
    (again,) = tracker.republish(3)
    assert (again.voters, again.seen_ms) == (event.voters, 3)
    (gone,) = tracker.withdraw("another cluster", 4)
    assert (gone.voters, gone.detail) == ((), "another cluster")
    assert tracker.republish(5) == []
    assert ReplicaState.FOLLOWING in {one.state for one in event.voters}
