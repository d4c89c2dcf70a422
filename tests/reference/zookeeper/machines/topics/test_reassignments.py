"""Reassignments in their twelve steps, and controllers that resume what another began."""

from collections.abc import Callable, Iterable

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics.context import PartitionReplica
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.requests import ReassignRequest
from featurewatch.reference.zookeeper.machines.topics.results import PartitionResult
from featurewatch.reference.zookeeper.machines.topics.znodes import decode_reassignments
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    Multi,
    Operation,
    OutcomeUnknown,
    SetData,
)
from tests.reference.zookeeper.machines.topics.cluster import (
    P0,
    P1,
    OperationsDriver,
    lines_for,
    make_cluster,
)

DIALECTS = pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
STATE = "/brokers/topics/t/partitions/0/state"


# -- reassignments ---------------------------------------------------------------------------------


@DIALECTS
def test_a_reassignment_in_twelve_steps(dialect: OperationsDialect) -> None:
    """Every step of the worked example, in its order.

    {1,2,3} to {4,5,6}: the lists in ZooKeeper are those of the document after each step (C-43,
    C-44, C-45, C-46, C-47, C-48, C-49, C-50, C-51, C-52, C-53, C-54, C-55, C-65, C-66). In released
    Kafka the target comes first (C-43 as released, C-44 as released, C-55 as released, C-66 as
    released).
    """
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5, 6), dialect=dialect)
    request = (
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]},'
        b'{"topic":"t","partition":9,"replicas":[1]}]}'
    )
    driver.put("/admin/reassign_partitions", request)
    lines = driver.settle()
    listed = (1, 2, 3, 4, 5, 6) if dialect is DOCUMENT_OPERATIONS else (4, 5, 6, 1, 2, 3)
    moving = f"{'.'.join(map(str, listed))}+4.5.6-1.2.3"
    assert lines_for(lines, "W")[:2] == [
        f"W /brokers/topics/t 0:{moving}",
        "W t-0 leader=1 isr=1.2.3 le=1 pe=1 ce=1",
    ]
    informed = lines_for(lines, "LAI")
    assert informed[:6] == [
        f"S {broker} LAI t-0 leader=1 isr=1.2.3 le=1 ar={moving}{' new' if broker > 3 else ''}"
        for broker in range(1, 7)
    ]
    assert [line[2] for line in informed[6:]] == ["4", "5", "6"]
    assert {
        driver.controller.context.replica_states[replica] for replica in new_replicas(driver)
    } == {ReplicaState.NEW}
    # Other events are handled meanwhile, and a part of the target is not enough.
    driver.alter_isr(1, 2, 3, 4, 5)
    assert driver.assignment().replicas == listed
    driver.settle()
    driver.alter_isr(1, 2, 3, 4, 5, 6)
    steps = driver.journal[driver.journal.index("W t-0 leader=1 isr=1.2.3.4.5.6 le=1 pe=3 ce=1") :]
    isr = "1.2.3.4.5.6"
    leaving = ("2.3.4.5.6", "3.4.5.6", "4.5.6")
    writes = [
        f"W t-0 leader=4 isr={rest} le={3 + index} pe={5 + index} ce=1"
        for index, rest in enumerate(leaving)
    ]
    stops = [f"S {broker} SR t-0 le={broker + 1}" for broker in (1, 2, 3)]
    if dialect is DOCUMENT_OPERATIONS:
        informed = [
            f"S 4 LAI t-0 leader=4 isr={rest} le={3 + index} ar=4.5.6"
            for index, rest in enumerate(leaving)
        ]
        steps_of_each = zip(stops, writes, informed, strict=True)
        offline = [line for steps_of_one in steps_of_each for line in steps_of_one]
    else:
        informed = [f"S {b} LAI t-0 leader=4 isr=4.5.6 le=5 ar=4.5.6" for b in (4, 5, 6)]
        offline = [*writes, *informed, *stops]
    assert [line for line in steps if " UM " not in line] == [
        f"W t-0 leader=1 isr={isr} le=1 pe=3 ce=1",
        f"W t-0 leader=4 isr={isr} le=2 pe=4 ce=1",
        *[f"S {broker} LAI t-0 leader=4 isr={isr} le=2 ar=4.5.6" for broker in (4, 5, 6)],
        *offline,
        *[f"S {broker} SR t-0 le=5 delete" for broker in (1, 2, 3)],
        "W /brokers/topics/t 0:4.5.6",
        "D /admin/reassign_partitions",
    ]
    metadata = [line for line in steps[-6:] if " UM " in line]
    assert metadata == [f"S {b} UM t-0 leader=4 isr=4.5.6 offline=none" for b in range(1, 7)]
    assert driver.controller.context.reassigning == set()
    assert driver.controller.context.replica_states == dict.fromkeys(
        new_replicas(driver), ReplicaState.ONLINE
    )


