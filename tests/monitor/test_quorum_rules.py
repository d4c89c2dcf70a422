"""Alerts about the quorum, by literal histories: when each begins, stays and ends."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from featurewatch.monitor.quorum.report import quorum_report
from featurewatch.monitor.quorum.timers import ACKNOWLEDGED, RECENT_MS, QuorumCondition
from featurewatch.streams.events import Acknowledgement, Event, ReplicaStatus, SourceState
from featurewatch.streams.outputs import Alert
from featurewatch.streams.types import FeatureLevel
from featurewatch.tables.fold.acknowledgements import ACKNOWLEDGED_TIMERS
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import NEW, replica

LIMIT_MS = 300_000
THREE = {1: "A", 2: "B", 3: "C"}
RULES = {"observer-waits", "voter-rejoined", "voter-directory-changed", "quorum-at-risk"}


def healthy(voters: dict[int, str] | None = None, **silent: str) -> tuple[ReplicaStatus, ...]:
    """The voters; ``c3="silent"`` is the state of controller 3."""
    return tuple(
        replica(n, directory, silent.get(f"c{n}", "following"))
        for n, directory in (voters or THREE).items()
    )


class Quorum:
    """A cluster whose log and quorum are followed."""

    def __init__(self, voters: dict[int, str] | None = None, kraft: int = 1) -> None:
        self.engine = Engine()
        self.offset, self.now_ms = 9, 1000
        voters = THREE if voters is None else voters
        records = [r.kraft_version(kraft)] if kraft else []
        records += [r.voters(voters)] if kraft else []
        records += [r.register_controller(n, NEW) for n in (1, 2, 3, 4)]
        self.play(
            r.commit(9, *records, r.register(7, NEW), r.leader_change(1, voters)),
            r.following(9, seen_ms=1000),
            r.status(SourceState.FOLLOWING, 0, source="api-versions", seen_ms=1000),
        )

    def play(self, *events: Event) -> list[str]:
        """The rules of the quorum that publish, with + or -."""
        alerts = [alert for event in events for alert in self.engine.apply(event).alerts]
        return [
            f"{'+' if alert.state == 'firing' else '-'}{alert.rule}"
            for alert in alerts
            if alert.rule in RULES
        ]

    def describe(
        self,
        *voters: ReplicaStatus,
        observers: Iterable[ReplicaStatus] = (),
        detail: str = "",
    ) -> list[str]:
        """The active controller describes the quorum a second later."""
        self.now_ms += 1000
        return self.play(r.quorum(voters, observers, detail=detail, seen_ms=self.now_ms))

    def vote(self, voters: dict[int, str]) -> list[str]:
        """The log has other voters, a second later."""
        self.offset += 1
        self.now_ms += 1000
        commit = r.commit(self.offset, r.voters(voters))
        return self.play(replace(commit, append_ms=self.now_ms, seen_ms=self.now_ms))

    def wait(self, ms: int) -> list[str]:
        """A heartbeat after this time."""
        self.now_ms += ms
        return self.play(r.following(self.offset, seen_ms=self.now_ms))

    def alert(self, rule: str) -> Alert:
        """The firing alert of a rule."""
        firing = [one for alerts in self.engine.state.firing.values() for one in alerts]
        (alert,) = [one for one in firing if one.rule == rule]
        return alert


def test_a_voter_that_restarts_is_no_alert() -> None:
    """A roll of the controllers takes each of them away for a while."""
    quorum = Quorum()
    for n in (1, 2, 3):
        assert quorum.describe(*healthy(None, **{f"c{n}": "silent"})) == []
        assert quorum.wait(LIMIT_MS - 1) == []
        assert quorum.describe(*healthy()) == []
        assert quorum.wait(LIMIT_MS) == []


def test_a_quorum_that_can_lose_nobody() -> None:
    """After five minutes; the alert ends with the voter's return."""
    quorum = Quorum()
    quorum.describe(*healthy(c3="silent"))
    assert quorum.wait(LIMIT_MS) == ["+quorum-at-risk"]
    alert = quorum.alert("quorum-at-risk")
    assert alert.severity == "critical"
    assert "2 of 3 voters fetch and 2 are needed" in alert.summary
    assert "Start controller 3 again" in alert.summary
    quorum.engine.restart()
    assert quorum.describe(*healthy(c3="behind")) == ["-quorum-at-risk"]


