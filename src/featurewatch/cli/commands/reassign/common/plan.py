"""The moves and risks of a reassignment before it is sent; pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from featurewatch.admin.cluster.values import (
    BrokerReplica,
    ClusterTopics,
    PartitionDetails,
    ReplicaDirectory,
)
from featurewatch.admin.reassignments.types import Replicas, Targets
from featurewatch.cli.commands.reassign.common.documents import partition_fields
from featurewatch.cli.kafka_tools.reassign import joined
from featurewatch.controller.partitions.assignment import (
    ReplicaAssignment,
    TopicPartition,
    without,
)
from featurewatch.controller.partitions.kraft_election import (
    KraftElectionRules,
    completed_reassignment,
)


class PlannedMove(NamedTuple):
    """The reassignment of a partition: sizes are in bytes, None where they are not known."""

    partition: TopicPartition
    before: Replicas
    after: Replicas
    adding: Replicas
    removing: Replicas
    size: int | None
    risks: tuple[str, ...]


class ReassignmentPlan(NamedTuple):
    """All moves, and what they risk as a whole."""

    moves: tuple[PlannedMove, ...]
    risks: tuple[str, ...]

    @property
    def bytes_to_copy(self) -> int:
        """The sum of what brokers copy from leaders, as far as it is known."""
        return sum((move.size or 0) * len(move.adding) for move in self.moves)


def plan_reassignment(
    targets: Targets,
    running: Mapping[TopicPartition, ReplicaAssignment],
    present: ClusterTopics,
    sizes: Mapping[BrokerReplica, ReplicaDirectory],
) -> ReassignmentPlan:
    """The plan; ``sizes`` has the leaders' replicas, and those of others as far as known."""
    moves = tuple(
        _planned(partition, replicas, running.get(partition), present.partitions[partition], sizes)
        for partition, replicas in sorted(targets.items())
    )
    return ReassignmentPlan(moves, tuple(_full_brokers(moves, sizes)))


def endless(
    targets: Targets,
    running: Mapping[TopicPartition, ReplicaAssignment],
    release: tuple[int, int],
) -> Iterator[tuple[TopicPartition, str]]:
    """The partitions whose replacement a KRaft controller of a release never completes, and why.

    The controller keeps the old added or removed replicas if the new lists are empty.
    """
    rule = KraftElectionRules(release).completion
    for partition, replicas in sorted(targets.items()):
        if partition not in running:
            continue
        old = running[partition]
        if {*old.replicas} == {*replicas}:
            continue
        adding = without(replicas, old.replicas) or old.adding
        removing = without(old.replicas, replicas) or old.removing
        whole = (*replicas, *without(removing, replicas))
        if completed_reassignment(rule, whole, adding, removing, whole) is None:
            yield partition, f"{joined(sorted({*adding} & {*removing}))} would be added and removed"
        elif dropped := sorted({*removing} & {*replicas}):
            yield partition, f"{joined(dropped)} would be removed though it is in the file"


def plan_lines(plan: ReassignmentPlan) -> Iterator[str]:
    """The plan for people."""
    copies = sum(len(move.adding) for move in plan.moves)
    yield (
        f"{len(plan.moves)} partitions, {copies} replicas to copy, "
        f"{plan.bytes_to_copy:,} bytes from leaders"
    )
    for move in plan.moves:
        yield f"{move.partition}: {joined(move.before)} -> {joined(move.after)}"
        if move.adding:
            size = "unknown size" if move.size is None else f"{move.size:,} bytes"
            yield f"  copies to {joined(move.adding)}: {size} each"
        if move.removing:
            yield f"  deletes from {joined(move.removing)}"
        yield from (f"  beware: {risk}" for risk in move.risks)
    yield from (f"beware: {risk}" for risk in plan.risks)


def plan_document(plan: ReassignmentPlan) -> dict[str, Any]:
    """The plan as JSON."""
    return {
        "plan": [
            {
                **partition_fields(move.partition),
                "replicas": move.before,
                "target": move.after,
                "adding": move.adding,
                "removing": move.removing,
                "bytes": move.size,
                "risks": move.risks,
            }
            for move in plan.moves
        ],
        "bytes_to_copy": plan.bytes_to_copy,
        "risks": plan.risks,
    }


def _planned(
    partition: TopicPartition,
    replicas: Replicas,
    running: ReplicaAssignment | None,
    found: PartitionDetails,
    sizes: Mapping[BrokerReplica, ReplicaDirectory],
) -> PlannedMove:
    before = running.origin if running else found.replicas
    leader = None
    if found.leader is not None:
        leader = sizes.get(BrokerReplica(partition, found.leader))
    return PlannedMove(
        partition,
        before,
        replicas,
        without(replicas, before),
        without(before, replicas),
        leader.size if leader else None,
        tuple(_risks(before, replicas, running, found)),
    )


def _risks(
    before: Replicas, after: Replicas, running: ReplicaAssignment | None, found: PartitionDetails
) -> Iterator[str]:
    if running is not None:
        yield (
            f"it is being moved already (adding {joined(running.adding) or 'none'}, removing "
            f"{joined(running.removing) or 'none'}): that is replaced"
        )
    if len(after) != len(before):
        yield f"the replication factor changes from {len(before)} to {len(after)}"
    if found.leader is None:
        yield "it has no leader, so nothing can be copied until it has one"
    elif found.leader not in after:
        yield f"its leader {found.leader} is removed: another replica becomes the leader"
    if missing := sorted({*found.replicas} - {*found.isr}):
        yield f"{joined(missing)} is not in sync before it begins"
    if len(after) == 1:
        yield "one replica is left: a failure of its broker stops it"


def _full_brokers(
    moves: Iterable[PlannedMove], sizes: Mapping[BrokerReplica, ReplicaDirectory]
) -> Iterator[str]:
    incoming: dict[int, int] = {}
    for move in moves:
        for broker_id in move.adding:
            incoming[broker_id] = incoming.get(broker_id, 0) + (move.size or 0)
    for broker_id, size in sorted(incoming.items()):
        usable = [
            one.usable
            for replica, one in sizes.items()
            if replica.broker_id == broker_id and one.usable is not None
        ]
        if usable and max(usable) < size:
            yield f"broker {broker_id} gets {size:,} bytes and has room for {max(usable):,}"
