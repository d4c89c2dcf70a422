"""Brokers register, are unfenced, fenced, shut down and removed; controllers register."""

from dataclasses import replace
from typing import Any

import pytest

from featurewatch.reference.kraft.machines.controller.protocol import Register
from featurewatch.reference.kraft.machines.controller.requests import (
    BrokerHeartbeat,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    FeatureUpdate,
    PlainResponse,
    UnregisterBroker,
    UnregisterController,
    UpdateFeatures,
)
from featurewatch.reference.kraft.machines.metadata.records import record, record_bytes
from featurewatch.reference.kraft.machines.metadata.state import Feature
from featurewatch.streams.types import FeatureName, SupportedRanges
from tests.reference.kraft.machines.controller.driven import (
    RANGES,
    Driven,
    led,
    level_of,
    settings_of,
    uuid,
)


def fenced(driven: Driven) -> dict[int, bool]:
    """Which of the registered brokers are fenced."""
    return {
        one: broker.fenced for one, broker in sorted(driven.controller.committed.brokers.items())
    }


# -- registrations ---------------------------------------------------------------------------------


def test_a_registration() -> None:
    """A new broker is fenced, and its epoch is the offset of its record."""
    driven = led()
    end = driven.end
    assert driven.register(1) == BrokerRegistrationResponse(0, end)
    broker = driven.controller.committed.brokers[1]
    assert (broker.epoch, broker.offset, broker.fenced) == (end, end, True)
    assert driven.records[-1].version == 4
    assert (driven.records[-1].data["logDirs"], broker.rack) == ([uuid(501)], None)


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "another"}, 104),
        ({"features": (Feature("metadata.version", 7, 29),)}, 35),
        ({"features": ()}, 119),
        ({"log_dirs": ()}, 119),
        ({"log_dirs": (uuid(502),)}, 119),
        ({"log_dirs": (uuid(9), uuid(9))}, 119),
        ({"is_migrating_zk_broker": True}, 102),
    ],
)
def test_a_refused_registration(changes: dict[str, Any], error: int) -> None:
    """A refused broker is not in the log: it was never unfenced, or stays what it was."""
    driven = led()
    driven.start(2)
    before = driven.controller.committed
    assert driven.register(1, **changes) == BrokerRegistrationResponse(error)
    assert driven.controller.committed == before


def test_a_second_process_with_one_id() -> None:
    """It is refused while the first one lives, and takes over when its session has ended."""
    driven = led()
    driven.start(1, 2)
    topic = driven.create("a", (1, 2))
    other = {"incarnation_id": uuid(77), "log_dirs": (uuid(777),)}
    assert driven.register(1, **other) == BrokerRegistrationResponse(101)
    driven.wait(5_000)
    driven.heartbeat(2)
    driven.wait(4_100)
    assert fenced(driven) == {1: True, 2: False}
    assert driven.register(1, **other).error_code == 0
    assert driven.controller.committed.brokers[1].incarnation_id == uuid(77)
    assert driven.partition(topic).isr == (2,)


def test_a_new_life_before_the_session_is_noticed() -> None:
    """The replicas of the earlier life leave their ISRs, since the new one begins fenced."""
    driven = led()
    driven.start(1, 2)
    topic = driven.create("a", (1, 2))
    driven.now_ms += 9_500  # no tick has fenced it yet
    driven.heartbeat(2)
    assert driven.register(1, incarnation_id=uuid(77)).error_code == 0
    assert (driven.partition(topic).leader, driven.partition(topic).isr) == (2, (2,))
    assert fenced(driven)[1]


def test_a_process_registers_again() -> None:
    """The epoch and the state of one life stay, whatever else it says."""
    driven = led()
    driven.start(1)
    first = driven.controller.committed.brokers[1]
    answer = driven.register(1, features=(Feature("metadata.version", 7, 31),), rack="r1")
    assert answer.broker_epoch == first.epoch
    again = driven.controller.committed.brokers[1]
    assert (again.fenced, again.rack, again.offset) == (False, "r1", driven.end - 1)


@pytest.mark.parametrize(("level", "version"), [(7, 1), (8, 2), (16, 2), (17, 3), (29, 3), (30, 4)])
def test_versions_of_registrations(level: int, version: int) -> None:
    """The version of a record follows from the level."""
    driven = led(level=level)
    assert driven.register(1).error_code == 0
    assert driven.records[-1].version == version
    assert bool(driven.controller.committed.brokers[1].log_dirs) is (level >= 17)


# -- heartbeats ------------------------------------------------------------------------------------


