"""Leaders and ISRs: as leaders ask, as administrators ask, and as brokers come and go."""

from dataclasses import replace

import pytest

from featurewatch.reference.kraft.machines.controller.requests import (
    AlterableConfig,
    AlterConfigsResource,
    AlterPartition,
    AlterPartitionData,
    AlterPartitionResult,
    AlterPartitionTopic,
    AssignReplicasToDirs,
    BrokerState,
    Directory,
    DirectoryPartition,
    DirectoryTopic,
    ElectLeaders,
    ElectLeadersTopic,
    IncrementalAlterConfigs,
    UnregisterBroker,
)
from featurewatch.reference.kraft.machines.metadata.state import Feature
from featurewatch.streams.types import METADATA_VERSION, FeatureLevel, FeatureName
from tests.reference.kraft.machines.controller.driven import Driven, led, uuid

ELR = FeatureName("eligible.leader.replicas.version")
FEATURES = (Feature("metadata.version", 7, 30), Feature(ELR, 0, 1))


def with_topic(*, elr: bool = False) -> tuple[Driven, str]:
    """A cluster of three brokers with a topic of one partition on all of them."""
    levels = {METADATA_VERSION: FeatureLevel(30)} | ({ELR: FeatureLevel(1)} if elr else {})
    driven = led(bootstrap=levels)
    for broker_id in (1, 2, 3):
        assert driven.register(broker_id, features=FEATURES).error_code == 0
        driven.heartbeat(broker_id)
    return driven, driven.create("a", (1, 2, 3))


def alter(
    driven: Driven, topic: str, change: AlterPartitionData, broker_id: int = 1, epoch: int = 0
) -> AlterPartitionResult:
    """Asks for a change of the partition as its leader would."""
    epoch = epoch or driven.controller.committed.brokers[broker_id].epoch
    request = AlterPartition(broker_id, epoch, (AlterPartitionTopic(topic, (change,)),))
    response = driven.ask(request, 3)
    assert response.error_code == 0
    found = response.topics[0].partitions[0]
    assert isinstance(found, AlterPartitionResult)
    return found


def isr_of(*broker_ids: int) -> tuple[BrokerState, ...]:
    """An ISR without epochs, as before version 3."""
    return tuple(BrokerState(one) for one in broker_ids)


def test_isr_changes() -> None:
    """A leader takes replicas out of the ISR and back into it; each change has an epoch."""
    driven, topic = with_topic()
    shrunk = alter(driven, topic, AlterPartitionData(0, 0, isr_of(1, 2), 0))
    assert shrunk == AlterPartitionResult(0, 0, 1, 0, (1, 2), 0, 1)
    grown = alter(driven, topic, AlterPartitionData(0, 0, isr_of(1, 2, 3), 1))
    assert grown == AlterPartitionResult(0, 0, 1, 0, (1, 2, 3), 0, 2)
    assert driven.partition(topic).isr == (1, 2, 3)
    same = alter(driven, topic, AlterPartitionData(0, 0, isr_of(1, 2, 3), 2))
    assert same.partition_epoch == 2, "no record is written"


@pytest.mark.parametrize(
    ("changes", "broker_id", "error"),
    [
        ({"leader_epoch": 3}, 1, 41),
        ({"partition_epoch": 5}, 1, 41),
        ({"leader_epoch": 1}, 1, 74),
        ({"partition_epoch": 3}, 1, 95),
        ({}, 2, 42),
        ({"new_isr_with_epochs": ()}, 1, 42),
        ({"new_isr_with_epochs": isr_of(2)}, 1, 42),
        ({"new_isr_with_epochs": isr_of(1, 1)}, 1, 42),
        ({"new_isr_with_epochs": isr_of(1, 9)}, 1, 42),
        ({"leader_recovery_state": 1}, 1, 42),
        ({"leader_recovery_state": 5}, 1, 42),
        ({"new_isr_with_epochs": isr_of(1, 3)}, 1, 107),
        ({"new_isr_with_epochs": (BrokerState(1), BrokerState(2, 5))}, 1, 107),
        ({"partition_index": 1}, 1, 3),
    ],
)
def test_refused_isr_changes(changes: dict[str, object], broker_id: int, error: int) -> None:
    """A leader that is behind, or no leader, or asks for a broker that is fenced, is refused."""
    driven, topic = with_topic()
    driven.heartbeat(1, fence=True)
    driven.heartbeat(1)
    driven.heartbeat(3, fence=True)
    elect = ElectLeaders((ElectLeadersTopic("a", (0,)),))
    alter(driven, topic, AlterPartitionData(0, 1, isr_of(2, 1), 2), 2)
    assert driven.ask(elect).error_code == 0
    partition = driven.partition(topic)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 2, 4)
    before = driven.controller.committed
    base = AlterPartitionData(0, 2, isr_of(1, 2), 4)
    request = replace(base, **changes)  # type: ignore[arg-type]
    assert alter(driven, topic, request, broker_id).error_code == error
    assert driven.controller.committed == before