@pytest.mark.parametrize(
    ("voters", "silent", "fires"),
    [
        ({1: "A"}, {}, False),
        ({1: "A", 2: "B"}, {}, False),
        ({1: "A", 2: "B", 3: "C", 4: "D"}, {"c4": "silent"}, True),
        (dict(enumerate("ABCDE", 1)), {"c5": "silent"}, False),
        (dict(enumerate("ABCDE", 1)), {"c4": "silent", "c5": "silent"}, True),
        (THREE, {"c2": "unknown", "c3": "unknown"}, False),
    ],
)
def test_majorities(voters: dict[int, str], silent: dict[str, str], fires: bool) -> None:
    """One or two voters can lose nobody by design: that is no alert. Nor is what is not known."""
    quorum = Quorum(voters)
    quorum.describe(*healthy(voters, **silent))
    assert (quorum.wait(LIMIT_MS) == ["+quorum-at-risk"]) is fires


def test_what_is_unknown_begins_and_ends_nothing() -> None:
    """A quorum that cannot be described is not known to have recovered, nor to fail."""
    quorum = Quorum()
    quorum.describe(*healthy(c3="silent"))
    assert quorum.describe(*healthy(c3="silent"), detail="no leader") == []
    assert quorum.wait(LIMIT_MS) == [], "it was not known for five minutes"
    quorum.describe(*healthy(c3="silent"))
    assert quorum.wait(LIMIT_MS) == ["+quorum-at-risk"]
    quorum.describe(*healthy(c3="silent"), detail="no leader")
    assert quorum.wait(60_000) == ["+quorum-at-risk"], "its text says that it is not known"
    assert "cannot be described now: no leader" in quorum.alert("quorum-at-risk").summary
    assert quorum.describe(*healthy()) == ["-quorum-at-risk"]


def test_a_stalled_source_begins_nothing() -> None:
    """Its last description is outdated."""
    quorum = Quorum()
    quorum.describe(*healthy(c3="silent"))
    stalled = r.status(SourceState.STALLED, 0, source="api-versions", seen_ms=quorum.now_ms)
    assert quorum.play(stalled) == []
    assert quorum.wait(LIMIT_MS) == []
    report = quorum_report(quorum.engine.state.image)
    assert (report.fetching, report.may_fail) == (None, None)
    assert "stalled" in report.detail


def test_a_controller_that_follows_and_does_not_vote() -> None:
    """Until it is added; a broker, and a controller that is silent, do not wait."""
    quorum = Quorum()
    others = (replica(4, "D"), replica(7, "E"), replica(9, "F"))
    quorum.describe(*healthy(), observers=others)
    assert quorum.wait(LIMIT_MS) == ["+observer-waits"]
    alert = quorum.alert("observer-waits")
    assert alert.evidence == {"controllers": [4]}
    assert alert.summary == (
        "Controller 4 follows the metadata log and does not vote: add it with `featurewatch quorum "
        "add-controller`, or stop it."
    )
    quorum.vote({**THREE, 4: "D"})
    assert quorum.describe(*healthy({**THREE, 4: "D"})) == ["-observer-waits"]
    silent = Quorum()
    silent.describe(*healthy(), observers=(replica(4, "D", "silent"),))
    assert silent.wait(LIMIT_MS) == []


def test_a_controller_waits_where_voters_are_static() -> None:
    """It cannot be added before kraft.version 1."""
    quorum = Quorum(kraft=0)
    quorum.describe(*(replica(n) for n in (1, 2, 3)), observers=(replica(4),))
    assert quorum.wait(LIMIT_MS) == ["+observer-waits"]
    assert "finalize kraft.version 1 first" in quorum.alert("observer-waits").summary


def test_a_removed_voter_that_joins_again() -> None:
    """Within an hour, with its directory; the alert ends an hour later, or with its removal."""
    quorum = Quorum()
    assert quorum.vote({1: "A", 2: "B"}) == []
    assert quorum.vote(THREE) == ["+voter-rejoined"]
    quorum.engine.restart()
    assert quorum.wait(RECENT_MS - 1) == []
    assert quorum.wait(1) == ["-voter-rejoined"]
    quorum.vote({1: "A", 2: "B"})
    assert quorum.vote(THREE) == ["+voter-rejoined"]
    assert quorum.vote({1: "A", 2: "B"}) == ["-voter-rejoined"]
    assert quorum.wait(RECENT_MS) == []
    assert quorum.vote(THREE) == [], "it was removed more than an hour ago"


