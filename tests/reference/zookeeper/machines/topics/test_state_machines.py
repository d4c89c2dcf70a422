"""The partition and the replica machine: every pair of states, and what each transition does."""

from collections.abc import Iterable
from itertools import product

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    LeaderAndIsrRequest,
    LeaderAndIsrState,
    UpdateMetadataRequest,
)
from featurewatch.reference.zookeeper.machines.topics.context import PartitionReplica, TopicTable
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.partition_machine import (
    OFFLINE_ELECTION,
    PREFERRED_ELECTION,
    REASSIGN_ELECTION,
    SHUTDOWN_ELECTION,
    UNCLEAN_ELECTION,
    Election,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    BadVersion,
    Create,
    Multi,
)
from tests.reference.zookeeper.machines.topics.cluster import P0, OperationsDriver, lines_for

DIALECTS = pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
UM = ["S 1 UM {}", "S 2 UM {}", "S 3 UM {}"]


def cluster(
    dialect: OperationsDialect = RELEASED_OPERATIONS, replicas: tuple[int, ...] = (1, 2, 3)
) -> tuple[OperationsDriver, OperationParts]:
    """Three brokers and a topic with one partition, and the parts of its controller."""
    driver = OperationsDriver(dialect=dialect)
    driver.settle()
    driver.create_topic(replicas)
    driver.log_lines.clear()
    return driver, driver.controller._parts


def metadata(text: str) -> list[str]:
    """The UpdateMetadata lines of all three brokers."""
    return [line.format(f"t-0 {text}") for line in UM]


# -- partitions ------------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize(("state", "target"), [*product(PartitionState, PartitionState)])
def test_every_pair_of_partition_states(
    dialect: OperationsDialect, state: PartitionState, target: PartitionState
) -> None:
    """A pair of the table moves, any other is logged and changes nothing (C-02, C-03,
    C-04, C-14).

    Only a move to online writes and sends (C-06, C-12, C-13, C-14 as released).
    """
    driver, parts = cluster(dialect)
    parts.context.partition_states[P0] = state
    before = driver.state()
    lines = driver.run(parts.partitions.move([P0], target))
    if state in dialect.partitions[target]:
        assert parts.context.partition_states[P0] is target
        assert bool(lines) == (target is PartitionState.ONLINE)
    else:
        assert parts.context.partition_states[P0] is state
        assert (lines, driver.state()) == ([], before)
        assert f"Instead it is in {state} state" in driver.log_lines[0]


@DIALECTS
def test_a_new_partition_goes_online(dialect: OperationsDialect) -> None:
    """The first live replica leads, live ones are the ISR; written, then sent (C-07, C-08).

    LeaderAndIsr goes to the live replicas, UpdateMetadata to every live broker.
    """
    driver = OperationsDriver((2, 3, 4), dialect=dialect)
    driver.settle()
    lines = driver.create_topic([1, 2, 3])
    state = "leader=2 isr=2.3 le=0"
    assert lines == [
        "W /brokers/topics/t/partitions",
        "W /brokers/topics/t/partitions/0",
        f"W t-0 {state} pe=0 ce=1",
        f"S 2 LAI t-0 {state} ar=1.2.3 new",
        f"S 3 LAI t-0 {state} ar=1.2.3 new",
        "S 2 UM t-0 leader=2 isr=2.3 offline=1",
        "S 3 UM t-0 leader=2 isr=2.3 offline=1",
        "S 4 UM t-0 leader=2 isr=2.3 offline=1",
    ]


@DIALECTS
def test_a_partition_whose_leader_dies_is_offline(dialect: OperationsDialect) -> None:
    """It had a leader, and has none that is alive (C-05)."""
    driver, parts = cluster(dialect, (1, 2))
    driver.kill_broker(1, 2)
    assert parts.context.partition_states[P0] is PartitionState.OFFLINE


