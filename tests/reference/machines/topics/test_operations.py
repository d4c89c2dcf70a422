"""The operations of the controller: what each writes and sends, in which order."""

from collections.abc import Callable

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.machines.requests import ErrorCode
from featurewatch.reference.machines.topics.context import PartitionLeadership, PartitionReplica
from featurewatch.reference.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.machines.topics.results import PartitionResult
from featurewatch.reference.machines.topics.znodes import topic_config_path
from featurewatch.reference.machines.zookeeper import (
    Create,
    Delete,
    Multi,
    Operation,
    OutcomeUnknown,
    SetData,
)
from tests.reference.machines.topics.cluster import P0, P1, OperationsDriver, lines_for

DIALECTS = pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
STATE = "/brokers/topics/t/partitions/0/state"


def cluster(
    *replicas: tuple[int, ...],
    brokers: tuple[int, ...] = (1, 2, 3),
    dialect: OperationsDialect = RELEASED_OPERATIONS,
    unclean: bool = False,
) -> OperationsDriver:
    """Brokers and a topic with these partitions."""
    driver = OperationsDriver(brokers, dialect, unclean=unclean)
    driver.settle()
    driver.create_topic(*replicas)
    return driver


# -- new topics and partitions ---------------------------------------------------------------------


@DIALECTS
def test_a_new_topic_goes_through_four_steps(dialect: OperationsDialect) -> None:
    """New, new replicas, online, online replicas; nothing is sent for new ones (C-37, C-38)."""
    driver = OperationsDriver(dialect=dialect)
    driver.settle()
    lines = driver.create_topic([1, 2], [3, 1])
    assert lines_for(lines, "LAI") == [
        "S 1 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2 new",
        "S 1 LAI t-1 leader=3 isr=3.1 le=0 ar=3.1 new",
        "S 2 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2 new",
        "S 3 LAI t-1 leader=3 isr=3.1 le=0 ar=3.1 new",
    ]
    assert len(lines_for(lines, "UM")) == 6
    context = driver.controller.context
    assert {*context.partition_states.values()} == {PartitionState.ONLINE}
    assert {*context.replica_states.values()} == {ReplicaState.ONLINE}


def test_a_topic_without_an_id_gets_one() -> None:
    """Topics of older brokers and tools have schema 1 or 2: the znode is written again."""
    driver = OperationsDriver()
    driver.settle()
    lines = driver.create_topic([1], version=2)
    assert lines[0] == "W /brokers/topics/t 0:1"
    assert driver.controller.context.topic_ids == {"t": "id-1"}


def test_new_partitions_of_a_topic_are_started_alone() -> None:
    """The partitions that are known already are left alone (C-38)."""
    driver = cluster((1, 2, 3))
    lines = driver.create_topic((1, 2, 3), (2, 3))
    assert not any("t-0" in line for line in lines)
    assert lines_for(lines, "LAI") == [
        f"S {broker} LAI t-1 leader=2 isr=2.3 le=0 ar=2.3 new" for broker in (2, 3)
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b'{"version":4,"partitions":{}}',
        b'{"version":1,"partitions":{"x":[1]}}',
        b'{"version":1,"partitions":{"0":[1,1]}}',
        b'{"version":1,"partitions":{"0":[-1]}}',
    ],
)
def test_an_unreadable_topic_is_left_out_alone(data: bytes) -> None:
    """Its znode is named in one line, and other topics are created."""
    driver = OperationsDriver()
    driver.settle()
    driver.put("/brokers/topics/bad", data)
    driver.create_topic([1, 2])
    assert driver.state() == "t-0 leader=1 isr=1.2 le=0 pe=0 ce=1"
    (line,) = {line for line in driver.log_lines if "bad" in line}
    assert line.startswith("cannot read the assignment of topic bad: ")


def test_a_topic_that_is_removed_under_the_controllers_feet() -> None:
    """Its partitions are forgotten; the others go on."""
    driver = cluster((1, 2))
    driver.create_topic((2, 1), topic="u")
    for path in [path for path in driver.history.tree if path.startswith("/brokers/topics/t")]:
        driver.write(Delete(path))
    driver.settle()
    assert {*driver.controller.context.assignments} == {TopicPartition("u", 0)}
    assert lines_for(driver.kill_broker(2), "W") == ["W u-0 leader=1 isr=1 le=1 pe=1 ce=1"]


