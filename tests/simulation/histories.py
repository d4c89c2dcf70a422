"""One history of a cluster from a seed: the image equals the truth, and the auditor agrees."""

from itertools import count
from random import Random

from featurewatch.monitor.readiness import Limits
from featurewatch.streams.events import Event
from featurewatch.streams.znodes import BrokerZnode
from featurewatch.tables.image.cluster import Authority
from featurewatch.tables.image.provenance import ZnodeProvenance
from tests.simulation.auditor import Auditor
from tests.simulation.engine import Engine
from tests.simulation.ensemble import Ensemble
from tests.simulation.world import World, expected_nodes


def run(seed: int) -> tuple[list[Event], Engine]:
    """Runs one history, audited at each step, and compares its end with the truth.

    Returns the events, which are those of one topic from offset 0 on, and the engine at their end.
    """
    # In every other history some alerts end, or have another text, after a moment or a minute.
    world = World(Random(seed), leaps_ms=(5000, 61_000, 20_000) if seed % 2 else ())
    events = world.history(steps=25)
    engine = Engine()
    engine.limits = Limits(
        ghost_ms=seed % 400 + 1, upgrade_ms=seed % 300 + 1, quorum_ms=seed % 200 + 1
    )
    engine.auditor = Auditor(engine.limits)
    engine.apply_all(events)
    image = engine.state.image
    assert image.ready
    assert dict(image.features.levels) == world.levels
    nodes = {
        (key.role, key.node_id): (dict(node.capabilities.ranges), node.fenced, node.shutting_down)
        for key, node in image.nodes.nodes.items()
    }
    assert nodes == expected_nodes(world)
    assert ("UNREADABLE" in image.sources.unreadable) == world.unreadable
    assert bool(image.incomplete) == world.unknown
    held = Engine(engine.rows).state
    assert held == engine.state, "rows hold another state"
    return events, engine


def run_zookeeper(seed: int) -> None:
    """Runs one history of a cluster with ZooKeeper as the only source."""
    random, time = Random(seed), count(1000, 7)
    ensemble = Ensemble(random, lambda: next(time))
    events = ensemble.history(steps=25)
    engine = Engine()
    engine.auditor = Auditor()
    for event in events:
        engine.apply(event)
    image = engine.state.image
    assert (image.ready, image.authority) == (True, Authority.ZOOKEEPER)
    truth = ensemble.znodes
    assert dict(image.zookeeper.znodes) == {k: v for k, v in truth.items() if "/ids/" not in k}
    places = {
        path: (znode.czxid, znode.version) for path, znode in truth.items() if "/ids/" in path
    }
    assert {
        node.provenance.path: (node.provenance.czxid, node.provenance.version)
        for node in image.nodes.nodes.values()
        if isinstance(node.provenance, ZnodeProvenance)
    } == places
    for node in image.nodes.nodes.values():
        content = truth[f"/brokers/ids/{node.key.node_id}"].content
        if isinstance(content, BrokerZnode):
            assert node.capabilities.ranges == content.features
    assert Engine(engine.rows).state == engine.state, "rows hold another state"
