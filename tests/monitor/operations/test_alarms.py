"""Each fault in a log has a separate alert, and conditions are alerts while they last."""

import pytest

from featurewatch.controller.partitions.kraft_invariants import PartitionInvariant
from featurewatch.streams.events import RecordJson, SourceState
from featurewatch.streams.outputs import Alert, AlertState
from tests.monitor.operations.handwritten import TOPIC, Worker, change, creation, partitions
from tests.simulation import records as r
from tests.simulation.records import record


def firing(worker: Worker) -> dict[str, Alert]:
    """The firing alerts about partitions, by what they are about."""
    return {
        str(alert.subject["partitions"]): alert
        for alerts in worker.engine.state.firing.values()
        for alert in alerts
        if "partitions" in alert.subject
    }


MOVE = change(0, replicas=[4, 2, 3, 1], addingReplicas=[4], removingReplicas=[1])


@pytest.mark.parametrize(
    ("records", "rule"),
    [
        ([change(0)], PartitionInvariant.CHANGES),
        ([change(0, replicas=[1, 2, 2], leader=1, isr=[1, 2])], PartitionInvariant.REPLICAS),
        ([change(0, isr=[1, 9])], PartitionInvariant.ISR),
        ([change(0, isr=[2, 3])], PartitionInvariant.LEADER_IN_ISR),
        ([change(0, addingReplicas=[3], removingReplicas=[3])], PartitionInvariant.ASSIGNMENT),
        ([change(0, isr=[1, 2], replicas=[1, 2])], PartitionInvariant.EPOCH),
        (
            [
                MOVE,
                change(
                    0,
                    replicas=[5, 2, 3],
                    leader=2,
                    isr=[2],
                    addingReplicas=[],
                    removingReplicas=[],
                ),
            ],
            PartitionInvariant.COMPLETION,
        ),
        (
            [change(0, isr=[1, 2]), change(0, leader=3, isr=[3])],
            PartitionInvariant.CLEAN_LEADER,
        ),
        ([change(0, leader=2, isr=[2, 3], leaderRecoveryState=1)], PartitionInvariant.RECOVERY),
        (
            [change(0, isr=[1, 2]), change(0, leader=2, isr=[1, 2, 3])],
            PartitionInvariant.ISR_GROWTH,
        ),
        ([change(0, eligibleLeaderReplicas=[2])], PartitionInvariant.ELIGIBLE),
        ([r.change(2, fenced=1), change(0, leader=2)], PartitionInvariant.USABLE_LEADER),
        ([change(0, leader=3, isr=[2, 3])], PartitionInvariant.ELECTION_ORDER),
        (
            [{**it, "data": {**it["data"], "leader": 2}} for it in partitions(1, [1, 2, 3])],
            PartitionInvariant.CREATION,
        ),
    ],
)
def test_each_fault_is_an_alert(records: list[RecordJson], rule: PartitionInvariant) -> None:
    """With the rule, both states and the record; it ends after an hour without another one."""
    worker = Worker("4.3", [1, 2, 3])
    worker.commit(*records)
    alert = firing(worker)[rule.name]
    assert alert.rule == "illegal-partition-change"
    assert str(rule) in alert.summary
    assert alert.evidence["rule"] == str(rule)
    assert {"before", "after", "record", "offset", "partition"} <= {*alert.evidence}
    if rule is not PartitionInvariant.CREATION:
        assert alert.evidence["before"]["isr"]
    end = r.following(worker.log.offset - 1, seen_ms=worker.log.now_ms + 3_600_000)
    worker.engine.apply_all([end])
    assert rule.name not in firing(worker)


def test_the_invariants_that_are_tested_are_all() -> None:
    """None is left out above."""
    marks = test_each_fault_is_an_alert.pytestmark  # type: ignore[attr-defined]
    assert {rule for _, rule in marks[0].args[1]} == {*PartitionInvariant}


def test_partitions_without_a_leader_and_an_unclean_election() -> None:
    """The first ends when there is a leader again; the second says what may be lost."""
    worker = Worker("3.9", [1, 2], [2, 1])
    worker.commit(change(0, isr=[1]), change(0, leader=-1), r.change(1, fenced=1))
    alert = firing(worker)["leaderless"]
    assert alert.rule == "partition-without-leader"
    assert alert.summary.startswith("1 partition (orders-0) without a leader")
    worker.commit(change(0, leader=2, isr=[2], leaderRecoveryState=1))
    assert "leaderless" not in firing(worker)
    unclean = firing(worker)["unclean"]
    assert unclean.rule == "unclean-leader-election"
    assert unclean.evidence["partition"] == "orders-0"


