"""What brokers answer of their partitions, as the check of a restart in ZooKeeper mode takes it."""

from featurewatch.admin.cluster.values import (
    BrokerNode,
    ClusterMetadata,
    PartitionDetails,
    TopicDetails,
    TopicOverview,
)
from featurewatch.cli.commands.upgrade.reading import broker_view
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.streams.types import NodeId


def _ids(*ids: int) -> tuple[NodeId, ...]:
    return tuple(map(NodeId, ids))


def test_the_view_of_brokers() -> None:
    """Partitions without a leader, reassignments, and a minimum that is not known."""
    brokers = tuple(BrokerNode(NodeId(n), "h", 9092, None) for n in (1, 2))
    led = PartitionDetails(0, NodeId(1), _ids(1, 2, 3), _ids(1, 2))
    lost = PartitionDetails(1, None, _ids(1, 2), ())
    topics = (
        TopicDetails("orders", None, is_internal=False, partitions=(led, lost)),
        TopicDetails("audit", None, is_internal=False, partitions=(led,)),
    )
    moves = {TopicPartition("orders", 0): ReplicaAssignment((1, 2, 3), (3,), (1,))}
    overview = TopicOverview(ClusterMetadata("c", NodeId(1), brokers), topics)
    view = broker_view(overview, moves, {"orders": 2, "audit": None})
    assert view.running == {1, 2}
    image = view.partitions
    first, second = image.partitions["orders", 0], image.partitions["orders", 1]
    assert (first.replicas, first.isr, first.leader) == ((1, 2, 3), (1, 2), 1)
    assert (first.adding, first.removing, second.leader, second.adding) == ((3,), (1,), -1, ())
    assert {name: found.value for name, found in image.min_isrs.items()} == {"t/orders": 2}
    assert image.name_of(("audit", 0)) == "audit-0"