def new_replicas(driver: OperationsDriver) -> list[PartitionReplica]:
    """The replicas of the partition on brokers 4 to 6."""
    return [r for r in driver.controller.context.replicas_of([P0]) if r.broker_id > 3]


@DIALECTS
def test_a_leader_in_the_target_stays(dialect: OperationsDialect) -> None:
    """It keeps leading: every broker of the target gets the target and the same ISR (C-49).

    Nobody is elected, in released Kafka neither if the leader is alive (C-49 as released).
    """
    driver = make_cluster((1, 2), brokers=(1, 2, 3), dialect=dialect)
    driver.reassign(3, 1)
    driver.alter_isr(1, 2, 3)
    raised = driver.journal.index("W t-0 leader=1 isr=1.2.3 le=2 pe=3 ce=1")
    assert driver.journal[raised + 1 : raised + 3] == [
        f"S {broker} LAI t-0 leader=1 isr=1.2.3 le=2 ar=3.1" for broker in (1, 3)
    ]
    assert driver.state() == "t-0 leader=1 isr=1.3 le=3 pe=4 ce=1"
    assert driver.assignment() == ReplicaAssignment((3, 1))


@DIALECTS
def test_a_leaders_write_does_not_keep_the_replicas_from_learning_of_a_reassignment(
    dialect: OperationsDialect,
) -> None:
    """A leader changes its ISR just before step 2 (C-44) and step 7 (C-49): the controller reads it
    again, and every replica is informed."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3), dialect=dialect)
    driver.overtake(b"[1,2]", b"[1]")
    _, lines = driver.reassign(3, 1)
    # The document appends the target to the original replicas; released Kafka puts it first.
    replicas = "1.2.3" if dialect is DOCUMENT_OPERATIONS else "3.1.2"
    assert lines_for(lines, "LAI")[:3] == [
        f"S {broker} LAI t-0 leader=1 isr=1 le=1 ar={replicas}+3-2{' new' if broker == 3 else ''}"
        for broker in (1, 2, 3)
    ]
    driver.overtake(b"[1,2,3]", b"[1,3]", skip=1)
    driver.alter_isr(1, 2, 3)
    assert [line for line in lines_for(driver.journal, "LAI") if " le=2 " in line][:2] == [
        f"S {broker} LAI t-0 leader=1 isr=1.3 le=2 ar=3.1" for broker in (1, 3)
    ]
    assert driver.assignment() == ReplicaAssignment((3, 1))


@DIALECTS
def test_a_reassignment_that_needs_no_copy(dialect: OperationsDialect) -> None:
    """{1,2,3} in sync to {3,1}: all replicas are informed first (C-44), in released Kafka nobody
    is (C-44 as released). A change of the order alone waits for the ISR too (C-46), in released
    Kafka for nothing (C-46 as released)."""
    driver = make_cluster((1, 2, 3), dialect=dialect)
    is_document = dialect is DOCUMENT_OPERATIONS
    _, lines = driver.reassign(3, 1)
    informed = [line[2] for line in lines_for(lines, "LAI") if line.endswith("-2")]
    assert informed[:3] == (["1", "2", "3"] if is_document else [])
    assert driver.assignment() == ReplicaAssignment((3, 1))
    driver.alter_isr(1)
    driver.reassign(1, 3)
    assert driver.controller.context.reassigning == ({P0} if is_document else set())
    driver.alter_isr(1, 3)
    assert driver.assignment() == ReplicaAssignment((1, 3))


@DIALECTS
def test_replicas_of_both_lists_are_kept(dialect: OperationsDialect) -> None:
    """Only what the target lacks is stopped and deleted (C-50, C-51)."""
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4), dialect=dialect)
    driver.reassign(4, 2, 3)
    driver.alter_isr(1, 2, 3, 4)
    stopped = {line[2] for line in lines_for(driver.journal, "SR")}
    assert stopped == {"1"}
    assert driver.assignment().replicas == (4, 2, 3)


@DIALECTS
def test_a_dead_leader_of_the_target_is_replaced(dialect: OperationsDialect) -> None:
    """Released Kafka elects also if the leader is in the target and dead (C-49 as released).

    In the document the present leader stays wherever it is in the target (C-49).
    """
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4), dialect=dialect)
    parts = driver.controller._parts
    driver.reassign(1, 4)
    driver.alter_isr(1, 2, 3, 4)
    assert driver.state().startswith("t-0 leader=1 isr=1.4")
    driver.reassign(4, 1)
    parts.context.failed_directories[1].add(P0)
    driver.settle()
    driver.reassign(1, 4)
    leader = 4 if dialect is RELEASED_OPERATIONS else 1
    assert driver.state().startswith(f"t-0 leader={leader} ")


@DIALECTS
def test_who_goes_online_when_a_reassignment_completes(dialect: OperationsDialect) -> None:
    """Every replica of the target (C-47), in released Kafka only what was added (C-47 as released).

    A replica that was online gets the present leader again, before another one is elected, and with
    both lists: the assignment becomes the target after that (C-48).
    """
    driver = make_cluster((1, 2), brokers=(1, 2, 3), dialect=dialect)
    driver.reassign(2, 3)
    driver.settle()
    driver.alter_isr(1, 2, 3)
    assert driver.assignment().replicas == (2, 3)
    completed = driver.journal.index("W t-0 leader=1 isr=1.2.3 le=1 pe=2 ce=1")
    elected = driver.journal.index("W t-0 leader=2 isr=1.2.3 le=2 pe=3 ce=1")
    started = lines_for(driver.journal[completed:elected], "LAI")
    again = ["S 2 LAI t-0 leader=1 isr=1.2.3 le=1 ar=1.2.3+3-1"]
    assert started == (again if dialect is DOCUMENT_OPERATIONS else [])
    assert {*driver.controller.context.replica_states.values()} == {ReplicaState.ONLINE}


@DIALECTS
def test_dropped_replicas_go_through_their_states(
    dialect: OperationsDialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline and non-existent, in released Kafka with two states of deletion between (C-50,
    C-51, C-51 as released)."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3), dialect=dialect)
    driver.reassign(3, 2)
    machine = driver.controller._parts.replicas
    move, moves = machine.move, list[ReplicaState]()

    def noted(replicas: Iterable[PartitionReplica], target: ReplicaState) -> Task[None]:
        moved = [*replicas]
        moves.extend(target for replica in moved if replica.broker_id == 1)
        return move(moved, target)

    monkeypatch.setattr(machine, "move", noted)
    driver.alter_isr(1, 2, 3)
    deletion = [ReplicaState.DELETION_STARTED, ReplicaState.DELETION_SUCCESSFUL]
    assert moves == [
        ReplicaState.OFFLINE,
        *(deletion if dialect is RELEASED_OPERATIONS else []),
        ReplicaState.NON_EXISTENT,
    ]


@pytest.mark.parametrize("dialect", [RELEASED_OPERATIONS])
def test_a_reassignment_by_request_leaves_the_znode_alone(dialect: OperationsDialect) -> None:
    """It has no entry there, and removes none with another target when it is complete (C-53 as
    released)."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3), dialect=dialect)
    path = "/admin/reassign_partitions"
    driver.reassign(3, 2)
    assert path not in driver.history.tree
    entry = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,3]}]}'
    driver.history.write(9, Create(path, entry))
    driver.alter_isr(1, 2, 3)
    assert driver.assignment() == ReplicaAssignment((3, 2))
    assert driver.history.tree[path].data == entry


