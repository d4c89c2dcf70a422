"""The gauges of an upgrade, and of clusters with more nodes than ``node_series``."""

from dataclasses import replace

from featurewatch.agents.timers import source_status
from featurewatch.monitor.rules import RULES
from featurewatch.streams.events import SourceState
from featurewatch.streams.types import ClusterId
from tests.agents.gauges import values_of
from tests.monitor.readiness.clusters import cluster, controllers, nodes, ranges
from tests.simulation import records as r
from tests.simulation.engine import Engine
from tests.simulation.records import CLUSTER, MV, TV

HOUR = 3_600_000


def rolling_cluster() -> Engine:
    """Three brokers, one of them old and silent for hours."""
    engine = Engine()
    ghosts = [r.register(7, ranges("3.9"), epoch=7)]
    engine.apply_all(cluster(*controllers(*["4.3"] * 3), *nodes("4.3", "4.3"), *ghosts))
    engine.apply(r.following(90, seen_ms=2 * HOUR))
    return engine


def test_the_gauges_of_an_upgrade() -> None:
    """State and its time, blockers, ghosts, releases and ranges; a level not finalized is 0."""
    values = values_of(rolling_cluster().state)
    feature = (("feature", MV),)
    assert values["upgrade_state"][("state", "mixed"),] == 1
    assert sum(values["upgrade_state"].values()) == 1
    assert values["upgrade_state_since_seconds"][()] == 0.5
    assert (values["upgrade_ready"][feature], values["upgrade_blockers"][feature]) == (0, 1)
    assert values["ghost_registrations"] == {(("role", "broker"),): 1, (("role", "controller"),): 0}
    assert values["finalized_level"][("feature", TV),] == 0
    assert values["release_nodes"][(("release", "3.9"), ("role", "broker"))] == 1
    assert values["supported_max_level"][(*feature, ("role", "broker"))] == 21
    assert values["supported_min_level"][(*feature, ("role", "controller"))] == 7
    assert values["node_max_level"][(*feature, ("node", "7"), ("role", "broker"))] == 21
    assert values["node_min_level"][(*feature, ("node", "1"), ("role", "broker"))] == 7


def test_rules_of_which_nothing_fires_are_zero() -> None:
    """Each rule has a series for each severity that it may have, whether it fires or not."""
    firing = values_of(rolling_cluster().state)["alerts_firing"]
    pairs = {(rule.name, str(severity)) for rule in RULES for severity in rule.severities}
    assert {(dict(labels)["rule"], dict(labels)["severity"]) for labels in firing} == pairs
    assert firing[("rule", "ghost-registration"), ("severity", "warning")] == 1
    assert firing[("rule", "source-stalled"), ("severity", "critical")] == 0


def test_a_silent_source_was_last_seen_when_it_fell_silent() -> None:
    """The statuses that a worker publishes in its place do not count as reports."""
    engine = rolling_cluster()
    seen = values_of(engine.state)["source_last_seen_timestamp_seconds"]
    assert seen == {(("source", "kraft"),): 2 * HOUR / 1000}
    for hour in (3, 4):
        status = source_status(
            ClusterId(CLUSTER), "kraft", SourceState.SILENT, "silent", hour * HOUR
        )
        engine.apply(status)
    seen = values_of(engine.state)["source_last_seen_timestamp_seconds"]
    assert seen == {(("source", "kraft"),): 3 * HOUR / 1000}


def test_many_nodes_have_no_series() -> None:
    """Above ``node_series`` nodes, only the series of roles remain."""
    values = values_of(rolling_cluster().state, node_series=5)
    assert values["node_max_level"] == {}
    assert values["supported_max_level"] != {}


def test_a_cluster_that_has_not_caught_up_is_unknown() -> None:
    """Before the source has caught up, the states of the cluster and of every feature are
    unknown."""
    engine = Engine()
    engine.apply_all(cluster(*controllers(*["4.3"] * 3), *nodes("4.3"))[:-1])
    values = values_of(engine.state)
    assert values["upgrade_state"][("state", "unknown"),] == 1
    assert set(values["upgrade_ready"].values()) == {-1}


def test_the_gauges_of_the_quorum() -> None:
    """What is not known has no gauge: a missing figure is not zero."""
    engine = rolling_cluster()
    values = values_of(engine.state)
    assert values["quorum_voters"] == {(): 3}
    assert not values.get("quorum_may_fail")
    assert not values.get("quorum_max_lag_records")
    voters = [r.replica(1), r.replica(2), r.replica(3, state="silent")]
    lagging = [replace(one, lag=10 * one.node_id) for one in voters]
    engine.apply(r.quorum(lagging, [r.replica(9), r.replica(7)], seen_ms=2 * HOUR))
    values = values_of(engine.state)
    assert values["quorum_fetching_voters"] == {(): 2}
    assert values["quorum_may_fail"] == {(): 0}
    assert values["quorum_max_lag_records"] == {(): 30}
    assert values["quorum_observing_controllers"] == {(): 0}, "neither is a registered controller"
