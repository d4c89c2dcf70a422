"""The checks before a change of the voters, on literal quorums; times are the leader's clock."""

from dataclasses import replace
from uuid import UUID

import pytest

from featurewatch.admin.quorum.checks import (
    Candidate,
    Check,
    Verdict,
    check_of_unregistration,
    checks_of_addition,
    checks_of_removal,
    verdict_of,
)
from featurewatch.streams.quorum import (
    QuorumDescription,
    QuorumReplica,
    VoterEndpoint,
)
from featurewatch.streams.types import ClusterId, FeatureLevel, NodeId

NOW = 1_800_000_000_000
ENDPOINT = VoterEndpoint("CONTROLLER", "host", 9093)


def directory(node_id: int) -> UUID:
    """The directory id of a controller."""
    return UUID(int=node_id)


def replica(
    node_id: int,
    *,
    silent_ms: int | None = 0,
    behind_ms: int | None = 0,
    lag: int = 0,
    disk: int = 0,
) -> QuorumReplica:
    """A replica that fetched ``silent_ms`` ago; ``disk`` is a number of its directory id."""
    return QuorumReplica(
        NodeId(node_id),
        directory(disk or node_id),
        1000 - lag,
        None if silent_ms is None else NOW - silent_ms,
        None if behind_ms is None else NOW - behind_ms,
    )


def quorum(
    *voters: QuorumReplica, observers: tuple[QuorumReplica, ...] = (), level: int = 1
) -> QuorumDescription:
    """A quorum that the first voter leads."""
    return QuorumDescription(
        leader_id=voters[0].node_id,
        leader_epoch=5,
        high_watermark=1000,
        voters=voters,
        observers=observers,
        endpoints={voters[0].node_id: (ENDPOINT,)},
        kraft_version=FeatureLevel(level),
        cluster_id=ClusterId("cluster"),
    )


def candidate(
    node_id: int, *, disk: int = 0, listener: str = "CONTROLLER", cluster: str = "cluster"
) -> Candidate:
    """A controller that is to vote."""
    return Candidate(
        NodeId(node_id),
        directory(disk or node_id),
        (VoterEndpoint(listener, "host", 1),),
        NodeId(node_id),
        ClusterId(cluster),
    )


def against(checks: tuple[Check, ...]) -> dict[str, str]:
    """The checks that do not say yes: names and texts."""
    return {check.name: check.text for check in checks if check.verdict is not Verdict.YES}


DEAD = 60_000

ADDITIONS = [
    # One voter and an observer that has caught up.
    (quorum(replica(1), observers=(replica(2),)), candidate(2), {}),
    (quorum(replica(1), observers=(replica(2, lag=3, behind_ms=400),)), candidate(2), {}),
    (quorum(replica(1), replica(2), observers=(replica(3),)), candidate(3), {}),
    # It never fetched from this leader, or under another directory id.
    (quorum(replica(1)), candidate(2), {"observer": "does not fetch", "majority": "1 of 2 voters"}),
    (
        quorum(replica(1), observers=(replica(2, disk=9),)),
        candidate(2),
        {"observer": "has directory id AAAAAAAAAAAAAAAAAAAACQ", "majority": "nothing could be"},
    ),
    # It fetched within the hour that the leader accepts, and is down.
    (
        quorum(replica(1), observers=(replica(2, silent_ms=DEAD, behind_ms=DEAD),)),
        candidate(2),
        {"observer": "last fetched 60.0 s ago", "majority": "1 of 2 voters fetch, 2 are needed"},
    ),
    # It runs and copies the log.
    (
        quorum(replica(1), observers=(replica(2, lag=800, behind_ms=None),)),
        candidate(2),
        {"lag": "it is 800 records behind, and was last caught up never"},
    ),
    (
        quorum(replica(1), observers=(replica(2, lag=800, behind_ms=DEAD),)),
        candidate(2),
        {"lag": "last caught up 60.0 s ago"},
    ),
    # Of three voters one is down: a fourth that fetches leaves three of four, which is a majority.
    (
        quorum(replica(1), replica(2), replica(3, silent_ms=DEAD), observers=(replica(4),)),
        candidate(4),
        {},
    ),
    # Of two voters one is down: with three, two of them fetch.
    (quorum(replica(1), replica(2, silent_ms=None), observers=(replica(3),)), candidate(3), {}),
    # A voter already; with a lost disk; static voters; another listener, cluster.
    (quorum(replica(1), replica(2)), candidate(2), {"voter": "already"}),
    (
        quorum(replica(1), replica(2, disk=9), observers=(replica(2),)),
        candidate(2),
        {"voter": "votes with directory id AAAAAAAAAAAAAAAAAAAACQ"},
    ),
    (
        quorum(replica(1), observers=(replica(2),), level=0),
        candidate(2),
        {"kraft.version": "kraft.version is 0"},
    ),
    (
        quorum(replica(1), observers=(replica(2),)),
        candidate(2, listener="QUORUM"),
        {"listener": "it listens as QUORUM, the leader as CONTROLLER"},
    ),
    (
        quorum(replica(1), observers=(replica(2),)),
        candidate(2, cluster="other"),
        {"cluster": "meta.properties is of cluster other, this is cluster"},
    ),
]


@pytest.mark.parametrize(("described", "added", "expected"), ADDITIONS)
def test_additions(
    described: QuorumDescription, added: Candidate, expected: dict[str, str]
) -> None:
    """What says no, and why."""
    found = against(checks_of_addition(described, added))
    assert found.keys() == expected.keys(), found
    for name, text in expected.items():
        assert text in found[name]


