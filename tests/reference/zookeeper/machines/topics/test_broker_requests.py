"""Elections, shutdowns, ISR changes and deletions that someone requests."""

from typing import Any

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import CONTROLLER_EPOCH
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.broker_requests import (
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaState,
    deletion_errors,
)
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.operations import elections
from featurewatch.reference.zookeeper.machines.topics.results import NO_ERROR, PartitionResult
from featurewatch.reference.zookeeper.machines.topics.znodes import topic_config_path
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    Multi,
    Operation,
    OutcomeUnknown,
    SetData,
)
from tests.reference.zookeeper.machines.topics.cluster import (
    OTHERS,
    P0,
    P1,
    OperationsDriver,
    lines_for,
    make_cluster,
)

DIALECTS = pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
STATE = "/brokers/topics/t/partitions/0/state"


# -- elections -------------------------------------------------------------------------------------


@DIALECTS
@pytest.mark.parametrize("by_znode", [False, True])
def test_the_preferred_replica_is_elected(dialect: OperationsDialect, by_znode: bool) -> None:
    """The requested partitions, and no others, are elected; the znode is removed (C-62)."""
    driver = make_cluster((1, 2, 3), (1, 3, 2), dialect=dialect)
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


def unbalanced(dialect: OperationsDialect) -> OperationsDriver:
    """Broker 2 leads both partitions of t, whose heads are 1, in sync again."""
    driver = make_cluster((1, 2, 3), (1, 2, 3), dialect=dialect)
    driver.kill_broker(1)
    driver.start_broker(1)
    for partition in (P0, P1):
        driver.alter_isr(1, 2, 3, partition=partition)
    driver.settle()
    return driver


def leaders(driver: OperationsDriver) -> list[int]:
    """The leaders of both partitions, as the controller knows them."""
    return [driver.controller.context.leaderships[partition].leader for partition in (P0, P1)]


@DIALECTS
def test_a_requested_election_survives_its_controller(dialect: OperationsDialect) -> None:
    """KIP-4's request is answered when it is in ZooKeeper and before anyone is elected (A-30); if
    the controller is deposed then, the next one elects (A-39, C-61)."""
    driver = unbalanced(dialect)
    results: list[Any] = []
    driver.controller.request_elections(None, results.append)
    driver.settle(until=lambda _: bool(results))
    assert results == [{P0: NO_ERROR, P1: NO_ERROR}]
    assert leaders(driver) == [2, 2]
    driver.fail_over()
    assert leaders(driver) == [1, 1]
    assert "/admin/preferred_replica_election" not in driver.history.tree


def test_a_requested_election_follows_an_earlier_one() -> None:
    """The znode of an earlier request is performed first, whoever wrote it, and none is lost."""
    driver = unbalanced(RELEASED_OPERATIONS)
    results: list[Any] = []
    driver.put(
        "/admin/preferred_replica_election",
        b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
    )
    driver.controller.request_elections([P1], results.append)
    driver.settle()
    assert results == [{P1: NO_ERROR}]
    assert leaders(driver) == [1, 1]


def test_an_election_that_cannot_be_requested_has_a_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An unknown partition, more partitions than a znode holds: nothing is written then."""
    driver = unbalanced(RELEASED_OPERATIONS)
    results: list[Any] = []
    driver.controller.request_elections([P0, TopicPartition("t", 9)], results.append)
    driver.settle()
    monkeypatch.setattr(elections, "_MAX_ZNODE_BYTES", 60)
    driver.controller.request_elections(None, results.append)
    assert lines_for(driver.settle(), "W") == []
    (unknown,), both = (dict(result) for result in results)
    assert unknown == TopicPartition("t", 9)
    assert {result.error for result in both.values()} == {ErrorCode.INVALID_REQUEST}
    assert leaders(driver) == [2, 2]


def test_a_deposed_controller_does_not_remove_a_requested_election() -> None:
    """The removal of the znode checks the controller's epoch, as every write does (C-10)."""
    driver = make_cluster((1, 2))
    epoch = driver.history.tree[CONTROLLER_EPOCH]
    driver.history.write(OTHERS, SetData(CONTROLLER_EPOCH, b"99", epoch.stat.version))
    path = "/admin/preferred_replica_election"
    driver.put(path, b'{"version":1,"partitions":[]}')
    driver.settle()
    assert path in driver.history.tree
    assert driver.deposed == 1


@pytest.mark.parametrize("data", [b"", b"7", b'{"version":1,"partitions":"t"}'])
def test_an_unreadable_election_is_removed(data: bytes) -> None:
    """It is named in one line, nobody is elected, and the next request works."""
    driver = make_cluster((1, 2))
    driver.put("/admin/preferred_replica_election", data)
    assert driver.settle() == ["D /admin/preferred_replica_election"]
    assert "cannot read" in driver.log_lines[-1]


@pytest.mark.form("released")
def test_a_dead_preferred_replica_is_not_elected() -> None:
    """Its code and text; the present leader stays (C-21 as released)."""
    driver = make_cluster((1, 2, 3))
    driver.kill_broker(1)
    results, lines = driver.elect_leaders(P0)
    assert results[P0] == PartitionResult(
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        "Failed to elect leader for partition t-0 under strategy"
        " PreferredReplicaPartitionLeaderElectionStrategy",
    )
    assert lines == []


