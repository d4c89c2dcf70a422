"""Alerts about states that lasted too long, by the time of events, and equal after any crash."""

from collections.abc import Iterable

import orjson
from jsonschema_rs import Draft202012Validator

from featurewatch.monitor.readiness.state_timers import CLUSTER, Limits
from featurewatch.monitor.readiness.upgrade_state import UpgradeState
from featurewatch.monitor.rules import RULES
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.codec.outputs import encode_output
from featurewatch.streams.events import Event
from featurewatch.streams.outputs import Alert, AlertState, Severity
from featurewatch.streams.schemas import schema_of
from featurewatch.streams.topics import ALERTS
from featurewatch.streams.types import Role
from tests.monitor.readiness.clusters import cluster, controllers, nodes, ranges
from tests.simulation import records as r
from tests.simulation import znodes as z
from tests.simulation.engine import Engine
from tests.simulation.records import KV, MV, TV

HOUR, DAY = 3_600_000, 86_400_000
CONTROLLERS = controllers(*["4.3"] * 3)


def watching(*events: Event) -> Engine:
    """An engine that has applied these records."""
    engine = Engine()
    engine.apply_all(events)
    return engine


def firing(engine: Engine) -> dict[str, Alert]:
    """The firing alerts, by the tail of the id."""
    alerts = (alert for alerts in engine.state.firing.values() for alert in alerts)
    return {alert.id.partition("/")[2]: alert for alert in alerts}


def beat(engine: Engine, at_ms: int) -> list[tuple[str, AlertState]]:
    """The rules that publish at a heartbeat of this time."""
    alerts = engine.apply(r.following(90, seen_ms=at_ms)).alerts
    return [(alert.rule, alert.state) for alert in alerts]


def test_a_normal_roll_fires_no_alert() -> None:
    """Nodes of two releases, fenced in turn, for less than the limits."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("3.9", "3.9", "3.9"), level=21))
    for node in (1, 2, 3):
        at = 100 * node
        engine.apply(r.commit(at, r.fence(node)))
        assert beat(engine, at * 10 + HOUR // 2) == []
        engine.apply(r.commit(at + 1, r.register(node, ranges("4.3"), epoch=at)))
        engine.apply(r.commit(at + 2, r.unfence(node)))
    assert firing(engine) == {}
    assert engine.state.times.states[CLUSTER].state is UpgradeState.READY


def test_a_fenced_broker_becomes_a_ghost() -> None:
    """A broker fenced for an hour fires it; its return or its unregistration resolves it."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3", "3.9"), level=21))
    engine.apply(r.commit(100, r.fence(2)))
    assert beat(engine, 1000 + HOUR - 1) == []
    assert beat(engine, 1000 + HOUR) == [("ghost-registration", AlertState.FIRING)]
    (alert,) = firing(engine).values()
    assert alert.subject == {"role": "broker", "node": 2}
    assert "on Kafka 3.9 is registered but has been fenced for more than 1 hour" in alert.summary
    assert "--id 2" in alert.summary
    assert beat(engine, 1000 + 2 * HOUR) == []
    ended = engine.apply(r.commit(110, r.unregister(2))).alerts
    assert [(alert.rule, alert.state) for alert in ended] == [
        ("ghost-registration", AlertState.RESOLVED)
    ]
    assert dict(engine.state.times.offline) == {}


