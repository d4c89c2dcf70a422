"""A running stack of real brokers under featurewatch's own controllers, and what acts on it."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from featurewatch.admin.connections import Bootstrap
from featurewatch.admin.reassignments.client import ReassignmentAdmin
from featurewatch.kafka.address import parse_addresses
from featurewatch.stack import client
from featurewatch.stack.java.jars import Cache
from tests.conformance.kafka_tools import KafkaTools, kafka_tools
from tests.paths import SRC
from tests.waiting import eventually

TOPIC: Final = "orders"
_COMMAND: Final = (sys.executable, "-c", "from featurewatch.cli.main import main; main()", "stack")


class ControlledCluster:
    """The running stack, and what can be done with it."""

    def __init__(self, directory: Path, tools: KafkaTools) -> None:
        self._directory = directory
        self._tools = tools
        self.status = client.send_request(directory, "status")
        self.servers: str = self.status["bootstrap_servers"]
        self.admin = AdminClient({"bootstrap.servers": self.servers})
        self.zookeeper = KazooClient(self.status["zookeeper"])
        self.zookeeper.start()

    def close(self) -> None:
        """Ends the test's own ZooKeeper session."""
        self.zookeeper.stop()
        self.zookeeper.close()

    def tool(self, name: str, *arguments: str, code: int = 0) -> str:
        """Runs one of Kafka's own tools, which ends with a code; returns what it prints on stdout.

        ``name`` is its class, without the package of most of them.
        """
        main = name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}"
        done = self._tools(main, "--bootstrap-server", self.servers, *arguments)
        assert done.code == code, done.out + done.err[-2000:]
        return done.out

    def settle(self, topic: str) -> None:
        """Returns when every broker knows of the replicas that a topic has in ZooKeeper.

        The tools ask any broker, at once: they need no start of a JVM.
        """
        assert eventually(lambda: asyncio.run(self._is_known(topic)), 60)

    async def _is_known(self, topic: str) -> bool:
        value, _ = self.zookeeper.get(f"/brokers/topics/{topic}")
        replicas = {int(n): ids for n, ids in json.loads(value)["partitions"].items()}
        for address in parse_addresses(self.servers):
            async with ReassignmentAdmin(Bootstrap((address,))) as admin:
                known = (await admin.topics([topic])).partitions
                if {one.number: [*found.replicas] for one, found in known.items()} != replicas:
                    return False
        return True

    def broker_log(self, broker_id: int) -> str:
        """The log of a broker."""
        return (self._directory / f"node-{broker_id}/server.log").read_text()

    def data(self, broker_id: int) -> set[str]:
        """The directories of a broker's replicas."""
        return {entry.name for entry in (self._directory / f"node-{broker_id}/data").iterdir()}

    def controllers(self) -> dict[int, str]:
        """The addresses of our controllers that are ready, by id; each start has a new one."""
        servers = client.send_request(self._directory, "status")["controller_servers"]
        return {
            101 + index: str(server["address"])
            for index, server in enumerate(servers)
            if server["ready"]
        }

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


@contextmanager
def controlled_stack(cache: Cache, directory: Path, *options: str) -> Iterator[ControlledCluster]:
    """Three brokers under our controllers, started by the command with further options."""
    environment = dict(os.environ)
    environment |= {"FEATUREWATCH_CACHE": str(cache.directory), "PYTHONPATH": str(SRC)}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*_COMMAND, *arguments, "--directory", str(directory / "stack")]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=240, check=False
        )

    up = run("up", "--zookeeper", "1", "--controlled-brokers", "3", *options)
    try:
        assert up.returncode == 0, up.stderr
        with kafka_tools("3.9.1", cache, directory / "tools") as tools:
            controlled = ControlledCluster(directory / "stack", tools)
            yield controlled
            controlled.close()
    finally:
        run("down", "--remove")