def test_isr_changes_of_another_life() -> None:
    """A broker with an old epoch is refused as a whole; an unknown topic on its own."""
    driven, topic = with_topic()
    change = AlterPartitionData(0, 0, isr_of(1, 2), 0)
    epoch = driven.controller.committed.brokers[1].epoch
    request = AlterPartition(1, epoch - 1, (AlterPartitionTopic(topic, (change,)),))
    assert driven.ask(request, 3).error_code == 77
    assert alter(driven, uuid(99), change).error_code == 100


def test_a_partition_without_a_leader() -> None:
    """The last replica stays in the ISR, and leads again when its broker has returned."""
    driven, topic = with_topic()
    for broker_id in (1, 2, 3):
        driven.heartbeat(broker_id, fence=True)
    partition = driven.partition(topic)
    assert (partition.leader, partition.isr) == (-1, (3,))
    driven.heartbeat(1)
    assert driven.partition(topic).leader == -1
    driven.heartbeat(3)
    assert driven.partition(topic).leader == 3


def test_an_unclean_election() -> None:
    """If it is asked for, or set, a replica outside the ISR leads, and recovers."""
    driven, topic = with_topic()
    for broker_id in (1, 2, 3):
        driven.heartbeat(broker_id, fence=True)
    driven.heartbeat(1)
    elect = ElectLeaders((ElectLeadersTopic("a", (0,)),), election_type=1)
    result = driven.ask(elect).replica_election_results[0].partition_result[0]
    assert result.error_code == 0
    partition = driven.partition(topic)
    assert (partition.leader, partition.isr, partition.recovery_state) == (1, (1,), 1)
    epochs = (partition.leader_epoch, partition.partition_epoch)
    change = AlterPartitionData(0, epochs[0], isr_of(1), epochs[1], leader_recovery_state=0)
    assert alter(driven, topic, change).error_code == 0
    assert driven.partition(topic).recovery_state == 0


def test_unclean_elections_by_a_setting() -> None:
    """The setting of the topic decides when the last in-sync replica is lost."""
    driven, topic = with_topic()
    config = AlterableConfig("unclean.leader.election.enable", 0, "true")
    request = IncrementalAlterConfigs((AlterConfigsResource(2, "a", (config,)),))
    assert driven.ask(request).responses[0].error_code == 0
    alter(driven, topic, AlterPartitionData(0, 0, isr_of(1), 0))
    driven.heartbeat(1, fence=True)
    assert driven.partition(topic).leader == 2
    assert driven.partition(topic).isr == (2,)


@pytest.mark.parametrize(
    ("topic", "index", "kind", "error"),
    [("b", 0, 0, 3), ("a", 7, 0, 3), ("a", 0, 0, 84), ("a", 0, 1, 84)],
)
def test_elections_that_are_not_needed(topic: str, index: int, kind: int, error: int) -> None:
    """Who leads already is not elected."""
    driven, _ = with_topic()
    request = ElectLeaders((ElectLeadersTopic(topic, (index,)),), kind)
    assert driven.ask(request).replica_election_results[0].partition_result[0].error_code == error
    assert driven.ask(ElectLeaders(None, 9)).error_code == 42
    (everything,) = driven.ask(ElectLeaders(None, kind)).replica_election_results
    assert everything.partition_result == ()


def test_preferred_leaders_come_back() -> None:
    """An administrator asks for it, or the controller does it after a while."""
    driven, topic = with_topic()
    driven.heartbeat(1, fence=True)
    driven.heartbeat(1)
    elect = ElectLeaders((ElectLeadersTopic("a", (0,)),))
    result = driven.ask(elect).replica_election_results[0].partition_result[0]
    assert result.error_code == 80, "it is not in the ISR yet"
    alter(driven, topic, AlterPartitionData(0, 1, isr_of(2, 3, 1), 1), 2)
    assert driven.partition(topic).leader == 2
    for _ in range(40):
        driven.wait(8_000)
        for broker_id in (1, 2, 3):
            driven.heartbeat(broker_id)
    assert driven.partition(topic).leader == 1


