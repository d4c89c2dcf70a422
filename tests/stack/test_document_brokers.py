"""Real brokers of Kafka 3.9.1 under a controller that follows Kafka Controller Internals.

docs/explanation/controller.md says which steps of the document such a broker cannot follow; each of
them is seen here.
"""

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from featurewatch.stack.errors import WireError
from featurewatch.stack.java.jars import Cache
from featurewatch.stack.wire.probe import live_brokers
from tests.stack.controlled_cluster import ControlledCluster, controlled_stack
from tests.waiting import eventually

pytestmark = [pytest.mark.stack, pytest.mark.form("document")]

WAIT_S = 90.0


class State(NamedTuple):
    """A partition's state in ZooKeeper."""

    leader: int
    isr: list[int]
    leader_epoch: int


class DocumentCluster:
    """What a client does to the cluster, and what is in its znodes."""

    def __init__(self, cluster: ControlledCluster) -> None:
        self.cluster = cluster
        self.zookeeper = cluster.zookeeper

    def seen_by(self, broker_id: int) -> set[int]:
        """The brokers that a broker knows, as it answers itself; none while it does not run."""
        host, _, port = self.cluster.servers.split(",")[broker_id - 1].rpartition(":")
        try:
            return live_brokers(host, int(port))
        except WireError:
            return set()

    def create(self, **replicas: list[int]) -> None:
        """Creates topics of one partition."""
        topics = [
            NewTopic(name, 1, replica_assignment=[brokers]) for name, brokers in replicas.items()
        ]
        for created in self.cluster.admin.create_topics(topics).values():
            created.result(WAIT_S)

    def state(self, topic: str) -> State:
        """The state of a topic's partition."""
        data, _ = self.zookeeper.get(f"/brokers/topics/{topic}/partitions/0/state")
        content = json.loads(data)
        return State(content["leader"], content["isr"], content["leader_epoch"])

    def znode(self, topic: str) -> dict[str, object]:
        """The assignment of a topic."""
        return dict(json.loads(self.zookeeper.get(f"/brokers/topics/{topic}")[0]))

    def reassign(self, topic: str, *target: int) -> None:
        """Moves a topic's partition by the znode; returns when that has ended."""
        entry = {"topic": topic, "partition": 0, "replicas": target}
        content = {"version": 1, "partitions": [entry]}
        self.zookeeper.create("/admin/reassign_partitions", json.dumps(content).encode())
        assert eventually(lambda: not self.zookeeper.exists("/admin/reassign_partitions"), WAIT_S)
        assert self.znode(topic)["partitions"] == {"0": [*target]}

    def write(self, topic: str) -> None:
        """Writes a message that all of the ISR acknowledge."""
        errors: list[object] = []
        producer = Producer({"bootstrap.servers": self.cluster.servers, "acks": "all"})
        producer.produce(
            topic, b"x", partition=0, on_delivery=lambda error, _: errors.append(error)
        )
        assert producer.flush(WAIT_S) == 0
        assert errors == [None]

    def has_messages(self, topic: str, count: int) -> bool:
        """Waits until a client could read this many messages."""

        def end_offset() -> int:
            consumer = Consumer({"bootstrap.servers": self.cluster.servers, "group.id": "any"})
            try:
                return int(consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=5)[1])
            except KafkaException:
                return -1  # no broker leads, or the client does not know it yet
            finally:
                consumer.close()

        return eventually(lambda: end_offset() == count, WAIT_S)

    def has(self, topic: str, leader: int, *isr: int) -> bool:
        """Waits for the leader and the ISR of a topic's partition."""

        def is_reached() -> bool:
            state = self.state(topic)
            return state.leader == leader and sorted(state.isr) == [*isr]

        return eventually(is_reached, WAIT_S)

    def follows_no_more(self, broker_id: int, topic: str, times: int = 1) -> bool:
        """Waits until a follower was refused, since the leader has an epoch it was not told."""
        line = f"Partition {topic}-0 has an older epoch"
        return eventually(lambda: self.cluster.broker_log(broker_id).count(line) >= times, WAIT_S)


@pytest.fixture(scope="module")
def cluster(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DocumentCluster]:
    """Three brokers without topics."""
    options = ("--operations-dialect", "document")
    with controlled_stack(stack_cache, tmp_path_factory.mktemp("document"), *options) as running:
        yield DocumentCluster(running)


def test_real_brokers_under_the_document(cluster: DocumentCluster) -> None:
    """What real brokers do with each step, and where they cannot follow the document.

    A broker that starts is told first, and alone (C-40). Of a smaller ISR only the leader is told
    (C-34), also when a broker shuts down (C-64) and when a reassignment deletes replicas (C-51): a
    follower is refused then until a step informs all replicas, as a reassignment (C-44) or the
    start of a controller (C-58). With no ISR member alive any replica leads (C-16), and what only
    the others had is lost.
    """
    node = cluster.cluster.node
    node("stop", "3")
    assert eventually(lambda: cluster.seen_by(1) & {1, 2, 3} == {1, 2}, WAIT_S)
    node("start", "3")
    assert eventually(lambda: {1, 2, 3} <= cluster.seen_by(3), WAIT_S)
    assert cluster.seen_by(1) & {1, 2, 3} == {1, 2}
    cluster.create(first=[3, 1])
    unknown = "cannot become follower since the new leader 3 is unavailable"
    assert eventually(lambda: unknown in cluster.cluster.broker_log(1), WAIT_S)

    cluster.create(moved=[1, 2, 3], lost=[2, 1])
    assert cluster.znode("moved").keys() == {
        "version",
        "partitions",
        "adding_replicas",
        "removing_replicas",
    }
    without_id = "Leader moved-0 with topic id None"
    assert eventually(lambda: without_id in cluster.cluster.broker_log(1), WAIT_S)
    cluster.write("moved")
    cluster.write("lost")

    node("stop", "3")
    assert cluster.has("moved", 1, 1, 2), cluster.state("moved")
    assert cluster.follows_no_more(2, "moved")
    node("start", "3")
    cluster.reassign("moved", 1, 2, 3)
    assert cluster.has("moved", 1, 1, 2, 3), cluster.state("moved")

    cluster.reassign("moved", 3, 2)
    assert cluster.has("moved", 3, 2, 3), cluster.state("moved")
    assert eventually(lambda: "moved-0" not in cluster.cluster.data(1), WAIT_S)
    assert cluster.follows_no_more(2, "moved", times=2)
    controller = cluster.cluster.controller()
    assert controller is not None
    node("kill", f"controller-{controller - 100}")
    assert eventually(lambda: cluster.cluster.controller() == 203 - controller, WAIT_S)
    cluster.write("moved")

    node("stop", "1")
    assert cluster.has("lost", 2, 2), cluster.state("lost")
    cluster.write("lost")
    assert cluster.has_messages("lost", 2)
    node("stop", "2")
    assert cluster.has("lost", -1), cluster.state("lost")
    node("start", "1")
    assert cluster.has("lost", 1, 1), cluster.state("lost")
    assert cluster.has_messages("lost", 1)