def test_the_same_list_is_reassigned_once_more() -> None:
    """It is not skipped: the next leader epoch, and the topic's znode is written again."""
    driver = make_cluster((1, 2))
    _, lines = driver.reassign(1, 2)
    assert lines_for(lines, "W") == [
        "W t-0 leader=1 isr=1.2 le=1 pe=1 ce=1",
        "W /brokers/topics/t 0:1.2",
    ]


def test_a_reassignment_is_canceled() -> None:
    """The added replica is stopped and deleted at once; the order of the old list is lost."""
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4))
    driver.reassign(4, 2, 3)
    result, lines = driver.reassign(cancels=True)
    assert result.error is ErrorCode.NONE
    assert lines_for(lines, "SR") == ["S 4 SR t-0 le=1", "S 4 SR t-0 le=1 delete"]
    assert driver.assignment() == ReplicaAssignment((2, 3, 1))
    result, lines = driver.reassign(cancels=True)
    assert (result.error, lines) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, [])


def test_a_reassignment_is_replaced() -> None:
    """Replicas that only the first target had are dropped at once; the newest target counts."""
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5))
    driver.reassign(4, 2, 3)
    driver.reassign(5, 2, 3)
    assert driver.assignment() == ReplicaAssignment((5, 2, 3, 1), (5,), (1,))
    driver.alter_isr(1, 2, 3, 5)
    assert driver.assignment() == ReplicaAssignment((5, 2, 3))


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ((), "Empty replica list specified in partition reassignment."),
        (
            (1, 1),
            "Duplicate replica ids in partition reassignment replica list: ArrayBuffer(1, 1)",
        ),
        ((-1,), "Invalid broker id in replica list: ArrayBuffer(-1)"),
        (
            (1, 9),
            "Replica assignment has brokers that are not alive. Replica list: ArrayBuffer(9), "
            "live broker list: Set(1, 2, 3)",
        ),
    ],
)
@pytest.mark.form("released")
def test_a_target_that_is_refused(target: tuple[int, ...], text: str) -> None:
    """Kafka's codes and texts; nothing is written or sent (A-23 as released)."""
    driver = make_cluster((1, 2))
    result, lines = driver.reassign(*target)
    assert (result, lines) == (PartitionResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text), [])