# -- brokers ---------------------------------------------------------------------------------------


@DIALECTS
def test_a_broker_dies(dialect: OperationsDialect) -> None:
    """Leaderless partitions are elected, then its replicas go offline (C-39)."""
    driver = cluster((1, 2, 3), (2, 1, 3), dialect=dialect)
    lines = driver.kill_broker(1)
    assert lines_for(lines, "W") == [
        "W t-0 leader=2 isr=2.3 le=1 pe=1 ce=1",
        "W t-1 leader=2 isr=2.3 le=1 pe=1 ce=1",
    ]
    elected = lines.index("S 2 UM t-0 leader=2 isr=2.3 offline=1")
    assert elected < lines.index("W t-1 leader=2 isr=2.3 le=1 pe=1 ce=1")
    context = driver.controller.context
    assert {*context.partition_states.values()} == {PartitionState.ONLINE}
    assert {
        replica.broker_id
        for replica, state in context.replica_states.items()
        if state is ReplicaState.OFFLINE
    } == {1}
    assert not any(line.startswith("S 1") for line in lines)


def test_a_broker_without_replicas_dies() -> None:
    """The others learn that it is gone (C-39)."""
    driver = cluster((1, 2), brokers=(1, 2, 3))
    assert driver.kill_broker(3) == ["S 1 UM none", "S 2 UM none"]


@pytest.mark.parametrize("unclean", [False, True])
def test_the_whole_isr_dies(unclean: bool) -> None:
    """Without unclean elections the partition waits for its ISR, and then goes on (C-16, C-41)."""
    driver = cluster((1, 2, 3), unclean=unclean)
    driver.alter_isr(1)
    driver.kill_broker(1)
    if unclean:
        assert driver.state() == "t-0 leader=2 isr=2 le=1 pe=2 ce=1 recovering"
        return
    assert driver.state() == "t-0 leader=-1 isr=1 le=1 pe=2 ce=1"
    assert driver.controller.context.partition_states[P0] is PartitionState.OFFLINE
    driver.start_broker(1)
    assert driver.state() == "t-0 leader=1 isr=1 le=2 pe=3 ce=1"


@pytest.mark.parametrize(
    ("config", "leader"),
    [
        (b'{"version":1,"config":{"unclean.leader.election.enable":"true"}}', 2),
        (b'{"version":1,"config":{"unclean.leader.election.enable":"false"}}', -1),
        (b'{"version":1,"config":{}}', -1),
        (b'{"version":1,"config":{"unclean.leader.election.enable":"?"}}', -1),
        (b"{", -1),
    ],
)
def test_a_topics_own_setting_allows_unclean_elections(config: bytes, leader: int) -> None:
    """It is read where the ISR is lost; what cannot be read allows nothing (C-16)."""
    driver = cluster((1, 2, 3))
    driver.put(topic_config_path("t"), config)
    driver.alter_isr(1)
    driver.kill_broker(1)
    assert driver.state().startswith(f"t-0 leader={leader} ")


@DIALECTS
def test_a_broker_starts(dialect: OperationsDialect) -> None:
    """It gets all partitions' metadata, then its replicas, then elections run (C-40, C-41).

    In released Kafka the other brokers learn of it before.
    """
    driver = cluster((1, 2), (3,), dialect=dialect)
    driver.kill_broker(1)
    driver.alter_isr(2)
    driver.kill_broker(3)
    driver.settle()
    lines = driver.start_broker(3)
    others = ["S 2 UM none"] if dialect is RELEASED_OPERATIONS else []
    isr = "3" if dialect is RELEASED_OPERATIONS else "none"
    offline = f"t-1 leader=-1 isr={isr}"
    assert lines[: len(others) + 2] == [
        *others,
        "S 3 UM t-0 leader=2 isr=2 offline=1",
        f"S 3 UM {offline} offline=none",
    ]
    rest = lines[len(others) + 2 :]
    assert rest[0] == f"S 3 LAI {offline} le=1 ar=3"
    assert "W t-1 leader=3 isr=3 le=2 pe=2 ce=1" in [
        line.removesuffix(" recovering") for line in rest
    ]