def test_a_restarted_process_gets_the_whole_limit_again() -> None:
    """A process that was restarted and is fenced has another hour."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3"), level=21))
    engine.apply(r.commit(100, r.fence(1)))
    engine.apply(r.commit(200, r.register(1, ranges("4.3"), epoch=200)))
    assert beat(engine, 1000 + HOUR) == []
    assert beat(engine, 2000 + HOUR) == [("ghost-registration", AlertState.FIRING)]
    engine.apply(r.answer(1, ranges("4.3"), {}, 9, 3000 + HOUR))
    assert firing(engine) == {}, "it answers: it is no ghost"


def test_a_controller_that_is_no_voter() -> None:
    """Such a node counts for every level; as a voter, or with a response, it is alive."""
    gone = r.register_controller(9, ranges("3.7"))
    engine = watching(*cluster(*CONTROLLERS, gone, *nodes("4.3"), level=19))
    beat(engine, 500 + HOUR)
    (alert,) = firing(engine).values()
    assert "controller 9 on Kafka 3.7 is registered but has not been a voter" in alert.summary
    engine.apply(r.commit(120, r.leader_change(1, (1, 2, 3, 9)), epoch=2))
    assert firing(engine) == {}
    engine.apply(r.answer(9, ranges("3.7"), {}, 9, 2 * HOUR, role=Role.CONTROLLER))
    engine.apply(r.silent(9, 2 * HOUR + 1, role=Role.CONTROLLER))
    assert beat(engine, 3 * HOUR + 1) == [("ghost-registration", AlertState.FIRING)]
    assert "has not answered" in next(iter(firing(engine).values())).summary


def test_a_ghost_controller_that_blocks_the_level_which_would_remove_it() -> None:
    """The alert names the way out, step by step, and ends with UnregisterControllerRecord."""
    living = [r.register_controller(voter, ranges("4.4")) for voter in (1, 2, 3)]
    gone = r.register_controller(9, ranges("4.3"))
    engine = watching(*cluster(*living, gone, *nodes("4.4"), level=30))
    beat(engine, 500 + HOUR)
    (alert,) = firing(engine).values()
    steps = [
        "only from metadata.version 33 (4.4-IV2) on, and this one blocks that level",
        "(1) start a controller with node.id 9 on Kafka 4.4, in an empty directory",
        "(2) finalize metadata.version 33",
        "(3) stop it",
        "(4) featurewatch cluster unregister-controller --bootstrap-server HOST:PORT --id 9",
    ]
    places = [alert.summary.find(step) for step in steps]
    assert -1 not in places, alert.summary
    assert places == sorted(places)
    engine.apply(r.commit(120, r.unregister_controller(9)))
    assert firing(engine) == {}


def test_a_ghost_controller_that_can_be_unregistered() -> None:
    """From metadata.version 33 on the alert names one command, and below it if the ghost supports
    33, the level that comes first; a voter is started again."""
    living = [r.register_controller(voter, ranges("4.4")) for voter in (1, 2, 3)]
    gone = r.register_controller(9, ranges("4.4"))
    command = "featurewatch cluster unregister-controller --bootstrap-server HOST:PORT --id 9"
    for level, advice in (
        (33, f"if it was decommissioned: {command}"),
        (31, f"only from metadata.version 33 (4.4-IV2) on; finalize that, then: {command}"),
    ):
        engine = watching(*cluster(*living, gone, *nodes("4.4"), level=level))
        beat(engine, 500 + HOUR)
        ghost = firing(engine)["ghost-registration/node/controller-9"]
        assert ghost.summary.endswith(f"{advice}.")
    engine.apply(r.commit(120, r.leader_change(1, (1, 2, 3, 9)), epoch=2))
    engine.apply(r.answer(9, ranges("4.4"), {}, 9, 2 * HOUR, role=Role.CONTROLLER))
    engine.apply(r.silent(9, 2 * HOUR + 1, role=Role.CONTROLLER))
    beat(engine, 3 * HOUR + 1)
    voter = firing(engine)["ghost-registration/node/controller-9"]
    assert voter.summary.endswith("it is a voter, so start it again before the next upgrade.")


def test_a_forgotten_finalization() -> None:
    """All nodes support more for a day; evaluated with each event, published once."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3"), level=21))
    assert beat(engine, 500 + DAY - 1) == []
    assert beat(engine, 500 + DAY) == [("finalization-forgotten", AlertState.FIRING)]
    (alert,) = firing(engine).values()
    assert (alert.severity, alert.subject) == (Severity.WARNING, {"feature": MV})
    assert "30 (4.3-IV0) for more than 24 hours, but 21 (3.9-IV0) is finalized" in alert.summary
    assert beat(engine, 500 + 2 * DAY) == []
    ended = engine.apply(r.commit(200, r.level(MV, 30))).alerts
    assert [alert.state for alert in ended] == [AlertState.RESOLVED]


