"""A running stack of real brokers under featurewatch's own controllers, and what acts on it."""

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from featurewatch.stack import client
from featurewatch.stack.java.jars import Cache, Jars, java_command

TOPIC: Final = "orders"


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

    def tool(self, name: str, *arguments: str, code: int = 0) -> str:
        """Runs one of Kafka's own tools, which ends with a code; returns what it prints on stdout.

        ``name`` is its class, without the package of most of them.
        """
        command = java_command(
            self._cache.class_path("3.9.1", Jars.TOOLS),
            name if name.startswith("kafka.") else f"org.apache.kafka.tools.{name}",
            *("--bootstrap-server", self.servers),
            *arguments,
            heap_mb=96,
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == code, done.stdout + done.stderr[-2000:]
        return done.stdout

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
