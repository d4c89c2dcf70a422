"""The timers updated with each event, compared with those computed from the image alone."""

from random import Random

import pytest

from featurewatch.monitor.readiness.refusals import is_restart_refused
from featurewatch.monitor.readiness.state_timers import CLUSTER, is_offline
from featurewatch.monitor.readiness.upgrade_state import upgrade_state_of
from tests.simulation.engine import Engine
from tests.simulation.world import World


@pytest.mark.parametrize("seed", range(25))
def test_the_persisted_times_equal_those_computed_again(seed: int) -> None:
    """After each event the states, absences and refusals equal those computed from scratch."""
    engine = Engine()
    for event in World(Random(seed)).history(steps=60):
        if engine.apply(event).delta.skipped:
            continue
        image, times = engine.state.image, engine.state.times
        upgrade = upgrade_state_of(image)
        expected = {name: feature.state for name, feature in upgrade.features.items()}
        assert {name: since.state for name, since in times.states.items()} == {
            **expected,
            CLUSTER: upgrade.state,
        }, event
        keys = {*image.nodes.nodes, *image.answers.nodes.nodes}
        assert {*times.offline} == {key for key in keys if is_offline(image, key)}, event
        assert {*times.refused} == {key for key in keys if is_restart_refused(image, key)}, event
