"""Real clusters: start, roll, kill and failed starts."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from featurewatch.stack.errors import StackError, StartError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles, combined
from tests.paths import ROOT
from tests.processes import is_alive, popen
from tests.stack.clients import broker_ids
from tests.waiting import eventually

pytestmark = pytest.mark.stack

MakeCluster = Callable[[ClusterSpec], Cluster]


@pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])
def test_clients_see_three_combined_nodes(
    release: str, quorum_of: Callable[[str], Cluster]
) -> None:
    """Once a cluster has started, any client sees all brokers at once."""
    cluster = quorum_of(release)
    assert broker_ids(cluster) == {1, 2, 3}
    assert cluster.leader().id in {1, 2, 3}


def test_rolling_upgrade_node_by_node(make_cluster: MakeCluster) -> None:
    """Nodes of 3.9.1 are upgraded to 4.3.0 one by one, with the same directories and ports; one is
    killed."""
    cluster = make_cluster(combined(["3.9.1"] * 3, "3.7-IV4"))
    before = cluster.bootstrap_servers
    for node in cluster.nodes:
        node.stop()
        assert not node.running
        assert node.pid is None
        node.start("4.3.0")
        assert node.release == "4.3.0"
    cluster.wait_ready()
    assert cluster.bootstrap_servers == before
    assert broker_ids(cluster) == {1, 2, 3}
    leader = cluster.leader()
    leader.kill()
    assert cluster.leader().id != leader.id
    leader.start()
    assert broker_ids(cluster) == {1, 2, 3}
    assert leader.metadata_log.is_dir()


def test_mixed_releases_and_roles(make_cluster: MakeCluster) -> None:
    """Controllers of two releases and a broker form one cluster, at a level that all support."""
    nodes = [
        NodeSpec(1, "3.9.1", Roles.CONTROLLER),
        NodeSpec(2, "4.3.0", Roles.CONTROLLER),
        NodeSpec(11, "3.9.1", Roles.BROKER, {"broker.rack": "a"}),
    ]
    cluster = make_cluster(ClusterSpec(nodes))
    assert cluster.spec.release_version == "3.9"
    assert broker_ids(cluster) == {11}
    assert cluster.node(1).broker is None
    assert "broker.rack=a" in (cluster.node(11).directory / "server.properties").read_text()


@pytest.mark.parametrize("release", ["3.9.1", "4.3.0"])
def test_dynamic_voters(make_cluster: MakeCluster, release: str) -> None:
    """A KIP-853 quorum is formatted with kraft.version 1."""
    nodes = [NodeSpec(1, release), NodeSpec(2, release, Roles.BROKER)]
    cluster = make_cluster(ClusterSpec(nodes, dynamic_voters=True))
    assert broker_ids(cluster) == {1, 2}
    quorum_state = (cluster.node(1).metadata_log / "quorum-state").read_text()
    assert '"data_version":1' in quorum_state


def test_a_failed_start_gives_the_reason(stack_cache: Cache, tmp_path: Path) -> None:
    """The error of a node that ends during its start has Kafka's own reason in one line."""
    spec = ClusterSpec([NodeSpec(1, properties={"num.io.threads": "0"})])
    cluster = Cluster(spec, tmp_path / "cluster", cache=stack_cache, temporary=True)
    with pytest.raises(StartError, match=r"node 1 .*num\.io\.threads") as caught, cluster:
        pass
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "cluster").exists()


def test_an_unknown_level_is_rejected_by_format(stack_cache: Cache, tmp_path: Path) -> None:
    """A metadata version that the release does not know is rejected with the tool's reason."""
    spec = combined(["3.9.1"], "4.3-IV0")
    cluster = Cluster(spec, tmp_path / "cluster", cache=stack_cache, temporary=True)
    with pytest.raises(StartError, match=r"could not be formatted: .*4\.3-IV0"), cluster:
        pass


def test_misuse_raises(quorum_430: Cluster) -> None:
    """Unknown nodes and double starts are errors, and change nothing."""
    with pytest.raises(StackError, match="there is no node 9; the nodes are 1, 2, 3"):
        quorum_430.node(9)
    with pytest.raises(StartError, match=r"node 1 .* runs already"):
        quorum_430.node(1).start()


OWNER = """
import sys, time
from pathlib import Path
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
cluster = Cluster(combined(["4.3.0"] * 3), Path(sys.argv[1]), cache=Cache(Path(sys.argv[2])),
                  temporary=True)
cluster.start()
print(*[node.pid for node in cluster.nodes], flush=True)
time.sleep(600)
"""


def test_killed_owner_leaves_no_jvm(stack_cache: Cache, tmp_path: Path) -> None:
    """After kill -9 of the process that started a cluster, all JVMs end and the directory is
    removed within seconds."""
    directory = tmp_path / "cluster"
    command = [sys.executable, "-c", OWNER, str(directory), str(stack_cache.directory)]
    with popen(command, stdout=subprocess.PIPE, cwd=ROOT) as owner:
        assert owner.stdout is not None
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 3
        assert all(map(is_alive, pids))
        owner.send_signal(signal.SIGKILL)
    assert eventually(lambda: not any(map(is_alive, pids)))
    assert eventually(lambda: not directory.exists())


def test_each_node_has_its_own_ids(quorum_430: Cluster) -> None:
    """One run of the storage tool formats all three: they share the cluster's id alone."""
    metas = [
        dict(
            line.split("=", 1)
            for line in (node.data / "meta.properties").read_text().splitlines()
            if not line.startswith("#")
        )
        for node in quorum_430.nodes
    ]
    assert [meta["node.id"] for meta in metas] == ["1", "2", "3"]
    assert len({meta["directory.id"] for meta in metas}) == 3
    assert {meta["cluster.id"] for meta in metas} == {quorum_430.cluster_id}
