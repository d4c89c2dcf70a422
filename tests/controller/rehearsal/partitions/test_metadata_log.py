"""Topics and partitions as a metadata log has them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from featurewatch.controller.partitions.assignment import TopicPartition
from featurewatch.controller.partitions.kraft_election import KraftElectionRules, KraftPartition
from featurewatch.controller.rehearsal.partitions.metadata_log import SETTINGS, PartitionLog
from featurewatch.controller.rehearsal.partitions.state import (
    DefaultSettings,
    RehearsedBroker,
    RehearsedPartitions,
    TopicSettings,
)
from featurewatch.streams.events import Event, LogCommit, RecordJson
from featurewatch.streams.kraft.records.directory_ids import LOST, UNASSIGNED
from tests.controller.rehearsal.partitions.log_records import changed, partition, setting, topic
from tests.simulation import records as r
from tests.simulation.records import MV
from tests.tables.images import fold_all

T0 = TopicPartition("t", 0)


def with_data(record: RecordJson, **fields: object) -> RecordJson:
    """A record with other fields."""
    data: Mapping[str, Any] = {**record["data"], **fields}
    return {**record, "data": data}


def read(*events: Event, min_isr: int | None = None) -> RehearsedPartitions:
    """The state after some events."""
    events = tuple(map(numbered, events))
    log = collected(*events)
    return log.partitions(fold_all(events), "4.3", min_isr)


def numbered(event: Event) -> Event:
    """The event whose records have the offsets that they have in a log."""
    if not isinstance(event, LogCommit):
        return event
    records = [
        {**record, "offset": event.first_offset + number}
        for number, record in enumerate(event.records)
    ]
    return replace(event, records=records)


def collected(*events: Event) -> PartitionLog:
    """A log after some events."""
    log = PartitionLog()
    for event in events:
        log.apply(event)
    return log


BROKERS = (
    with_data(r.register(1, r.NEW, fenced=False), rack="a", logDirs=["d1"]),
    with_data(r.register(2, r.NEW, fenced=True), logDirs=["d2"]),
    with_data(r.register(3, r.NEW, fenced=False), inControlledShutdown=True),
)


def test_brokers_topics_and_partitions_are_collected() -> None:
    """Fields that a change leaves out stay; a topic that is removed is dropped."""
    state = read(
        r.commit(9, r.level(MV, 30), *BROKERS),
        r.commit(19, topic(), partition(), partition(1, (2, 1)), topic("gone", "id-gone")),
        r.commit(29, changed(1, isr=[1], leader=1, eligibleLeaderReplicas=[2])),
        r.commit(39, r.record("REMOVE_TOPIC_RECORD", {"topicId": "id-gone"})),
    )
    assert state.rules == KraftElectionRules((4, 3))
    assert state.brokers == {
        1: RehearsedBroker("a"),
        2: RehearsedBroker(is_fenced=True),
        3: RehearsedBroker(is_stopping=True),
    }
    assert state.partitions == {
        T0: KraftPartition((1, 2), (1, 2), 1),
        TopicPartition("t", 1): KraftPartition((2, 1), (1,), 1, elr=(2,)),
    }
    assert state.usable() == {1}


def test_a_snapshot_and_a_reset_replace_everything() -> None:
    """Nothing from before them remains."""
    before = r.commit(9, topic(), partition())
    state = read(before, r.chunk(20, 0, topic("u", "id-t"), partition(), last=True))
    assert [*state.partitions] == [TopicPartition("u", 0)]
    assert read(before, r.gap(0, 9, reset=True)).partitions == {}


def test_settings_of_topics_and_of_the_cluster() -> None:
    """A topic's own, else the cluster's dynamic default, else Kafka's; unreadable values do not
    count, nor do other settings."""
    state = read(
        r.commit(9, topic(), partition()),
        r.commit(19, setting(2, "t", "min.insync.replicas", "2")),
        r.commit(29, setting(2, "t", "unclean.leader.election.enable", "TRUE")),
        r.commit(39, setting(4, "", "min.insync.replicas", "3")),
        r.commit(49, setting(2, "u", "min.insync.replicas", "9" * 5000)),
        r.commit(59, setting(2, "v", "retention.ms", "1")),
    )
    assert state.settings == {"t": TopicSettings(2, True), "u": TopicSettings()}
    assert state.defaults == DefaultSettings(3)
    assert state.minimum_isrs() == {"t": 2}
    gone = read(
        r.commit(9, setting(2, "t", "min.insync.replicas", "2")),
        r.commit(19, setting(2, "t", "min.insync.replicas", None)),
        min_isr=4,
    )
    assert (gone.settings, gone.defaults) == ({}, DefaultSettings(4))
    assert {"min.insync.replicas", "unclean.leader.election.enable"} == SETTINGS


def test_replicas_in_failed_directories() -> None:
    """Lost ones, and those that the broker does not list; unassigned ones work, and so does every
    directory of a broker that lists none."""
    state = read(
        r.commit(9, *BROKERS),
        r.commit(19, topic(), partition(directories=["d1", "gone"])),
        r.commit(29, partition(1, (1, 2), directories=[LOST, UNASSIGNED])),
        r.commit(39, partition(2, (3,), directories=["anything"])),
        r.commit(49, with_data(r.change(1), logDirs=["d9"])),
    )
    assert state.failed == {(T0, 1), (T0, 2), (TopicPartition("t", 1), 1)}


def test_cleared_eligible_leaders() -> None:
    """Of a topic, or of all."""
    for name in ("t", ""):
        state = read(
            r.commit(9, topic(), partition(eligibleLeaderReplicas=[3], lastKnownElr=[4])),
            r.commit(19, r.record("CLEAR_ELR_RECORD", {"topicName": name})),
        )
        assert state.partitions[T0] == KraftPartition((1, 2), (1, 2), 1)


def test_records_that_cannot_be_applied_are_counted() -> None:
    """Unknown topics, fields of other types, unreadable records, and those that were left out."""
    log = collected(
        r.commit(9, changed(), partition()),
        r.commit(19, topic(), partition(isr=["x"]), changed(0, leader="1")),
        r.commit(29, r.unreadable()),
        replace(r.commit(39), skipped={"PARTITION_RECORD": 7, "ACCESS_CONTROL_RECORD": 2}),
    )
    assert log.unreadable == 2 + 2 + 1 + 7