def test_an_unknown_partition_is_not_reassigned() -> None:
    """The code of an unknown partition; nothing is written or sent."""
    result, lines = make_cluster((1, 2)).reassign(1, partition=P1)
    assert (result.error, lines) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])


@pytest.mark.parametrize("data", [b"", b"[1", b'{"version":1}', b'{"version":1,"partitions":[1]}'])
def test_an_unreadable_request_starts_nothing(data: bytes) -> None:
    """A file that is no reassignment is named in one line; the znode stays for its author."""
    driver = make_cluster((1, 2))
    driver.put("/admin/reassign_partitions", data)
    assert driver.settle() == []
    assert driver.log_lines[-1].startswith("cannot read /admin/reassign_partitions: ")


@DIALECTS
@pytest.mark.parametrize("started", [1, 2, 3])
def test_a_broker_of_a_reassignment_starts(dialect: OperationsDialect, started: int) -> None:
    """{1,2} moves to {3,2}, and begins again with a start of any broker of both (C-42).

    In released Kafka only with one of the target, added or kept (C-42 as released). The
    reassignment of another partition does not.
    """
    driver = make_cluster((1, 2), (4, 5), brokers=(1, 2, 3, 4, 5, 6), dialect=dialect)
    driver.reassign(6, 5, partition=P1)
    driver.reassign(3, 2)
    driver.kill_broker(started)
    lines = driver.start_broker(started)
    begins = any(line.startswith("S 3 LAI t-0") and line.endswith("new") for line in lines)
    assert begins == (dialect is DOCUMENT_OPERATIONS or started != 1)
    assert not any("W t-1" in line for line in lines)


