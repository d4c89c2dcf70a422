"""A controller that dies between any two writes of any operation: the next one ends it.

Reassignments are in `test_reassignments`. With each operation the last point is its end.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, TopicPartition
from featurewatch.reference.zookeeper.machines.encoding import CONTROLLER_EPOCH, broker_path
from featurewatch.reference.zookeeper.machines.task_queue import Task, perform
from featurewatch.reference.zookeeper.machines.topics.context import PartitionLeadership
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.requests import ReassignRequest
from featurewatch.reference.zookeeper.machines.topics.znodes import (
    TopicZnode,
    encode_topic,
    topic_path,
)
from featurewatch.reference.zookeeper.machines.zookeeper import (
    Create,
    Delete,
    GetData,
    Multi,
    Operation,
    SetData,
)
from tests.reference.zookeeper.machines.topics.cluster import (
    P0,
    P1,
    OperationsDriver,
    make_cluster,
)

DIALECTS = pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
P2 = TopicPartition("t", 2)
ELECTION = b'{"version":1,"partitions":[{"topic":"t","partition":0}]}'


def after_writes(count: int) -> Callable[[Operation], bool]:
    """Matches the write after that many."""
    seen = 0

    def matches(operation: Operation) -> bool:
        nonlocal seen
        seen += isinstance(operation, Multi)
        return seen > count

    return matches


class Point(NamedTuple):
    """A cluster whose controller has died; ``is_end`` if nothing of the operation was left."""

    driver: OperationsDriver
    is_end: bool


def points(
    make: Callable[[], OperationsDriver], begin: Callable[[OperationsDriver], object]
) -> list[Point]:
    """The clusters after a crash at each point of an operation, with the next controller."""
    found: list[Point] = []
    while not found or not found[-1].is_end:
        driver = make()
        begin(driver)
        driver.settle(until=after_writes(len(found)))
        is_end = not driver.pending
        driver.fail_over()
        found.append(Point(driver, is_end))
    return found


def leadership(driver: OperationsDriver, partition: TopicPartition) -> PartitionLeadership:
    """A partition's state in the memory of the controller, which is that of ZooKeeper."""
    known = driver.controller.context.leaderships[partition]
    isr = ".".join(map(str, known.isr)) or "none"
    assert driver.state(partition).startswith(f"{partition} leader={known.leader} isr={isr} ")
    return known


def _ignore(_: object) -> None:
    pass


@DIALECTS
def test_a_topic_is_created(dialect: OperationsDialect) -> None:
    """Its partitions get their first leaders, whichever write was the last (C-38, C-59, C-60)."""

    def begin(driver: OperationsDriver) -> None:
        replicas = {number: ReplicaAssignment((number + 1, 3)) for number in range(2)}
        data = encode_topic(TopicZnode(replicas, None), dialect.assignment_schema)
        driver.put(topic_path("t"), data)

    def make() -> OperationsDriver:
        driver = OperationsDriver(dialect=dialect)
        driver.settle()
        return driver

    reached = points(make, begin)
    assert len(reached) >= 5
    for driver, _ in reached:
        assert [leadership(driver, part).leader for part in (P0, P1)] == [1, 2]
        assert [leadership(driver, part).isr for part in (P0, P1)] == [(1, 3), (2, 3)]


@DIALECTS
def test_a_broker_is_replaced(dialect: OperationsDialect) -> None:
    """Others lead what a dead broker led; a partition without another is not led (C-39, C-57).

    The document's new controller takes its replicas for online, so they are in ISRs until the
    leaders take them out (C-58).
    """

    def begin(driver: OperationsDriver) -> None:
        driver.write(Delete(broker_path(1)))

    reached = points(lambda: make_cluster((1, 2, 3), (2, 1), (1,), dialect=dialect), begin)
    assert len(reached) >= 4
    for driver, _ in reached:
        assert leadership(driver, P0).leader == 2
        assert {2, 3} <= {*leadership(driver, P0).isr}
        assert leadership(driver, P1).leader == 2
        assert leadership(driver, P2).leader in (-1, 1)
        driver.start_broker(1)
        assert leadership(driver, P2).leader == 1


@DIALECTS
def test_a_broker_starts(dialect: OperationsDialect) -> None:
    """What nobody led is led again, and a reassignment to it continues (C-41, C-42)."""

    def make() -> OperationsDriver:
        driver = make_cluster((1,), (2,), dialect=dialect)
        driver.kill_broker(1)
        driver.controller.reassign(ReassignRequest({P1: (2, 3)}), _ignore)
        driver.settle()
        return driver

    def begin(driver: OperationsDriver) -> None:
        driver.write(Create(broker_path(1), driver.broker_znode(1), ephemeral=True))

    reached = points(make, begin)
    assert len(reached) >= 2
    for driver, _ in reached:
        assert leadership(driver, P0).leader == 1
        driver.alter_isr(2, 3, partition=P1)
        assert driver.assignment(P1) == ReplicaAssignment((2, 3))


@DIALECTS
def test_a_preferred_replica_is_elected(dialect: OperationsDialect) -> None:
    """A request in its znode is performed, and removed at the end (C-61, C-62)."""

    def make() -> OperationsDriver:
        driver = make_cluster((1, 2), dialect=dialect)
        driver.kill_broker(1)
        driver.start_broker(1)
        driver.alter_isr(2, 1)
        assert leadership(driver, P0).leader == 2
        return driver

    reached = points(make, lambda driver: driver.put("/admin/preferred_replica_election", ELECTION))
    assert len(reached) >= 2
    for driver, _ in reached:
        assert leadership(driver, P0).leader == 1
        assert "/admin/preferred_replica_election" not in driver.history.tree


@DIALECTS
def test_a_broker_shuts_down(dialect: OperationsDialect) -> None:
    """A broker repeats its request to the next controller, which leaves it nothing (C-64)."""
    reached = points(
        lambda: make_cluster((1, 2, 3), (2, 1), dialect=dialect),
        lambda driver: driver.controller.shut_down(1, -1, _ignore),
    )
    assert len(reached) >= 3
    for driver, _ in reached:
        result, _ = driver.shut_down(1)
        assert result.remaining == ()
        assert (leadership(driver, P0).leader, leadership(driver, P0).isr) == (2, (2, 3))
        assert (leadership(driver, P1).leader, leadership(driver, P1).isr) == (2, (2,))


@DIALECTS
def test_an_operation_of_an_earlier_epoch_is_not_performed(dialect: OperationsDialect) -> None:
    """A controller that loses its epoch and is elected again begins again (C-01).

    What was queued for the earlier epoch comes before the start for the new one: the new fence
    would let it write, before anything is read.
    """

    def elected_again(*, queues: bool) -> list[str]:
        driver = make_cluster((1, 2, 3), dialect=dialect)
        controller, answers = driver.controller, list[object]()

        def election() -> Task[None]:
            yield from perform(GetData(CONTROLLER_EPOCH))
            controller.resign()
            epoch, stat = driver.history.tree[CONTROLLER_EPOCH]
            new = int(epoch) + 1
            driver.history.write(7, SetData(CONTROLLER_EPOCH, str(new).encode(), stat.version))
            controller.elected(new, stat.version + 1)

        driver.tasks.add(election())
        if queues:
            controller.brokers_changed()
            controller.reassign(ReassignRequest({P0: (2, 3)}), answers.append)
        lines = driver.settle()
        assert controller.ready
        assert answers == []
        return lines

    assert elected_again(queues=True) == elected_again(queues=False) != []
