"""A history of znodes from a seed, through the watcher to the image, which equals the truth."""

from dataclasses import replace

from featurewatch.streams.events import ZnodeChange, ZnodeSnapshot
from featurewatch.streams.types import ClusterId, NodeId, NodeKey, Role
from featurewatch.streams.znodes import BrokerZnode
from featurewatch.tables.image.provenance import ZnodeProvenance
from tests.simulation import znodes as z
from tests.simulation.auditor import Auditor
from tests.simulation.engine import Engine
from tests.streams.zookeeper.watcher.simulated import CLUSTER, settle, truth
from tests.streams.zookeeper.watcher.world import WATCHED, WatcherWorld, play


def run(seed: int) -> None:
    """A history with lagging servers and lost sessions, applied by an audited engine."""
    world = WatcherWorld()
    play(seed, world)
    settle(world.connection, world.auditor, world.now_ms)
    engine = Engine(cluster=ClusterId(CLUSTER))
    engine.auditor = Auditor()
    for event in world.auditor.events:
        assert isinstance(event, (ZnodeChange, ZnodeSnapshot))
        engine.apply(event)
    engine.apply(replace(z.following(10**9), cluster=ClusterId(CLUSTER)))
    image = engine.state.image
    assert image.ready
    expected = truth(world.ensemble, WATCHED)
    brokers = {path: content for path, content in expected.items() if "/ids/" in path}
    assert {path: znode.content for path, znode in image.zookeeper.znodes.items()} == {
        path: content for path, (_, content) in expected.items() if path not in brokers
    }
    assert len(image.nodes) == len(brokers)
    for path, (stat, content) in brokers.items():
        node = image.nodes.get(NodeKey(Role.BROKER, NodeId(int(path.rpartition("/")[2]))))
        assert node is not None
        assert isinstance(node.provenance, ZnodeProvenance)
        place = (node.provenance.czxid, node.provenance.zxid, node.provenance.version)
        assert place == (stat.czxid, stat.mzxid, stat.version)
        if isinstance(content, BrokerZnode):
            assert node.capabilities.ranges == content.features
