"""Changes of partitions by a controller in ZooKeeper mode when brokers come and go, or on request.

Follows ``KafkaController``, ``ZkPartitionStateMachine`` and ``ZkReplicaStateMachine`` of Kafka 3.9.
A replica that can catch up is taken to do so within the operation, as in `kraft`.
"""

from collections.abc import Set
from dataclasses import replace

from featurewatch.controller.partitions.assignment import (
    ReplicaAssignment,
    TopicPartition,
    without,
)
from featurewatch.controller.partitions.kraft_election import NO_LEADER, KraftPartition
from featurewatch.controller.partitions.placement import (
    PlacementError,
    PlacementStart,
    place_replicas,
)
from featurewatch.controller.partitions.selectors import (
    RELEASED_SELECTORS,
    ElectionInput,
    SelectedLeader,
    select_controlled_shutdown,
    select_first,
    select_offline,
    select_preferred,
    select_reassigned,
)
from featurewatch.controller.partitions.topic_names import colliding_topics, topic_name_error
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

_Changed = dict[TopicPartition, KraftPartition]


def stop_broker(before: RehearsedPartitions, broker_id: int, *, in_order: bool) -> OperationResult:
    """A broker dies, or shuts down ``in_order`` first: then its leaders move while it still runs.

    A partition with one replica keeps its leader until the broker has stopped.
    """
    live = before.usable() - {broker_id}
    changed: _Changed = {}
    unclean: set[TopicPartition] = set()
    for partition, state in before.partitions.items():
        if broker_id not in state.isr and state.leader != broker_id:
            continue
        after = state
        if in_order and len(state.replicas) > 1:
            after = _without_stopping(_input(before, partition, state, live), state, broker_id)
        if after.leader == broker_id:
            selected = _select_offline(before, partition, after, live)
            if selected is not None:
                after = _led(after, selected)
                if selected.is_unclean:
                    unclean.add(partition)
        changed[partition] = _without_replica(after, broker_id)
    broker = before.brokers.get(broker_id, RehearsedBroker())
    fenced = before.with_broker(broker_id, broker._replace(is_fenced=True, is_stopping=False))
    return OperationResult(fenced.with_partitions(changed), unclean=frozenset(unclean))


def _without_stopping(
    election: ElectionInput, state: KraftPartition, broker_id: int
) -> KraftPartition:
    """A partition after the request for a controlled shutdown."""
    if state.leader != broker_id:
        return _without_replica(state, broker_id)
    stopping = election._replace(stopping=frozenset([broker_id]))
    selected = select_controlled_shutdown(RELEASED_SELECTORS, stopping, {broker_id})
    return state if selected is None else _led(state, selected)


def start_broker(before: RehearsedPartitions, broker_id: int) -> OperationResult:
    """A broker registers: leaderless partitions are elected, and it catches up."""
    broker = before.brokers.get(broker_id, RehearsedBroker())
    alive = before.with_broker(broker_id, RehearsedBroker(broker.rack))
    live = alive.usable()
    changed: _Changed = {}
    unclean: set[TopicPartition] = set()
    for partition, state in before.partitions.items():
        after = state
        if state.leader not in live:
            selected = _select_offline(before, partition, state, live)
            if selected is not None:
                after = _led(state, selected)
                if selected.is_unclean:
                    unclean.add(partition)
        if after.leader in live:
            after = _completed(_with_follower(after, broker_id), before, partition, live)
        if after != state:
            changed[partition] = after
    return OperationResult(alive.with_partitions(changed), unclean=frozenset(unclean))


def elect(before: RehearsedPartitions, operation: ElectLeaders) -> OperationResult:
    """An election by request, of all partitions that need one."""
    live, topics = before.usable(), before.topics()
    changed: _Changed = {}
    unclean: set[TopicPartition] = set()
    refusals = [
        PartitionRefusal(None, "UNKNOWN_TOPIC_OR_PARTITION", "The partition does not exist.")
        for topic in operation.topics
        if topic not in topics
    ]
    for partition, state in before.partitions.items():
        if operation.topics and partition.topic not in operation.topics:
            continue
        if operation.is_unclean:
            if state.leader in live:
                continue
            election = _input(before, partition, state, live)
            selected = select_offline(RELEASED_SELECTORS, election, allow_unclean=True)
        else:
            if state.leader == (state.replicas or (NO_LEADER,))[0]:
                continue
            election = _input(before, partition, state, live)
            selected = select_preferred(RELEASED_SELECTORS, election)
        if selected is None:
            refusals.append(_no_leader(partition, operation))
            continue
        changed[partition] = _led(state, selected)
        if selected.is_unclean:
            unclean.add(partition)
    after = before.with_partitions(changed)
    return OperationResult(after, tuple(refusals), frozenset(unclean))


def _no_leader(partition: TopicPartition, operation: ElectLeaders) -> PartitionRefusal:
    error, strategy = (
        ("ELIGIBLE_LEADERS_NOT_AVAILABLE", "OfflinePartitionLeaderElectionStrategy(true)")
        if operation.is_unclean
        else ("PREFERRED_LEADER_NOT_AVAILABLE", "PreferredReplicaPartitionLeaderElectionStrategy")
    )
    text = f"Failed to elect leader for partition {partition} under strategy {strategy}"
    return PartitionRefusal(partition, error, text)


