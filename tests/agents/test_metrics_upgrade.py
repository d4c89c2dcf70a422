"""What a scrape shows of an upgrade, and what it does not show of ten thousand nodes."""

from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from featurewatch.agents.metrics import WorkerMetrics
from featurewatch.controller.monitor import MonitorState
from featurewatch.streams.types import ClusterId
from tests.controller.readiness.clusters import cluster, controllers, nodes, ranges
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import CLUSTER, MV, TV

HOUR = 3_600_000
Labels = tuple[tuple[str, str], ...]


def shown(state: MonitorState, node_series: int = 200) -> dict[str, dict[Labels, float]]:
    """Each metric's values by their labels but for the cluster."""
    meters = WorkerMetrics(node_series)
    meters.expose({ClusterId(CLUSTER): state})
    text = generate_latest(meters.registry).decode()
    return {
        family.name.removeprefix("featurewatch_"): {
            tuple(sorted((k, v) for k, v in sample.labels.items() if k != "cluster")): sample.value
            for sample in family.samples
        }
        for family in text_string_to_metric_families(text)
    }


def rolling() -> Engine:
    """Three brokers, one of them old and long gone."""
    engine = Engine()
    gone = [r.register(7, ranges("3.9"), epoch=7)]
    engine.apply_all(cluster(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3"), *gone))
    engine.apply(r.following(90, seen_ms=2 * HOUR))
    return engine


def test_what_an_upgrade_shows() -> None:
    """State and its time, blockers, ghosts, releases and ranges; dots stay, off is 0."""
    found = shown(rolling().state)
    feature = (("feature", MV),)
    assert found["upgrade_state"][("state", "mixed"),] == 1
    assert sum(found["upgrade_state"].values()) == 1
    assert found["upgrade_state_since_seconds"][()] == 0.5
    assert (found["upgrade_ready"][feature], found["upgrade_blockers"][feature]) == (0, 1)
    assert found["ghost_registrations"] == {(("role", "broker"),): 1, (("role", "controller"),): 0}
    assert found["finalized_level"][("feature", TV),] == 0
    assert found["release_nodes"][(("release", "3.9"), ("role", "broker"))] == 1
    assert found["supported_max_level"][(*feature, ("role", "broker"))] == 21
    assert found["supported_min_level"][(*feature, ("role", "controller"))] == 7
    assert found["node_max_level"][(*feature, ("node", "7"), ("role", "broker"))] == 21
    assert found["node_min_level"][(*feature, ("node", "1"), ("role", "broker"))] == 7


def test_many_nodes_have_no_series_of_their_own() -> None:
    """What they have in common does."""
    found = shown(rolling().state, node_series=5)
    assert found["node_max_level"] == {}
    assert found["supported_max_level"] != {}


def test_what_is_not_known_is_not_ready() -> None:
    """Before all is read the state is unknown, and so is every feature."""
    engine = Engine()
    engine.apply_all(cluster(*controllers(*["4.3"] * 3), *nodes("4.3"))[:-1])
    found = shown(engine.state)
    assert found["upgrade_state"][("state", "unknown"),] == 1
    assert set(found["upgrade_ready"].values()) == {-1}
