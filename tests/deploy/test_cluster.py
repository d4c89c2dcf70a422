"""Real clusters: start, roll, kill."""

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient

from deploy.cluster import Cluster
from deploy.specs import ClusterSpec

pytestmark = pytest.mark.stack

MakeCluster = Callable[[ClusterSpec], Cluster]


def broker_ids(cluster: Cluster) -> set[int]:
    """What a Kafka client sees."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    return set(admin.list_topics(timeout=10).brokers)


@pytest.mark.parametrize("name", ["quorum_391", "quorum_430"])
def test_three_combined_nodes_are_seen_by_clients(
    name: str, request: pytest.FixtureRequest
) -> None:
    """A started cluster is whole: any client sees all brokers at once."""
    cluster: Cluster = request.getfixturevalue(name)
    assert broker_ids(cluster) == {1, 2, 3}
    assert cluster.leader().id in {1, 2, 3}