@pytest.mark.parametrize("dialect", [RELEASED_OPERATIONS])
def test_a_partition_that_never_had_a_leader_is_offline_once_it_is_deleted(
    dialect: OperationsDialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its topic is deleted before a replica is alive to lead it, and it is non-existent in the end
    (C-02, C-05 as released)."""
    driver = OperationsDriver((4,), dialect=dialect)
    driver.settle()
    driver.create_topic([1])
    states = driver.controller.context.partition_states
    assert states[P0] is PartitionState.NEW
    machine = driver.controller._parts.partitions
    move, moves = machine.move, list[tuple[PartitionState, PartitionState]]()

    def noted(
        partitions: Iterable[TopicPartition],
        target: PartitionState,
        election: Election = OFFLINE_ELECTION,
    ) -> Task[dict[TopicPartition, str]]:
        for partition in (listed := [*partitions]):
            moves.append((states[partition], target))
        return move(listed, target, election)

    monkeypatch.setattr(machine, "move", noted)
    driver.write(Create("/admin/delete_topics/t", b""))
    driver.settle()
    assert moves == [
        (PartitionState.NEW, PartitionState.OFFLINE),
        (PartitionState.OFFLINE, PartitionState.NON_EXISTENT),
    ]


def test_the_cost_of_an_election_grows_with_its_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Twice the partitions need about twice the look-ups; a square would need four times."""
    lookups = 0

    def counted_hash(partition: TopicPartition) -> int:
        nonlocal lookups
        lookups += 1
        return tuple.__hash__(partition)

    monkeypatch.setattr(TopicPartition, "__hash__", counted_hash)
    counts = []
    for partitions in (200, 400):
        driver = OperationsDriver()
        driver.settle()
        lookups = 0
        driver.create_topic(*[(1, 2, 3)] * partitions)
        counts.append(lookups)
    assert counts[1] < 3 * counts[0]


@DIALECTS
def test_a_new_partition_without_live_replicas_stays_new(dialect: OperationsDialect) -> None:
    """Nothing is written or sent, and the failure is logged (C-09, C-09 as released).

    The controller has the assignment of ZooKeeper in memory by then (C-06).
    """
    driver = OperationsDriver((4,), dialect=dialect)
    driver.settle()
    assert driver.create_topic([2, 1]) == []
    assert driver.controller.context.assignment(P0).replicas == (2, 1)
    assert driver.controller.context.partition_states[P0] is PartitionState.NEW
    assert any("No assigned replica is alive" in line for line in driver.log_lines)


@DIALECTS
@pytest.mark.parametrize("state", [PartitionState.ONLINE, PartitionState.OFFLINE])
@pytest.mark.parametrize(
    ("election", "receivers"),
    [
        (OFFLINE_ELECTION, "12"),
        (UNCLEAN_ELECTION, "12"),
        (REASSIGN_ELECTION, "12"),
        (PREFERRED_ELECTION, "123"),
        (SHUTDOWN_ELECTION, "12"),
    ],
)
def test_elections_write_before_they_send(
    dialect: OperationsDialect, state: PartitionState, election: Election, receivers: str
) -> None:
    """The selector's result is written first, then sent to its receivers (C-10, C-11).

    UpdateMetadata goes to every live broker. Broker 3 has failed in this directory alone.
    """
    driver, parts = cluster(dialect)
    parts.context.partition_states[P0] = state
    parts.context.failed_directories[3].add(P0)
    if election is REASSIGN_ELECTION:
        parts.context.assignments[P0] = ReplicaAssignment((1, 2, 3), (), (3,))
    lines = driver.run(parts.partitions.move([P0], PartitionState.ONLINE, election))
    assert lines[0].startswith("W t-0 leader=1")
    assert " le=1 pe=1 " in lines[0]
    requests = [line[2] for line in lines_for(lines, "LAI")]
    assert requests == [*receivers]
    assert [line[2] for line in lines_for(lines, "UM")] == ["1", "2", "3"]
    assert len(lines) == 4 + len(receivers)
    assert parts.context.partition_states[P0] is PartitionState.ONLINE


@pytest.mark.parametrize(
    ("election", "text"),
    [
        (OFFLINE_ELECTION, "OfflinePartitionLeaderElectionStrategy(false)"),
        (UNCLEAN_ELECTION, "OfflinePartitionLeaderElectionStrategy(true)"),
        (REASSIGN_ELECTION, "ReassignPartitionLeaderElectionStrategy"),
        (PREFERRED_ELECTION, "PreferredReplicaPartitionLeaderElectionStrategy"),
        (SHUTDOWN_ELECTION, "ControlledShutdownPartitionLeaderElectionStrategy"),
    ],
)
@pytest.mark.form("released")
def test_a_failed_election_changes_nothing(election: Election, text: str) -> None:
    """Nothing is written or sent, the state stays, and the log has Kafka's text (C-18, C-21 as
    released)."""
    driver, parts = cluster()
    parts.context.partition_states[P0] = PartitionState.OFFLINE
    parts.context.brokers.clear()
    assert driver.run(parts.partitions.move([P0], PartitionState.ONLINE, election)) == []
    assert parts.context.partition_states[P0] is PartitionState.OFFLINE
    reason = f"Failed to elect leader for partition t-0 under strategy {text}"
    assert driver.log_lines[-1].endswith(reason)


def test_a_state_that_changed_meanwhile_is_decided_again() -> None:
    """A leader's own write between read and write is not lost: the election reads again (C-10)."""
    driver, parts = cluster()
    driver.overtake(b"[1,2,3]", b"[1,3]")
    parts.context.partition_states[P0] = PartitionState.OFFLINE
    parts.context.remove_broker(1)
    driver.run(parts.partitions.move([P0], PartitionState.ONLINE))
    assert driver.state() == "t-0 leader=3 isr=3 le=1 pe=2 ce=1"


def test_a_state_of_a_newer_controller_is_left_alone() -> None:
    """Its controller epoch is higher: nothing is written, and the log says so (C-10)."""
    driver, parts = cluster()
    path = "/brokers/topics/t/partitions/0/state"
    newer = driver.history.tree[path].data.replace(
        b'"controller_epoch":1', b'"controller_epoch":99'
    )
    driver.put(path, newer)
    parts.context.partition_states[P0] = PartitionState.OFFLINE
    assert driver.run(parts.partitions.move([P0], PartitionState.ONLINE)) == []
    assert "already written by another controller, with epoch 99" in driver.log_lines[-1]


def test_a_new_controller_takes_over_a_state_of_a_newer_one() -> None:
    """The brokers learn it as it is, as from Kafka's controller; nothing is written (C-10)."""
    driver, _ = cluster()
    path = "/brokers/topics/t/partitions/0/state"
    newer = driver.history.tree[path].data.replace(
        b'"controller_epoch":1', b'"controller_epoch":99'
    )
    driver.put(path, newer)
    driver.elect()
    lines = driver.settle()
    assert lines_for(lines, "W") == []
    assert lines_for(lines, "LAI") == [
        f"S {broker} LAI t-0 leader=1 isr=1.2.3 le=0 ar=1.2.3" for broker in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b'{"version":1,"leader":1}', b'{"version":2}', b"\xff", b'{"isr":[[]]}'],
)
def test_an_unreadable_state_fails_its_partition_alone(data: bytes) -> None:
    """Another partition of the same call is elected."""
    driver = OperationsDriver()
    driver.settle()
    driver.create_topic([1, 2], [2, 1])
    driver.put("/brokers/topics/t/partitions/0/state", data)
    lines = driver.kill_broker(1, 2) + driver.start_broker(2)
    assert any(line.startswith("W t-1 leader=2") for line in lines)
    assert not any("W t-0" in line for line in lines)
    assert any("t-0" in line and "cannot be read" in line for line in driver.log_lines)


