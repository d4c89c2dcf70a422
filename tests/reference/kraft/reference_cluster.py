"""Real brokers under controllers of the reference, and what acts on them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.admin import FeatureAdmin, FeatureUpdate
from featurewatch.admin.blocking_client import blocking
from featurewatch.reference.kraft.machines.metadata.levels import FEATURE_LEVEL
from featurewatch.reference.kraft.machines.metadata.snapshots import read_snapshot
from featurewatch.stack.java.jars import Cache, Jars, java_command
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.node import KafkaNode
from featurewatch.stack.kafka.specs import under_reference
from featurewatch.streams.types import LOG_START, METADATA_VERSION, FeatureLevel, OffsetAndEpoch
from tests.waiting import DEADLINE_S, eventually

TOPIC: Final = "orders"
PARTITIONS: Final = 3


class ReferenceCluster:
    """The running cluster."""

    def __init__(self, cluster: Cluster, cache: Cache) -> None:
        self.cluster = cluster
        self._cache = cache
        self.servers = cluster.bootstrap_servers
        self.admin = AdminClient({"bootstrap.servers": self.servers})

    @property
    def controllers(self) -> list[KafkaNode]:
        """The nodes of the quorum."""
        return [node for node in self.cluster.nodes if node.spec.roles.is_controller]

    @property
    def brokers(self) -> list[KafkaNode]:
        """The brokers."""
        return [node for node in self.cluster.nodes if not node.spec.roles.is_controller]

    def create_topic(self, name: str, replicas: int = 3, deadline_s: float = DEADLINE_S) -> float:
        """Creates a topic, again and again until it is there; how long that took, in seconds."""
        began = time.monotonic()
        needed = {"min.insync.replicas": str(min(replicas, 2))}
        new = NewTopic(name, PARTITIONS, replicas, config=needed)

        def is_created() -> bool:
            future = self.admin.create_topics([new], request_timeout=2, operation_timeout=2)[name]
            try:
                future.result(5)
            except KafkaException as error:
                if str(error.args[0].name()) == "TOPIC_ALREADY_EXISTS":
                    return True
                # librdkafka sends this to the broker that the last metadata called the controller,
                # which is any broker under KRaft, and waits for that one while it is down.
                with suppress(KafkaException):
                    self.admin.list_topics(timeout=5)
                return False
            return True

        assert eventually(is_created, deadline_s), name
        return time.monotonic() - began

    def partitions(self, name: str = TOPIC) -> dict[int, tuple[int, list[int], list[int]]]:
        """The leader, the replicas and the ISR of each partition of a topic."""
        found = self.admin.list_topics(name, timeout=30).topics[name].partitions
        return {
            number: (each.leader, sorted(each.replicas), sorted(each.isrs))
            for number, each in found.items()
        }

    def partitions_in_sync(self, name: str = TOPIC) -> bool:
        """Whether every partition of a topic has a leader and all replicas in its ISR."""
        found = self.partitions(name)
        return len(found) == PARTITIONS and all(
            leader > 0 and isr == replicas for leader, replicas, isr in found.values()
        )

    def levels(self) -> dict[str, int]:
        """The finalized levels, as the first broker tells them."""
        with blocking(FeatureAdmin.connect(self.servers)) as admin:
            found = admin.describe()
        return {str(name): int(level) for name, level in found.finalized.items()}

    def upgrade(self, level: int) -> str:
        """Raises metadata.version by our client; the text of a refusal, empty without one."""
        update = FeatureUpdate(METADATA_VERSION, FeatureLevel(level))
        with blocking(FeatureAdmin.connect(self.servers)) as admin:
            result = admin.update([update])
        return "; ".join(str(refused.text) for refused in result.refused)

    def kafka_features(self, *arguments: str, release: str = "4.3.1") -> str:
        """Runs Kafka's own tool through a broker; what it prints."""
        command = java_command(
            self._cache.class_path(release, Jars.TOOLS),
            "org.apache.kafka.tools.FeatureCommand",
            *("--bootstrap-server", self.servers),
            *arguments,
            heap_mb=96,
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]
        return done.stdout

    def featurewatch(self, *arguments: str) -> str:
        """Runs our command; what it prints."""
        program = "from featurewatch.cli.main import main; main()"
        command = [sys.executable, "-c", program, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]
        return done.stdout

    def hand_over(self, wanted: KafkaNode, topic: str) -> None:
        """Kills the leader, which only the wanted controller can follow: the others lack a record.

        The record is that of two new topics, whose names begin like this. If it leads already
        nothing is done.
        """
        leader = self.cluster.leader()
        if leader.id == wanted.id:
            return
        others = [one for one in self.controllers if one.id not in (leader.id, wanted.id)]
        with paused(others):
            # The first one answers the Fetch that was already sent.
            self.create_topic(f"{topic}-a", 1)
            self.create_topic(f"{topic}-b", 1)
            leader.kill()
        assert eventually(lambda: self.cluster.leader().id == wanted.id), (leader, wanted)
        leader.start()

    def logs(self) -> str:
        """What all our controllers have logged."""
        return "\n".join(
            node.log.read_text() for node in self.controllers if node.spec.is_reference
        )


def snapshots(node: KafkaNode) -> dict[OffsetAndEpoch, bytes]:
    """The content of the snapshots of a node that are whole, without that of the format."""
    found = {}
    for file in node.metadata_log.glob("*.checkpoint"):
        offset, epoch = map(int, file.stem.split("-"))
        with suppress(FileNotFoundError):  # a newer one has replaced it
            found[OffsetAndEpoch(offset, epoch)] = file.read_bytes()
    found.pop(LOG_START, None)
    return found


def snapshot_levels(node: KafkaNode) -> set[int]:
    """The levels of metadata.version in the snapshots of a node."""
    return {
        record.data["featureLevel"]
        for content in snapshots(node).values()
        for record in read_snapshot(content).records
        if record.type == FEATURE_LEVEL and record.data["name"] == METADATA_VERSION
    }


@contextmanager
def paused(nodes: Sequence[KafkaNode]) -> Iterator[None]:
    """Stops nodes from running, which keep their connections."""
    pids = [node.pid for node in nodes]
    try:
        for pid in pids:
            assert pid is not None
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            assert pid is not None
            os.kill(pid, signal.SIGCONT)


@contextmanager
def reference_cluster(
    directory: Path,
    cache: Cache,
    releases: Sequence[str],
    *,
    references: int = 3,
    javas: int = 0,
    level: str | None = None,
    properties: Mapping[str, str] | None = None,
) -> Iterator[ReferenceCluster]:
    """Brokers of these releases under our controllers and perhaps Kafka's, ready for clients."""
    spec = under_reference(releases, references, javas, level, properties)
    with Cluster(spec, directory, cache=cache, temporary=True) as cluster:
        yield ReferenceCluster(cluster, cache)
