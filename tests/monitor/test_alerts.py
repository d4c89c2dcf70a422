"""From findings to alerts: which fire, continue and are resolved, and their texts."""

from dataclasses import replace
from itertools import pairwise

import pytest

from featurewatch.monitor.step import step, step_unreadable
from featurewatch.streams.events import SourceState
from featurewatch.streams.outputs import Alert, AlertState, Severity
from featurewatch.tables.image.sources import MessagePosition
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW, OLD, TV


def watching(*records: object) -> Engine:
    """An engine that has caught up with these records."""
    engine = Engine()
    engine.apply_all([r.commit(10, *records), r.following(10)])  # type: ignore[arg-type]
    return engine


@pytest.mark.form("released")
def test_an_alert_begins_continues_and_ends() -> None:
    """The alert keeps its start; an unchanged finding publishes nothing (F-33 as released)."""
    engine = watching(r.level(MV, 25))
    began = engine.apply(r.commit(20, r.register(1, OLD)))
    alert = next(a for a in began.alerts if a.rule == "incompatible-node")
    assert (alert.state, alert.since_ms, alert.severity) == (
        AlertState.FIRING,
        200,
        Severity.WARNING,
    )
    assert "start it on a release that supports level 25" in alert.summary
    assert engine.apply(r.commit(30, r.register(2, NEW))).alerts == ()
    changed = engine.apply(r.commit(40, r.unfence(1))).alerts
    assert [(a.id, a.severity, a.since_ms, a.at_ms) for a in changed] == [
        (alert.id, Severity.CRITICAL, 200, 400)
    ]
    ended = engine.apply(r.commit(50, r.register(1, NEW))).alerts
    assert {(a.rule, a.state, a.since_ms, a.at_ms) for a in ended} == {
        ("incompatible-node", AlertState.RESOLVED, 200, 500),
        ("level-above-support", AlertState.RESOLVED, 200, 500),
    }
    assert len(engine.state.firing) == 0


def test_the_remedy_depends_on_the_side_of_the_range() -> None:
    """The remedy for a node above the level is an older release or a higher level (F-34)."""
    engine = watching(r.level(MV, 6), r.register(1, NEW))
    summaries = [a.summary for alerts in engine.state.firing.values() for a in alerts]
    assert len(summaries) == 1
    assert "start it on an older release, or raise metadata.version to 7 first" in summaries[0]


def test_unknown_is_not_healthy() -> None:
    """A response that may omit features leads to a warning."""
    engine = Engine()
    engine.apply(r.following(0, source="api-versions", seen_ms=1))
    alerts = engine.apply(r.answer(1, {MV: (7, 30)}, {MV: 25, TV: 1}, 5, 10, complete=False)).alerts
    assert [(a.rule, a.severity) for a in alerts] == [("missing-feature", Severity.WARNING)]
    assert "ApiVersions version 4" in alerts[0].summary


@pytest.mark.form("document", "released")
@pytest.mark.parametrize("bounds", [(9, 3), (-1, 9)])
def test_an_invalid_range_has_its_own_alert(bounds: tuple[int, int]) -> None:
    """Nothing else is concluded from a reversed or negative range (F-04, F-04 as released)."""
    engine = watching(r.level(MV, 5), r.register(1, {MV: bounds}))
    rules = [a.rule for alerts in engine.state.firing.values() for a in alerts]
    assert rules == ["invalid-range"]


def test_nodes_have_no_alerts_before_the_source_has_caught_up() -> None:
    """Once ready, all findings are published once (F-40: a level counts even if nodes lack it)."""
    engine = Engine()
    engine.apply(r.catching_up(0, seen_ms=1))
    early = engine.apply(r.commit(10, r.level(MV, 25), r.register(1, OLD)))
    assert early.alerts == ()
    assert len(early.changes) == 1
    assert {a.rule for a in engine.apply(r.following(10)).alerts} == {
        "incompatible-node",
        "level-above-support",
    }
    assert engine.apply(r.following(10, seen_ms=999)).alerts == ()


def test_a_restart_of_the_source_publishes_no_alerts() -> None:
    """Catching up and following again publishes nothing if nothing changed."""
    engine = watching(r.level(MV, 25), r.register(1, OLD))
    for event in (r.catching_up(10, seen_ms=500), r.following(10, seen_ms=501)):
        outcome = engine.apply(event)
        assert (outcome.changes, outcome.alerts, outcome.snapshot) == ((), (), None)