def test_a_broker_bounces() -> None:
    """Its znode is another one: it fails and then starts, without a gap that was seen (C-39)."""
    driver = cluster((1, 2, 3))
    driver.history.write(9, Delete("/brokers/ids/1"))
    lines = driver.start_broker(1)
    assert lines_for(lines, "W") == ["W t-0 leader=2 isr=2.3 le=1 pe=1 ce=1"]
    assert lines_for(lines, "LAI")[-1] == "S 1 LAI t-0 leader=2 isr=2.3 le=1 ar=1.2.3"


def test_a_log_directory_fails() -> None:
    """The broker is asked, names the replica, and that replica alone fails (C-28)."""
    driver = cluster((1, 2, 3), (1, 3))
    driver.write(
        Create("/log_dir_event_notification/log_dir_event_0", b'{"version":1,"broker":1,"event":1}')
    )
    lines = driver.settle()
    assert [line for line in lines if "LAI" in line] == [
        "S 1 LAI t-0 leader=1 isr=1.2.3 le=0 ar=1.2.3",
        "S 1 LAI t-1 leader=1 isr=1.3 le=0 ar=1.3",
    ]
    assert lines[-1] == "D /log_dir_event_notification/log_dir_event_0"
    driver.controller.on_leader_and_isr_response(1, {P0: ErrorCode.KAFKA_STORAGE_ERROR, P1: 0})
    assert lines_for(driver.settle(), "W") == ["W t-0 leader=2 isr=2.3 le=1 pe=1 ce=1"]
    driver.controller.on_leader_and_isr_response(1, {P0: 0})
    driver.settle()
    assert driver.controller.context.is_online(1, P0)


# -- reassignments ---------------------------------------------------------------------------------