@DIALECTS
def test_a_partition_gets_its_first_leader_in_the_middle_of_a_reassignment(
    dialect: OperationsDialect,
) -> None:
    """All that live are in its first ISR, so no change of it would end the reassignment."""
    driver = make_cluster((3,), brokers=(1, 2, 3, 4), dialect=dialect)
    driver.kill_broker(1, 2)
    driver.create_topic((1, 2), topic="dark")
    partition = TopicPartition("dark", 0)
    driver.put(
        "/admin/reassign_partitions",
        b'{"version":1,"partitions":[{"topic":"dark","partition":0,"replicas":[4]}]}',
    )
    driver.settle()
    assert driver.assignment(partition).is_being_reassigned
    driver.start_broker(2)
    assert driver.assignment(partition) == ReplicaAssignment((4,))
    assert driver.state(partition).startswith("dark-0 leader=4 isr=4 ")
    assert "/admin/reassign_partitions" not in driver.history.tree


# -- failover --------------------------------------------------------------------------------------


@DIALECTS
def test_a_controller_starts(dialect: OperationsDialect) -> None:
    """States follow from ZooKeeper: replicas first, then partitions, then elections (C-57,
    C-58, C-59, C-60).

    Live replicas learn their leaders; the document sets those of dead brokers online as well,
    released Kafka sets them offline (C-58 as released).
    """
    driver = make_cluster((1, 2), (3, 2), brokers=(1, 2, 3), dialect=dialect)
    driver.create_topic((2, 1), topic="u")
    driver.write(Delete("/brokers/topics/u/partitions/0/state"))
    driver.history.write(9, Delete("/brokers/ids/3"))
    lines = driver.fail_over()
    assert lines[:2] == ["S 1 UM none", "S 2 UM none"]
    replicas = [line for line in lines if "LAI" in line and " le=0 " in line and "new" not in line]
    assert replicas[0] == "S 1 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2"
    assert "S 2 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2" in replicas
    left_isr = "W t-1 leader=-1 isr=2 le=1 pe=1 ce=2"
    assert (left_isr in lines) == (dialect is RELEASED_OPERATIONS)
    context = driver.controller.context
    assert {*context.partition_states.values()} == {PartitionState.ONLINE}
    assert driver.state(P1).startswith("t-1 leader=2 isr=2 ")
    assert driver.state(TopicPartition("u", 0)) == "u-0 leader=2 isr=2.1 le=0 pe=0 ce=2"
    dead = [state for replica, state in context.replica_states.items() if replica.broker_id == 3]
    expected = ReplicaState.ONLINE if dialect is DOCUMENT_OPERATIONS else ReplicaState.OFFLINE
    assert dead == [expected]


@DIALECTS
def test_a_controller_derives_states_before_it_acts(dialect: OperationsDialect) -> None:
    """Replicas follow from their brokers, partitions from their leaders (C-57, C-59).

    Those of dead brokers are offline, in released Kafka ineligible for deletion (C-57 as released).
    """
    driver = make_cluster((1, 2), dialect=dialect)
    parts = driver.controller._parts  # the states before anything is sent
    parts.context.remove_broker(1)
    parts.replicas.restore_states()
    parts.partitions.restore_states()
    states = {replica.broker_id: state for replica, state in parts.context.replica_states.items()}
    dead = (
        ReplicaState.OFFLINE if dialect is DOCUMENT_OPERATIONS else ReplicaState.DELETION_INELIGIBLE
    )
    assert states == {1: dead, 2: ReplicaState.ONLINE}
    assert parts.context.partition_states == {P0: PartitionState.OFFLINE}
    parts.context.leaderships.clear()
    parts.partitions.restore_states()
    assert parts.context.partition_states == {P0: PartitionState.NEW}


