"""A retired source is removed, together with what only that source published."""

from featurewatch.monitor.step import MonitorState, step, step_unreadable
from featurewatch.streams.events import Event, SourceState
from featurewatch.streams.outputs import AlertState
from featurewatch.tables.image.cluster import Authority
from featurewatch.tables.image.sources import MessagePosition
from featurewatch.tables.rows import row_key
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.engine import Engine


def after(*events: Event) -> MonitorState:
    """The state after some events of one cluster."""
    state = MonitorState.of(r.CLUSTER)
    for event in events:
        state = step(state, event).state
    return state


def retired(source: str) -> Event:
    """An operator's retirement of a source."""
    return r.status(SourceState.RETIRED, -1, source=source, seen_ms=99)


MOVED: tuple[Event, ...] = (
    *z.reading("s1", [z.broker(1, {}, czxid=10), z.migration(3000)], 50),
    z.following(),
    r.commit(3, r.level("metadata.version", 21)),
    r.following(3),
    z.status(SourceState.SILENT, 50),
)
"""A cluster that has come from ZooKeeper, which was switched off then."""


def test_the_znodes_of_a_retired_source_are_removed() -> None:
    """The znodes of a ZooKeeper that was shut down after a migration are removed."""
    before = after(*MOVED)
    assert len(before.image.zookeeper.nodes) == 1
    assert {alert.rule for alerts in before.firing.values() for alert in alerts} >= {
        "source-stalled"
    }
    outcome = step(before, retired("zookeeper"))
    image = outcome.state.image
    assert set(image.sources.statuses) == {"kraft"}
    assert (len(image.zookeeper.nodes), dict(image.zookeeper.znodes)) == (0, {})
    assert list(outcome.delta.zookeeper.nodes.values()) == [None]
    assert image.ready
    assert not outcome.state.firing


def test_the_state_of_a_retired_authority_stays() -> None:
    """The log's nodes and levels stay, but the image is not ready any more."""
    image = after(*MOVED, retired("kraft")).image
    assert image.authority is Authority.LOG
    assert dict(image.features.levels) == {"metadata.version": 21}
    assert not image.ready


def test_a_retired_source_may_publish_again() -> None:
    """A retired source may publish again."""
    image = after(*MOVED, retired("zookeeper"), z.following(100)).image
    assert set(image.sources.statuses) == {"kraft", "zookeeper"}


def test_retiring_an_unknown_source_changes_nothing() -> None:
    """An unknown source changes nothing."""
    assert step(after(*MOVED, retired("zookeeper")), retired("zookeeper")).delta.skipped


FORGOTTEN: tuple[Event, ...] = (retired("zookeeper"), retired("kraft"))
"""The retirement of every source of that cluster."""


def excluding() -> Engine:
    """A cluster with two sources, a node that a level excludes, and an alert about it."""
    engine = Engine()
    old_node = r.register(7, {"metadata.version": (1, 19)}, fenced=False)
    engine.apply_all([*MOVED, r.commit(4, old_node), r.following(4)])
    return engine


def test_a_cluster_without_a_source_is_forgotten() -> None:
    """All alerts resolve, no level counts as changed, and no row but the cluster's own remains."""
    engine = excluding()
    firing = {alert.id for alerts in engine.state.firing.values() for alert in alerts}
    assert any("incompatible-node" in alert_id for alert_id in firing)
    resolved: set[str] = set()
    for event in FORGOTTEN:
        result = engine.apply(event, offset=engine.end)
        engine.end += 1
        assert {alert.state for alert in result.alerts} <= {AlertState.RESOLVED}
        resolved |= {alert.id for alert in result.alerts}
        assert (result.changes, result.snapshot) == ((), None)
    assert resolved == firing
    assert [*engine.rows] == [row_key(r.CLUSTER, "cluster")]
    engine.restart()
    assert engine.state.image.forgotten
    assert engine.state == MonitorState(engine.state.image)


def test_forgetting_survives_a_crash_between_any_two_rows() -> None:
    """Whatever rows were written, the message is applied again and the same rows remain."""
    whole = excluding()
    whole.apply_all(FORGOTTEN)
    for rows_written in range(10):
        engine = excluding()
        engine.apply_all(FORGOTTEN[:1])
        engine.apply(FORGOTTEN[1], rows_written, offset=engine.end)
        engine.apply(FORGOTTEN[1], offset=engine.end)
        assert engine.rows == whole.rows
        assert engine.state.image.forgotten


def test_a_forgotten_cluster_stays_forgotten() -> None:
    """Messages that come again, another retirement and a late status of silence change nothing."""
    engine = excluding()
    engine.apply_all(FORGOTTEN)
    forgotten = engine.state
    engine.apply_all(MOVED, first=0)
    engine.apply_all([FORGOTTEN[1], r.status(SourceState.SILENT, 100)])
    assert engine.state == forgotten


def test_a_forgotten_cluster_that_returns_starts_empty() -> None:
    """It has only what came since, and no id is used again."""
    engine = excluding()
    before = {event_id for event_id, _ in engine.published}
    engine.apply_all(FORGOTTEN)
    published = len(engine.published)
    engine.apply_all([r.commit(3, r.level("metadata.version", 20)), r.following(3)])
    image = engine.state.image
    assert (dict(image.features.levels), len(image.nodes)) == ({"metadata.version": 20}, 0)
    assert image.ready
    assert not engine.state.firing
    after = {event_id for event_id, _ in engine.published[published:]}
    assert after
    assert not before & after


def test_a_cluster_that_never_had_a_source_can_be_forgotten() -> None:
    """One that is only known by a message that nobody can read; an unknown one stays unknown."""
    position = MessagePosition("metadata-log", 0, 0)
    unreadable = step_unreadable(MonitorState.of(r.CLUSTER), "place", "reason", position).state
    assert unreadable.firing
    result = step(unreadable, retired("kraft"))
    assert result.state.image.forgotten
    assert [alert.state for alert in result.alerts] == [AlertState.RESOLVED]
    assert step(MonitorState.of(r.CLUSTER), retired("kraft")).delta.skipped