@DIALECTS
def test_a_reassignment_in_twelve_steps(dialect: OperationsDialect) -> None:
    """Every step of the worked example, in its order (C-43 to C-55).

    {1,2,3} to {4,5,6}: the lists in ZooKeeper are those of the document after each step.
    """
    driver = cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5, 6), dialect=dialect)
    request = (
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]},'
        b'{"topic":"t","partition":9,"replicas":[1]}]}'
    )
    driver.put("/admin/reassign_partitions", request)
    lines = driver.settle()
    moving = "4.5.6.1.2.3+4.5.6-1.2.3"
    written = moving if dialect is RELEASED_OPERATIONS else "4.5.6.1.2.3"
    assert lines_for(lines, "W")[:2] == [
        f"W /brokers/topics/t 0:{written}",
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
    assert driver.assignment().replicas == (4, 5, 6, 1, 2, 3)
    driver.settle()
    driver.alter_isr(1, 2, 3, 4, 5, 6)
    steps = driver.journal[driver.journal.index("W t-0 leader=1 isr=1.2.3.4.5.6 le=1 pe=3 ce=1") :]
    isr = "1.2.3.4.5.6"
    assert [line for line in steps if " UM " not in line] == [
        f"W t-0 leader=1 isr={isr} le=1 pe=3 ce=1",
        f"W t-0 leader=4 isr={isr} le=2 pe=4 ce=1",
        *[f"S {broker} LAI t-0 leader=4 isr={isr} le=2 ar=4.5.6" for broker in (4, 5, 6)],
        "W t-0 leader=4 isr=2.3.4.5.6 le=3 pe=5 ce=1",
        "W t-0 leader=4 isr=3.4.5.6 le=4 pe=6 ce=1",
        "W t-0 leader=4 isr=4.5.6 le=5 pe=7 ce=1",
        *[
            f"S {broker} LAI t-0 leader=4 isr=4.5.6 le=5 ar=4.5.6"
            for broker in ((4,) if dialect is DOCUMENT_OPERATIONS else (4, 5, 6))
        ],
        "S 1 SR t-0 le=2",
        "S 2 SR t-0 le=3",
        "S 3 SR t-0 le=4",
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


def test_a_leader_in_the_target_stays() -> None:
    """It keeps leading with the next leader epoch; nobody is elected (C-49)."""
    driver = cluster((1, 2), brokers=(1, 2, 3))
    driver.reassign(3, 1)
    driver.alter_isr(1, 2, 3)
    assert driver.state() == "t-0 leader=1 isr=1.3 le=3 pe=4 ce=1"
    assert driver.assignment() == ReplicaAssignment((3, 1))


@DIALECTS
def test_replicas_of_both_lists_are_kept(dialect: OperationsDialect) -> None:
    """Only what the target lacks is stopped and deleted (C-50, C-51)."""
    driver = cluster((1, 2, 3), brokers=(1, 2, 3, 4), dialect=dialect)
    driver.reassign(4, 2, 3)
    driver.alter_isr(1, 2, 3, 4)
    stopped = {line[2] for line in lines_for(driver.journal, "SR")}
    assert stopped == {"1"}
    assert driver.assignment().replicas == (4, 2, 3)


def test_a_dead_leader_of_the_target_is_replaced() -> None:
    """Released Kafka elects also if the leader is in the target and dead (C-49)."""
    driver = cluster((1, 2, 3), brokers=(1, 2, 3, 4))
    parts = driver.controller._parts
    driver.reassign(1, 4)
    driver.alter_isr(1, 2, 3, 4)
    assert driver.state().startswith("t-0 leader=1 isr=1.4")
    driver.reassign(4, 1)
    parts.context.failed_directories[1].add(P0)
    driver.settle()
    driver.reassign(1, 4)
    assert driver.state().startswith("t-0 leader=4 ")


def test_the_same_list_is_reassigned_once_more() -> None:
    """It is not skipped: the next leader epoch, and the topic's znode is written again."""
    driver = cluster((1, 2))
    _, lines = driver.reassign(1, 2)
    assert lines_for(lines, "W") == [
        "W t-0 leader=1 isr=1.2 le=1 pe=1 ce=1",
        "W /brokers/topics/t 0:1.2",
    ]


def test_a_reassignment_is_canceled() -> None:
    """The added replica is stopped and deleted at once; the order of the old list is lost."""
    driver = cluster((1, 2, 3), brokers=(1, 2, 3, 4))
    driver.reassign(4, 2, 3)
    result, lines = driver.reassign(cancels=True)
    assert result.error is ErrorCode.NONE
    assert lines_for(lines, "SR") == ["S 4 SR t-0 le=1", "S 4 SR t-0 le=1 delete"]
    assert driver.assignment() == ReplicaAssignment((2, 3, 1))
    result, lines = driver.reassign(cancels=True)
    assert (result.error, lines) == (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, [])


def test_a_reassignment_is_replaced() -> None:
    """What only the first target had is dropped at once; the newest target counts."""
    driver = cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5))
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
def test_a_target_that_is_refused(target: tuple[int, ...], text: str) -> None:
    """Kafka's codes and texts; nothing is written or sent."""
    driver = cluster((1, 2))
    result, lines = driver.reassign(*target)
    assert (result, lines) == (PartitionResult(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text), [])


def test_an_unknown_partition_is_not_reassigned() -> None:
    """The code of an unknown partition; nothing is written or sent."""
    result, lines = cluster((1, 2)).reassign(1, partition=P1)
    assert (result.error, lines) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])


@pytest.mark.parametrize("data", [b"", b"[1", b'{"version":1}', b'{"version":1,"partitions":[1]}'])
def test_an_unreadable_request_starts_nothing(data: bytes) -> None:
    """A file that is no reassignment is named in one line; the znode stays for its author."""
    driver = cluster((1, 2))
    driver.put("/admin/reassign_partitions", data)
    assert driver.settle() == []
    assert driver.log_lines[-1].startswith("cannot read /admin/reassign_partitions: ")


def test_a_target_broker_starts() -> None:
    """An unfinished reassignment with a target on it begins again, another does not (C-42)."""
    driver = cluster((1, 2), (2, 1), brokers=(1, 2, 3))
    driver.start_broker(4)
    driver.reassign(3, 2)
    driver.reassign(4, 1, partition=P1)
    driver.kill_broker(4)
    lines = driver.start_broker(4)
    assert any(line.startswith("S 4 LAI t-1") and line.endswith("new") for line in lines)
    assert "W t-1 leader=2 isr=2.1 le=2 pe=2 ce=1" in lines
    assert not any("W t-0" in line for line in lines)


# -- failover --------------------------------------------------------------------------------------


