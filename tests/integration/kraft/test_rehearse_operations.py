"""Rehearsals of operations against what a real 4.3.0 cluster then does."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles
from tests.conftest import MakeCluster
from tests.integration.operations import Rehearsed, reassignment_json

pytestmark = pytest.mark.stack

PROPERTIES = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "auto.leader.rebalance.enable": "false",
    "replica.lag.time.max.ms": "5000",
}
SPEC = ClusterSpec(
    [NodeSpec(1, roles=Roles.CONTROLLER), *(NodeSpec(n, roles=Roles.BROKER) for n in (2, 3, 4))],
    properties=PROPERTIES,
)


def test_a_cluster_does_what_was_rehearsed(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """A broker dies and returns, preferred leaders, a shutdown in order, a reassignment: after each
    operation all leaders, replicas and ISRs are those of the rehearsal."""
    cluster = make_cluster(SPEC)
    rehearsed = Rehearsed(cluster, ("--bootstrap-controller", cluster.controllers))
    rehearsed.create_topics()
    lost = rehearsed.compare("lose:3", cluster.node(3).kill)
    assert lost["partitions"]["counts"]["unavailable"] == 1
    assert lost["partitions"]["counts"]["under-min-isr"] == 2
    assert lost["partitions"]["counts"]["led-by-another"] == 3
    rehearsed.compare("start:3", cluster.node(3).start)
    preferred = rehearsed.compare("elect-preferred", rehearsed.elect_preferred)
    assert preferred["partitions"]["counts"]["led-by-another"] == 3
    rehearsed.compare("shutdown:4", cluster.node(4).stop)
    rehearsed.compare("start:4", cluster.node(4).start)
    targets = {("pairs", 0): [4, 2], ("pairs", 1): [4], ("single", 1): [2], ("strict", 0): [3, 2]}
    file = tmp_path / "moves.json"
    file.write_text(reassignment_json(targets))
    address = cluster.bootstrap_servers.split(",")[0]
    moved = rehearsed.compare(f"reassign:{file}", lambda: rehearsed.reassign(address, targets))
    assert moved["partitions"]["counts"]["moved"] == 3
    assert moved["partitions"]["counts"]["reordered"] == 1
    refused = ("create-topic:pairs,1,1", "create-topic:new,1,9", "create-topic:a!b,1,1")
    for step, outcome in zip(refused, rehearsed.steps(*refused), strict=True):
        name, partition_count, replication_factor = step.removeprefix("create-topic:").split(",")
        topic = NewTopic(name, int(partition_count), int(replication_factor))
        with pytest.raises(KafkaException) as refusal:
            rehearsed.admin.create_topics([topic])[name].result(30)
        assert outcome["messages"] == [refusal.value.args[0].str()]
