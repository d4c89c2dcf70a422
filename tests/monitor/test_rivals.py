"""Two processes that publish one source of a cluster from different addresses are noticed."""

from dataclasses import replace

from featurewatch.monitor.readiness import assess_readiness
from featurewatch.streams.events import Acknowledgement, SourceState, SourceStatus
from featurewatch.streams.outputs import AlertState
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import MV, NEW

HOUR_MS = 3_600_000


def status(number: int, addresses: str, state: SourceState = SourceState.FOLLOWING) -> SourceStatus:
    """A heartbeat of the metadata log's source in the configuration with these addresses."""
    return replace(r.status(state, 9, seen_ms=1000 * number), addresses=addresses)


def engine() -> Engine:
    """A cluster that is followed from c:9093."""
    new = Engine()
    new.apply_all(
        [r.commit(9, r.level(MV, 30), r.register(1, NEW, fenced=False)), status(1, "c:9093")]
    )
    return new


def rules(engine: Engine) -> set[str]:
    """The rules that fire."""
    return {alert.rule for alerts in engine.state.firing.values() for alert in alerts}


def test_a_changed_configuration_is_no_rival() -> None:
    """The addresses change once, and a worker's word that the source is silent has none."""
    followed = engine()
    followed.apply(status(2, "", SourceState.SILENT))
    followed.apply_all([status(3, "d:9093"), status(4, "d:9093")])
    assert rules(followed) == set()


def test_statuses_in_turns_are_those_of_rivals() -> None:
    """They are named with the addresses of both, and the state is doubted; the alert is published
    once, ends by acknowledgement, and an hour after the last such status."""
    followed = engine()
    fired = [
        alert
        for number in range(2, 9)
        for alert in followed.apply(
            status(number, "d:9093" if number % 2 else "evil:9093"), offset=number
        ).alerts
    ]
    assert [(alert.rule, alert.state) for alert in fired] == [("source-rivals", AlertState.FIRING)]
    assert "kraft" in fired[0].summary
    assert "c:9093 and evil:9093" in fired[0].summary
    report = assess_readiness(followed.state.image)
    assert any("the state may be that of two clusters" in reason for reason in report.reasons)
    (alert,) = (alert for alerts in followed.state.firing.values() for alert in alerts)
    acknowledged = Engine(followed.rows)
    acknowledged.apply(Acknowledgement(r.CLUSTER, alert.id, "me", "it was moved", 9_000))
    assert rules(acknowledged) == set()
    state = status(10, "d:9093")
    followed.apply(replace(state, seen_ms=8_000 + HOUR_MS), offset=20)
    followed.apply(replace(state, seen_ms=9_000 + 2 * HOUR_MS), offset=21)
    assert rules(followed) == set()
