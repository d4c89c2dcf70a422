"""The documents' command lines that take many seconds: stacks, rehearsals, the lake."""

import json
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.admin import QuorumAdmin, blocking
from featurewatch.stack.java.jars import Cache, tool_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import ClusterSpec, NodeSpec, Roles, combined
from featurewatch.streams.kraft.directory.files import read_meta
from tests.conftest import MakeCluster
from tests.documents.blocks import Command
from tests.documents.following import ended, follow, pages
from tests.documents.session import Session
from tests.processes import free_port
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.nightly]


@pages("stack")
def test_lines_that_start_stacks(page: str, stack_cache: Cache, tmp_path: Path) -> None:
    """Each page begins without a stack, and leaves at most one."""
    with ended(Session(tmp_path)) as session:
        try:
            follow(session, "stack", page)
        finally:
            session.run(Command(page, 0, "featurewatch stack down --remove || true"))


def test_lines_that_rehearse_an_upgrade(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """A node of 3.9 with an older level, and then what its directory shows."""
    cluster = make_cluster(combined(["3.9.1"], "3.7-IV4"))
    names = {
        "kafka-1:9093": cluster.controllers,
        "kafka-1:9092": cluster.bootstrap_servers,
        "/var/lib/kafka": str(cluster.node(1).data),
    }
    with ended(Session(tmp_path, names)) as session:
        follow(session, "rehearsal", "docs/how-to/rehearse.md")
        raise_level = "features --bootstrap-server kafka-1:9092 upgrade --metadata 3.9"
        session.run(Command("", 0, f"featurewatch {raise_level}"))
        follow(session, "rehearsal", "docs/how-to/storage.md")


def test_lines_that_change_voters(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """A quorum of one dynamic voter, and a controller that observes it."""
    nodes = [NodeSpec(1, "4.3.0"), NodeSpec(2, "4.3.0", Roles.CONTROLLER)]
    cluster = make_cluster(ClusterSpec(nodes, dynamic_voters=True, first_voters=[1]))
    added = cluster.node(2)
    names = {
        "kafka-1:9092": cluster.bootstrap_servers,
        "/etc/kafka/controller.properties": str(added.directory / "server.properties"),
        "DIRECTORY_ID": read_meta(added.data / "meta.properties")["directory.id"],
    }
    with blocking(QuorumAdmin.connect(cluster.bootstrap_servers)) as admin:
        assert eventually(lambda: bool(admin.describe().observers))
    with ended(Session(tmp_path, names)) as session:
        follow(session, "voters", "docs/how-to/quorum.md")


def _four_brokers() -> ClusterSpec:
    brokers = [NodeSpec(node, "4.3.0", Roles.BROKER) for node in (2, 3, 4)]
    return ClusterSpec([NodeSpec(1, "4.3.0"), *brokers])


def _create(cluster: Cluster, **topics: Sequence[Sequence[int]]) -> None:
    """Creates topics with these replicas; writes need two of them, where there are two."""
    new = [
        NewTopic(
            name,
            len(replicas),
            replica_assignment=[*map(list, replicas)],
            config={"min.insync.replicas": str(len(replicas[0]))},
        )
        for name, replicas in topics.items()
    ]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for future in admin.create_topics(new).values():
        future.result()


def test_lines_that_rehearse_moves(make_cluster: MakeCluster, tmp_path: Path) -> None:
    """Four brokers and the topics of the page."""
    cluster = make_cluster(_four_brokers())
    _create(cluster, orders=[(1, 2), (2, 3), (3, 1)] * 4, audit=[(2,)])
    moves = [{"topic": "orders", "partition": n, "replicas": [4, 3]} for n in (1, 4, 7)]
    plan = {"version": 1, "partitions": moves}
    (tmp_path / "moves.json").write_text(json.dumps(plan))
    with ended(Session(tmp_path, {"kafka-1:9093": cluster.controllers})) as session:
        follow(session, "moves", "docs/how-to/rehearse.md")


def test_lines_about_operations(
    make_cluster: MakeCluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """The timeline of a cluster that `featurewatch up --operations` follows."""
    cluster = make_cluster(_four_brokers())
    _create(cluster, orders=[(1, 2, 3)] * 12)
    names = {"host:9093": cluster.controllers, "host:9092": cluster.bootstrap_servers}
    ports = ("SOURCE", "WORKER", "PAGE", "NOTIFY")
    variables = {f"FEATUREWATCH_WEB__{name}_PORT": str(free_port()) for name in ports}
    with ended(Session(tmp_path, names, variables)) as session:
        configs = tool_command("4.3.0", "kafka.admin.ConfigCommand", cache=stack_cache)
        session.program("kafka-configs", *configs)
        follow(session, "operations", "docs/explanation/operations.md")


def test_lines_about_the_lake(
    monitored: Session, quorum_430: Cluster, stack_cache: Cache, tmp_path: Path
) -> None:
    """The lake is filled, audited, and filled from files."""
    node = quorum_430.node(1)
    session = monitored.child()
    session.names = {
        **session.names,
        "/data/lake": str(tmp_path / "lake"),
        "/data/new": str(tmp_path / "new"),
        "/var/lib/kafka/metadata": str(node.metadata_log),
        "/backup/orders/metadata": str(node.metadata_log),
        "MkU3OEVBNTcwNTJENDM2Qk": quorum_430.cluster_id,
    }
    with tarfile.open(monitored.directory / "support-bundle.tar.gz", "w:gz") as bundle:
        bundle.add(node.data, "node-1")
    (segment, *_) = sorted(node.metadata_log.glob("*.log"))
    arguments = ("--cluster-metadata-decoder", "--files", str(segment))
    dump = tool_command(
        "4.3.0", "org.apache.kafka.tools.DumpLogSegments", *arguments, cache=stack_cache
    )
    text = subprocess.run(dump, capture_output=True, check=True).stdout
    (monitored.directory / "dump.txt").write_bytes(text)
    with ended(session):
        for page in ("pipeline", "audit", "replay"):
            follow(session, "spark", f"docs/how-to/{page}.md")
