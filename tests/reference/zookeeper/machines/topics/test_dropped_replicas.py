"""A canceled or replaced reassignment drops the replicas that it was adding, even from the ISR.

Kafka does so, too (``KafkaController.updateCurrentReassignment``), and no election chooses a broker
outside the assignment. `history_rules` excuses what follows from that, and nothing else.
"""

from typing import Any

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment
from featurewatch.controller.partitions.selectors import SelectedLeader
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics import partition_machine
from featurewatch.reference.zookeeper.machines.topics.requests import ReassignRequest
from featurewatch.reference.zookeeper.machines.zookeeper import Multi, Operation, SetData
from tests.reference.zookeeper.machines.topics.cluster import (
    P0,
    OperationsDriver,
    lines_for,
    make_cluster,
)
from tests.reference.zookeeper.machines.topics.history_rules import HistoryRules

STATE = "/brokers/topics/t/partitions/0/state"
ADDED = 3


def moving(*isr: int) -> OperationsDriver:
    """A partition that moves from {1,2} to {3,4}; only {3} has caught up, with this ISR."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3, 4))
    driver.reassign(ADDED, 4)
    driver.alter_isr(1, ADDED)
    if isr == (ADDED,):
        driver.kill_broker(1)
        driver.start_broker(1)
    assert f" isr={'.'.join(map(str, isr))} " in driver.state()
    return driver


def cancel_and_crash(driver: OperationsDriver) -> list[str]:
    """Cancels; the controller dies between the assignment's write and the state's."""
    driver.controller.reassign(ReassignRequest({P0: None}), lambda _: None)
    driver.settle(until=writes_state)
    assert driver.assignment() == ReplicaAssignment((1, 2))
    return driver.fail_over()


def writes_state(operation: Operation) -> bool:
    """Whether the operation writes the partition's state."""
    return isinstance(operation, Multi) and operation.operations[1].path == STATE


def elect_unclean(driver: OperationsDriver) -> ErrorCode:
    """Requests an unclean election; returns its code."""
    results, _ = driver.elect_leaders(P0, unclean=True)
    return results[P0].error


def check_rules(driver: OperationsDriver, *, is_lost: bool) -> None:
    """No rule is broken, and the partition is, or is not, in the excused situation."""
    rules = HistoryRules(driver)
    assert rules.broken == []
    assert rules.partitions[P0].is_lost == is_lost


@pytest.mark.parametrize("target", [None, (4, 1)])
def test_the_only_isr_member_is_dropped(target: tuple[int, ...] | None) -> None:
    """Nobody leads then; an unclean election helps only once the dropped broker is dead."""
    driver = moving(ADDED)
    driver.reassign(*target or (), cancels=target is None)
    assert driver.state().startswith("t-0 leader=-1 isr=3 ")
    check_rules(driver, is_lost=True)
    assert elect_unclean(driver) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    driver.kill_broker(ADDED)
    driver.start_broker(ADDED)
    driver.fail_over()
    assert driver.state().startswith("t-0 leader=-1 isr=3 ")
    driver.kill_broker(ADDED)
    assert elect_unclean(driver) == ErrorCode.NONE
    leader = driver.assignment().replicas[0]
    assert driver.state().startswith(f"t-0 leader={leader} isr={leader} ")
    assert driver.state().endswith(" recovering")
    check_rules(driver, is_lost=False)


def test_a_dropped_leader_leads_on_if_the_controller_dies() -> None:
    """The next controller finds its broker alive; its ISR may grow, and its death ends it."""
    driver = moving(ADDED)
    lines = cancel_and_crash(driver)
    assert {line[2] for line in lines_for(lines, "LAI") if "leader=3 isr=3 " in line} == {*"12"}
    check_rules(driver, is_lost=True)
    driver.alter_isr(ADDED, 1, 2)
    check_rules(driver, is_lost=False)
    driver.kill_broker(ADDED)
    driver.start_broker(ADDED)
    assert driver.state().startswith("t-0 leader=1 isr=1.2 ")
    assert HistoryRules(driver).broken_at_the_end() == []


def test_a_dropped_leader_that_dies_stays_in_the_state() -> None:
    """Its death elects nobody and writes nothing, and its return elects nobody either."""
    driver = moving(ADDED)
    cancel_and_crash(driver)
    before = driver.state()
    driver.kill_broker(ADDED)
    driver.start_broker(ADDED)
    assert driver.state() == before
    check_rules(driver, is_lost=True)
    driver.kill_broker(ADDED)
    assert elect_unclean(driver) == ErrorCode.NONE
    check_rules(driver, is_lost=False)


def test_a_dropped_member_outlives_the_isr() -> None:
    """It is still in the ISR when the last assigned member dies, which cannot return."""
    driver = moving(1, ADDED)
    cancel_and_crash(driver)
    check_rules(driver, is_lost=False)
    driver.kill_broker(1)
    driver.start_broker(1)
    assert driver.state().startswith("t-0 leader=-1 isr=3 ")
    check_rules(driver, is_lost=True)
    assert elect_unclean(driver) == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE


def test_a_dropped_replica_that_is_elected_breaks_the_rule(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may keep the leadership, and not get it."""

    def select(_: Any, partition: Any, *, allow_unclean: bool = False) -> SelectedLeader:
        del allow_unclean
        return SelectedLeader(partition.isr[-1], partition.isr, partition.assignment.replicas)

    driver = moving(1, ADDED)
    cancel_and_crash(driver)
    monkeypatch.setattr(partition_machine, "select_offline", select)
    driver.kill_broker(1)
    assert "a leader is assigned" in HistoryRules(driver).broken


@pytest.mark.parametrize("member", [2, 4])
def test_an_isr_that_no_reassignment_left_outside_is_not_excused(member: int) -> None:
    """Without a leader it breaks the rules, of its replicas and of others."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3, 4))
    driver.alter_isr(1)
    data = driver.history.tree[STATE].data
    data = data.replace(b'"leader":1', b'"leader":-1').replace(b"[1]", b"[%d]" % member)
    driver.history.write(9, SetData(STATE, data, -1))
    assert f"leader=-1 isr={member} " in driver.state()
    rules = HistoryRules(driver).broken_at_the_end()
    assert "every partition is led once all brokers run" in rules
    assert "no acknowledged write is lost without an unclean election" in rules
