"""Brokers whose registration lacks features, as older controllers made it (KAFKA-17492)."""

from collections.abc import Mapping

import pytest

from featurewatch.controller.kraft import release_of
from featurewatch.monitor.readiness import assess_readiness
from featurewatch.streams.types import FeatureName, Role
from tests.monitor.readiness.clusters import cluster, controllers, image, nodes, ranges
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import GV

TARGET = release_of("4.1")


def left_out(release: str) -> Mapping[FeatureName, tuple[int, int]]:
    """The ranges of a release in BrokerRegistrationRequest v3: none with a minimum of 0."""
    return {name: bounds for name, bounds in ranges(release).items() if bounds[0] > 0}


def test_a_broker_of_the_new_release_is_restarted_once_more() -> None:
    """In a roll from 3.7 to 4.1 brokers that came before the controllers are registered without
    group.version. To start them on 4.1, which they run, is no remedy."""
    before = image(
        *controllers("4.1", "4.1", "4.1"),
        r.register(1, left_out("4.1"), fenced=False),
        *nodes("4.1", "4.1")[1:],
        level=19,
    )
    report = assess_readiness(before, TARGET, now_ms=10_000)
    (blocker,) = report.blockers
    assert (blocker.role, blocker.node_id, blocker.software) == (Role.BROKER, 1, "4.1")
    assert blocker.remedy.startswith("restart it once more, now that the controllers are upgraded")


def test_the_controllers_come_first() -> None:
    """While they are older, another restart would leave the features out again."""
    before = image(
        *controllers("3.7", "3.7", "3.7"), r.register(1, left_out("4.1"), fenced=False), level=19
    )
    remedies: dict[tuple[Role, int], str] = {
        (blocker.role, blocker.node_id): blocker.remedy
        for blocker in assess_readiness(before, TARGET, now_ms=10_000).blockers
    }
    assert remedies[Role.BROKER, 1].startswith(
        "upgrade the controllers to Kafka 3.9 or newer, then restart it once more"
    )
    assert remedies[Role.CONTROLLER, 1].startswith("start it on Kafka 4.1")


def test_an_old_broker_needs_new_software() -> None:
    """Its software lacks the level itself."""
    before = image(
        *controllers("4.1", "4.1", "4.1"),
        r.register(1, left_out("3.7"), fenced=False),
        level=19,
    )
    (blocker,) = assess_readiness(before, TARGET, now_ms=10_000).blockers
    assert blocker.remedy.startswith("start it on Kafka 4.1")


@pytest.mark.parametrize(
    ("registered", "remedy"),
    [(left_out("4.1"), "restart it once more"), (left_out("3.7"), "start it on a ")],
)
def test_alerts_have_the_same_remedy(
    registered: Mapping[FeatureName, tuple[int, int]], remedy: str
) -> None:
    """Where the level is finalized all the same."""
    engine = Engine()
    brokers = [r.register(1, registered, fenced=False)]
    engine.apply_all(cluster(*controllers("4.1", "4.1", "4.1"), *brokers, level=19))
    alerts = engine.apply(r.commit(60, r.level(GV, 1))).alerts
    assert {alert.rule for alert in alerts} == {"missing-feature", "level-above-support"}
    assert all(f": {remedy}" in alert.summary for alert in alerts)