# -- replicas --------------------------------------------------------------------------------------


def replica_pairs() -> list[tuple[OperationsDialect, ReplicaState, ReplicaState]]:
    """Every pair of states of each dialect."""
    return [
        (dialect, state, target)
        for dialect in (DOCUMENT_OPERATIONS, RELEASED_OPERATIONS)
        for state, target in product(dialect.replicas, dialect.replicas)
    ]


@pytest.mark.parametrize(("dialect", "state", "target"), replica_pairs())
def test_every_pair_of_replica_states(
    dialect: OperationsDialect, state: ReplicaState, target: ReplicaState
) -> None:
    """A pair of the table moves, any other is logged and changes nothing (C-26, C-27, C-29,
    C-36, C-36 as released)."""
    driver, parts = cluster(dialect)
    replica = PartitionReplica(P0, 2)
    parts.context.replica_states[replica] = state
    before = driver.state()
    lines = driver.run(parts.replicas.move([replica], target))
    if state in dialect.replicas[target]:
        assert parts.context.replica_state(replica) is target
    else:
        assert parts.context.replica_state(replica) is state
        assert (lines, driver.state()) == ([], before)
        text = "[Topic=t,Partition=0,Replica=2] should be in one of"
        assert text in driver.log_lines[0]


@DIALECTS
def test_a_new_replica_follows_the_present_leader(dialect: OperationsDialect) -> None:
    """It gets the present leader and ISR as new; every live broker learns of it (C-30)."""
    driver, parts = cluster(dialect, (1, 2))
    replica = PartitionReplica(P0, 3)
    lines = driver.run(parts.replicas.move([replica], ReplicaState.NEW))
    assert lines == [
        "S 3 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2 new",
        *metadata("leader=1 isr=1.2 offline=none"),
    ]