def test_a_voter_with_another_directory() -> None:
    """Replaced in one step, or removed and added; and one that fetches with another than it has."""
    quorum = Quorum()
    assert quorum.vote({**THREE, 3: "X"}) == ["+voter-directory-changed"]
    alert = quorum.alert("voter-directory-changed")
    assert alert.evidence == {"fetching": {}, "before": {"3": "C"}}
    assert quorum.wait(RECENT_MS) == ["-voter-directory-changed"]
    quorum.vote({1: "A", 2: "B"})
    assert quorum.vote({**THREE, 3: "Y"}) == ["+voter-directory-changed"]
    lost = Quorum()
    lost.describe(*healthy(c3="silent"), observers=(replica(3, "Z"),))
    assert set(lost.wait(LIMIT_MS)) == {"+voter-directory-changed", "+quorum-at-risk"}
    alert = lost.alert("voter-directory-changed")
    assert alert.evidence == {"fetching": {"3": "Z"}, "before": {}}
    assert "remove it with the old directory id" in alert.summary


def test_a_log_that_is_read_again_is_no_history() -> None:
    """Only net differences count: neither old records nor a snapshot make an alert."""
    quorum = Quorum()
    quorum.vote({1: "A", 2: "B"})
    quorum.now_ms += RECENT_MS
    quorum.vote({1: "A", 2: "B", 4: "D"})
    replayed = quorum.play(
        r.resync(),
        r.commit(9, r.kraft_version(1), r.voters(THREE), r.register_controller(3, NEW)),
        r.commit(10, r.voters({1: "A", 2: "B"})),
        r.commit(11, r.voters(THREE)),
        r.commit(12, r.voters({1: "A", 2: "B", 4: "D"})),
        r.following(12, seen_ms=quorum.now_ms),
    )
    assert replayed == []
    known = {key for key, _ in quorum.engine.state.times.quorum if key is QuorumCondition.VOTER}
    assert known == {QuorumCondition.VOTER}


def test_the_report_of_a_quorum() -> None:
    """Voters of the log, their states by the active controller, and what the quorum can lose."""
    quorum = Quorum()
    quorum.describe(*healthy(c2="behind"), observers=(replica(4, "D"), replica(7, "E")))
    report = quorum_report(quorum.engine.state.image)
    assert (report.voters_are, report.kraft_version) == ("dynamic", FeatureLevel(1))
    assert (report.majority, report.fetching, report.may_fail) == (2, 3, 1)
    shown = [(one.node_id, str(one.state), one.is_active) for one in report.voters]
    assert shown == [(1, "following", True), (2, "behind", False), (3, "following", False)]
    assert [one.is_controller for one in report.observers] == [True, False]
    assert report.voters[0].endpoints == ("CONTROLLER://c1:9093",)
    quorum.vote({**THREE, 4: "D"})
    newer = quorum_report(quorum.engine.state.image)
    assert newer.may_fail is None, "the new voter is not described yet"


@pytest.mark.parametrize(
    ("votes", "rule"),
    [
        (({1: "A", 2: "B"}, THREE), "voter-rejoined"),
        (({1: "A", 2: "B", 3: "D"},), "voter-directory-changed"),
    ],
)
def test_a_change_that_was_meant_is_acknowledged(
    votes: tuple[dict[int, str], ...], rule: str
) -> None:
    """The alert ends then, and fires again if it happens again."""
    quorum = Quorum()
    for voters in votes:
        quorum.vote(voters)
    alert = quorum.alert(rule)
    for other in ("voter-rejoined", "voter-directory-changed"):
        quorum.now_ms += 1000
        id_ = alert.id.replace(rule, other)
        ended = quorum.play(Acknowledgement(r.CLUSTER, id_, "ann", "a new disk", quorum.now_ms))
        assert ended == ([f"-{rule}"] if other == rule else [])
    assert quorum.wait(60_000) == []
    quorum.vote({1: "A", 2: "B", 3: "E"})
    assert "controller 3 votes" in quorum.alert("voter-directory-changed").summary.lower()


def test_another_directory_is_not_acknowledged() -> None:
    """A controller that fetches with another directory id still does."""
    quorum = Quorum()
    away = healthy(c3="silent")
    quorum.describe(*away, observers=[replica(3, "D", "following")])
    quorum.wait(LIMIT_MS)
    alert = quorum.alert("voter-directory-changed")
    event = Acknowledgement(r.CLUSTER, alert.id, "ann", "why not", quorum.now_ms)
    assert quorum.play(event) == []


def test_the_rules_that_can_be_acknowledged() -> None:
    """What the fold passes on is what the monitor forgets."""
    assert {*ACKNOWLEDGED} == ACKNOWLEDGED_TIMERS