@DIALECTS
@pytest.mark.parametrize("crash", range(3))
def test_a_reassignment_survives_its_controller(dialect: OperationsDialect, crash: int) -> None:
    """After a crash at any write of steps 1 to 3 the next controller begins again (C-56)."""
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5, 6), dialect=dialect)
    request = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}'
    driver.put("/admin/reassign_partitions", request)
    driver.settle(until=after_writes(crash))
    assert len(driver.pending) == (crash < 2)
    driver.fail_over()
    assert {*driver.assignment().replicas} == {1, 2, 3, 4, 5, 6}
    assert driver.assignment().origin == (1, 2, 3)
    driver.alter_isr(1, 2, 3, 4, 5, 6)
    assert driver.assignment() == ReplicaAssignment((4, 5, 6))
    assert driver.state().startswith("t-0 leader=4 isr=4.5.6")
    assert "/admin/reassign_partitions" not in driver.history.tree


@DIALECTS
@pytest.mark.parametrize("crash", range(8))
def test_a_completing_reassignment_survives_its_controller(
    dialect: OperationsDialect, crash: int
) -> None:
    """After a crash at any write of steps 5 to 11 the next controller ends it (C-56)."""
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5, 6), dialect=dialect)
    request = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}'
    driver.put("/admin/reassign_partitions", request)
    driver.settle()
    data = driver.history.tree[STATE].data.replace(b"[1,2,3]", b"[1,2,3,4,5,6]")
    driver.history.write(9, SetData(STATE, data, -1))
    driver.elect()
    driver.settle(until=after_writes(crash))
    driver.fail_over()
    assert driver.assignment() == ReplicaAssignment((4, 5, 6))
    assert driver.state().startswith("t-0 leader=4 isr=4.5.6")
    assert "/admin/reassign_partitions" not in driver.history.tree


def after_writes(crash: int) -> Callable[[Operation], bool]:
    """Matches the operation after that many writes."""
    count = 0

    def matches(operation: Operation) -> bool:
        nonlocal count
        count += isinstance(operation, Multi)
        return count > crash

    return matches


@pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS])
@pytest.mark.parametrize("crash", range(1, 9))
def test_overlapping_lists_survive_their_controller(dialect: OperationsDialect, crash: int) -> None:
    """{1,2,3} to {3,4,2} by request: OAR and RAR can be read until the end (C-43, C-56).

    The target keeps its order, and only broker 1 is dropped, whenever the controller dies.
    """
    driver = make_cluster((1, 2, 3), brokers=(1, 2, 3, 4), dialect=dialect)
    results: list[object] = []
    driver.controller.reassign(ReassignRequest({P0: (3, 4, 2)}), results.append)
    driver.settle(until=after_writes(crash))
    assert "/admin/reassign_partitions" in driver.history.tree
    driver.fail_over()
    assert driver.assignment() == ReplicaAssignment((1, 2, 3, 4), (4,), (1,))
    assert driver.assignment().origin == (1, 2, 3)
    assert driver.controller.context.assignment(P0).target == (3, 4, 2)
    data = driver.history.tree[STATE].data.replace(b"[1,2,3]", b"[1,2,3,4]")
    driver.history.write(9, SetData(STATE, data, -1))
    driver.elect()
    driver.settle(until=after_writes(crash - 1))
    driver.fail_over()
    assert driver.assignment() == ReplicaAssignment((3, 4, 2))
    assert {line[2] for line in lines_for(driver.journal, "SR")} == {"1"}
    assert driver.state().startswith("t-0 leader=3 isr=2.3.4 ")
    assert "/admin/reassign_partitions" not in driver.history.tree


@pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS])
def test_the_znode_has_the_targets_of_all_requests(dialect: OperationsDialect) -> None:
    """Each is kept until it is complete, replaced or canceled, and started once (C-53)."""
    driver = make_cluster((1, 2), (2, 1), brokers=(1, 2, 3, 4), dialect=dialect)

    def requested() -> dict[TopicPartition, tuple[int, ...]]:
        node = driver.history.tree.get("/admin/reassign_partitions")
        return {} if node is None else dict(decode_reassignments(node.data))

    _, lines = driver.reassign(3, 2)
    assert requested() == {P0: (3, 2)}
    assert len([line for line in lines if line.endswith(" new")]) == 2  # steps 2 and 3
    _, lines = driver.reassign(4, 1, partition=P1)
    assert requested() == {P0: (3, 2), P1: (4, 1)}
    assert not any("t-0" in line and "LAI" in line for line in lines)
    driver.reassign(4, 2)
    assert requested() == {P1: (4, 1), P0: (4, 2)}
    driver.reassign(cancels=True)
    assert requested() == {P1: (4, 1)}
    assert driver.assignment() == ReplicaAssignment((1, 2))
    result, _ = driver.reassign(1, partition=TopicPartition("x", 0))
    assert result.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    driver.alter_isr(2, 1, 4, partition=P1)
    assert requested() == {}
    assert driver.assignment(P1) == ReplicaAssignment((4, 1))


