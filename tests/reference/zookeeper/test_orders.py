"""Orders to light replicas: what is performed, and what is refused in one line."""

import pytest

from featurewatch.reference.zookeeper.cluster import ClusterSettings, ReferenceCluster
from featurewatch.reference.zookeeper.machines.controller.topic_requests import OperationsSettings
from featurewatch.reference.zookeeper.node import NodeSettings
from featurewatch.reference.zookeeper.orders import MAX_LINE, MAX_WRITES, Orders
from featurewatch.reference.zookeeper.replica_host import ReplicaHost

SETTINGS = ClusterSettings(
    NodeSettings("localhost:1", 1, operations=OperationsSettings(lambda: "id")), brokers=9, full=2
)


def orders() -> tuple[Orders, ReferenceCluster]:
    """Orders to a cluster with the light brokers 3 to 9, which is not started."""
    cluster = ReferenceCluster(SETTINGS)
    cluster.replicas = ReplicaHost(lambda: None)
    for broker_id in SETTINGS.light_ids():
        cluster.replicas.brokers.start(broker_id, 100 + broker_id)
    return Orders(cluster), cluster


def test_full_nodes_host_no_replicas() -> None:
    """Only the light brokers do: the ids of all full nodes are those of controllers."""
    for settings in SETTINGS.node_settings():
        assert settings.operations is not None
        assert settings.operations.controller_ids == {1, 2}
    assert [*SETTINGS.light_ids()] == [*range(3, 10)]


def test_orders_take_ids_and_ranges() -> None:
    """The line is answered when it is performed."""
    performer, cluster = orders()
    assert cluster.replicas is not None
    assert performer.perform("behind 3 5-7\n") == "done: behind 3 5-7"
    assert cluster.replicas.brokers.behind == {3, 5, 6, 7}
    assert performer.perform("catch-up 6") == "done: catch-up 6"
    assert cluster.replicas.brokers.behind == {3, 5, 7}
    assert performer.perform("end 9-9") == "done: end 9-9"
    assert 9 not in cluster.replicas.brokers.brokers
    assert performer.perform("start 9") == "done: start 9"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "give end, start, behind or catch-up"),
        ("stop 3", "give end, start, behind or catch-up"),
        ("end", "give end, start, behind or catch-up"),
        ("end 2", "2 is not among the light brokers 3-9"),
        ("end 3-10", "3-10 is not among the light brokers 3-9"),
        ("end 5-4", "5-4 is not among the light brokers 3-9"),
        ("end x", "x is not a number"),
        ("end -3", " is not a number"),
        ("end ³", "is not a number"),
        ("end 99999999999", "is not a number"),
        ("behind 3 " + "3 " * MAX_LINE, "give end, start, behind or catch-up"),
        ("write t", "give end, start, behind or catch-up"),
        ("write t x", "x is not a number"),
        ("write t 0", "no light broker leads t-0"),
        (f"write t 0 {MAX_WRITES + 1}", "at most 10000 messages at once"),
    ],
)
def test_what_cannot_be_performed_is_refused(line: str, reason: str) -> None:
    """One line says why, and nothing has changed."""
    performer, cluster = orders()
    assert cluster.replicas is not None
    answer = performer.perform(line)
    assert answer.startswith("refused: ")
    assert reason in answer
    assert "\n" not in answer
    assert cluster.replicas.brokers.behind == set()
    assert len(cluster.replicas.brokers.brokers) == 7


def test_without_replicas_there_is_nothing_to_order() -> None:
    """A cluster that does not control topics."""
    cluster = ReferenceCluster(ClusterSettings(NodeSettings("localhost:1", 1), brokers=9))
    assert Orders(cluster).perform("end 7").startswith("refused: no light broker hosts replicas")