def test_a_partial_finalization() -> None:
    """metadata.version of a release, and other features below its defaults; kraft.version is
    excluded."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3"), level=30))
    engine.apply(r.commit(60, r.level("group.version", 1), r.level("share.version", 1)))
    assert beat(engine, 500 + DAY) == [("finalization-partial", AlertState.FIRING)]
    (alert,) = firing(engine).values()
    assert alert.evidence == {
        "behind": {"eligible.leader.replicas.version": 1, "streams.version": 1, TV: 2}
    }
    rest = [r.level(name, level) for name, level in alert.evidence["behind"].items()]
    engine.apply(r.commit(300, *rest))
    assert firing(engine) == {}
    assert KV not in engine.state.image.features.levels


def test_an_upgrade_that_is_blocked() -> None:
    """Two releases for a day: the alert names the nodes that block the upgrade, in order."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3", "3.9", "3.9"), level=21))
    assert beat(engine, 500 + DAY) == [("upgrade-blocked", AlertState.FIRING)]
    (alert,) = firing(engine).values()
    assert alert.evidence["nodes"] == ["broker-2", "broker-3"]
    assert "broker 2, broker 3 hold back metadata.version 30 (4.3-IV0)" in alert.summary
    # A clock that is behind ends nothing.
    changed = engine.apply(r.commit(300, r.register(2, ranges("4.3"), epoch=9, fenced=False)))
    assert changed.alerts == ()  # the text of an alert changes once a minute
    assert beat(engine, 500 + DAY + 60_000) == [("upgrade-blocked", AlertState.FIRING)]
    (alert,) = firing(engine).values()
    assert alert.evidence["nodes"] == ["broker-3"]
    assert engine.apply(r.commit(301, r.register(8, ranges("4.3"), fenced=False))).alerts == ()


def test_a_refused_registration_is_predicted() -> None:
    """For a broker whose ranges would be refused, and not for one of an unknown release."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3"), level=30))
    engine.apply(r.answer(1, ranges("3.9"), {}, 50, 1000))
    assert beat(engine, 1000 + 59_999) == []
    assert beat(engine, 1000 + 60_000) == [("registration-refused", AlertState.FIRING)]
    (alert,) = firing(engine).values()
    assert alert.evidence["refusal"] == (
        "Unable to register because the broker does not support finalized version 30 of "
        "metadata.version. The broker wants a version between 1 and 21, inclusive."
    )
    engine.apply(r.answer(1, ranges("4.3"), {}, 50, 70_000))
    assert firing(engine) == {}
    wants = {**ranges("4.3"), TV: (1, 2)}
    engine.apply(r.commit(8000, r.register(2, wants, fenced=False)))
    beat(engine, 80_000 + 60_000)
    assert {alert.rule for alert in firing(engine).values()} == {"release-unknown"}


def test_a_controller_whose_software_does_not_know_a_level() -> None:
    """It is not refused: it exits at the record."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3"), level=30))
    engine.apply(r.answer(2, ranges("3.9"), {}, 50, 1000, role=Role.CONTROLLER))
    assert beat(engine, 61_000) == [("registration-refused", AlertState.FIRING)]
    (alert,) = firing(engine).values()
    assert "controller 2 will stop: Tried to apply FeatureLevelRecord" in alert.summary


def test_alerts_fire_once_everything_is_read() -> None:
    """A source that returns after days fires alerts for lasting states at once."""
    events = cluster(*CONTROLLERS, *nodes("4.3", "4.3"), r.fence(2), level=21)
    engine = watching(*events[:-1], r.catching_up(50, seen_ms=2 * DAY))
    assert firing(engine) == {}
    assert beat(engine, 2 * DAY + 1) == [
        ("ghost-registration", AlertState.FIRING),
        ("finalization-forgotten", AlertState.FIRING),
    ]


def test_zookeeper_mode_fires_no_ghosts() -> None:
    """Brokers disappear with their znodes, so no registration can be a ghost."""
    engine = watching(
        *z.reading("s1", (z.broker(1, {TV: (1, 2)}, 10), z.broker(2, {}, 11)), 50), z.following()
    )
    engine.apply(r.following(0, source="zookeeper", seen_ms=9 * DAY))
    assert firing(engine) == {}