@pytest.mark.parametrize(("release", "fires"), [("3.7", True), ("3.9", False), ("4.3", True)])
def test_a_reassignment_that_adds_what_it_removes_never_completes(
    release: str, *, fires: bool
) -> None:
    """By the rules of 3.3 to 3.7 and of 4.3; those of 3.8 to 4.2 complete it."""
    worker = Worker(release, [1, 2, 3])
    worker.commit(MOVE)
    worker.commit(change(0, replicas=[1, 2, 3, 4], removingReplicas=[4]))
    assert ("stale" in firing(worker)) is fires
    assert not {*firing(worker)} - {"stale"}
    worker.commit(change(0, replicas=[1, 2, 3], leader=1, addingReplicas=[], removingReplicas=[]))
    assert "stale" not in firing(worker)


def test_preferred_leaders_are_missed_after_half_an_hour() -> None:
    """Three thousand partitions are one alert, which counts them coarsely."""
    worker = Worker("4.3", *([1, 2, 3] for _ in range(3000)))
    worker.commit(
        *(change(index, isr=[2, 3], leader=2) for index in range(3000)), r.change(1, fenced=1)
    )
    began_ms = worker.log.now_ms
    assert not firing(worker)
    for after_ms in (1_000, 1_799_000, 1_800_000):
        status = r.following(worker.log.offset - 1, seen_ms=began_ms + after_ms)
        worker.engine.apply_all([status])
        assert ("not-preferred" in firing(worker)) is (after_ms == 1_800_000)
    alert = firing(worker)["not-preferred"]
    assert alert.evidence == {"partitions": 2048, "names": []}
    worker.log.now_ms = began_ms + 1_900_000
    changes = [change(index, isr=[1, 2, 3]) for index in range(3000)]
    worker.commit(r.change(1, fenced=-1), *changes)
    worker.commit(*(change(index, leader=1) for index in range(2990)))
    assert firing(worker)["not-preferred"].evidence["partitions"] == 10
    worker.commit(*(change(index, leader=1) for index in range(2990, 3000)))
    assert not firing(worker)


def test_below_the_minimum_isr_for_five_minutes() -> None:
    """Known by the eligible leaders that a partition has only then."""
    worker = Worker("4.3", [1, 2, 3])
    worker.commit(record("FEATURE_LEVEL_RECORD", _ELR))
    worker.commit(change(0, isr=[1], eligibleLeaderReplicas=[2]))
    assert not firing(worker)
    end = r.following(worker.log.offset - 1, seen_ms=worker.log.now_ms + 300_000)
    worker.engine.apply_all([end])
    assert firing(worker)["below-min-isr"].evidence["names"] == ["orders-0"]


def min_isr(kind: int, name: str, value: object) -> RecordJson:
    """A topic (2), a broker or the cluster (4) sets its minimum, or clears it (None)."""
    setting = {"resourceType": kind, "resourceName": name, "name": "min.insync.replicas"}
    return record("CONFIG_RECORD", {**setting, "value": value})


def below(worker: Worker) -> list[str]:
    """The partitions below their minimum, five minutes later than the log is now."""
    worker.log.now_ms += 300_000
    end = r.following(worker.log.offset - 1, seen_ms=worker.log.now_ms)
    worker.engine.apply_all([end])
    alert = firing(worker).get("below-min-isr")
    names: list[str] = alert.evidence["names"] if alert else []
    return names


@pytest.mark.parametrize("release", ["3.3", "3.9", "4.3"])
def test_below_a_minimum_that_is_set_in_the_log(release: str) -> None:
    """Of the topic, else of the leader's broker, else of the cluster, and 1 if none is set."""
    worker = Worker(release, [1, 2, 3], [2, 3, 1], [3])
    worker.commit(change(0, isr=[1]), change(1, isr=[2]))
    assert below(worker) == []
    worker.commit(min_isr(4, "", "2"))
    assert below(worker) == ["orders-0", "orders-1"]
    worker.commit(min_isr(4, "2", "1"))
    assert below(worker) == ["orders-0"]
    worker.commit(min_isr(2, "orders", "3"), change(0, isr=[1, 2]))
    assert below(worker) == ["orders-0", "orders-1"]
    worker.commit(change(0, isr=[1, 2, 3]))
    assert below(worker) == ["orders-1"]
    worker.commit(min_isr(2, "orders", None), min_isr(2, "other", "3"))
    assert below(worker) == []
    worker.commit(min_isr(4, "2", None))
    assert below(worker) == ["orders-1"]
    worker.commit(min_isr(4, "", None))
    assert below(worker) == []


def test_a_minimum_above_the_replicas_is_met_by_all_of_them() -> None:
    """As brokers count it; and it counts from when the partition is below, not the setting."""
    worker = Worker("3.9", [1, 2], [1])
    worker.commit(min_isr(2, "orders", "3"))
    assert below(worker) == []
    worker.commit(change(0, isr=[1]))
    assert "below-min-isr" not in firing(worker)
    assert below(worker) == ["orders-0"]