@DIALECTS
def test_a_leader_does_not_become_new(dialect: OperationsDialect) -> None:
    """A new replica only becomes a follower, so the leader is refused (C-26)."""
    driver, parts = cluster(dialect)
    replica = PartitionReplica(P0, 1)
    parts.context.replica_states[replica] = ReplicaState.NON_EXISTENT
    assert driver.run(parts.replicas.move([replica], ReplicaState.NEW)) == []
    assert parts.context.replica_state(replica) is ReplicaState.NON_EXISTENT
    assert "it is being requested to become leader" in driver.log_lines[0]


@DIALECTS
def test_a_new_replica_that_goes_online_is_assigned(dialect: OperationsDialect) -> None:
    """It is added at the end of the assignment in memory; nothing is sent (C-31)."""
    driver, parts = cluster(dialect, (1, 2))
    replica = PartitionReplica(P0, 3)
    parts.context.replica_states[replica] = ReplicaState.NEW
    assert driver.run(parts.replicas.move([replica], ReplicaState.ONLINE)) == []
    assert parts.context.assignment(P0).replicas == (1, 2, 3)
    assert driver.assignment().replicas == (1, 2)


@DIALECTS
@pytest.mark.parametrize("state", [ReplicaState.ONLINE, ReplicaState.OFFLINE])
def test_a_replica_that_is_online_learns_its_leader(
    dialect: OperationsDialect, state: ReplicaState
) -> None:
    """It gets the present leader and ISR; every live broker learns of it (C-27, C-32)."""
    driver, parts = cluster(dialect)
    replica = PartitionReplica(P0, 2)
    parts.context.replica_states[replica] = state
    lines = driver.run(parts.replicas.move([replica], ReplicaState.ONLINE))
    assert lines == [
        "S 2 LAI t-0 leader=1 isr=1.2.3 le=0 ar=1.2.3",
        *metadata("leader=1 isr=1.2.3 offline=none"),
    ]


@pytest.mark.parametrize("dialect", [RELEASED_OPERATIONS])
def test_an_ineligible_replica_goes_online(dialect: OperationsDialect) -> None:
    """Its deletion has failed, and its broker starts (C-32 as released)."""
    driver, parts = cluster(dialect)
    replica = PartitionReplica(P0, 2)
    parts.context.replica_states[replica] = ReplicaState.DELETION_INELIGIBLE
    lines = driver.run(parts.replicas.move([replica], ReplicaState.ONLINE))
    assert lines[0] == "S 2 LAI t-0 leader=1 isr=1.2.3 le=0 ar=1.2.3"
    assert lines[1:] == metadata("leader=1 isr=1.2.3 offline=none")
    assert parts.context.replica_state(replica) is ReplicaState.ONLINE


@DIALECTS
@pytest.mark.parametrize("state", [ReplicaState.NEW, ReplicaState.ONLINE])
def test_a_replica_that_goes_offline_leaves_the_isr(
    dialect: OperationsDialect, state: ReplicaState
) -> None:
    """In the document it is stopped without deletion, and then leaves the ISR (C-33, C-34).

    The leader gets the new ISR, and every broker the metadata. Released Kafka writes first, informs
    every other replica and stops the replica last (C-33 as released, C-34 as released).
    """
    driver, parts = cluster(dialect)
    replica = PartitionReplica(P0, 2)
    parts.context.replica_states[replica] = state
    lines = driver.run(parts.replicas.move([replica], ReplicaState.OFFLINE))
    written = ["W t-0 leader=1 isr=1.3 le=1 pe=1 ce=1"]
    stopped = ["S 2 SR t-0 le=0"]
    everyone = metadata("leader=1 isr=1.3 offline=none")
    if dialect is DOCUMENT_OPERATIONS:
        informed = ["S 1 LAI t-0 leader=1 isr=1.3 le=1 ar=1.2.3"]
        assert lines == [*stopped, *written, *informed, *everyone]
    else:
        informed = [f"S {broker} LAI t-0 leader=1 isr=1.3 le=1 ar=1.2.3" for broker in (1, 3)]
        assert lines == [*written, *informed, *everyone, *stopped]


