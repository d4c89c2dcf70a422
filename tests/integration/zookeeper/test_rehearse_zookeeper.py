"""Rehearsals of operations against what real 3.9.1 brokers in ZooKeeper mode then do."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from featurewatch.cli.app import app
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from featurewatch.stack.zookeeper.ensemble import Ensemble
from tests.conftest import MakeCluster
from tests.integration.operations import Rehearsed, reassignment_json
from tests.integration.zookeeper.support import chroot, writer

pytestmark = pytest.mark.stack

PROPERTIES = {
    "zookeeper.session.timeout.ms": "3000",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "5000",
}


def test_a_cluster_does_what_was_rehearsed(
    ensemble: Ensemble, make_cluster: MakeCluster, tmp_path: Path
) -> None:
    """A broker dies and returns, preferred leaders, a reassignment: after each operation all
    leaders, replicas and ISRs are those of the rehearsal from the znodes."""
    hosts = ensemble.connect_string + chroot()
    nodes = [NodeSpec(node_id, "3.9.1", Roles.ZOOKEEPER) for node_id in (2, 3, 4)]
    cluster = make_cluster(ClusterSpec(nodes, properties=PROPERTIES, zookeeper=hosts))
    rehearsed = Rehearsed(cluster, ("--zookeeper", hosts))
    rehearsed.create_topics()
    controller = int(rehearsed.admin.describe_cluster().result(30).controller.id)
    victim = next(node_id for node_id in (3, 4, 2) if node_id != controller)
    lost = rehearsed.compare(f"lose:{victim}", cluster.node(victim).kill)
    assert lost["partitions"]["counts"]["unavailable"] == 1
    assert lost["responder"] == f"controller {controller} (ZooKeeper mode)"
    rehearsed.compare(f"start:{victim}", cluster.node(victim).start)
    rehearsed.compare("elect-preferred", rehearsed.elect_preferred)
    targets = {("pairs", 0): [4, 2], ("pairs", 1): [4], ("single", 1): [2], ("strict", 0): [3, 2]}
    file = tmp_path / "moves.json"
    file.write_text(reassignment_json(targets))
    address = cluster.node(controller).broker
    assert address is not None
    rehearsed.compare(f"reassign:{file}", lambda: rehearsed.reassign(address, targets))
    with writer(hosts) as client:
        client.set("/brokers/topics/pairs/partitions/0/state", b"{")
    unknown = CliRunner().invoke(app, ["rehearse", "--zookeeper", hosts, "-s", "lose:3"])
    assert unknown.exit_code == 4
    assert "1 znodes could not be read: partitions may be missing" in unknown.output