def test_the_minimum_of_a_deleted_topic_is_removed() -> None:
    """A new one of the same name has none."""
    worker = Worker("3.9", [1, 2])
    worker.commit(min_isr(2, "orders", "2"), change(0, isr=[1]))
    worker.commit(record("REMOVE_TOPIC_RECORD", {"topicId": TOPIC}))
    worker.commit(*creation([1, 2]))
    worker.commit(change(0, isr=[1]))
    assert below(worker) == []


@pytest.mark.parametrize("value", ["", "-1", "x", "1e3", "9" * 10, 2, [], {}])
def test_a_minimum_that_is_not_a_number_is_unreadable(value: object) -> None:
    """It is counted, and the one before it holds."""
    worker = Worker("3.9", [1, 2])
    worker.commit(min_isr(2, "orders", "2"), min_isr(2, "orders", value), change(0, isr=[1]))
    assert worker.engine.state.image.sources.unreadable
    assert below(worker) == ["orders-0"]


_ELR = {"name": "eligible.leader.replicas.version", "featureLevel": 1}


def test_a_broken_record_is_unreadable_and_changes_nothing() -> None:
    """Whatever is in it: the partitions after it are followed."""
    worker = Worker("4.3", [1, 2, 3])
    worker.commit(
        change(0, isr="x"),
        change(0, isr=[1, "2"]),
        change(0, leader=None),
        change(7, leader=1),
        record("PARTITION_CHANGE_RECORD", {}),
        record("PARTITION_CHANGE_RECORD", {"topicId": [], "partitionId": {}}),
        record("TOPIC_RECORD", {"topicId": "a/b|c", "name": "x"}),
        record("TOPIC_RECORD", {"topicId": "x", "name": 5}),
        record("PARTITION_RECORD", {"topicId": TOPIC, "partitionId": 1 << 30}),
        record("REMOVE_TOPIC_RECORD", {}),
        record("CLEAR_ELR_RECORD", {"topicName": 1}),
        change(0, isr=[1, 2]),
    )
    assert worker.engine.state.partitions is not None
    image = worker.engine.state.partitions.image
    assert image is not None
    assert image.partitions[TOPIC, 0].isr == (1, 2)
    unreadable = worker.engine.state.image.sources.unreadable
    assert unreadable["PARTITION_CHANGE_RECORD"].count == 6
    assert not firing(worker)


def altered(of: RecordJson, **fields: object) -> RecordJson:
    """A record with some other fields."""
    return record(of["type"], {**of["data"], **fields})


_BEYOND = (1 << 31, (1 << 64) - 1)


@pytest.mark.parametrize("number", _BEYOND)
@pytest.mark.parametrize("field", ["leader", "leaderEpoch", "partitionEpoch", "isr", "replicas"])
def test_a_number_beyond_kafka_s_is_unreadable(field: str, number: int) -> None:
    """JSON has larger ones than an int32; one that a later change raises would fit no row."""
    worker = Worker("4.3", [1, 2], [1, 2])
    value = [1, number] if field in ("isr", "replicas") else number
    worker.commit(altered(partitions(2, [1, 2])[0], **{field: value}))
    if field in ("leader", "isr", "replicas"):
        worker.commit(change(1, **{field: value}))
    worker.commit(change(0, leader=2))
    assert worker.engine.state.partitions is not None
    image = worker.engine.state.partitions.image
    assert image is not None
    assert {key[1] for key in image.partitions} == {0, 1}
    assert image.partitions[TOPIC, 0].leader == 2
    assert image.partitions[TOPIC, 1].leader_epoch == 0
    assert worker.engine.state.image.sources.unreadable["PARTITION_RECORD"].count == 1


def test_the_largest_epoch_of_kafka_can_be_followed() -> None:
    """The change after it is one that Kafka cannot write, and the worker continues."""
    worker = Worker("4.3", [1, 2])
    largest = {"leaderEpoch": 2**31 - 1, "partitionEpoch": 2**31 - 1}
    worker.commit(altered(partitions(1, [1, 2])[0], **largest))
    worker.commit(change(1, leader=2), change(0, leader=2))
    assert worker.engine.state.partitions is not None
    image = worker.engine.state.partitions.image
    assert image is not None
    assert [image.partitions[TOPIC, index].leader for index in (0, 1)] == [2, 2]


def test_alerts_resolve_when_the_cluster_is_forgotten() -> None:
    """Nothing of its partitions stays."""
    worker = Worker("3.9", [1])
    worker.commit(change(0, leader=-1), r.change(1, fenced=1))
    assert firing(worker)
    retired = r.status(SourceState.RETIRED, seen_ms=worker.log.now_ms + 1)
    result = worker.engine.apply(retired)
    assert all(alert.state is AlertState.RESOLVED for alert in result.alerts)
    assert worker.engine.state.partitions is None
    assert not any("|partitions" in key for key in worker.engine.rows)