@DIALECTS
def test_a_controller_resumes_in_order(dialect: OperationsDialect) -> None:
    """Replicas, partitions, reassignments, and preferred elections at the end (C-61, C-67)."""
    driver = make_cluster((1, 2), (2, 1), (3,), (3, 2), brokers=(1, 2, 3), dialect=dialect)
    driver.kill_broker(1)
    driver.start_broker(1)
    driver.alter_isr(1, 2)
    driver.history.write(9, Delete("/brokers/ids/3"))
    for path, entry in (
        ("/admin/reassign_partitions", b'{"topic":"t","partition":1,"replicas":[2]}'),
        ("/admin/preferred_replica_election", b'{"topic":"t","partition":0}'),
    ):
        content = b'{"version":1,"partitions":[' + entry + b"]}"
        driver.history.write(9, Create(path, content))
    lines = driver.fail_over()
    replicas = [f"S {broker} LAI t-0 leader=2" for broker in (1, 2)]
    order = [
        next(index for index, line in enumerate(lines) if line.startswith(begin))
        for begin in (
            *replicas,  # each replica online
            "W t-3 leader=2",  # leaderless partitions online
            "W /brokers/topics/t ",
            "D /admin/reassign_partitions",
            "W t-0 leader=1",
            "D /admin/preferred_replica_election",
        )
    ]
    assert order == sorted(order)
    assert any("t-2 cannot be OnlinePartition" in line for line in driver.log_lines)
    assert driver.assignment(P1) == ReplicaAssignment((2,))


def test_a_deposed_controller_writes_and_sends_nothing() -> None:
    """One controller at a time: its next write fails, and it resigns (C-01)."""
    driver = make_cluster((1, 2, 3))
    old, pending, tasks = driver.controller, driver.pending, driver.tasks
    driver.elect()
    driver.settle()
    before = driver.history.tree
    new, new_pending, new_tasks = driver.controller, driver.pending, driver.tasks
    driver.controller, driver.pending, driver.tasks = old, pending, tasks
    results: list[object] = []
    old.elect([P0], results.append, unclean=False)
    old.reassign(ReassignRequest({P0: (2, 3)}), results.append)
    assert driver.settle() == []
    assert (driver.history.tree, driver.deposed) == (before, 1)
    assert not old.active
    driver.controller, driver.pending, driver.tasks = new, new_pending, new_tasks
    assert lines_for(driver.kill_broker(1), "W") == ["W t-0 leader=2 isr=2.3 le=1 pe=1 ce=2"]


@pytest.mark.parametrize("is_performed", [False, True])
def test_a_lost_connection_at_any_write(is_performed: bool) -> None:
    """A write of unknown outcome is repeated: no state is lost, none is written twice (C-10)."""
    driver = OperationsDriver()
    driver.settle()
    lost: list[str] = []

    def lose_once(operation: Operation) -> OutcomeUnknown | None:
        if not isinstance(operation, Multi) or lost.count(operation.operations[1].path) > 3:
            return None
        lost.append(operation.operations[1].path)
        if is_performed:
            driver._perform(operation)
        return OutcomeUnknown()

    driver.fail_next = lose_once
    driver.create_topic([1, 2, 3])
    assert driver.state() == "t-0 leader=1 isr=1.2.3 le=0 pe=0 ce=1"
    driver.kill_broker(1)
    assert driver.state() == "t-0 leader=2 isr=2.3 le=1 pe=1 ce=1"
    driver.reassign(3)
    driver.settle()
    assert driver.assignment() == ReplicaAssignment((3,))
    assert driver.state().startswith("t-0 leader=3 isr=3 ")
