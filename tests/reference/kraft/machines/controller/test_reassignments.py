"""Partitions are moved to other replicas, and back."""

from typing import Any

import pytest

from featurewatch.reference.kraft.machines.controller.requests import (
    AlterPartition,
    AlterPartitionData,
    AlterPartitionReassignments,
    AlterPartitionTopic,
    BrokerState,
    ListedTopic,
    ListPartitionReassignments,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
    ReassignablePartition,
    ReassignableTopic,
)
from tests.reference.kraft.machines.controller.driven import Driven, led, uuid


def with_topic(level: int = 30) -> tuple[Driven, str]:
    """Four brokers, and a topic on the first two."""
    driven = led(level=level)
    driven.start(1, 2, 3, 4)
    return driven, driven.create("a", (1, 2))


def move(driven: Driven, replicas: tuple[int, ...] | None, name: str = "a", **other: Any) -> Any:
    """Asks for a reassignment; returns the result of the partition."""
    topic = ReassignableTopic(name, (ReassignablePartition(0, replicas),))
    response = driven.ask(AlterPartitionReassignments((topic,), **other))
    assert response.error_code == 0
    return response.responses[0].partitions[0]


def alter_isr(driven: Driven, topic: str, *isr: int) -> Any:
    """The leader changes the ISR."""
    partition = driven.partition(topic)
    data = AlterPartitionData(
        0,
        partition.leader_epoch,
        tuple(BrokerState(one) for one in isr),
        partition.partition_epoch,
    )
    epoch = driven.controller.committed.brokers[partition.leader].epoch
    request = AlterPartition(partition.leader, epoch, (AlterPartitionTopic(topic, (data,)),))
    return driven.ask(request, 3).topics[0].partitions[0]


def listed(driven: Driven, *topics: ListedTopic) -> Any:
    """The ongoing reassignments of some topics, or of all."""
    return driven.ask(ListPartitionReassignments(topics or None)).topics


@pytest.mark.parametrize("level", [7, 16, 17, 30])
def test_a_move(level: int) -> None:
    """New replicas are added, and the old ones leave when the new ones are in sync."""
    driven, topic = with_topic(level)
    assert move(driven, (3, 4)).error_code == 0
    partition = driven.partition(topic)
    assert partition.replicas == (3, 4, 1, 2)
    assert (partition.adding, partition.removing, partition.leader) == ((3, 4), (1, 2), 1)
    assert len(partition.directories) == 4
    expected = OngoingPartitionReassignment(0, (3, 4, 1, 2), (3, 4), (1, 2))
    assert listed(driven) == (OngoingTopicReassignment("a", (expected,)),)
    assert listed(driven, ListedTopic("a", (1,)), ListedTopic("b", (0,))) == ()
    assert alter_isr(driven, topic, 1, 2, 3).error_code == 0
    assert driven.partition(topic).adding == (3, 4)
    assert alter_isr(driven, topic, 1, 2, 3, 4).error_code == 108, "the leader is removed"
    partition = driven.partition(topic)
    assert (partition.replicas, partition.isr, partition.leader) == ((3, 4), (3, 4), 3)
    assert (partition.adding, partition.removing) == ((), ())
    if level >= 17:
        assert partition.directories == (uuid(503), uuid(504))
    assert listed(driven) == ()


def test_cancelling() -> None:
    """The replicas are those of before, if one of them is in sync."""
    driven, topic = with_topic()
    before = driven.partition(topic)
    move(driven, (3, 4))
    assert move(driven, None).error_code == 0
    after = driven.partition(topic)
    assert (after.replicas, after.isr, after.leader) == (before.replicas, before.isr, 1)
    assert after.directories == before.directories
    assert move(driven, None).error_code == 85


@pytest.mark.parametrize(
    ("replicas", "name", "allows", "error"),
    [
        ((3, 4), "b", True, 3),
        ((), "a", True, 39),
        ((1, 1), "a", True, 39),
        ((1, 9), "a", True, 39),
        ((1, 2, 3), "a", False, 39),
        ((1, 2, 3), "a", True, 0),
    ],
)
def test_refused_moves(replicas: tuple[int, ...], name: str, *, allows: bool, error: int) -> None:
    """Replicas must be registered brokers, each once; their number may be fixed (KIP-860)."""
    driven, topic = with_topic()
    before = driven.partition(topic)
    result = move(driven, replicas, name, allow_replication_factor_change=allows)
    assert result.error_code == error
    assert (driven.partition(topic) == before) is bool(error)
