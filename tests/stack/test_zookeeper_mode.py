"""Kafka 3.9.1 in ZooKeeper mode: start, roll, kill, and the brokers' znodes."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from featurewatch.stack.errors import StackError, StartError, WireError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles, zookeeper_mode
from featurewatch.stack.wire.znodes import read_json, wait_until_unregistered
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.stack.clients import broker_ids

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def zookeeper(stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The connect string of one server, with a chroot that does not exist yet."""
    directory = tmp_path_factory.mktemp("zookeeper") / "server"
    with Ensemble(directory, cache=stack_cache, temporary=True) as ensemble:
        yield f"{ensemble.connect_string}/clusters/one"


@pytest.fixture(scope="module")
def cluster(
    zookeeper: str, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Two brokers in ZooKeeper mode."""
    spec = zookeeper_mode(2, zookeeper, properties={"inter.broker.protocol.version": "3.8"})
    directory = tmp_path_factory.mktemp("zookeeper-mode") / "cluster"
    with Cluster(spec, directory, cache=stack_cache, temporary=True) as brokers:
        yield brokers


def test_brokers_register_below_the_chroot(cluster: Cluster, zookeeper: str) -> None:
    """Clients see the brokers; ids, controller, cluster id and features are in ZooKeeper."""
    assert broker_ids(cluster) == {1, 2}
    assert cluster.controllers == ""
    assert read_json(zookeeper, "/cluster/id")["id"] == cluster.cluster_id
    assert read_json(zookeeper, "/controller")["brokerid"] in {1, 2}
    assert read_json(zookeeper, "/brokers/ids/1")["port"] == cluster.node(1).addresses.broker
    assert read_json(zookeeper, "/feature") is not None
    assert read_json(zookeeper, "/migration") is None


def test_a_broker_in_zookeeper_mode_advertises_no_features(
    cluster: Cluster, zookeeper: str
) -> None:
    """The registration has schema version 5 and an empty ``features``, as in every release."""
    registered = read_json(zookeeper, "/brokers/ids/2")
    assert registered["version"] == 5
    assert registered["features"] == {}


def test_roll_with_another_protocol(cluster: Cluster) -> None:
    """Brokers are rolled one by one to a newer inter.broker.protocol.version; the ports stay."""
    before = cluster.bootstrap_servers
    for node in cluster.nodes:
        log_size = node.log.stat().st_size
        node.stop()
        node.start(properties={"inter.broker.protocol.version": "3.9"})
        log = node.log.read_bytes()[log_size:].decode()
        assert re.search(r"inter\.broker\.protocol\.version = 3\.9\b", log)
    cluster.wait_ready()
    assert cluster.bootstrap_servers == before
    assert broker_ids(cluster) == {1, 2}


def test_killed_broker_comes_back(cluster: Cluster, zookeeper: str) -> None:
    """A killed broker is started again at once: the start waits until its old session expires."""
    before = read_json(zookeeper, "/brokers/ids/1")["timestamp"]
    cluster.node(1).kill()
    assert read_json(zookeeper, "/brokers/ids/1") is not None  # its session lasts
    cluster.node(1).start()
    cluster.wait_ready()
    assert read_json(zookeeper, "/brokers/ids/1")["timestamp"] != before


def test_an_id_that_another_broker_holds(cluster: Cluster, zookeeper: str) -> None:
    """Waiting for an id that a live broker holds ends in one clear line."""
    with pytest.raises(StartError, match=r"another broker 2 is registered at 127.*/clusters/one"):
        wait_until_unregistered(zookeeper, 2, timeout_s=0.3)


def test_an_unreachable_zookeeper_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no ZooKeeper listens, the error has the address."""
    monkeypatch.setattr("featurewatch.stack.wire.znodes._CONNECT_S", 0.5)
    with pytest.raises(WireError, match=r"ZooKeeper at 127\.0\.0\.1:9/chroot does not respond"):
        read_json("127.0.0.1:9/chroot", "/controller")


def test_impossible_clusters() -> None:
    """ZooKeeper mode without an ensemble, beside a quorum, or with Kafka 4 is rejected."""
    old, quorum = NodeSpec(1, "3.9.1", Roles.ZOOKEEPER), NodeSpec(2, "3.9.1", Roles.CONTROLLER)
    with pytest.raises(StackError, match="needs the connect string"):
        ClusterSpec([old])
    with pytest.raises(StackError, match="only in a migration"):
        ClusterSpec([old, quorum], zookeeper="127.0.0.1:2181")
    with pytest.raises(StackError, match=r"3\.9 is the last with ZooKeeper mode"):
        zookeeper_mode(3, "127.0.0.1:2181", "4.3.0")


def test_nodes_cannot_be_removed(tmp_path: Path, stack_cache: Cache) -> None:
    """A new description may add nodes or change roles, but not remove nodes."""
    cluster = Cluster(zookeeper_mode(2, "127.0.0.1:9"), tmp_path / "cluster", cache=stack_cache)
    cluster.change(zookeeper_mode(3, "127.0.0.1:9"))
    assert [node.id for node in cluster.nodes] == [1, 2, 3]
    with pytest.raises(StackError, match=r"nodes \[2, 3\] are missing"):
        cluster.change(zookeeper_mode(1, "127.0.0.1:9"))
    cluster.close()
