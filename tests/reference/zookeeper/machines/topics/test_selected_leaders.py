"""What the controller chooses where the forms differ, and what outlives a controller."""

import pytest

from featurewatch.reference.zookeeper.machines.encoding import CONTROLLER_EPOCH
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.zookeeper import ANY_VERSION, Exists, SetData
from tests.reference.zookeeper.machines.topics.cluster import (
    P0,
    OperationsDriver,
    lines_for,
    make_cluster,
)

DIALECTS = pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
STATE = "/brokers/topics/t/partitions/0/state"


def write_isr(driver: OperationsDriver, old: bytes, new: bytes) -> None:
    """A leader writes its ISR itself, as before AlterPartition."""
    data = driver.history.tree[STATE].data
    assert old in data
    driver.write(SetData(STATE, data.replace(old, new), ANY_VERSION))


def leader_and_isr(driver: OperationsDriver) -> str:
    """The two as in the journal."""
    _, leader, isr, *_ = driver.state().split()
    return f"{leader} {isr}"


@DIALECTS
def test_a_tie_goes_by_the_isr_or_by_the_assignment(dialect: OperationsDialect) -> None:
    """Of two members the first in the ISR leads, in released Kafka the first assigned (C-15, C-15
    as released)."""
    driver = make_cluster((1, 2, 3), dialect=dialect)
    write_isr(driver, b"[1,2,3]", b"[1,3,2]")
    driver.kill_broker(1)
    document = dialect is DOCUMENT_OPERATIONS
    assert leader_and_isr(driver) == f"leader={3 if document else 2} isr=3.2"


@DIALECTS
def test_a_replica_outside_the_isr_leads_where_nobody_is_left(dialect: OperationsDialect) -> None:
    """Any live replica, alone; released Kafka waits for the last member (C-16, C-16 as
    released)."""
    driver = make_cluster((1, 2, 3), dialect=dialect)
    write_isr(driver, b"[1,2,3]", b"[1]")
    driver.kill_broker(1)
    expected = "leader=2 isr=2" if dialect is DOCUMENT_OPERATIONS else "leader=-1 isr=1"
    assert leader_and_isr(driver) == expected


@DIALECTS
def test_a_target_that_left_the_isr_meanwhile_leads_or_not(dialect: OperationsDialect) -> None:
    """A live replica of the target suffices; released Kafka takes one in the ISR (C-19, C-19 as
    released)."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3, 4), dialect=dialect)
    driver.reassign(3, 4)
    driver.overtake(b"[1,2,3,4]", b"[1,2,4]", skip=1)
    driver.alter_isr(1, 2, 3, 4)
    document = dialect is DOCUMENT_OPERATIONS
    assert leader_and_isr(driver) == f"leader={3 if document else 4} isr=4"


@DIALECTS
def test_a_dead_preferred_replica_in_the_isr_leads_or_not(dialect: OperationsDialect) -> None:
    """Its place in the ISR suffices; in released Kafka it must be alive (C-21, C-21 as
    released)."""
    driver = make_cluster((1, 2, 3), dialect=dialect)
    driver.kill_broker(1)
    write_isr(driver, b"[2,3]", b"[2,3,1]")
    driver.controller.elect([P0], lambda _: None)
    driver.settle()
    document = dialect is DOCUMENT_OPERATIONS
    assert leader_and_isr(driver) == f"leader={1 if document else 2} isr=2.3.1"


@DIALECTS
def test_a_dead_member_takes_over_at_a_shutdown_or_not(dialect: OperationsDialect) -> None:
    """Any member that does not shut down; in released Kafka it must be alive (C-23, C-23 as
    released)."""
    driver = make_cluster((1, 2, 3), dialect=dialect)
    driver.kill_broker(2)
    write_isr(driver, b"[1,3]", b"[1,2,3]")
    driver.controller.shut_down(1, -1, lambda _: None)
    driver.settle()
    document = dialect is DOCUMENT_OPERATIONS
    assert leader_and_isr(driver) == f"leader={2 if document else 3} isr=2.3"


def test_what_a_deposed_controller_has_queued_is_not_performed() -> None:
    """Not even if the same node is elected again before its turn comes (C-01)."""
    driver = make_cluster((1, 2, 3))
    performed: list[str] = []

    def operation(name: str) -> Task[str]:
        yield from perform(Exists("/controller"))
        return name

    driver.controller.perform(operation("before"), performed.append)
    driver.settle()
    driver.controller.perform(operation("first"), lambda _: None)
    driver.controller.perform(operation("second"), performed.append)
    driver.controller.resign()
    node = driver.history.tree[CONTROLLER_EPOCH]
    epoch = int(node.data) + 1
    driver.history.write(7, SetData(CONTROLLER_EPOCH, str(epoch).encode(), node.stat.version))
    driver.controller.elected(epoch, node.stat.version + 1)
    driver.controller.perform(operation("after"), performed.append)
    driver.settle()
    assert performed == ["before", "after"]


def test_a_reassignment_by_request_is_resumed_by_the_next_controller() -> None:
    """It is in the topic's znode alone: the next controller raises the leader epoch again, and all
    replicas learn of the reassignment from it (C-56, C-61)."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3))
    driver.reassign(3, 1)
    assert " le=1 " in driver.state()
    lines = driver.fail_over()
    assert " le=2 " in driver.state()
    informed = [line.split()[1] for line in lines_for(lines, "LAI") if " le=2 " in line]
    assert informed == ["1", "2", "3"]
    driver.alter_isr(1, 2, 3)
    assert driver.assignment().replicas == (3, 1)