def test_a_source_that_stalls() -> None:
    """The alert fires after a moment, and is resolved when the source follows again."""
    engine = watching(r.level(MV, 21))
    for seen_ms in (500, 4499):
        assert engine.apply(r.status(SourceState.STALLED, 10, seen_ms=seen_ms)).alerts == ()
    fired = engine.apply(r.status(SourceState.STALLED, 10, seen_ms=4500)).alerts
    assert [(a.rule, a.subject) for a in fired] == [("source-stalled", {"source": "kraft"})]
    (ended,) = engine.apply(r.following(10, seen_ms=4900)).alerts
    assert (ended.state, ended.since_ms) == (AlertState.RESOLVED, 4500)


def test_a_source_that_stalls_for_a_moment_is_no_alert() -> None:
    """An election, a restart: nobody is paged."""
    engine = watching(r.level(MV, 21))
    assert engine.apply(r.status(SourceState.STALLED, 10, seen_ms=500)).alerts == ()
    assert engine.apply(r.following(10, seen_ms=4000)).alerts == ()


def test_a_source_that_flaps_is_reported_as_flapping_once() -> None:
    """An outage each 14 s for 52 minutes is one alert, which ends 10 minutes after the last one."""
    engine = watching(r.level(MV, 21))
    alerts: list[Alert] = []
    for began_ms in range(1000, 52 * 60_000, 14_000):
        status = r.status(SourceState.STALLED, 10, seen_ms=began_ms)
        alerts += engine.apply(replace(status, detail=f"no leader, {began_ms}")).alerts
        alerts += engine.apply(r.following(10, seen_ms=began_ms + 3000)).alerts
    (alert,) = alerts
    assert (alert.severity, alert.evidence) == (Severity.WARNING, {"state": "flapping"})
    assert "stalled 5 times within 10 minutes, the last of them with: no leader, 57000." in (
        alert.summary
    )
    assert engine.apply(r.following(10, seen_ms=began_ms + 599_999)).alerts == ()
    engine.restart()
    (ended,) = engine.apply(r.following(10, seen_ms=began_ms + 600_000)).alerts
    assert ended.state is AlertState.RESOLVED


def test_a_flapping_source_that_stays_away_is_critical() -> None:
    """A long outage is said even while the source flaps."""
    engine = watching(r.level(MV, 21))
    for began_ms in range(1000, 71_000, 14_000):
        engine.apply(r.status(SourceState.STALLED, 10, seen_ms=began_ms))
        engine.apply(r.following(10, seen_ms=began_ms + 3000))
    engine.apply(r.status(SourceState.STALLED, 10, seen_ms=80_000))
    (alert,) = engine.apply(r.status(SourceState.STALLED, 10, seen_ms=140_000)).alerts
    assert (alert.severity, alert.evidence) == (Severity.CRITICAL, {"state": "stalled"})


def test_the_text_of_a_firing_alert_changes_once_a_minute() -> None:
    """Reasons that alternate or count make one message a minute; the newest is not forgotten."""
    engine = watching(r.level(MV, 21))
    published = []
    for seen_ms in range(1000, 601_000, 3000):
        status = r.status(SourceState.STALLED, 10, seen_ms=seen_ms)
        alerts = engine.apply(replace(status, detail=f"reason {seen_ms}")).alerts
        published += [(seen_ms, alert.severity, alert.summary) for alert in alerts]
        if seen_ms % 7 == 0:
            engine.restart()
    times = [seen_ms for seen_ms, _, _ in published]
    assert times[:2] == [7000, 61_000]  # it begins, and becomes critical
    assert all(later - earlier >= 60_000 for earlier, later in pairwise(times[1:]))
    assert len(times) == 10
    assert all(summary.endswith(f"reason {seen_ms}") for seen_ms, _, summary in published)


def test_a_text_that_waits_is_published_by_whatever_comes_next() -> None:
    """The subject itself need not change again."""
    engine = watching(r.level(MV, 21))
    outcome = step_unreadable(engine.state, "here", "not JSON", MessagePosition("t", 9, 700))
    assert len(outcome.alerts) == 1
    outcome = step_unreadable(outcome.state, "there", "not JSON", MessagePosition("t", 10, 800))
    assert outcome.alerts == ()
    engine.state = outcome.state
    assert engine.apply(r.following(10, seen_ms=60_699)).alerts == ()
    (alert,) = engine.apply(r.following(10, seen_ms=60_700)).alerts
    assert alert.evidence["count"] == 2
    assert not engine.state.held