def test_eligible_leaders() -> None:
    """Below the minimum, replicas that left the ISR may still lead, unless they lost data."""
    driven, topic = with_topic(elr=True)
    config = AlterableConfig("min.insync.replicas", 0, "2")
    request = IncrementalAlterConfigs((AlterConfigsResource(2, "a", (config,)),))
    assert driven.ask(request).responses[0].error_code == 0
    for broker_id in (3, 2, 1):
        driven.heartbeat(broker_id, fence=True)
    partition = driven.partition(topic)
    assert (partition.leader, partition.isr, partition.elr) == (-1, (), (1, 2))
    driven.wait(9_100)
    answer = driven.register(2, incarnation_id=uuid(77), features=FEATURES)
    assert answer.error_code == 0
    assert driven.partition(topic).elr == (1,), "broker 2 ended without saying so"
    driven.heartbeat(2)
    assert driven.partition(topic).leader == -1
    driven.heartbeat(1)
    assert driven.partition(topic).leader == 1


def test_a_clean_restart_keeps_eligibility() -> None:
    """A broker that names its last epoch has lost nothing (KIP-966)."""
    driven, topic = with_topic(elr=True)
    config = AlterableConfig("min.insync.replicas", 0, "3")
    request = IncrementalAlterConfigs((AlterConfigsResource(2, "a", (config,)),))
    driven.ask(request)
    driven.heartbeat(2, fence=True)
    epoch = driven.controller.committed.brokers[2].epoch
    for _ in range(3):
        driven.wait(4_000)
        driven.heartbeat(1)
        driven.heartbeat(3)
    other = {"incarnation_id": uuid(77), "features": FEATURES}
    assert driven.register(2, previous_broker_epoch=epoch, **other).error_code == 0
    assert driven.partition(topic).elr == (2,)


@pytest.mark.parametrize(("level", "is_raised"), [(7, True), (11, True), (12, False), (30, False)])
def test_the_epoch_of_a_shrunk_isr(level: int, *, is_raised: bool) -> None:
    """Below 3.6-IV0 a smaller ISR has a new leader epoch."""
    driven = led(level=level)
    driven.start(1, 2)
    topic = driven.create("a", (1, 2))
    driven.heartbeat(2, fence=True)
    assert driven.partition(topic).isr == (1,)
    assert driven.partition(topic).leader_epoch == is_raised


def test_directories() -> None:
    """Brokers say in which directory a replica is; one in a failed directory leads no more."""
    driven, topic = with_topic()
    driven.register(1, log_dirs=(uuid(501), uuid(601)))
    epoch = driven.controller.committed.brokers[1].epoch

    def assign(directory: str, index: int = 0, of: str = topic, broker_id: int = 1) -> int:
        partitions = (DirectoryTopic(of, (DirectoryPartition(index),)),)
        request = AssignReplicasToDirs(broker_id, epoch, (Directory(directory, partitions),))
        response = driven.ask(request)
        if response.error_code:
            return int(response.error_code)
        return int(response.directories[0].topics[0].partitions[0].error_code)

    assert assign(uuid(601)) == 0
    assert driven.partition(topic).directories == (uuid(601), uuid(502), uuid(503))
    assert assign(uuid(601), index=7) == 3
    assert assign(uuid(601), of=uuid(99)) == 100
    assert assign(uuid(601), broker_id=2) == 77
    other = driven.create("b", (2, 3))
    assert assign(uuid(601), of=other) == 6
    assert assign(uuid(999)) == 0
    assert (driven.partition(topic).leader, driven.partition(topic).isr) == (2, (2, 3))


def test_directories_need_a_level() -> None:
    """Below 3.7-IV2 records have no directories."""
    driven = led(level=16)
    driven.start(1)
    epoch = driven.controller.committed.brokers[1].epoch
    assert driven.ask(AssignReplicasToDirs(1, epoch, ())).error_code == 35


def test_unregistering_takes_replicas_away() -> None:
    """The broker leads nothing and is in no ISR, but stays among the replicas."""
    driven, topic = with_topic()
    driven.ask(UnregisterBroker(1))
    partition = driven.partition(topic)
    assert (partition.replicas, partition.isr, partition.leader) == ((1, 2, 3), (2, 3), 2)