def test_unfencing() -> None:
    """A broker is unfenced when it has applied its own registration, if it wants to."""
    driven = led()
    driven.register(1)
    broker = driven.controller.committed.brokers[1]

    def beat(offset: int, *, fence: bool = False) -> BrokerHeartbeatResponse:
        beat = BrokerHeartbeat(1, broker.epoch, offset, fence, want_shut_down=False)
        found: BrokerHeartbeatResponse = driven.ask(beat)
        return found

    assert beat(broker.offset - 1) == BrokerHeartbeatResponse(0, False, True, False)
    assert beat(broker.offset, fence=True) == BrokerHeartbeatResponse(0, True, True, False)
    assert beat(broker.offset) == BrokerHeartbeatResponse(0, True, False, False)
    assert fenced(driven) == {1: False}
    assert beat(broker.offset, fence=True) == BrokerHeartbeatResponse(0, True, True, False)
    assert fenced(driven) == {1: True}


@pytest.mark.parametrize(("broker_id", "delta"), [(1, 1), (1, -1), (2, 0)])
def test_a_heartbeat_of_another_life(broker_id: int, delta: int) -> None:
    """It is refused, and keeps nobody alive."""
    driven = led()
    driven.start(1)
    epoch = driven.controller.committed.brokers[1].epoch
    driven.wait(8_000)
    beat = BrokerHeartbeat(broker_id, epoch + delta, driven.end, False, False)
    assert driven.ask(beat) == BrokerHeartbeatResponse(77)
    driven.wait(1_100)
    assert fenced(driven) == {1: True}


@pytest.mark.parametrize(("level", "record_type"), [(7, 17), (5, 7)])
def test_sessions(level: int, record_type: int) -> None:
    """A broker without a heartbeat for nine seconds is fenced, and leads nothing any more."""
    driven = led(level=level, release="3.3" if level < 7 else "4.3", ranges=_old(level))
    ranges = (Feature("metadata.version", 1, 30),)
    for broker_id in (1, 2):
        driven.register(broker_id, features=ranges)
        driven.heartbeat(broker_id)
    topic = driven.create("a", (1, 2), (2, 1))
    for _ in range(10):
        driven.wait(1_000)
        driven.heartbeat(2)
    assert fenced(driven) == {1: True, 2: False}
    assert record_bytes(driven.records[-1])[1] == record_type
    assert [driven.partition(topic, at).leader for at in (0, 1)] == [2, 2]
    assert [driven.partition(topic, at).isr for at in (0, 1)] == [(2,), (2,)]
    driven.heartbeat(1)
    assert fenced(driven) == {1: False, 2: False}
    assert driven.partition(topic).isr == (2,), "it comes back by its leader's AlterPartition"


def _old(level: int) -> SupportedRanges:
    """The ranges of a controller that supports this level."""
    return SupportedRanges({FeatureName("metadata.version"): (1, 7)} if level < 7 else {})


def test_sessions_after_an_election() -> None:
    """A new leader takes every unfenced broker for alive, for one session."""
    driven = led()
    driven.start(1)
    driven.wait(8_000)
    driven.lose()
    driven.lead()
    driven.wait(8_900)
    assert fenced(driven) == {1: False}
    driven.wait(200)
    assert fenced(driven) == {1: True}


def test_a_controlled_shutdown() -> None:
    """Leaders move away first; the broker ends when the others know of it."""
    driven = led()
    driven.start(1, 2)
    topic = driven.create("a", (1, 2))
    driven.heartbeat(2)
    moved = driven.heartbeat(1, stop=True)
    assert (moved.is_fenced, moved.should_shut_down) == (False, False)
    assert (driven.partition(topic).leader, driven.partition(topic).isr) == (2, (2,))
    assert driven.controller.committed.brokers[1].in_controlled_shutdown
    assert not driven.heartbeat(1, stop=True).should_shut_down, "broker 2 does not know yet"
    driven.heartbeat(2)
    assert driven.heartbeat(1, stop=True).should_shut_down
    assert fenced(driven) == {1: True, 2: False}


def test_a_shutdown_without_leaders() -> None:
    """Who leads nothing may end at once; so may a fenced broker."""
    driven = led()
    driven.start(1)
    assert driven.heartbeat(1, stop=True).should_shut_down
    assert driven.heartbeat(1, stop=True).should_shut_down
    assert fenced(driven) == {1: True}