def test_the_time_in_zookeeper_mode_does_not_count_after_a_migration() -> None:
    """After a migration the time in ZooKeeper mode does not count as time without finalizing."""
    engine = Engine()
    engine.apply_all([*z.reading("s1", [z.broker(1, {TV: (0, 2)}, 9)], 50), z.following()])
    assert engine.state.times.states[CLUSTER].state is UpgradeState.READY
    start = 30 * DAY
    last = start // 10  # a commit's time is ten times its offset
    event = r.commit(last, r.level(MV, 21), r.register(1, ranges("4.3"), fenced=False))
    engine.apply_all([event, r.following(last, seen_ms=start + 1)])
    assert engine.state.times.states[CLUSTER] == (UpgradeState.READY, start)
    assert not firing(engine).get("finalization-forgotten")
    assert beat(engine, start + DAY + 1) == [("finalization-forgotten", AlertState.FIRING)]


def history() -> Iterable[Event]:
    """Events with every kind of lasting state, at times beyond the limits."""
    yield from cluster(*CONTROLLERS, *nodes("4.3", "3.9", "4.3"), level=21)
    yield r.commit(60, r.fence(2), r.register_controller(9, ranges("4.3")))
    yield r.answer(3, ranges("3.6"), {}, 50, 1000)
    yield r.following(90, seen_ms=2 * HOUR)
    yield r.commit(HOUR // 2, r.register(2, ranges("4.3"), epoch=100))
    yield r.following(HOUR // 2, seen_ms=DAY // 2)
    yield r.commit(DAY // 10, r.unfence(2), r.level(MV, 30))
    yield r.following(DAY // 10, seen_ms=3 * DAY)
    yield r.commit(3 * DAY // 10 + 1, r.unregister(3))
    yield r.following(3 * DAY // 10 + 1, seen_ms=5 * DAY)


def test_a_crash_at_any_row_leads_to_the_same_alerts() -> None:
    """Killed after each number of rows of each event: the times, and so the alerts, are equal."""
    uninterrupted = watching(*history())
    rules = {id_.split("/")[1] for id_, _ in uninterrupted.published if "/firing/" in id_}
    assert rules >= {"ghost-registration", "finalization-partial", "registration-refused"}
    for at, event in enumerate(history()):
        for rows in range(4):
            engine = Engine()
            for number, event in enumerate(history()):
                if number == at:
                    engine.apply(event, rows_written=rows, offset=number)
                engine.apply(event, offset=number)
            assert engine.state.times == uninterrupted.state.times, (at, rows)
            assert {id_ for id_, _ in engine.published} == {
                id_ for id_, _ in uninterrupted.published
            }, (
                at,
                rows,
            )


def test_the_times_are_restored_from_their_rows() -> None:
    """All times are restored, deleted ones are not."""
    engine = Engine()
    for event in history():
        engine.apply(event)
        assert Engine(engine.rows).state == engine.state


def test_rows_of_a_release_without_times() -> None:
    """All nodes are checked at once: fenced ones count as away from that time on."""
    engine = watching(*cluster(*CONTROLLERS, *nodes("4.3", "4.3"), r.fence(2), level=21))
    for name in [name for name in engine.rows if "|times" in name]:
        del engine.rows[name]
    engine.restart()
    assert beat(engine, HOUR) == []
    engine.restart()
    assert beat(engine, 2 * HOUR) == [("ghost-registration", AlertState.FIRING)]


def test_limits_are_settings() -> None:
    """The limits of a worker can be configured; alert texts name them."""
    state = MonitorState.of(r.CLUSTER)
    events = [
        *cluster(*CONTROLLERS, *nodes("4.3"), level=21),
        r.following(60, seen_ms=500 + 90_000),
    ]
    for event in events:
        outcome = step(state, event, limits=Limits(upgrade_ms=90_000))
        state = outcome.state
    (alert,) = outcome.alerts
    assert "for more than 90 seconds" in alert.summary


def test_every_rule_fires_a_valid_alert() -> None:
    """Evidence matches the schema of the alerts topic."""
    engine, fired = Engine(), set()
    validator = Draft202012Validator(schema_of(ALERTS))
    blocked = [*cluster(*CONTROLLERS, *nodes("4.3", "3.9")), r.following(60, seen_ms=2 * DAY)]
    forgotten = [*cluster(*CONTROLLERS, *nodes("4.3")), r.following(60, seen_ms=2 * DAY)]
    for events in (history(), blocked, forgotten):
        engine = Engine()
        for event in events:
            for alert in engine.apply(event).alerts:
                validator.validate(orjson.loads(encode_output(alert).value or b""))
                fired.add(alert.rule)
    assert fired >= {rule.name for rule in RULES if rule.timer is not None}