@DIALECTS
def test_a_replica_leaves_an_isr_that_changed_meanwhile(dialect: OperationsDialect) -> None:
    """A leader's own write between read and write is kept, and the replica leaves all the same
    (C-34, C-34 as released)."""
    driver, parts = cluster(dialect)
    driver.overtake(b"[1,2,3]", b"[1,2]")
    lines = driver.run(parts.replicas.move([PartitionReplica(P0, 2)], ReplicaState.OFFLINE))
    assert driver.state() == "t-0 leader=1 isr=1 le=1 pe=2 ce=1"
    assert "S 1 LAI t-0 leader=1 isr=1 le=1 ar=1.2.3" in lines


@DIALECTS
def test_a_replica_without_a_leader_goes_offline(dialect: OperationsDialect) -> None:
    """No ISR has it: it is stopped, and every broker learns of it (C-34, C-34 as released)."""
    driver, parts = cluster(dialect)
    replica = PartitionReplica(P0, 2)
    parts.context.leaderships.clear()
    lines = driver.run(parts.replicas.move([replica], ReplicaState.OFFLINE))
    assert lines_for(lines, "W") == []
    assert lines_for(lines, "SR") == ["S 2 SR t-0 le=-1"]
    assert [line[2] for line in lines_for(lines, "UM")] == ["1", "2", "3"]
    assert parts.context.replica_states[replica] is ReplicaState.OFFLINE


@DIALECTS
def test_a_replica_outside_the_isr_goes_offline_without_a_write(
    dialect: OperationsDialect,
) -> None:
    """The leader, in released Kafka all others, get LeaderAndIsr with the epochs as they are
    (C-34, C-34 as released)."""
    driver, parts = cluster(dialect)
    driver.alter_isr(1, 3)
    replica = PartitionReplica(P0, 2)
    lines = driver.run(parts.replicas.move([replica], ReplicaState.OFFLINE))
    assert lines_for(lines, "W") == []
    assert lines_for(lines, "LAI") == [
        f"S {broker} LAI t-0 leader=1 isr=1.3 le=0 ar=1.2.3"
        for broker in ((1,) if dialect is DOCUMENT_OPERATIONS else (1, 3))
    ]


@pytest.mark.form("released")
def test_a_state_that_is_not_written_is_sent_with_the_epoch_of_its_sender() -> None:
    """A new controller informs the others of an unchanged state with its own epoch, as Kafka's
    (C-34 as released)."""
    driver, parts = cluster()
    driver.alter_isr(1, 3)
    driver.settle()
    parts.context.epoch += 1
    driver.requests.clear()
    driver.run(parts.replicas.move([PartitionReplica(P0, 2)], ReplicaState.OFFLINE))
    sent = [
        state
        for sent in driver.requests
        for state in sent.request.states
        if isinstance(state, LeaderAndIsrState)
    ]
    assert [state.controller_epoch for state in sent] == [parts.context.epoch] * 2


@DIALECTS
def test_the_last_isr_member_goes_offline(dialect: OperationsDialect) -> None:
    """Released Kafka keeps it in the ISR (C-34, C-34 as released); the partition has no leader."""
    driver, parts = cluster(dialect)
    driver.alter_isr(1)
    driver.run(parts.replicas.move([PartitionReplica(P0, 1)], ReplicaState.OFFLINE))
    isr = "1" if dialect is RELEASED_OPERATIONS else "none"
    assert driver.state() == f"t-0 leader=-1 isr={isr} le=1 pe=2 ce=1"


@pytest.mark.form("document")
def test_a_replica_is_deleted_at_once_in_the_document() -> None:
    """From offline to non-existent: StopReplica with deletion (C-29, C-35)."""
    driver, parts = cluster(DOCUMENT_OPERATIONS)
    replica = PartitionReplica(P0, 2)
    parts.context.replica_states[replica] = ReplicaState.OFFLINE
    lines = driver.run(parts.replicas.move([replica], ReplicaState.NON_EXISTENT))
    assert lines == ["S 2 SR t-0 le=0 delete"]
    assert parts.context.assignment(P0).replicas == (1, 3)


