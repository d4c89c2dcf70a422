"""Real brokers of Kafka 3.9.1 under featurewatch's own controllers, with traffic throughout."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from featurewatch.deploy.java.jars import Cache, Jars, java_command
from featurewatch.deploy.stack import client
from tests.deploy.traffic import Traffic
from tests.paths import SRC
from tests.waiting import eventually

pytestmark = pytest.mark.stack

TOPIC, PARTITIONS = "orders", 4
RECOVERY_S = 90.0
COMMAND = [sys.executable, "-c", "from featurewatch.cli.main import main; main()", "stack"]


class ControlledCluster:
    """The running stack, and what can be done with it."""

    def __init__(self, directory: Path, cache: Cache) -> None:
        self._directory = directory
        self._cache = cache
        self.status = client.send_request(directory, "status")
        self.servers: str = self.status["bootstrap_servers"]
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self.zookeeper = KazooClient(self.status["zookeeper"])
        self.zookeeper.start()

    def close(self) -> None:
        """Ends the test's own ZooKeeper session."""
        self.zookeeper.stop()
        self.zookeeper.close()

    def tool(self, name: str, *arguments: str) -> str:
        """Runs one of Kafka's own tools; returns what it prints on stdout."""
        command = java_command(
            self._cache.class_path("3.9.1", Jars.TOOLS),
            f"org.apache.kafka.tools.{name}",
            *("--bootstrap-server", self.servers),
            *arguments,
            heap_mb=96,
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]
        return done.stdout

    def node(self, action: str, name: str) -> None:
        """Stops, kills or starts one process of the stack."""
        client.send_request(self._directory, action, node=name)

    def controller(self) -> int | None:
        """The id in ``/controller``; None if it does not exist."""
        try:
            value, _ = self.zookeeper.get("/controller")
        except NoNodeError:
            return None
        return int(json.loads(value)["brokerid"])

    def log(self, controller_id: int) -> str:
        """The log of a controller."""
        name = f"controller-{controller_id - 100}"
        servers = self.status["controller_servers"]
        (path,) = [server["log"] for server in servers if server["id"] == name]
        return Path(path).read_text()

    def partitions(self) -> dict[int, Any]:
        """The partitions of the topic, as clients see them."""
        metadata = self.admin.list_topics(TOPIC, timeout=60)
        return dict(metadata.topics[TOPIC].partitions)

    def is_in_sync(self) -> bool:
        """Whether every partition has a leader and all replicas in its ISR."""
        return all(
            partition.leader > 0 and sorted(partition.isrs) == sorted(partition.replicas)
            for partition in self.partitions().values()
        )

    def is_led_by_the_preferred(self) -> bool:
        """Whether the first replica of every partition leads it."""
        partitions = self.partitions().values()
        return all(partition.leader == partition.replicas[0] for partition in partitions)


@pytest.fixture(scope="module")
def cluster(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlledCluster]:
    """Three brokers under our controllers, started by the command."""
    directory = tmp_path_factory.mktemp("controlled") / "stack"
    own = {"FEATUREWATCH_CACHE": str(stack_cache.directory), "PYTHONPATH": str(SRC)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*COMMAND, *arguments, "--directory", str(directory)]
        environment = dict(os.environ) | own
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=240, check=False
        )

    up = run("up", "--zookeeper", "1", "--controlled-brokers", "3")
    try:
        assert up.returncode == 0, up.stderr
        controlled = ControlledCluster(directory, stack_cache)
        yield controlled
        controlled.close()
    finally:
        run("down", "--remove")