def test_a_text_that_waits_holds_at_once() -> None:
    """The state has what is true now, also after a restart; only the message waits."""
    engine = watching(r.level(MV, 25))
    engine.apply(r.commit(20, r.register(1, OLD)))
    assert engine.apply(r.commit(30, r.level(MV, 26))).alerts == ()
    assert engine.apply(r.commit(40, r.level(MV, 27))).alerts == ()
    for _ in range(2):
        (alert,) = (
            alert
            for alerts in engine.state.firing.values()
            for alert in alerts
            if alert.rule == "incompatible-node"
        )
        assert (alert.evidence["level"], alert.at_ms) == (27, 200)
        held = engine.state.held
        assert len(held) == 2
        engine.restart()
        assert engine.state.held == held
    assert engine.apply(r.following(40, seen_ms=60_199)).alerts == ()
    result = engine.apply(r.following(40, seen_ms=60_200))
    assert {(a.rule, a.since_ms, a.at_ms) for a in result.alerts} == {
        ("incompatible-node", 200, 60_200),
        ("level-above-support", 200, 60_200),
    }
    assert "level 27" in result.alerts[-1].summary
    assert not engine.state.held


def test_a_text_that_waits_ends_with_its_alert() -> None:
    """Nothing is published after the end, and the end has the newest text."""
    engine = watching(r.level(MV, 25), r.register(1, OLD))
    engine.apply(r.commit(20, r.level(MV, 26)))
    assert engine.state.held
    ended = engine.apply(r.commit(30, r.register(1, NEW))).alerts
    assert all(a.state is AlertState.RESOLVED and "26" in a.summary for a in ended)
    assert not engine.state.held
    assert engine.apply(r.following(30, seen_ms=90_000)).alerts == ()


def test_a_log_that_went_backwards_is_one_alert() -> None:
    """It fires once while the log is read again, and is resolved when the new log is followed."""
    engine = watching(r.level(MV, 21))
    fired = engine.apply(r.gap(3, 10, reset=True, seen_ms=200)).alerts
    assert [a.rule for a in fired] == ["epoch-regression", "log-gap"]
    for last in range(1, 9):
        assert engine.apply(r.commit(last, r.level(MV, 21))).alerts == ()
    ended = engine.apply(r.following(8, seen_ms=300)).alerts
    assert [a.rule for a in ended] == ["epoch-regression", "log-gap"]
    assert {a.state for a in ended} == {AlertState.RESOLVED}
    assert engine.apply(r.commit(9, r.register(1, OLD))).alerts == ()


def test_a_log_that_went_backwards_to_a_snapshot_is_followed_too() -> None:
    """The new log begins with a snapshot that ends below the offset that was there before."""
    engine = watching(r.level(MV, 21))
    engine.apply(r.gap(0, 10, reset=True, seen_ms=200))
    assert engine.apply(r.chunk(6, 0, r.level(MV, 21), last=True)).alerts == ()
    ended = engine.apply(r.following(5, seen_ms=300)).alerts
    assert [a.rule for a in ended] == ["epoch-regression", "log-gap"]
    assert {a.state for a in ended} == {AlertState.RESOLVED}


def test_a_message_that_cannot_be_read() -> None:
    """The message is counted and fires an alert; processing continues."""
    engine = watching(r.level(MV, 21))
    where = "topic t partition 0 offset 9"
    outcome = step_unreadable(engine.state, where, "not JSON", MessagePosition("t", 9, 700))
    (alert,) = outcome.alerts
    assert alert.subject == {"record": "MESSAGE"}
    assert "topic t partition 0 offset 9" in alert.summary
    second = step_unreadable(outcome.state, where, "not JSON", MessagePosition("t", 10, 60_800))
    assert second.alerts[0].evidence["count"] == 2
    again = MessagePosition("t", 10, 60_800)
    assert step_unreadable(second.state, where, "not JSON", again).alerts == ()
    assert step(second.state, r.commit(11, r.level(MV, 22))).changes[0].after == 22


def test_disagreement_and_agreement() -> None:
    """Nodes with different levels are named until they agree."""
    engine = watching(r.level(MV, 21))
    (fired,) = engine.apply(r.disagreement(MV, 2, 500)).alerts
    assert (fired.rule, fired.subject) == ("nodes-disagree", {"feature": MV})
    assert "broker-1" in fired.summary
    (ended,) = engine.apply(r.disagreement(MV, 0, 600)).alerts
    assert ended.state is AlertState.RESOLVED
