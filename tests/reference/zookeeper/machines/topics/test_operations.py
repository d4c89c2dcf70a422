"""The operations of the controller: what each writes and sends, in which order."""

from collections.abc import Callable
from typing import Any

import pytest

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.states import PartitionState, ReplicaState
from featurewatch.reference.zookeeper.machines.requests import ErrorCode
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    RELEASED_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.znodes import topic_config_path
from featurewatch.reference.zookeeper.machines.zookeeper import Create, Delete
from tests.reference.zookeeper.machines.topics.cluster import (
    P0,
    P1,
    OperationsDriver,
    lines_for,
    make_cluster,
)

DIALECTS = pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS, RELEASED_OPERATIONS])
STATE = "/brokers/topics/t/partitions/0/state"


# -- new topics and partitions ---------------------------------------------------------------------


@DIALECTS
def test_a_new_topic_goes_through_four_steps(
    dialect: OperationsDialect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New, new replicas, online, online replicas, in this order (C-37, C-38).

    Nothing is sent for new ones.
    """
    driver = OperationsDriver(dialect=dialect)
    driver.settle()
    parts = driver.controller._parts
    steps: list[PartitionState | ReplicaState] = []
    for machine in (parts.partitions, parts.replicas):
        monkeypatch.setattr(machine, "move", noting(machine.move, steps))
    lines = driver.create_topic([1, 2], [3, 1])
    assert lines_for(lines, "LAI") == [
        "S 1 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2 new",
        "S 1 LAI t-1 leader=3 isr=3.1 le=0 ar=3.1 new",
        "S 2 LAI t-0 leader=1 isr=1.2 le=0 ar=1.2 new",
        "S 3 LAI t-1 leader=3 isr=3.1 le=0 ar=3.1 new",
    ]
    assert len(lines_for(lines, "UM")) == 6
    assert steps == [
        PartitionState.NEW,
        ReplicaState.NEW,
        PartitionState.ONLINE,
        ReplicaState.ONLINE,
    ]
    context = driver.controller.context
    assert {*context.partition_states.values()} == {PartitionState.ONLINE}
    assert {*context.replica_states.values()} == {ReplicaState.ONLINE}


def noting(move: Callable[..., Any], steps: list[Any]) -> Callable[..., Any]:
    """A machine's ``move`` that writes down the targets."""

    def noted(subjects: Any, target: Any, *election: Any) -> Any:
        steps.append(target)
        return move(subjects, target, *election)

    return noted


def test_a_topic_without_an_id_gets_one() -> None:
    """Topics of older brokers and tools have schema 1 or 2: the znode is written again."""
    driver = OperationsDriver()
    driver.settle()
    lines = driver.create_topic([1], version=2)
    assert lines[0] == "W /brokers/topics/t 0:1"
    assert driver.controller.context.topic_ids == {"t": "id-1"}


def test_new_partitions_of_a_topic_are_started_alone() -> None:
    """The partitions that are known already are left alone (C-38)."""
    driver = make_cluster((1, 2, 3))
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
    """Its partitions are forgotten; the others continue."""
    driver = make_cluster((1, 2))
    driver.create_topic((2, 1), topic="u")
    for path in [path for path in driver.history.tree if path.startswith("/brokers/topics/t")]:
        driver.write(Delete(path))
    driver.settle()
    assert {*driver.controller.context.assignments} == {TopicPartition("u", 0)}
    assert lines_for(driver.kill_broker(2), "W") == ["W u-0 leader=1 isr=1 le=1 pe=1 ce=1"]


# -- brokers ---------------------------------------------------------------------------------------


@DIALECTS
def test_a_broker_dies(dialect: OperationsDialect) -> None:
    """Leaderless partitions are elected, then its replicas go offline (C-28, C-39)."""
    driver = make_cluster((1, 2, 3), (2, 1, 3), dialect=dialect)
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


@DIALECTS
def test_two_brokers_die_at_once(dialect: OperationsDialect) -> None:
    """Each replica on either goes offline and leaves its ISR, and a partition that is still new is
    tried again (C-39)."""
    driver = make_cluster((1, 2, 3), (3, 1, 2), dialect=dialect)
    driver.create_topic((8,), topic="new")
    for broker_id in (1, 2):
        driver.history.write(9, Delete(f"/brokers/ids/{broker_id}"))
    driver.log_lines.clear()
    driver.controller.brokers_changed()
    driver.settle()
    assert driver.state().startswith("t-0 leader=3 isr=3 ")
    assert driver.state(P1).startswith("t-1 leader=3 isr=3 ")
    states = driver.controller.context.replica_states
    offline = {
        replica.broker_id
        for replica, state in states.items()
        if replica.partition.topic == "t" and state is ReplicaState.OFFLINE
    }
    assert offline == {1, 2}
    assert any("new-0 cannot be OnlinePartition" in line for line in driver.log_lines)


def test_a_broker_without_replicas_dies() -> None:
    """The others learn that it died (C-39)."""
    driver = make_cluster((1, 2), brokers=(1, 2, 3))
    assert driver.kill_broker(3) == ["S 1 UM none", "S 2 UM none"]


@pytest.mark.parametrize("dialect", [DOCUMENT_OPERATIONS])
def test_the_whole_isr_dies_in_the_document(dialect: OperationsDialect) -> None:
    """Any live replica leads, alone in the ISR; nothing is marked as recovering (C-16, C-17)."""
    driver = make_cluster((1, 2, 3), dialect=dialect)
    driver.alter_isr(1)
    driver.kill_broker(1)
    assert driver.state() == "t-0 leader=2 isr=2 le=1 pe=2 ce=1"


@pytest.mark.form("released")
@pytest.mark.parametrize("unclean", [False, True])
def test_the_whole_isr_dies(unclean: bool) -> None:
    """Without unclean elections the partition waits for its ISR, then continues (C-16 as
    released, C-41); with them the new leader is recovering (C-17 as released)."""
    driver = make_cluster((1, 2, 3), unclean=unclean)
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
@pytest.mark.form("released")
def test_a_topics_own_setting_allows_unclean_elections(config: bytes, leader: int) -> None:
    """It is read where the ISR is lost; what cannot be read allows nothing (C-16 as released)."""
    driver = make_cluster((1, 2, 3))
    driver.put(topic_config_path("t"), config)
    driver.alter_isr(1)
    driver.kill_broker(1)
    assert driver.state().startswith(f"t-0 leader={leader} ")


@DIALECTS
def test_a_broker_starts(dialect: OperationsDialect) -> None:
    """It gets all partitions' metadata, then its replicas, then elections run (C-40, C-41).

    In released Kafka the other brokers learn of it before (C-40 as released).
    """
    driver = make_cluster((1, 2), (3,), dialect=dialect)
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


@DIALECTS
def test_a_new_partition_is_led_when_a_replica_starts(dialect: OperationsDialect) -> None:
    """It had no live replica when it was created (C-41)."""
    driver = make_cluster((1, 2), dialect=dialect)
    partition = TopicPartition("u", 0)
    driver.create_topic((5,), topic="u")
    assert driver.controller.context.partition_states[partition] is PartitionState.NEW
    driver.start_broker(5)
    assert driver.state(partition) == "u-0 leader=5 isr=5 le=0 pe=0 ce=1"


@DIALECTS
def test_a_broker_that_was_shut_down_may_lead_once_it_is_restarted(
    dialect: OperationsDialect,
) -> None:
    """Its replica is online, and the next election chooses it (C-41)."""
    driver = make_cluster((1, 2), dialect=dialect)
    driver.shut_down(1)
    driver.kill_broker(1)
    driver.start_broker(1)
    driver.alter_isr(2, 1)
    driver.kill_broker(2)
    assert driver.state().startswith("t-0 leader=1 isr=1 ")


def test_a_broker_bounces() -> None:
    """Its znode is another one: it fails and then starts, without a gap that was seen (C-39)."""
    driver = make_cluster((1, 2, 3))
    driver.history.write(9, Delete("/brokers/ids/1"))
    lines = driver.start_broker(1)
    assert lines_for(lines, "W") == ["W t-0 leader=2 isr=2.3 le=1 pe=1 ce=1"]
    assert lines_for(lines, "LAI")[-1] == "S 1 LAI t-0 leader=2 isr=2.3 le=1 ar=1.2.3"


@pytest.mark.form("released")
def test_a_log_directory_fails() -> None:
    """The broker is asked, names the replica, and that replica alone fails (C-28 as released)."""
    driver = make_cluster((1, 2, 3), (1, 3))
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