def test_the_last_replica_cannot_move() -> None:
    """A partition whose other replicas are dead keeps the ISR that has its data."""
    driven = led()
    driven.start(1)
    topic = driven.create("a", (1,))
    answer = driven.heartbeat(1, stop=True)
    partition = driven.partition(topic)
    assert (partition.leader, partition.isr) == (-1, (1,))
    assert not answer.should_shut_down
    assert driven.heartbeat(1, stop=True).should_shut_down
    again = {"incarnation_id": uuid(7)}
    assert driven.register(1, **again).error_code == 101, "Kafka 4 waits for the session to end"
    driven.wait(9_100)
    assert driven.register(1, **again).error_code == 0
    driven.heartbeat(1)
    assert driven.partition(topic).leader == 1


def test_a_failed_directory() -> None:
    """Replicas in it leave the ISR; those in other directories stay (KIP-858)."""
    driven = led()
    driven.register(1, log_dirs=(uuid(501), uuid(601)))
    driven.heartbeat(1)
    driven.start(2)
    topic = driven.create("a", (1, 2), (1, 2))
    epoch = driven.controller.committed.brokers[1].epoch
    for index, directory in enumerate((uuid(501), uuid(601))):
        driven.add(_assigned(driven, topic, index, directory))
    beat = BrokerHeartbeat(1, epoch, driven.end, False, False, offline_log_dirs=(uuid(501),))
    driven.lose()
    driven.lead()
    assert driven.ask(beat).error_code == 0
    assert [driven.partition(topic, at).leader for at in (0, 1)] == [2, 1]
    assert driven.controller.committed.brokers[1].log_dirs == (uuid(601),)


def _assigned(driven: Driven, topic: str, index: int, directory: str) -> Any:
    directories = [directory, *driven.partition(topic, index).directories[1:]]
    return record(
        "PARTITION_CHANGE_RECORD", 1, topicId=topic, partitionId=index, directories=directories
    )


# -- removal ---------------------------------------------------------------------------------------


def test_unregistering() -> None:
    """A removed broker is in no ISR; its level does not count any more."""
    driven = led(level=29)
    driven.start(1)
    driven.register(2, features=(Feature("metadata.version", 7, 29),))
    driven.heartbeat(2)
    topic = driven.create("a", (2, 1))
    update = UpdateFeatures((FeatureUpdate("metadata.version", 30),))
    assert driven.ask(update, 1).error_code == 95
    assert driven.ask(UnregisterBroker(2)) == PlainResponse(0)
    assert driven.partition(topic).isr == (1,)
    assert driven.ask(update, 1).error_code == 0
    assert level_of(driven) == 30
    assert driven.ask(UnregisterBroker(2)) == PlainResponse(
        102, "Broker ID 2 is not currently registered"
    )


# -- controllers -----------------------------------------------------------------------------------


def test_controllers_register() -> None:
    """The active controller registers itself, the others ask it to, until the log has it."""
    driven = led(level=14)
    assert not driven.controller.committed.controllers
    driven.ask(UpdateFeatures((FeatureUpdate("metadata.version", 15),)), 1)
    assert [*driven.controller.committed.controllers] == [1]
    other = Driven(settings_of(node_id=2, incarnation_id=uuid(1002)))
    for batch in driven.log:
        other.log.append(batch)
    other.commit()
    (asked,) = [one for one in other.effects if isinstance(one, Register)]
    other.wait(2_050)
    assert len([one for one in other.effects if isinstance(one, Register)]) == 3
    assert driven.ask(asked.request).error_code == 0
    other.log = driven.log
    other.effects.clear()
    other.commit()
    other.wait(5_000)
    assert not other.effects
    assert driven.controller.committed.controllers[2].incarnation_id == uuid(1002)


def test_controllers_cannot_register_below_level_15() -> None:
    """It gets UNSUPPORTED_VERSION."""
    driven = led(level=14)
    (mine,) = [driven.controller._registration]
    answer = driven.ask(replace(mine, controller_id=2))
    assert answer.error_code == 35


def test_controllers_unregister() -> None:
    """From level 33 on, and never the active one (KIP-1312)."""
    ranges = (Feature("metadata.version", 7, 34), *RANGES[1:])
    old, new = led(), led(level=33, release="4.4", ranges=_newest())
    for driven in (old, new):
        driven.register(1, features=ranges)
        driven.ask(replace(driven.controller._registration, controller_id=2))
    assert old.ask(UnregisterController(2)).error_code == 35
    assert new.ask(UnregisterController(1)).error_code == 42
    assert new.ask(UnregisterController(3)).error_code == 136
    assert new.ask(UnregisterController(2)) == PlainResponse(0)
    assert [*new.controller.committed.controllers] == [1]


def _newest() -> SupportedRanges:
    return SupportedRanges({FeatureName("metadata.version"): (7, 34)})