@DIALECTS
def test_a_controller_starts(dialect: OperationsDialect) -> None:
    """States follow from ZooKeeper: replicas first, then partitions, then elections (C-57 to C-60).

    Live replicas learn their leaders; the document sets those of dead brokers online as well.
    """
    driver = cluster((1, 2), (3, 2), brokers=(1, 2, 3), dialect=dialect)
    driver.create_topic((2, 1), topic="u")
    driver.write(Delete("/brokers/topics/u/partitions/0/state"))
    driver.history.write(9, Delete("/brokers/ids/3"))
    lines = driver.fail_over()
    assert lines[:2] == ["S 1 UM none", "S 2 UM none"]
    replicas = [line for line in lines if "LAI" in line and " le=0 " in line and "new" not in line]
    assert replicas[0] == "S 1 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2"
    left_isr = "W t-1 leader=-1 isr=2 le=1 pe=1 ce=2"
    assert (left_isr in lines) == (dialect is RELEASED_OPERATIONS)
    context = driver.controller.context
    assert {*context.partition_states.values()} == {PartitionState.ONLINE}
    assert driver.state(P1).startswith("t-1 leader=2 isr=2 ")
    assert driver.state(TopicPartition("u", 0)) == "u-0 leader=2 isr=2.1 le=0 pe=0 ce=2"
    dead = [state for replica, state in context.replica_states.items() if replica.broker_id == 3]
    expected = ReplicaState.ONLINE if dialect.restarts_dead else ReplicaState.OFFLINE
    assert dead == [expected]


@DIALECTS
def test_a_controller_derives_states_before_it_acts(dialect: OperationsDialect) -> None:
    """Replicas follow from their brokers, partitions from their leaders (C-57, C-59)."""
    driver = cluster((1, 2), dialect=dialect)
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
    """After a crash at any write of steps 1 to 3 the next controller begins again (C-56, C-61)."""
    driver = cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5, 6), dialect=dialect)
    request = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,5,6]}]}'
    driver.put("/admin/reassign_partitions", request)
    driver.settle(until=after_writes(crash))
    assert len(driver.pending) == (crash < 2)
    driver.fail_over()
    assert driver.assignment().replicas == (4, 5, 6, 1, 2, 3)
    driver.alter_isr(1, 2, 3, 4, 5, 6)
    assert driver.assignment() == ReplicaAssignment((4, 5, 6))
    assert driver.state().startswith("t-0 leader=4 isr=4.5.6")
    assert "/admin/reassign_partitions" not in driver.history.tree


@DIALECTS
@pytest.mark.parametrize("crash", range(8))
def test_a_completing_reassignment_survives_its_controller(
    dialect: OperationsDialect, crash: int
) -> None:
    """After a crash at any write of steps 5 to 11 the next controller ends it (C-56, C-61)."""
    driver = cluster((1, 2, 3), brokers=(1, 2, 3, 4, 5, 6), dialect=dialect)
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


