"""Changes of partitions by a KRaft controller when brokers come and go, or on request.

Follows ``ReplicationControlManager`` of Kafka's package ``org.apache.kafka.controller``. A replica
that can catch up is taken to do so within the operation: a broker that starts joins its ISRs, and a
reassignment to live brokers ends.
"""

from collections.abc import Iterable

from featurewatch.controller.partitions.assignment import TopicPartition, without
from featurewatch.controller.partitions.kraft_election import (
    NO_LEADER,
    KraftElection,
    KraftElectionRules,
    KraftPartition,
)
from featurewatch.controller.partitions.kraft_reassignment import can_complete
from featurewatch.controller.partitions.placement import PlacementError
from featurewatch.controller.partitions.striped_placement import UsableBroker, place_striped
from featurewatch.controller.partitions.topic_names import colliding_topics, topic_name_error
from featurewatch.controller.rehearsal.partitions.changes import KraftChanges
from featurewatch.controller.rehearsal.partitions.operations import (
    CreateTopic,
    ElectLeaders,
    OperationResult,
    PartitionRefusal,
    ReassignPartitions,
)
from featurewatch.controller.rehearsal.partitions.state import (
    RehearsedBroker,
    RehearsedPartitions,
)

MAX_RECORDS = 10_000
"""The records of one atomic request (``QuorumController.MAX_RECORDS_PER_USER_OP``)."""


def stop_broker(before: RehearsedPartitions, broker_id: int, *, in_order: bool) -> OperationResult:
    """A broker is fenced, or shuts down ``in_order`` first: both take it out of every ISR.

    One that dies may lose what it acknowledged, which counts when it starts again.
    """
    broker = before.brokers.get(broker_id, RehearsedBroker())
    changes = KraftChanges(before, before.usable() - {broker_id})
    for partition, state in before.partitions.items():
        if broker_id in state.isr:
            isr = without(state.isr, [broker_id])
            changes.change(partition, isr=isr, election=before.election(partition.topic))
    is_unclean = broker.is_unclean if broker.is_fenced else not in_order
    fenced = broker._replace(is_fenced=True, is_stopping=False, is_unclean=is_unclean)
    return changes.result(before.with_broker(broker_id, fenced))


def start_broker(before: RehearsedPartitions, broker_id: int) -> OperationResult:
    """A broker registers, is unfenced, and catches up."""
    broker = before.brokers.get(broker_id, RehearsedBroker())
    if broker.is_unclean and before.rules is not None and before.rules.elr:
        before = _forget_unclean(before, broker_id)
    after = before.with_broker(broker_id, RehearsedBroker(broker.rack))
    changes = KraftChanges(before, after.usable())
    for partition, state in before.partitions.items():
        if state.leader == NO_LEADER:
            changes.change(partition, election=before.election(partition.topic))
    for partition, state in before.partitions.items():
        if broker_id in state.replicas:
            changes.join_isr(partition, broker_id)
    return changes.result(after)


def _forget_unclean(before: RehearsedPartitions, broker_id: int) -> RehearsedPartitions:
    """A broker that died is no eligible leader any more when it registers (KIP-966)."""
    changes = KraftChanges(before, before.usable() - {broker_id})
    for partition, state in before.partitions.items():
        if broker_id in state.isr or broker_id in state.elr:
            changes.change(
                partition,
                isr=without(state.isr, [broker_id]),
                election=before.election(partition.topic),
                unclean_shutdown=frozenset([broker_id]),
            )
    return changes.result(before).after


def unregister_broker(before: RehearsedPartitions, broker_id: int) -> OperationResult:
    """A registration is removed: from every ISR, and from the brokers that may be elected."""
    fenced = stop_broker(before, broker_id, in_order=True)
    return OperationResult(fenced.after.without_broker(broker_id), unclean=fenced.unclean)


def elect(before: RehearsedPartitions, operation: ElectLeaders) -> OperationResult:
    """An election by request, of all partitions that need one."""
    changes = KraftChanges(before, before.usable())
    topics, refusals = before.topics(), list[PartitionRefusal]()
    for topic in operation.topics:
        if topic not in topics:
            text = f"No such topic as {topic}"
            refusals.append(PartitionRefusal(None, "UNKNOWN_TOPIC_OR_PARTITION", text))
    kind = KraftElection.UNCLEAN if operation.is_unclean else KraftElection.PREFERRED
    for partition, state in before.partitions.items():
        if operation.topics and partition.topic not in operation.topics:
            continue
        is_needed = (
            state.leader == NO_LEADER
            if operation.is_unclean
            else state.leader != (state.replicas or (NO_LEADER,))[0]
        )
        if is_needed and not changes.change(partition, election=kind):
            refusals.append(_no_leader(partition, operation))
    return changes.result(before, refusals=tuple(refusals))