@pytest.mark.form("released")
def test_an_administrator_elects_unclean() -> None:
    """Only where no leader is alive, whatever the topic's setting (C-16 as released)."""
    driver = make_cluster((1, 2, 3))
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
    driver = make_cluster((1, 2), (1, 2), (2, 1), brokers=(1, 2, 3))
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
    """Leaders move away first; then followers are stopped and leave the ISR (C-63, C-64).

    A partition with one replica is tried in the document; released Kafka leaves it alone
    (C-63 as released).
    """
    driver = make_cluster((1, 2, 3), (2, 1, 3), (1,), dialect=dialect)
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
    tried = any("t-2" in line and "Failed to elect" in line for line in driver.log_lines)
    assert tried == (dialect is DOCUMENT_OPERATIONS)


@DIALECTS
def test_a_shutdown_that_cannot_move_a_leader(dialect: OperationsDialect) -> None:
    """The partition remains, and the broker asks again (C-63)."""
    driver = make_cluster((1, 2), dialect=dialect)
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
    result, lines = make_cluster((1, 2)).shut_down(broker_id, epoch)
    assert (result.error, lines) == (error, [])


# -- ISR changes -----------------------------------------------------------------------------------


def test_a_leader_changes_its_isr() -> None:
    """The leader epoch stays, all brokers learn of it; the same ISR again changes nothing."""
    driver = make_cluster((1, 2, 3))
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
    driver = make_cluster((1, 2, 3))
    driver.alter_isr(1, 2, 3)
    driver.alter_isr(1, 3)
    before = driver.state()
    result = driver.alter_isr(*isr, leader=leader, epochs=epochs)
    assert result.partitions[P0] == PartitionResult(error)
    assert driver.state() == before


@pytest.mark.parametrize("is_performed", [False, True])
def test_an_isr_whose_write_has_no_outcome(is_performed: bool) -> None:
    """The write is repeated, and recognized if it was performed before; the leader may continue."""
    driver = make_cluster((1, 2, 3))
    lost: list[Operation] = []

    def lose_once(operation: Operation) -> OutcomeUnknown | None:
        if lost or not isinstance(operation, Multi):
            return None
        lost.append(operation)
        if is_performed:
            driver._perform(operation)
        return OutcomeUnknown()

    driver.fail_next = lose_once
    for isr, epoch in (((1, 2), 1), ((1, 2, 3), 2)):
        written = driver.alter_isr(*isr).partitions[P0]
        assert isinstance(written, PartitionLeadership)
        assert (written.isr, written.partition_epoch) == (isr, epoch)
    assert driver.state() == "t-0 leader=1 isr=1.2.3 le=0 pe=2 ce=1"


def test_older_leaders_write_their_isr_themselves() -> None:
    """The notification is read, all brokers learn of it, and a reassignment completes."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3))
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


@pytest.mark.form("released")
def test_a_topic_is_deleted() -> None:
    """Brokers forget it, replicas are stopped and deleted, and then the znodes go (C-13, C-35 as
    released)."""
    driver = make_cluster((1, 2))
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
    """The topic is ineligible until the broker returns; then the deletion is retried."""
    driver = make_cluster((1, 2))
    driver.kill_broker(2)
    driver.requests.clear()
    delete(driver)
    assert driver.stop_responses() == []
    assert "/brokers/topics/t" in driver.history.tree
    driver.start_broker(2)
    assert driver.stop_responses()[-1] == "D /admin/delete_topics/t"


def test_a_deletion_is_retried_after_an_error() -> None:
    """A failed replica makes the topic ineligible until one of its brokers starts."""
    driver = make_cluster((1, 2))
    driver.requests.clear()
    delete(driver)
    assert not any(line.startswith("D") for line in driver.stop_responses(error=56))
    assert driver.controller.context.ineligible_deletions == {"t"}
    driver.history.write(9, Delete("/brokers/ids/2"))
    driver.start_broker(2)
    assert driver.stop_responses()[-1] == "D /admin/delete_topics/t"


def test_a_deletion_waits_for_a_reassignment() -> None:
    """The topic is ineligible while it moves, and deleted afterwards."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3))
    driver.reassign(3, 1)
    assert delete(driver) == []
    driver.alter_isr(1, 2, 3)
    assert driver.stop_responses()[-1] == "D /admin/delete_topics/t"


@pytest.mark.parametrize("answered", [None, 1])
def test_a_deletion_survives_its_controller(answered: int | None) -> None:
    """The request in ZooKeeper is all that stays: live replicas are asked again."""
    driver = make_cluster((1, 2))
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
    driver = make_cluster((1, 2))
    driver.kill_broker(2)
    delete(driver)
    assert driver.elect_leaders(P0)[0][P0].error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert driver.reassign(1)[0].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert driver.create_topic((1, 2), (1,)) == ["W /brokers/topics/t 0:1.2"]


def test_an_unknown_topic_is_not_deleted() -> None:
    """The request is removed."""
    assert delete(make_cluster((1, 2)), "x") == ["D /admin/delete_topics/x"]


def test_a_failed_deletion_is_one_of_each_partition() -> None:
    """An error of the whole request is one of every partition that it deletes, and of no other."""
    other = TopicPartition("t", 1)
    states = (StopReplicaState(P0, 1, True), StopReplicaState(other, 1, False))
    request = StopReplicaRequest(100, 1, 1, states)
    assert deletion_errors(request, StopReplicaResponse(77)) == {P0: 77}
    assert deletion_errors(request, StopReplicaResponse(0, {P0: 56, other: 3})) == {P0: 56}
    assert deletion_errors(request, StopReplicaResponse()) == {P0: 0}
