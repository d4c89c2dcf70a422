"""One cluster has a bounded number of alerts, whatever its log says."""

from collections import Counter
from typing import Any

import pytest

from featurewatch.monitor.alert_budget import CAPACITY, MESSAGE_MS, NOTHING_SPENT
from featurewatch.monitor.rows import rows_of_state, states_of_rows
from featurewatch.monitor.rules import MAX_ALERTS, ROOM_AT
from featurewatch.monitor.snapshot import snapshot
from featurewatch.streams.events import SourceState
from featurewatch.streams.outputs import AlertState
from featurewatch.tables.image.limits import MAX_CLASSES, MAX_FEATURES, MAX_NODES
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW


def watching(*records: Any) -> Engine:
    """An engine that has caught up with these records."""
    engine = Engine()
    engine.apply_all([r.commit(10, *records), r.following(10)])
    return engine


def firing(engine: Engine) -> Counter[str]:
    """The firing alerts by rule."""
    return Counter(a.rule for alerts in engine.state.firing.values() for a in alerts)


def levels(count: int) -> list[Any]:
    """So many features are finalized, which no node has."""
    return [r.level(f"odd.{number:04}", 1) for number in range(count)]


def test_a_node_has_a_bounded_number_of_alerts() -> None:
    """Features beyond the limit are collected in one alert for each rule and node."""
    ranges = {f"broken.{number}": (9, 3) for number in range(60)}
    engine = watching(*levels(50), r.register(1, {**NEW, **ranges}))
    assert firing(engine) == {
        "missing-feature": 21,
        "invalid-range": 21,
        "level-above-support": 50,
    }
    alerts = [a for items in engine.state.firing.values() for a in items]
    (collecting,) = (a for a in alerts if a.id.endswith("/missing-feature/node/broker-1"))
    assert "at least 20 further features" in collecting.summary
    assert collecting.evidence == {"count": 20}
    engine.apply(r.commit(20, *(r.level(f"odd.{number:04}", 0) for number in range(45))))
    assert firing(engine)["missing-feature"] == 5


@pytest.mark.form("released")
def test_nodes_and_features_do_not_multiply() -> None:
    """Alerts of 300 nodes and all features are limited, with one that says so (F-33 as released).

    The same holds in a second message, and after a restart from the rows.
    """
    nodes = [r.register(number, NEW) for number in range(300)]
    engine = watching(*levels(MAX_FEATURES), *nodes)
    counts = firing(engine)
    assert counts.total() == MAX_ALERTS + 1
    assert counts["alerts-left-out"] == 1
    assert counts["level-above-support"] == MAX_FEATURES  # the features come first: they say most
    (state,) = states_of_rows(rows_of_state(engine.state).items()).values()
    assert state.firing == engine.state.firing
    more = engine.apply(r.commit(20, r.level("odd.0000", 2), r.register(300, NEW)))
    assert firing(engine).total() == MAX_ALERTS + 1
    assert len(more.alerts) < 3 * MAX_ALERTS


def test_alerts_that_were_left_out_fire_when_there_is_room() -> None:
    """Nothing is lost: what was left out is evaluated once enough has ended."""
    bad = {MV: (1, 7)}
    nodes = MAX_ALERTS + 100
    engine = watching(r.level(MV, 25), *(r.register(number, bad) for number in range(nodes)))
    assert firing(engine)["incompatible-node"] == MAX_ALERTS - 1  # the feature has one, too
    ending = MAX_ALERTS - ROOM_AT
    still = engine.apply(r.commit(20, *(r.register(number, NEW) for number in range(ending - 1))))
    assert not [a for a in still.alerts if a.state is AlertState.FIRING and a.since_ms == 200]
    assert firing(engine).total() == ROOM_AT + 2
    engine.apply(r.commit(30, r.register(ending - 1, NEW)))
    assert firing(engine).total() == MAX_ALERTS + 1
    rest = range(ending, nodes - 400)
    ended = engine.apply(r.commit(40, *(r.register(number, NEW) for number in rest)))
    (end,) = (a for a in ended.alerts if a.rule == "alerts-left-out")
    assert end.state is AlertState.RESOLVED
    assert firing(engine) == {"incompatible-node": 400, "level-above-support": 1}
    engine.apply(r.commit(50, *(r.register(number, NEW) for number in range(nodes))))
    assert not firing(engine)


