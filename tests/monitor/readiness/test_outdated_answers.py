"""The last report of a source that ended does not hide what another source reports."""

from typing import Final

import pytest

from featurewatch.streams.events import SourceState
from featurewatch.streams.types import Role
from tests.monitor.readiness.clusters import cluster, controllers, nodes, ranges
from tests.simulation import records as r
from tests.simulation.engine import Engine

HOUR: Final = 3_600_000
GHOST: Final = "ghost-registration/node/broker-2"


def firing(engine: Engine) -> set[str]:
    """The firing alerts, by the tail of the id."""
    alerts = (alert for alerts in engine.state.firing.values() for alert in alerts)
    return {alert.id.partition("/")[2] for alert in alerts}


def polled() -> Engine:
    """A cluster of which the log is followed and every node polled."""
    engine = Engine()
    engine.apply_all(cluster(*controllers("4.3", "4.3", "4.3"), *nodes("4.3", "4.3")))
    for node in (1, 2):
        engine.apply(r.commit(50 + node, r.unfence(node)))
        engine.apply(r.answer(node, ranges("4.3"), {}, 50, seen_ms=1))
    engine.apply(r.following(source="api-versions", seen_ms=2))
    return engine


@pytest.mark.parametrize("state", [SourceState.SILENT, SourceState.STALLED])
def test_a_response_of_a_source_that_ended_hides_no_ghost(state: SourceState) -> None:
    """The broker responded once; then the source was taken away, and the broker died."""
    engine = polled()
    engine.apply(r.status(state, 0, source="api-versions", seen_ms=1000))
    engine.apply(r.commit(60, r.fence(2)))
    engine.apply(r.following(60, seen_ms=1000 + 2 * HOUR))
    assert GHOST in firing(engine)


def test_a_response_ages_after_the_broker_died() -> None:
    """The broker was fenced while it was still polled: its time counts from the source's end."""
    engine = polled()
    engine.apply(r.commit(60, r.fence(2)))
    engine.apply(r.following(60, seen_ms=2 * HOUR))
    assert GHOST not in firing(engine)
    engine.apply(r.status(SourceState.SILENT, 0, source="api-versions", seen_ms=2 * HOUR))
    engine.apply(r.following(60, seen_ms=3 * HOUR - 1))
    assert GHOST not in firing(engine)
    engine.apply(r.following(60, seen_ms=3 * HOUR))
    assert GHOST in firing(engine)
    # When the source reports again and the broker responds, it is no ghost.
    engine.apply(r.following(source="api-versions", seen_ms=3 * HOUR + 1))
    assert GHOST not in firing(engine)


def test_an_alert_about_a_silent_node_does_not_end_with_the_source() -> None:
    """That nobody polls the node any more does not make it healthy."""
    engine = polled()
    engine.apply(r.commit(60, r.fence(2)))
    engine.apply(r.silent(2, seen_ms=1000, role=Role.BROKER))
    engine.apply(r.following(60, seen_ms=2 * HOUR))
    assert GHOST in firing(engine)
    engine.apply(r.status(SourceState.SILENT, 0, source="api-versions", seen_ms=2 * HOUR))
    engine.apply(r.following(60, seen_ms=2 * HOUR + 1))
    assert GHOST in firing(engine)