@pytest.mark.form("released")
def test_a_replica_is_deleted_in_three_states_in_released_kafka() -> None:
    """StopReplica with deletion leaves at the first of them (C-35 as released).

    None of them can be left out.
    """
    driver, parts = cluster()
    replica = PartitionReplica(P0, 2)
    parts.context.replica_states[replica] = ReplicaState.OFFLINE
    assert driver.run(parts.replicas.move([replica], ReplicaState.NON_EXISTENT)) == []
    assert parts.context.replica_state(replica) is ReplicaState.OFFLINE
    lines = {
        target: driver.run(parts.replicas.move([replica], target))
        for target in (
            ReplicaState.DELETION_STARTED,
            ReplicaState.DELETION_SUCCESSFUL,
            ReplicaState.NON_EXISTENT,
        )
    }
    assert [*lines.values()] == [["S 2 SR t-0 le=0 delete"], [], []]
    assert parts.context.assignment(P0).replicas == (1, 3)


@DIALECTS
def test_valid_replicas_change_where_others_are_refused(dialect: OperationsDialect) -> None:
    """One call with a valid and an invalid replica moves the valid one (C-36)."""
    driver, parts = cluster(dialect)
    absent = PartitionReplica(P0, 9)
    lines = driver.run(parts.replicas.move([absent, PartitionReplica(P0, 3)], ReplicaState.OFFLINE))
    assert lines_for(lines, "SR") == ["S 3 SR t-0 le=0"]
    assert len(driver.log_lines) == 1


def test_requests_of_one_call_leave_together() -> None:
    """A broker gets LeaderAndIsr, UpdateMetadata and StopReplica, each once and in this order."""
    driver = OperationsDriver()
    driver.settle()
    driver.create_topic([1, 2, 3], [2, 3, 1])
    parts = driver.controller._parts
    driver.requests.clear()
    replicas = parts.context.replicas_on([3])
    driver.run(parts.replicas.move(replicas, ReplicaState.OFFLINE))
    kinds = [(sent.broker_id, type(sent.request).__name__) for sent in driver.requests]
    assert kinds == [
        (1, "LeaderAndIsrRequest"),
        (2, "LeaderAndIsrRequest"),
        (1, "UpdateMetadataRequest"),
        (2, "UpdateMetadataRequest"),
        (3, "UpdateMetadataRequest"),
        (3, "StopReplicaRequest"),
    ]
    request = driver.requests[0].request
    assert isinstance(request, LeaderAndIsrRequest)
    assert (len(request.states), request.leaders) == (2, (1, 2))


def test_a_write_that_another_controller_fences_ends_the_operation() -> None:
    """Nothing is sent by a deposed controller, and it resigns (C-01)."""
    driver, parts = cluster()
    driver.fail_next = lambda operation: BadVersion(0) if isinstance(operation, Multi) else None
    replica = PartitionReplica(P0, 2)
    operation = driver.controller._guarded(parts.replicas.move([replica], ReplicaState.OFFLINE), 1)
    assert driver.run(operation) == []
    assert (driver.deposed, driver.controller.active) == (1, False)


def test_the_partitions_of_a_topic_are_found_without_a_scan() -> None:
    """The index follows each insertion, replacement and deletion."""
    table: TopicTable[TopicPartition, int] = TopicTable(lambda partition: partition.topic)
    other = TopicPartition("u", 0)
    for key, value in ((P0, 1), (other, 2), (P0, 3)):
        table[key] = value
    assert (table.of_topic("t"), table.of_topic("u"), table[P0]) == ([P0], [other], 3)
    del table[P0]
    assert (table.of_topic("t"), table.of_topic("u"), [*table]) == ([], [other], [other])


def test_requests_have_the_ids_of_topics_and_the_addresses_of_brokers() -> None:
    """The request contains what versions with topic ids and the lists of brokers need."""
    driver = OperationsDriver()
    driver.settle()
    driver.create_topic([1, 2, 3])
    context = driver.controller.context
    requests = [
        sent.request
        for sent in driver.requests
        if isinstance(sent.request, LeaderAndIsrRequest | UpdateMetadataRequest)
        and sent.request.states
    ]
    assert len(requests) == 6
    for request in requests:
        assert request.topic_ids == {"t": context.topic_ids["t"]}
        assert request.endpoints == {
            broker_id: broker.endpoint for broker_id, broker in context.brokers.items()
        }