def reassign(before: RehearsedPartitions, operation: ReassignPartitions) -> OperationResult:
    """Reassignments begin, and end where all replicas of the target are alive."""
    live = before.usable()
    changed: _Changed = {}
    unfinished = {}
    for partition, replicas in operation.targets.items():
        state = before.partitions[partition]
        assignment = _assignment(state).reassign_to(replicas)
        after = replace(
            state,
            replicas=assignment.replicas,
            adding=assignment.adding,
            removing=assignment.removing,
        )
        for broker_id in without(state.replicas, assignment.replicas):
            after = _without_replica(after, broker_id)
        for broker_id in assignment.target:
            if after.leader in live and broker_id in before.usable_for(partition, live):
                after = _with_follower(after, broker_id)
        after = _completed(after, before, partition, live)
        changed[partition] = after
        if after.adding or after.removing:
            missing = ", ".join(map(str, without(assignment.target, after.isr)))
            unfinished[partition] = f"waits until the replicas {missing} are in the ISR"
    return OperationResult(before.with_partitions(changed), unfinished=unfinished)


def create_topic(before: RehearsedPartitions, operation: CreateTopic) -> OperationResult:
    """A topic is created; its replicas are placed as by a controller that draws nothing."""
    name, topics = operation.name, before.topics()
    live = before.usable()
    racks = {broker_id: before.brokers[broker_id].rack for broker_id in sorted(live)}
    try:
        placed = place_replicas(
            racks, operation.partition_count, operation.replication_factor, PlacementStart(0, 0)
        )
    except PlacementError as error:
        kind = "PARTITIONS" if operation.partition_count <= 0 else "REPLICATION_FACTOR"
        return _refused(before, f"INVALID_{kind}", str(error))
    if (text := topic_name_error(name)) is not None:
        return _refused(before, "INVALID_TOPIC_EXCEPTION", text)
    if name in topics:
        return _refused(before, "TOPIC_ALREADY_EXISTS", f"Topic '{name}' already exists.")
    if others := colliding_topics(name, topics):
        text = f"Topic '{name}' collides with existing topics: {', '.join(others)}"
        return _refused(before, "INVALID_TOPIC_EXCEPTION", text)
    created: _Changed = {}
    for number, replicas in placed.items():
        first = select_first(ElectionInput(ReplicaAssignment(replicas), (), live))
        isr, leader = (first.isr, first.leader) if first else ((), NO_LEADER)
        created[TopicPartition(name, number)] = KraftPartition(replicas, isr, leader)
    note = "one possible placement: Kafka begins at a broker that it draws at random"
    return OperationResult(before.with_partitions(created), notes=(note,))


def _refused(before: RehearsedPartitions, error: str, text: str) -> OperationResult:
    return OperationResult(before, (PartitionRefusal(None, error, text),))


def _assignment(state: KraftPartition) -> ReplicaAssignment:
    return ReplicaAssignment(state.replicas, state.adding, state.removing)


def _input(
    before: RehearsedPartitions, partition: TopicPartition, state: KraftPartition, live: Set[int]
) -> ElectionInput:
    return ElectionInput(_assignment(state), state.isr, before.usable_for(partition, live))


def _select_offline(
    before: RehearsedPartitions, partition: TopicPartition, state: KraftPartition, live: Set[int]
) -> SelectedLeader | None:
    return select_offline(
        RELEASED_SELECTORS,
        _input(before, partition, state, live),
        allow_unclean=before.allows_unclean(partition.topic),
    )


def _led(state: KraftPartition, selected: SelectedLeader) -> KraftPartition:
    is_recovering = selected.is_unclean or state.recovering
    return replace(state, leader=selected.leader, isr=selected.isr, recovering=is_recovering)


def _without_replica(state: KraftPartition, broker_id: int) -> KraftPartition:
    """A replica goes offline: the last member stays in the ISR, and a leader leads no longer."""
    leader = NO_LEADER if state.leader == broker_id else state.leader
    isr = without(state.isr, [broker_id]) if len(state.isr) > 1 else state.isr
    return replace(state, leader=leader, isr=isr)


def _with_follower(state: KraftPartition, broker_id: int) -> KraftPartition:
    """A replica has caught up with the leader, which adds it to the ISR."""
    is_follower = broker_id in state.replicas and broker_id not in state.isr
    if state.leader == NO_LEADER or not is_follower:
        return state
    return replace(state, isr=(*state.isr, broker_id), recovering=False)


def _completed(
    state: KraftPartition, before: RehearsedPartitions, partition: TopicPartition, live: Set[int]
) -> KraftPartition:
    """The partition after its reassignment, if it is complete; else as it is."""
    assignment = _assignment(state)
    if not assignment.is_being_reassigned or not assignment.is_complete(state.isr):
        return state
    if state.leader not in assignment.target or state.leader not in live:
        election = _input(before, partition, state, live)
        selected = select_reassigned(RELEASED_SELECTORS, election)
        state = replace(state, leader=NO_LEADER) if selected is None else _led(state, selected)
    isr = without(state.isr, assignment.removing)
    return replace(state, replicas=assignment.target, isr=isr, adding=(), removing=())