@DIALECTS
def test_a_controller_resumes_in_order(dialect: OperationsDialect) -> None:
    """Replicas, partitions, reassignments, and preferred elections at the end (C-61)."""
    driver = cluster((1, 2), (2, 1), (3,), brokers=(1, 2, 3), dialect=dialect)
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
    order = [
        next(index for index, line in enumerate(lines) if line.startswith(begin))
        for begin in (
            "S 1 LAI t-0 leader=2",
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
    driver = cluster((1, 2, 3))
    old, pending, tasks = driver.controller, driver.pending, driver.tasks
    driver.elect()
    driver.settle()
    before = driver.history.tree
    new, new_pending, new_tasks = driver.controller, driver.pending, driver.tasks
    driver.controller, driver.pending, driver.tasks = old, pending, tasks
    results: list[object] = []
    old.elect([P0], results.append, unclean=False)
    old.reassign({P0: (2, 3)}, results.append)
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
    assert driver.state().startswith("t-0 leader=2 isr=2.3 ")
    driver.reassign(3)
    driver.settle()
    assert driver.assignment() == ReplicaAssignment((3,))
    assert driver.state().startswith("t-0 leader=3 isr=3 ")


# -- elections -------------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("by_znode", [False, True])
def test_the_preferred_replica_is_elected(dialect: OperationsDialect, by_znode: bool) -> None:
    """The requested partitions, and no others, are elected; the znode is removed (C-62)."""
    driver = cluster((1, 2, 3), (1, 3, 2), dialect=dialect)
    driver.kill_broker(1)
    driver.start_broker(1)
    for partition in (P0, P1):
        driver.alter_isr(1, 2, 3, partition=partition)
    driver.settle()
    if by_znode:
        request = b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'
        driver.put("/admin/preferred_replica_election", request)
        lines = driver.settle()
        assert lines[-1] == "D /admin/preferred_replica_election"
    else:
        results, lines = driver.elect_leaders(P0, TopicPartition("x", 0))
        assert [result.error for result in results.values()] == [3, 0]
    (written,) = lines_for(lines, "W")
    assert written.startswith("W t-0 leader=1 isr=1.2.3 le=2 ")
    assert [line[2] for line in lines_for(lines, "LAI")] == ["1", "2", "3"]
    results, lines = driver.elect_leaders(P0)
    assert (results[P0].error, lines) == (ErrorCode.ELECTION_NOT_NEEDED, [])


@pytest.mark.parametrize("data", [b"", b"7", b'{"version":1,"partitions":"t"}'])
def test_an_unreadable_election_is_removed(data: bytes) -> None:
    """It is named in one line, nobody is elected, and the next request works."""
    driver = cluster((1, 2))
    driver.put("/admin/preferred_replica_election", data)
    assert driver.settle() == ["D /admin/preferred_replica_election"]
    assert "cannot read" in driver.log_lines[-1]


def test_a_dead_preferred_replica_is_not_elected() -> None:
    """Its code and text; the present leader stays (C-21)."""
    driver = cluster((1, 2, 3))
    driver.kill_broker(1)
    results, lines = driver.elect_leaders(P0)
    assert results[P0] == PartitionResult(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "Failed to elect leader for partition t-0 under strategy"
        " PreferredReplicaPartitionLeaderElectionStrategy",
    )
    assert lines == []


def test_an_administrator_elects_unclean() -> None:
    """Only where no leader is alive, whatever the topic's setting (C-16)."""
    driver = cluster((1, 2, 3))
    results, _ = driver.elect_leaders(P0, unclean=True)
    assert results[P0].error is ErrorCode.ELECTION_NOT_NEEDED
    driver.alter_isr(1)
    driver.kill_broker(1)
    results, _ = driver.elect_leaders(P0, unclean=True)
    assert results[P0].error is ErrorCode.NONE
    assert driver.state() == "t-0 leader=2 isr=2 le=2 pe=3 ce=1 recovering"
    driver.kill_broker(2, 3)
    results, _ = driver.elect_leaders(P0, unclean=True)
    assert results[P0].error is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_leaders_are_balanced() -> None:
    """Preferred replicas lead again where a broker has lost more than the limit (C-62)."""
    driver = cluster((1, 2), (1, 2), (2, 1), brokers=(1, 2, 3))
    driver.kill_broker(1)
    driver.start_broker(1)
    driver.alter_isr(1, 2, leader=2)
    driver.settle()
    driver.controller.balance(100)
    assert driver.settle() == []
    driver.controller.balance(10)
    assert [line[:14] for line in lines_for(driver.settle(), "W")] == ["W t-0 leader=1"]
    driver.alter_isr(1, 2, leader=2, partition=P1)
    driver.reassign(3, 2, partition=TopicPartition("t", 2))
    driver.settle()
    driver.controller.balance(10)
    assert driver.settle() == []


# -- controlled shutdown ---------------------------------------------------------------------------


@DIALECTS
def test_a_broker_shuts_down(dialect: OperationsDialect) -> None:
    """Leaders move away first; then followers are stopped and leave the ISR (C-63, C-64)."""
    driver = cluster((1, 2, 3), (2, 1, 3), (1,), dialect=dialect)
    result, lines = driver.shut_down(1)
    assert (result.error, result.remaining) == (ErrorCode.NONE, ())
    assert lines_for(lines, "W") == [
        "W t-0 leader=2 isr=2.3 le=1 pe=1 ce=1",
        "W t-1 leader=2 isr=2.3 le=1 pe=1 ce=1",
    ]
    assert lines_for(lines, "SR") == ["S 1 SR t-1 le=0", "S 1 SR t-1 le=0"]
    moved = lines.index("W t-0 leader=2 isr=2.3 le=1 pe=1 ce=1")
    assert moved < lines.index("S 1 SR t-1 le=0") < lines.index(lines_for(lines, "W")[1])
    receivers = [line[2] for line in lines_for(lines, "LAI") if "t-0" in line]
    assert receivers == (["1", "2", "3"] if dialect is RELEASED_OPERATIONS else ["2", "3"])
    assert driver.state(TopicPartition("t", 2)).startswith("t-2 leader=1 isr=1 le=0")
    if dialect is DOCUMENT_OPERATIONS:
        assert any("t-2" in line and "Failed to elect" in line for line in driver.log_lines)


def test_a_shutdown_that_cannot_move_a_leader() -> None:
    """The partition remains, and the broker asks again (C-63)."""
    driver = cluster((1, 2))
    driver.alter_isr(1)
    result, _ = driver.shut_down(1)
    assert result.remaining == (P0,)
    driver.alter_isr(1, 2)
    assert driver.shut_down(1)[0].remaining == (P0,)


@pytest.mark.parametrize(
    ("broker_id", "epoch", "error"),
    [(9, -1, ErrorCode.BROKER_NOT_AVAILABLE), (1, 0, ErrorCode.STALE_BROKER_EPOCH)],
)
def test_a_shutdown_that_is_refused(broker_id: int, epoch: int, error: ErrorCode) -> None:
    """A broker that is not registered, or an earlier life of one: nothing moves."""
    result, lines = cluster((1, 2)).shut_down(broker_id, epoch)
    assert (result.error, lines) == (error, [])


# -- ISR changes -----------------------------------------------------------------------------------


def test_a_leader_changes_its_isr() -> None:
    """The leader epoch stays, all brokers learn of it; the same ISR again changes nothing."""
    driver = cluster((1, 2, 3))
    result = driver.alter_isr(1, 2)
    assert result.partitions[P0] == PartitionLeadership(1, (1, 2), 0, 1, 1)
    assert driver.journal[-4:] == [
        "W t-0 leader=1 isr=1.2 le=0 pe=1 ce=1",
        *[f"S {broker} UM t-0 leader=1 isr=1.2 offline=none" for broker in (1, 2, 3)],
    ]
    count = len(driver.journal)
    assert driver.alter_isr(1, 2, epochs=(0, -1)).partitions == result.partitions
    assert len(driver.journal) == count


@pytest.mark.parametrize(
    ("isr", "leader", "epochs", "error"),
    [
        ((1, 2), 1, (0, 1), ErrorCode.NOT_CONTROLLER),
        ((1, 2), 1, (1, 0), ErrorCode.NOT_CONTROLLER),
        ((1, 2), 1, (-1, 0), ErrorCode.FENCED_LEADER_EPOCH),
        ((1, 2), 1, (0, -1), ErrorCode.INVALID_UPDATE_VERSION),
        ((1, 9), 1, (0, 0), ErrorCode.INELIGIBLE_REPLICA),
        ((), 1, (0, 0), ErrorCode.INVALID_REQUEST),
        ((1, 1), 1, (0, 0), ErrorCode.INVALID_REQUEST),
        ((2,), 2, (0, 0), ErrorCode.INVALID_REQUEST),
    ],
)
def test_an_isr_that_is_refused(
    isr: tuple[int, ...], leader: int, epochs: tuple[int, int], error: ErrorCode
) -> None:
    """Stale or foreign epochs, dead members, others than the leader: nothing is written."""
    driver = cluster((1, 2, 3))
    driver.alter_isr(1, 2, 3)
    driver.alter_isr(1, 3)
    before = driver.state()
    result = driver.alter_isr(*isr, leader=leader, epochs=epochs)
    assert result.partitions[P0] == PartitionResult(error)
    assert driver.state() == before


def test_older_leaders_write_their_isr_themselves() -> None:
    """The notification is read, all brokers learn of it, and a reassignment completes."""
    driver = cluster((1, 2), brokers=(1, 2, 3))
    driver.reassign(3, 1)
    data = driver.history.tree[STATE].data.replace(b"[1,2]", b"[1,2,3]")
    driver.write(SetData(STATE, data, -1))
    driver.write(
        Create(
            "/isr_change_notification/isr_change_0",
            b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
        )
    )
    lines = driver.settle()
    assert lines[0] == "S 1 UM t-0 leader=1 isr=1.2.3 offline=none"
    assert lines[-1] == "D /isr_change_notification/isr_change_0"
    assert driver.assignment() == ReplicaAssignment((3, 1))


# -- deletion --------------------------------------------------------------------------------------


def delete(driver: OperationsDriver, topic: str = "t") -> list[str]:
    """Requests the deletion of a topic; returns what is done."""
    driver.write(Create(f"/admin/delete_topics/{topic}", b""))
    return driver.settle()


def test_a_topic_is_deleted() -> None:
    """Brokers forget it, replicas are stopped and deleted, and then the znodes go (C-13, C-35)."""
    driver = cluster((1, 2))
    driver.put(topic_config_path("t"), b'{"version":1,"config":{}}')
    driver.requests.clear()
    lines = delete(driver)
    assert lines == [
        *[f"S {broker} UM t-0 leader=-2 isr=1.2 offline=none" for broker in (1, 2, 3)],
        "W t-0 leader=-1 isr=2 le=1 pe=1 ce=1",
        "W t-0 leader=-1 isr=2 le=2 pe=2 ce=1",
        *["S 1 SR t-0 le=-2", "S 2 SR t-0 le=-2"],
        *["S 1 SR t-0 le=-2 delete", "S 2 SR t-0 le=-2 delete"],
    ]
    assert driver.stop_responses() == [
        "D /brokers/topics/t/partitions/0/state",
        "D /brokers/topics/t/partitions/0",
        "D /brokers/topics/t/partitions",
        "D /brokers/topics/t",
        "D /config/topics/t",
        "D /admin/delete_topics/t",
    ]
    assert not driver.controller.context.assignments


def test_a_deletion_waits_for_a_dead_broker() -> None:
    """The topic is ineligible until the broker is back; then the deletion is retried."""
    driver = cluster((1, 2))
    driver.kill_broker(2)
    driver.requests.clear()
    delete(driver)
    assert driver.stop_responses() == []
    assert "/brokers/topics/t" in driver.history.tree
    driver.start_broker(2)
    assert driver.stop_responses()[-1] == "D /admin/delete_topics/t"


def test_a_deletion_is_retried_after_an_error() -> None:
    """A failed replica makes the topic ineligible until one of its brokers starts."""
    driver = cluster((1, 2))
    driver.requests.clear()
    delete(driver)
    assert not any(line.startswith("D") for line in driver.stop_responses(error=56))
    assert driver.controller.context.ineligible_deletions == {"t"}
    driver.history.write(9, Delete("/brokers/ids/2"))
    driver.start_broker(2)
    assert driver.stop_responses()[-1] == "D /admin/delete_topics/t"


def test_a_deletion_waits_for_a_reassignment() -> None:
    """The topic is ineligible while it moves, and deleted afterwards."""
    driver = cluster((1, 2), brokers=(1, 2, 3))
    driver.reassign(3, 1)
    assert delete(driver) == []
    driver.alter_isr(1, 2, 3)
    assert driver.stop_responses()[-1] == "D /admin/delete_topics/t"


@pytest.mark.parametrize("answered", [None, 1])
def test_a_deletion_survives_its_controller(answered: int | None) -> None:
    """The request in ZooKeeper is all that stays: live replicas are asked again."""
    driver = cluster((1, 2))
    driver.requests.clear()
    delete(driver)
    if answered:
        driver.stop_responses(only=answered)
    driver.requests.clear()
    driver.fail_over()
    assert driver.stop_responses()[-1] == "D /admin/delete_topics/t"
    assert "/brokers/topics/t" not in driver.history.tree


def test_a_topic_that_is_being_deleted_is_left_alone() -> None:
    """No elections, no reassignments, and added partitions are taken back."""
    driver = cluster((1, 2))
    driver.kill_broker(2)
    delete(driver)
    assert driver.elect_leaders(P0)[0][P0].error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert driver.reassign(1)[0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.create_topic((1, 2), (1,)) == ["W /brokers/topics/t 0:1.2"]


def test_an_unknown_topic_is_not_deleted() -> None:
    """The request is removed."""
    assert delete(cluster((1, 2)), "x") == ["D /admin/delete_topics/x"]
