"""What a reassignment would do, which replacements never end, and Java's order of lists."""

import pytest

from featurewatch.admin.cluster.configs import ConfigOwner
from featurewatch.admin.cluster.values import (
    BrokerReplica,
    ClusterTopics,
    PartitionDetails,
    ReplicaDirectory,
)
from featurewatch.admin.reassignments import throttles
from featurewatch.cli.commands.reassign.common.plan import (
    endless,
    plan_document,
    plan_lines,
    plan_reassignment,
)
from featurewatch.cli.kafka_tools.errors import KafkaToolError
from featurewatch.cli.kafka_tools.java import in_set_order
from featurewatch.controller.kraft.map_order import string_hash
from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.streams.types import NodeId

PARTITION = TopicPartition("t", 0)
OTHER = TopicPartition("t", 1)


def node_ids(*numbers: int) -> tuple[NodeId, ...]:
    """Ids of brokers."""
    return tuple(map(NodeId, numbers))


def test_the_plan_names_what_moves_and_what_it_risks() -> None:
    """Bytes from the leader's directory, a leader that goes, another replication factor, a replica
    that is not in sync, and a broker without room."""
    partitions = {
        PARTITION: PartitionDetails(0, NodeId(1), node_ids(1, 2), node_ids(1)),
        OTHER: PartitionDetails(1, NodeId(2), node_ids(2), node_ids(2)),
    }
    present = ClusterTopics({}, partitions, {})
    sizes = {
        BrokerReplica(PARTITION, 1): ReplicaDirectory("/a", None, 1000, 50),
        BrokerReplica(OTHER, 2): ReplicaDirectory("/a", None, 500, 50),
        BrokerReplica(OTHER, 3): ReplicaDirectory("/a", None, 0, 900),
    }
    plan = plan_reassignment({OTHER: (2, 3), PARTITION: (2, 3)}, {}, present, sizes)
    assert plan.bytes_to_copy == 1500
    assert list(plan_lines(plan)) == [
        "2 partitions, 2 replicas to copy, 1,500 bytes from leaders",
        "t-0: 1,2 -> 2,3",
        "  copies to 3: 1,000 bytes each",
        "  deletes from 1",
        "  beware: its leader 1 is removed: another replica becomes the leader",
        "  beware: 2 is not in sync before it begins",
        "t-1: 2 -> 2,3",
        "  copies to 3: 500 bytes each",
        "  beware: the replication factor changes from 1 to 2",
        "beware: broker 3 gets 1,500 bytes and has room for 900",
    ]
    assert plan_document(plan)["bytes_to_copy"] == 1500


@pytest.mark.parametrize(
    ("target", "release", "is_stuck"),
    [
        ((1, 2, 3), (3, 7), True),
        ((1, 2, 3), (3, 9), False),
        ((1, 2, 3), (4, 2), False),
        ((1, 2, 3), (4, 3), True),
        ((4, 2, 3), (4, 3), False),
        ((5, 2, 3), (4, 3), False),
    ],
)
def test_a_rollback_that_never_ends_is_found(
    target: tuple[int, ...], release: tuple[int, int], is_stuck: bool
) -> None:
    """1,2,3 on the way to 4,2,3, sent back: 4 is added and removed, which 3.3 to 3.7 and 4.3 wait
    for; a reassignment that is requested again, or replaced by others, ends."""
    running = {PARTITION: ReplicaAssignment((4, 2, 3, 1), (4,), (1,))}
    stuck = dict(endless({PARTITION: target, OTHER: (1,)}, running, release))
    assert stuck == ({PARTITION: "4 would be added and removed"} if is_stuck else {})


def test_a_replacement_that_drops_what_it_names_is_found() -> None:
    """1,2,3 on the way to 4,2,3, replaced by 4,2,3,1,5: the old removal of 1 stays."""
    running = {PARTITION: ReplicaAssignment((4, 2, 3, 1), (4,), (1,))}
    stuck = dict(endless({PARTITION: (4, 2, 3, 1, 5)}, running, (4, 3)))
    assert stuck == {PARTITION: "1 would be removed though it is in the file"}


def test_leftovers_are_what_tools_write() -> None:
    """Lists of partitions and brokers, empty ones too; ``*`` is a person's."""
    listed = {throttles.LEADER_REPLICAS: "0:1,12:3", throttles.FOLLOWER_REPLICAS: ""}
    configs: dict[ConfigOwner, dict[str, str]] = {
        ConfigOwner.topic("left"): listed,
        ConfigOwner.topic("whole"): {throttles.LEADER_REPLICAS: "*"},
        ConfigOwner.topic("none"): {},
        ConfigOwner.broker(2): {throttles.LEADER_RATE: "1"},
        ConfigOwner.broker(1): {},
    }
    assert throttles.leftover_topics(configs) == ["left"]
    assert throttles.leftover_brokers(configs) == [2]


def test_partitions_have_the_order_of_a_hash_set() -> None:
    """``TopicPartition.hashCode`` decides, not what came first; each is there once."""
    partitions = [TopicPartition("abc", number) for number in (9, 3, 0, 3)]
    order = in_set_order(partitions)
    slots = [(31 * (31 + one.number) + string_hash("abc")) & 0xFFFFFFFF for one in order]
    assert sorted(order) == [partitions[2], partitions[1], partitions[0]]
    assert slots == sorted(slots, key=lambda slot: (slot ^ (slot >> 16)) & 15)
    assert str(KafkaToolError("text", advice="advice")) == "text"