def test_real_brokers_and_kafkas_tools_under_our_controller(
    cluster: ControlledCluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every acknowledged message is read, none out of order, whatever happens to the cluster.

    Brokers are killed, restarted and shut down in order, partitions are reassigned and a topic is
    deleted by Kafka's own tools, and the controller is killed and replaced (C-01, C-20, C-40).
    """
    created = cluster.tool(
        "TopicCommand",
        *("--create", "--topic", TOPIC),
        *("--partitions", str(PARTITIONS), "--replication-factor", "2"),
    )
    assert created.strip() == f"Created topic {TOPIC}."
    with Traffic(cluster.servers, TOPIC, PARTITIONS) as traffic:
        assert eventually(lambda: traffic.acknowledged_count > 200, RECOVERY_S)

        @contextmanager
        def step(name: str) -> Iterator[None]:
            traffic.longest_wait_s()
            yield
            assert eventually(cluster.is_in_sync, RECOVERY_S), (name, cluster.partitions())
            with capsys.disabled():
                sys.stdout.write(f"\n  {name}: longest wait {traffic.longest_wait_s():.2f} s")

        with step("broker killed and restarted"):
            lose_broker(cluster, "kill", 1, traffic)
        with step("broker shut down and started"):
            lose_broker(cluster, "stop", 2, traffic)
        with step("partitions reassigned"):
            reassign(cluster, tmp_path)
        with step("znodes broken"):
            break_znodes(cluster)
        with step("controller killed"):
            first = cluster.controller()
            assert first in (101, 102)
            cluster.node("kill", f"controller-{first - 100}")
            assert eventually(lambda: cluster.controller() == 203 - first, RECOVERY_S)
            cluster.node("start", f"controller-{first - 100}")
        with step("preferred leaders elected, broker killed under the new controller"):
            lose_broker(cluster, "kill", 3, traffic)
            assert eventually(cluster.is_in_sync, RECOVERY_S)
            cluster.tool(
                "LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"
            )
            assert eventually(cluster.is_led_by_the_preferred, RECOVERY_S), cluster.partitions()
        delete_topic(cluster)
        traffic.end_writing()
        assert eventually(lambda: traffic.unread_count == 0, RECOVERY_S)
    assert traffic.errors == []
    assert traffic.order_errors() == []
    assert "Traceback" not in cluster.log(101) + cluster.log(102)


def lose_broker(cluster: ControlledCluster, action: str, broker_id: int, traffic: Traffic) -> None:
    """Ends a broker and starts it again when others lead all partitions and serve them."""
    cluster.node(action, str(broker_id))
    assert eventually(
        lambda: broker_id not in {part.leader for part in cluster.partitions().values()}, RECOVERY_S
    )
    count = traffic.acknowledged_count
    assert eventually(lambda: traffic.acknowledged_count > count + 100, RECOVERY_S)
    cluster.node("start", str(broker_id))


def reassign(cluster: ControlledCluster, directory: Path) -> None:
    """Moves each partition to another broker by kafka-reassign-partitions."""
    targets = {
        number: [*(set(range(1, 4)) - set(part.replicas)), part.replicas[0]]
        for number, part in cluster.partitions().items()
    }
    plan = directory / "plan.json"
    entries = [
        {"topic": TOPIC, "partition": number, "replicas": replicas}
        for number, replicas in targets.items()
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": entries}))
    options = ("--reassignment-json-file", str(plan))
    started = cluster.tool("reassign.ReassignPartitionsCommand", *options, "--execute")
    assert "Successfully started partition reassignments" in started
    assert eventually(
        lambda: {number: part.replicas for number, part in cluster.partitions().items()} == targets,
        RECOVERY_S,
    )
    verified = cluster.tool("reassign.ReassignPartitionsCommand", *options, "--verify")
    assert verified.count("is completed.") == PARTITIONS


def break_znodes(cluster: ControlledCluster) -> None:
    """What cannot be read is one line of the log and disturbs nothing else."""
    controller_id = cluster.controller()
    assert controller_id is not None
    znodes = {
        "/brokers/topics/broken": b"not json",
        "/admin/reassign_partitions": b"[1]",
        "/admin/preferred_replica_election": b'{"version": 9}',
        "/brokers/topics/nowhere": b'{"version":1,"partitions":{"0":[77,78]}}',
    }
    for path, data in znodes.items():
        cluster.zookeeper.create(path, data)
    lines = (
        "cannot read the assignment of topic broken",
        "cannot read /admin/reassign_partitions",
        "cannot read /admin/preferred_replica_election",
        "partition nowhere-0 cannot be",
    )
    assert eventually(lambda: all(line in cluster.log(controller_id) for line in lines))
    for path in ("/brokers/topics/broken", "/brokers/topics/nowhere", "/admin/reassign_partitions"):
        cluster.zookeeper.delete(path, recursive=True)


def delete_topic(cluster: ControlledCluster) -> None:
    """Deletes a topic by kafka-topics; its znodes are gone in the end, and the name is free."""

    def names() -> list[str]:
        return list(cluster.zookeeper.get_children("/brokers/topics"))

    cluster.tool("TopicCommand", "--create", "--topic", "gone", "--partitions", "2")
    assert "gone" in names()
    cluster.tool("TopicCommand", "--delete", "--topic", "gone")
    assert eventually(lambda: "gone" not in names(), RECOVERY_S)
    assert eventually(lambda: "gone" not in cluster.tool("TopicCommand", "--list"), RECOVERY_S)