def _no_leader(partition: TopicPartition, operation: ElectLeaders) -> PartitionRefusal:
    if operation.is_unclean:
        text = "Eligible topic partition leaders are not available."
        return PartitionRefusal(partition, "ELIGIBLE_LEADERS_NOT_AVAILABLE", text)
    text = "The preferred leader was not available."
    return PartitionRefusal(partition, "PREFERRED_LEADER_NOT_AVAILABLE", text)


def reassign(before: RehearsedPartitions, operation: ReassignPartitions) -> OperationResult:
    """Reassignments begin, and end where all that they wait for is alive."""
    changes = KraftChanges(before, before.usable())
    for partition, replicas in operation.targets.items():
        changes.reassign(partition, replicas)
        for broker_id in changes[partition].adding:
            changes.join_isr(partition, broker_id)
        # From 3.8 on some releases wait for the replicas that stay too.
        for broker_id in changes[partition].replicas:
            state = changes[partition]
            is_moving = state.adding or state.removing
            if is_moving and broker_id not in without(state.removing, state.adding):
                changes.join_isr(partition, broker_id)
    unfinished = {
        partition: _why_unfinished(before, changes, partition)
        for partition in operation.targets
        if changes[partition].adding or changes[partition].removing
    }
    return changes.result(before, unfinished=unfinished)


def _why_unfinished(
    before: RehearsedPartitions, changes: KraftChanges, partition: TopicPartition
) -> str:
    state, rules = changes[partition], before.rules or KraftElectionRules((0, 0))
    if not can_complete(rules, state):
        both = [broker_id for broker_id in state.adding if broker_id in state.removing]
        release = ".".join(map(str, rules.release))
        return (
            f"cannot complete on Kafka {release}: the replicas {_ids(both)} are added and removed "
            "at once; only kafka-reassign-partitions --cancel ends it"
        )
    if state.leader == NO_LEADER:
        return "waits: the partition has no leader"
    missing = without(state.replicas, {*state.isr, *without(state.removing, state.adding)})
    return f"waits until the replicas {_ids(missing)} are in the ISR"


def _ids(broker_ids: Iterable[int]) -> str:
    return ", ".join(map(str, broker_ids))


def create_topic(before: RehearsedPartitions, operation: CreateTopic) -> OperationResult:
    """A topic is created; its replicas are placed as by a controller that draws nothing."""
    refusal = _creation_error(before, operation)
    if refusal is not None:
        return OperationResult(before, (PartitionRefusal(None, *refusal),))
    brokers = [
        UsableBroker(broker_id, broker.rack, broker.is_fenced)
        for broker_id, broker in before.brokers.items()
    ]
    wrapped = f"Unable to replicate the partition {operation.replication_factor} time(s): "
    rules = before.rules or KraftElectionRules((0, 0))
    try:
        placed = place_striped(
            brokers, operation.partition_count, operation.replication_factor, rules.release
        )
    except PlacementError as error:
        text = f"{wrapped}{error}"
        return OperationResult(
            before, (PartitionRefusal(None, "INVALID_REPLICATION_FACTOR", text),)
        )
    usable, created = before.usable(), dict[TopicPartition, KraftPartition]()
    for number, replicas in enumerate(placed):
        isr = tuple(broker_id for broker_id in replicas if broker_id in usable)
        if not isr:
            text = f"{wrapped}All brokers are currently fenced or in controlled shutdown."
            refusal = ("INVALID_REPLICATION_FACTOR", text)
            return OperationResult(before, (PartitionRefusal(None, *refusal),))
        created[TopicPartition(operation.name, number)] = KraftPartition(replicas, isr, isr[0])
    note = "one possible placement: Kafka begins at a broker that it draws at random"
    return OperationResult(before.with_partitions(created), notes=(note,))


def _creation_error(before: RehearsedPartitions, operation: CreateTopic) -> tuple[str, str] | None:
    name, topics = operation.name, before.topics()
    if (text := topic_name_error(name)) is not None:
        return "INVALID_TOPIC_EXCEPTION", text
    if name == "__cluster_metadata":
        return "INVALID_REQUEST", f"Creation of internal topic {name} is prohibited."
    if others := colliding_topics(name, topics):
        text = f"Topic '{name}' collides with existing topic: {others[0]}"
        return "INVALID_TOPIC_EXCEPTION", text
    if name in topics:
        return "TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists."
    if operation.replication_factor <= 0:
        text = "Replication factor must be larger than 0, or -1 to use the default value."
        return "INVALID_REPLICATION_FACTOR", text
    if operation.partition_count <= 0:
        text = "Number of partitions was set to an invalid non-positive value."
        return "INVALID_PARTITIONS", text
    if operation.partition_count >= MAX_RECORDS:
        return "POLICY_VIOLATION", "Unable to perform excessively large batch operation."
    return None
