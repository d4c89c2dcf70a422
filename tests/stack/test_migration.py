"""A real migration from ZooKeeper to KRaft (KIP-866), phase by phase."""

import json
import re
import subprocess

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.errors import StackError
from featurewatch.stack.java.class_archive import archive_options
from featurewatch.stack.java.jars import Cache, java_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import Roles, combined, zookeeper_mode
from featurewatch.stack.wire.znodes import read_json
from tests.conftest import MakeCluster, MakeEnsemble
from tests.stack.clients import broker_ids
from tests.stack.migration import ClusterMigration, wait_until_migrated
from tests.waiting import eventually

pytestmark = pytest.mark.stack

MIGRATION, PRE_MIGRATION, POST_MIGRATION = 1, 2, 3
"""Kafka's ZkMigrationState."""


def log_states(cluster: Cluster, cache: Cache) -> list[int]:
    """The migration states in the controller's log, in order, as Kafka's own tool reads them."""
    (controller,) = (node for node in cluster.nodes if node.spec.roles is Roles.CONTROLLER)
    segment = next(controller.metadata_log.glob("0*.log"))
    command = java_command(
        cache.class_path("3.9.1"),
        "kafka.tools.DumpLogSegments",
        *("--cluster-metadata-decoder", "--files", str(segment)),
        heap_mb=128,
        options=archive_options(cache, "3.9.1"),
    )
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    records = re.findall(r'payload: (\{"type":"ZK_MIGRATION_STATE_RECORD".*\})', output)
    return [json.loads(record)["data"]["zkMigrationState"] for record in records]


def topics(cluster: Cluster) -> set[str]:
    """The topics that a client sees."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return set(admin.list_topics(timeout=60).topics)


@pytest.mark.nightly
def test_every_phase_of_a_migration(
    make_ensemble: MakeEnsemble, make_cluster: MakeCluster, stack_cache: Cache
) -> None:
    """ZooKeeper mode, pre-migration, dual write, KRaft brokers and the end are visible on each
    side."""
    zookeeper = f"{make_ensemble().connect_string}/kafka"
    protocol = {"inter.broker.protocol.version": "3.8"}
    cluster = make_cluster(zookeeper_mode(1, zookeeper, properties=protocol))
    cluster_id, migration = cluster.cluster_id, ClusterMigration(cluster)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    admin.create_topics([NewTopic("kept", 1, 1)])["kept"].result(60)

    def reached(*states: int) -> bool:
        return eventually(lambda: log_states(cluster, stack_cache) == [*states])

    migration.add_controllers()
    assert migration.controllers == [3001]
    assert cluster.leader().id == 3001
    assert reached(PRE_MIGRATION)
    with pytest.raises(StackError, match="the migration is not done after 0 s"):
        wait_until_migrated(zookeeper, 0.0)
    assert read_json(zookeeper, "/controller")["brokerid"] == 1
    with pytest.raises(StackError, match="nodes are all in ZooKeeper mode"):
        migration.add_controllers()

    migration.enroll_brokers()
    assert reached(PRE_MIGRATION, MIGRATION)
    assert read_json(zookeeper, "/migration")["kraft_controller_id"] == 3001
    assert read_json(zookeeper, "/controller")["kraftControllerEpoch"] > 0
    assert read_json(zookeeper, "/brokers/ids/1") is not None
    with pytest.raises(StackError, match=r"brokers \[1\] are still in ZooKeeper mode"):
        migration.finish()

    migration.move_brokers()
    assert read_json(zookeeper, "/brokers/ids/1") is None
    assert read_json(zookeeper, "/controller")["brokerid"] == 3001
    assert broker_ids(cluster) == {1}

    migration.finish()
    assert reached(PRE_MIGRATION, MIGRATION, POST_MIGRATION)
    assert cluster.cluster_id == cluster_id
    assert broker_ids(cluster) == {1}
    assert topics(cluster) == {"kept"}


def test_a_kraft_cluster_does_not_migrate(quorum_391: Cluster) -> None:
    """A cluster without brokers in ZooKeeper mode is rejected and stays unchanged."""
    with pytest.raises(StackError, match="nodes are all in ZooKeeper mode"):
        ClusterMigration(quorum_391).add_controllers()
    assert quorum_391.spec == combined(["3.9.1"] * 3)
