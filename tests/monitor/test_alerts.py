"""From findings to alerts: which fire, continue and are resolved, and their texts."""

import pytest

from featurewatch.monitor.step import step, step_unreadable
from featurewatch.streams.events import SourceState
from featurewatch.streams.outputs import AlertState, Severity
from featurewatch.tables.image.sources import MessagePosition
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW, OLD, TV


def watching(*records: object) -> Engine:
    """An engine that has caught up with these records."""
    engine = Engine()
    engine.apply_all([r.commit(10, *records), r.following(10)])  # type: ignore[arg-type]
    return engine


def test_an_alert_begins_continues_and_ends() -> None:
    """The alert keeps its start; an unchanged finding publishes nothing (F-33, M-42)."""
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
    """The alert fires at once, and is resolved when the source follows again."""
    engine = watching(r.level(MV, 21))
    fired = engine.apply(r.status(SourceState.STALLED, 10, seen_ms=500)).alerts
    assert [(a.rule, a.subject) for a in fired] == [("source-stalled", {"source": "kraft"})]
    (ended,) = engine.apply(r.following(10, seen_ms=900)).alerts
    assert (ended.state, ended.since_ms) == (AlertState.RESOLVED, 500)


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
    second = step_unreadable(outcome.state, where, "not JSON", MessagePosition("t", 10, 800))
    assert second.alerts[0].evidence["count"] == 2
    assert (
        step_unreadable(second.state, where, "not JSON", MessagePosition("t", 10, 800)).alerts == ()
    )
    assert step(second.state, r.commit(11, r.level(MV, 22))).changes[0].after == 22


def test_disagreement_and_agreement() -> None:
    """Nodes with different levels are named until they agree."""
    engine = watching(r.level(MV, 21))
    (fired,) = engine.apply(r.disagreement(MV, 2, 500)).alerts
    assert (fired.rule, fired.subject) == ("nodes-disagree", {"feature": MV})
    assert "broker-1" in fired.summary
    (ended,) = engine.apply(r.disagreement(MV, 0, 600)).alerts
    assert ended.state is AlertState.RESOLVED