REMOVALS = [
    # Shut down, of three and of four.
    (quorum(replica(1), replica(2), replica(3, silent_ms=DEAD)), 3, 3, {}),
    (quorum(replica(1), replica(2), replica(3), replica(4, silent_ms=None)), 4, 4, {}),
    # It runs, as an ordinary voter and as the active controller.
    (
        quorum(replica(1), replica(2), replica(3)),
        3,
        3,
        {"stopped": "controller 3 with directory id AAAAAAAAAAAAAAAAAAAAAw runs"},
    ),
    (quorum(replica(1), replica(2), replica(3)), 1, 1, {"stopped": "is the active controller"}),
    # Of two it has to run, because the other alone is no majority of two.
    (quorum(replica(1), replica(2)), 2, 2, {}),
    (quorum(replica(1), replica(2)), 1, 1, {}),
    # Another one is down too: one of two is no majority afterwards.
    (
        quorum(replica(1), replica(2, silent_ms=DEAD), replica(3)),
        3,
        3,
        {"majority": "afterwards 1 of 2 voters fetch, 2 are needed, 0 may fail: nothing could be"},
    ),
    # The one that is down is removed, though the others are just a majority.
    (quorum(replica(1), replica(2, silent_ms=DEAD), replica(3)), 2, 2, {}),
    # Five with two down: one that is down may go, one that runs may not.
    (
        quorum(
            replica(1),
            replica(2),
            replica(3),
            replica(4, silent_ms=DEAD),
            replica(5, silent_ms=DEAD),
        ),
        5,
        5,
        {},
    ),
    (
        quorum(
            replica(1),
            replica(2),
            replica(3),
            replica(4, silent_ms=DEAD),
            replica(5, silent_ms=DEAD),
        ),
        3,
        3,
        {"majority": "afterwards 2 of 4 voters fetch, 3 are needed"},
    ),
    # The only voter; another directory; an observer; nobody.
    (quorum(replica(1)), 1, 1, {"majority": "is the only voter"}),
    (
        quorum(replica(1), replica(2)),
        2,
        9,
        {"voter": "controller 2 votes with directory id AAAAAAAAAAAAAAAAAAAAAg, not AAAAAAAAAAAA"},
    ),
    (
        quorum(replica(1), observers=(replica(2),)),
        2,
        2,
        {"voter": "controller 2 is an observer and does not vote"},
    ),
    (quorum(replica(1), replica(2)), 7, 7, {"voter": "does not vote; the voters are 1, 2"}),
]


@pytest.mark.parametrize(("described", "node_id", "disk", "expected"), REMOVALS)
def test_removals(
    described: QuorumDescription, node_id: int, disk: int, expected: dict[str, str]
) -> None:
    """What says no, and why."""
    found = against(checks_of_removal(described, node_id, directory(disk)))
    assert found.keys() == expected.keys(), found
    for name, text in expected.items():
        assert text in found[name]


def test_without_times_the_answer_is_unknown() -> None:
    """Kafka 3.3's first version of the response has no times (KIP-836)."""
    silent = tuple(replica(node_id, silent_ms=None, behind_ms=None) for node_id in (1, 2, 3))
    assert verdict_of(checks_of_removal(quorum(*silent), 3, directory(3))) is Verdict.UNKNOWN
    added = checks_of_addition(quorum(*silent[:2], observers=silent[2:]), candidate(3))
    assert verdict_of(added) is Verdict.UNKNOWN


def test_one_no_outweighs_what_is_unknown() -> None:
    """The verdict of several checks."""
    yes, no, unknown = (Check("a", verdict, "") for verdict in Verdict)
    assert verdict_of([yes, unknown, no]) is Verdict.NO
    assert verdict_of([yes, unknown]) is Verdict.UNKNOWN
    assert verdict_of([yes]) is Verdict.YES


@pytest.mark.parametrize(
    ("down", "text"),
    [
        ((), "3 of 3 voters fetch, 2 are needed, 1 may fail"),
        ((3,), "2 of 3 voters fetch, 2 are needed, 0 may fail"),
        ((2, 3), "1 of 3 voters fetch, 2 are needed, 0 may fail"),
    ],
)
def test_what_a_quorum_can_lose(down: tuple[int, ...], text: str) -> None:
    """Counts of voters that fetch; a silent one of five seconds is not down yet."""
    voters = [replica(node_id, silent_ms=5_001 if node_id in down else 5_000) for node_id in (2, 3)]
    assert str(quorum(replica(1), *voters).tolerance) == text


@pytest.mark.parametrize(
    ("level", "silent_ms", "times", "verdict", "text"),
    [
        (33, 60_000, True, Verdict.YES, "it can be removed"),
        (30, 60_000, True, Verdict.NO, "needs metadata.version 33 (4.4-IV2), not 30"),
        (None, 60_000, True, Verdict.UNKNOWN, "is not known"),
        (33, 0, True, Verdict.NO, "runs and would register again"),
        (33, None, False, Verdict.UNKNOWN, "does not report who fetches"),
    ],
)
def test_unregistrations(
    level: int | None, silent_ms: int | None, times: bool, verdict: Verdict, text: str
) -> None:
    """From 4.4-IV2 on, of a controller that is shut down (KIP-1312)."""
    leader = replica(1) if times else replica(1, silent_ms=None, behind_ms=None)
    found = quorum(leader, replica(2, silent_ms=silent_ms), replica(3))
    found = replace(found, metadata_version=None if level is None else FeatureLevel(level))
    check = check_of_unregistration(found, 2)
    assert check.verdict is verdict
    assert text in check.text
    assert not check.by_leader
