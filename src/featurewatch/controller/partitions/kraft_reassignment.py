"""How a KRaft controller begins a reassignment, and whether it can end at all.

Follows ``ReplicationControlManager.changePartitionReassignment`` and
``PartitionReassignmentReplicas`` of Kafka's package ``org.apache.kafka.controller``.
"""

from collections.abc import Sequence, Set

from featurewatch.controller.partitions.kraft_election import (
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
    PartitionTarget,
    change_partition,
    completed_reassignment,
)


def begin_reassignment(
    rules: KraftElectionRules,
    partition: KraftPartition,
    replicas: Sequence[int],
    usable: Set[int],
    min_isr: int = 1,
) -> PartitionChange:
    """The fields that are written for a reassignment to ``replicas``; empty: nothing is to be done.

    What the partition has now counts as its present replicas, those that an unfinished reassignment
    adds included. A set that would become empty keeps its old members, so a replacement may leave
    brokers that are added and removed at once (`can_complete`).
    """
    removing = tuple(sorted({*partition.replicas} - {*replicas}))
    adding = tuple(sorted({*replicas} - {*partition.replicas}))
    target = PartitionTarget(
        usable,
        min_isr,
        replicas=(*replicas, *removing),
        adding=adding or None,
        removing=removing or None,
    )
    return change_partition(rules, partition, target)


def can_complete(rules: KraftElectionRules, partition: KraftPartition) -> bool:
    """Whether some ISR ends the partition's reassignment; true without one.

    On Kafka 3.3 to 3.7 and from 4.3 on one whose added replicas are also removed waits until it is
    canceled.
    """
    if not partition.adding and not partition.removing:
        return True
    replicas, adding, removing = partition.replicas, partition.adding, partition.removing
    completed = completed_reassignment(rules.completion, replicas, adding, removing, replicas)
    return completed is not None