def test_an_alert_that_ends_as_room_is_made_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is evaluated twice at one event, and what both changed of it is published."""
    monkeypatch.setattr("featurewatch.monitor.alerts.MAX_ALERTS", 10)
    monkeypatch.setattr("featurewatch.monitor.alerts.ROOM_AT", 6)
    engine = watching(*levels(3), r.register(5, NEW), r.register(6, NEW))
    began = engine.apply(r.commit(20, r.register(1, NEW)))
    (left,) = (a.id for a in began.alerts if a.subject.get("node") == 1)
    changed = engine.apply(r.commit(30, r.level("odd.0000", 0)))
    of_node = {a.id: a.state for a in changed.alerts if a.subject.get("node") == 1}
    assert of_node.pop(left) is AlertState.RESOLVED
    assert [*of_node.values()] == [AlertState.FIRING] * 2
    assert "alerts-left-out" not in firing(engine)


@pytest.mark.form("released")
def test_a_cluster_publishes_a_bounded_number_of_alerts_in_a_time() -> None:
    """Alerts that begin, change or end at each event leave other clusters their turn
    (F-33 as released).

    Every reader, such as a webhook that is called for one alert after the other, has the bound of
    it. When it is over, what is due fires.
    """
    nodes, seconds = 400, 60
    engine = watching(r.level(MV, 25), *(r.register(number, NEW) for number in range(nodes)))
    published = 0
    for number in range(seconds):
        ranges = {MV: (1, 7)} if number % 2 else NEW
        kind = range(nodes) if number % 4 < 2 else range(0, nodes, 2)
        flap = (r.register(node, ranges, fenced=number % 8 < 4) for node in kind)
        published += len(engine.apply(r.commit(1000 + 100 * number, *flap)).alerts)
    assert CAPACITY < published <= 2 * (CAPACITY + seconds) + 2
    assert firing(engine)["alerts-left-out"] == 1
    (state,) = states_of_rows(rows_of_state(engine.state).items()).values()
    assert state.budget == engine.state.budget
    bad = (r.register(node, {MV: (1, 7)}) for node in range(nodes))
    engine.apply(r.commit(10_000, *bad))
    assert firing(engine)["incompatible-node"] < nodes
    engine.apply(r.following(10_000, seen_ms=100_000 + nodes * MESSAGE_MS))
    assert firing(engine)["incompatible-node"] == nodes
    assert "alerts-left-out" not in firing(engine)


def test_a_source_that_stalls_fires_beside_a_flood() -> None:
    """The bound is for nodes, features and znodes: other alerts of the cluster still fire."""
    nodes = [r.register(number, NEW) for number in range(100)]
    engine = watching(*levels(MAX_FEATURES), *nodes)
    for seen_ms in (1000, 5000):
        engine.apply(r.status(SourceState.STALLED, seen_ms=seen_ms))
    assert firing(engine)["source-stalled"] == 1


def test_what_an_image_holds_is_bounded() -> None:
    """Nodes, classes of nodes and levels beyond the limits are unreadable records."""
    ranges = {f"f{number}": (0, 1) for number in range(MAX_FEATURES + 1)}
    engine = watching(*levels(MAX_FEATURES + 5), r.register(1, ranges))
    image = engine.state.image
    assert len(image.features.levels) == MAX_FEATURES
    assert image.sources.unreadable["FEATURE_LEVEL_RECORD"].count == 5
    assert len(image.nodes) == 0
    many = [r.register(n, {MV: (1, 2 + n)}) for n in range(MAX_CLASSES + 5)]
    engine = watching(*many)
    image = engine.state.image
    assert len(image.nodes.classes) == MAX_CLASSES
    assert image.sources.unreadable["REGISTER_BROKER_RECORD"].count == 5
    assert "different ones" in image.sources.unreadable["REGISTER_BROKER_RECORD"].reason
    engine = watching(*(r.register(n, NEW) for n in range(MAX_NODES + 5)))
    assert len(engine.state.image.nodes) == MAX_NODES
    # A registration of a known node is accepted, and so is another one after a node left.
    known, new = r.register(1, NEW, epoch=9), r.register(MAX_NODES, NEW)
    engine.apply(r.commit(20, known, r.unregister(2), new))
    assert len(engine.state.image.nodes) == MAX_NODES
    assert engine.state.image.sources.unreadable["REGISTER_BROKER_RECORD"].count == 5


def test_a_response_beyond_the_limits_is_unreadable() -> None:
    """A response of a node with too many features changes nothing but the count of what is odd."""
    engine = Engine()
    engine.apply(r.following(0, source="api-versions", seen_ms=1))
    ranges = {f"f{number}": (0, 1) for number in range(MAX_FEATURES + 1)}
    engine.apply(r.answer(1, ranges, {MV: 25}, 5, 10))
    assert (len(engine.state.image.nodes), len(engine.state.image.features.levels)) == (0, 0)
    assert engine.state.image.sources.unreadable["ANSWER"].location == "broker-1"
    engine.apply(r.answer(1, NEW, {MV: 25}, 6, 20))
    assert len(engine.state.image.nodes) == 1


def test_a_snapshot_has_a_bounded_list_of_incompatible_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list ends at the limit: the first nodes by role and id, with their levels."""
    monkeypatch.setattr("featurewatch.monitor.snapshot.MAX_INCOMPATIBLE", 7)
    engine = watching(*levels(3), *(r.register(number, NEW) for number in (9, 4, 1, 7)))
    items = snapshot(engine.state.image, 0).incompatible
    assert [item.node_id for item in items] == [1, 1, 1, 4, 4, 4, 7]


def test_a_topic_that_is_behind_spends_what_is_left() -> None:
    """Its times are those of an hour ago: they do not count as a budget that is used up."""
    budget = NOTHING_SPENT.spend(10, 3_600_000)
    assert budget.left(0) == budget.left(3_600_000) == CAPACITY - 10
    budget = budget.spend(5, 0)
    assert budget.left(3_600_000) == CAPACITY - 15
    assert budget.left(3_600_000 + 15 * MESSAGE_MS) == CAPACITY
