"""When a controller is active, and what happens to requests around that."""

from dataclasses import replace

import pytest

from featurewatch.reference.kraft.machines.controller.errors import NOT_CONTROLLER, failed
from featurewatch.reference.kraft.machines.controller.protocol import (
    Answer,
    BecameLeader,
    Halt,
    Proposed,
    Resign,
    Tick,
    WriteLog,
)
from featurewatch.reference.kraft.machines.controller.requests import (
    AllocateProducerIds,
    AlterConfigsResource,
    AlterPartition,
    AlterPartitionReassignments,
    AssignReplicasToDirs,
    BrokerHeartbeat,
    BrokerRegistration,
    ControllerRegistration,
    ControllerRequest,
    CreatableTopic,
    CreatePartitions,
    CreatePartitionsTopic,
    CreateTopics,
    DeleteTopics,
    DeleteTopicState,
    DescribeCluster,
    ElectLeaders,
    FeatureUpdate,
    IncrementalAlterConfigs,
    ListPartitionReassignments,
    UnregisterBroker,
    UnregisterController,
    UpdateFeatures,
)
from featurewatch.reference.kraft.machines.metadata.records import Record, record, records_of
from featurewatch.reference.kraft.machines.metadata.state import EMPTY
from tests.reference.kraft.machines.controller.driven import (
    CLUSTER,
    RANGES,
    Driven,
    led,
    settings_of,
    uuid,
)

REGISTRATION = BrokerRegistration(1, CLUSTER, uuid(1), (), RANGES, log_dirs=(uuid(501),))
REQUESTS: list[ControllerRequest] = [
    REGISTRATION,
    BrokerHeartbeat(1, 0, 0, want_fence=False, want_shut_down=False),
    UnregisterBroker(1),
    UnregisterController(1),
    ControllerRegistration(1, uuid(1), False, (), ()),
    UpdateFeatures(()),
    CreateTopics((CreatableTopic("a"),)),
    DeleteTopics((DeleteTopicState("a"),)),
    CreatePartitions((CreatePartitionsTopic("a", 2),)),
    AlterPartition(1, 0, ()),
    AssignReplicasToDirs(1, 0, ()),
    ElectLeaders(None),
    AlterPartitionReassignments(()),
    ListPartitionReassignments(None),
    AllocateProducerIds(1, 0),
    IncrementalAlterConfigs((AlterConfigsResource(2, "a", ()),)),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_only_an_active_controller_decides(request_: ControllerRequest) -> None:
    """A controller that does not lead sends every request elsewhere, with error 41."""
    driven = Driven()
    assert driven.ask(request_) == failed(request_, NOT_CONTROLLER)
    assert "41" in repr(driven.answers[1])


def test_becoming_active() -> None:
    """A leader decides once it has applied all that was written before its epoch."""
    driven = Driven()
    driven.epoch = 1
    driven.add_control()
    driven.receive(BecameLeader(1, 0))
    assert not driven.controller.is_active
    assert driven.ask(REGISTRATION).error_code == NOT_CONTROLLER
    driven.commit()
    assert driven.controller.is_active


def test_an_answer_waits_for_the_commit() -> None:
    """A request is answered when its records are committed, and what was read by it too."""
    driven = led()
    driven.commits = False
    first = driven.send(REGISTRATION)
    again = driven.send(UnregisterBroker(7))
    assert not {first, again} & set(driven.answers)
    assert not driven.controller.committed.brokers
    driven.commit()
    assert driven.answers[first].broker_epoch == driven.controller.committed.brokers[1].epoch
    assert driven.answers[again].error_code == 102


@pytest.mark.parametrize("is_appended", [True, False])
def test_the_loss_of_leadership(*, is_appended: bool) -> None:
    """Who waits is sent elsewhere, and what was not committed is forgotten."""
    driven = led()
    driven.commits = False
    before = driven.controller.committed
    driven.holds = not is_appended
    waiting = [driven.send(REGISTRATION), driven.send(UnregisterBroker(1))]
    driven.lose()
    assert [driven.answers[one].error_code for one in waiting] == [NOT_CONTROLLER] * 2
    assert driven.controller.committed == before
    driven.holds, driven.commits = False, True
    driven.lead()
    assert driven.ask(UnregisterBroker(1)).error_code == 102, "the registration was dropped"


def test_what_the_next_leader_commits_counts() -> None:
    """A batch that was appended may be committed after all, although its requester was told no."""
    driven = led()
    driven.commits = False
    waiting = driven.send(REGISTRATION)
    driven.lose(cuts=False)
    assert driven.answers[waiting].error_code == NOT_CONTROLLER
    driven.commit()
    assert [*driven.controller.committed.brokers] == [1]


def test_a_proposal_of_an_old_leadership() -> None:
    """It names its epoch, and what becomes of it later means nothing to the next leadership."""
    driven = led()
    driven.holds = True
    driven.send(REGISTRATION)
    (old,) = driven.held
    assert (old.epoch, old.offset) == (1, driven.end)
    driven.lose()
    driven.holds = False
    driven.lead()
    state = driven.controller.committed
    driven.receive(Proposed(old.token, 99, 100))
    driven.receive(Proposed(old.token, -1, driven.end))
    assert driven.controller.is_active
    assert driven.controller.committed == state


def test_control_records_in_between() -> None:
    """If the voter wrote a record before, requests are decided again for the new offset."""
    driven = led()
    driven.add_control()
    end = driven.end
    answer = driven.ask(REGISTRATION)
    assert answer.broker_epoch == end
    assert driven.controller.committed.brokers[1].offset == end


def test_a_refused_proposal_without_a_reason() -> None:
    """A voter that refuses although the log ends where it should does not lead any more."""
    driven = led()
    driven.holds = True
    waiting = driven.send(REGISTRATION)
    driven.receive(Proposed(driven.held[0].token, -1, driven.end))
    assert driven.answers[waiting].error_code == NOT_CONTROLLER
    assert not driven.controller.is_active


def test_requests_share_a_batch() -> None:
    """What arrives while a batch is written to the disk becomes one batch, in order."""
    driven = led()
    driven.holds = True
    for broker_id in (1, 2, 3):
        driven.send(
            BrokerRegistration(
                broker_id, CLUSTER, uuid(broker_id), (), RANGES, log_dirs=(uuid(500 + broker_id),)
            )
        )
    assert len(driven.held) == 1
    driven.release()
    assert [batch.last - batch.base + 1 for batch in driven.log[-2:]] == [1, 2]
    assert [driven.answers[one].broker_epoch for one in (1, 2, 3)] == [
        driven.end - 3,
        driven.end - 2,
        driven.end - 1,
    ]


def test_levels_are_alone_in_a_batch() -> None:
    """So that a snapshot fits right before and after a change of the level."""
    driven = led(level=29)
    driven.holds = True
    driven.send(REGISTRATION)
    for broker_id in (2, 3):
        driven.send(BrokerRegistration(broker_id, CLUSTER, uuid(broker_id), (), RANGES))
        driven.send(UpdateFeatures((FeatureUpdate("metadata.version", 30),)), 2)
    driven.send(UpdateFeatures((FeatureUpdate("metadata.version", 29, upgrade_type=2),)), 2)
    driven.send(replace(REGISTRATION, broker_id=4, log_dirs=(uuid(504),)))
    driven.release()
    assert [[one.type for _, one in records_of(batch)] for batch in driven.log[-4:]] == [
        ["REGISTER_BROKER_RECORD"],
        ["FEATURE_LEVEL_RECORD"],
        ["FEATURE_LEVEL_RECORD"],
        ["REGISTER_BROKER_RECORD"],
    ]


# -- the first records -----------------------------------------------------------------------------


def test_the_first_levels() -> None:
    """A new cluster gets its levels in a transaction, where the level knows transactions."""
    kinds = [(one.type, one.data.get("featureLevel")) for one in led(level=30).records]
    assert kinds[:4] == [
        ("BEGIN_TRANSACTION_RECORD", None),
        ("FEATURE_LEVEL_RECORD", 30),
        ("ZK_MIGRATION_STATE_RECORD", None),
        ("END_TRANSACTION_RECORD", None),
    ]
    assert [one.type for one in led(level=7).records] == ["FEATURE_LEVEL_RECORD"]
    assert led(level=None).controller.committed.level == 30


def test_the_transaction_of_a_lost_leader() -> None:
    """What it began and did not end is dropped (KIP-868)."""
    driven = Driven(settings_of(level=20))
    begun: list[Record] = [
        record("BEGIN_TRANSACTION_RECORD", name="Bootstrap records"),
        record("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=22),
    ]
    driven.add(*begun)
    assert driven.controller.committed.level is None
    driven.lead()
    assert [one.type for one in driven.records[2:4]] == [
        "ABORT_TRANSACTION_RECORD",
        "BEGIN_TRANSACTION_RECORD",
    ]
    assert driven.controller.committed.level == 20


def test_a_log_without_a_level() -> None:
    """Kafka 4 cannot lead over one; a controller of 3.9 takes its level for 1."""
    topic = record("TOPIC_RECORD", name="a", topicId=uuid(1))
    driven = Driven(settings_of())
    driven.add(topic)
    driven.lead()
    assert driven.effects[-2:] == [
        Resign(),
        Halt("the log has no metadata.version, which Kafka 4.3 needs"),
    ]
    driven = Driven(settings_of(release="3.9"))
    driven.add(topic)
    driven.lead()
    assert driven.controller.is_active
    assert driven.records == [topic]


# -- what cannot be read ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x01\x7f\x00\x00", "record type 127 is not known"),
        (b"\x01\x00\x63\x00", "version 99 of REGISTER_BROKER_RECORD is not known"),
        (b"\x02\x0c\x00\x00", "frame version 2 is not known"),
        (b"\x01\x0c\x00\x11meta", "it is cut off"),
        (record("REMOVE_TOPIC_RECORD", topicId=uuid(1)), "does not fit the state"),
        (
            record("BROKER_REGISTRATION_CHANGE_RECORD", brokerId=1, brokerEpoch=7, fenced=1),
            "does not fit the state",
        ),
        (record("END_TRANSACTION_RECORD"), "ends that did not begin"),
    ],
)
def test_an_unreadable_record(value: Record | bytes, reason: str) -> None:
    """A controller that cannot read a committed record keeps its state, and does not lead."""
    driven = led()
    state = driven.controller.committed
    driven.lose()
    driven.add(value)
    driven.add(record("PRODUCER_IDS_RECORD", brokerId=1, brokerEpoch=1, nextProducerId=5))
    assert driven.controller.committed == state
    assert driven.controller.position == driven.end
    (line,) = [one.line for one in driven.effects if isinstance(one, WriteLog) and one.is_warning]
    assert line.startswith("cannot read the batch at offset 6: ")
    assert reason in line
    driven.receive(BecameLeader(2, driven.end))
    assert driven.effects[-1] == Resign()
    assert not driven.controller.is_active
    assert not driven.snapshots


@pytest.mark.parametrize("is_leader", [True, False])
def test_an_unsupported_level(*, is_leader: bool) -> None:
    """An active controller resigns and ends; an inactive one ends."""
    driven = led()
    if not is_leader:
        driven.lose()
    driven.add(record("FEATURE_LEVEL_RECORD", name="metadata.version", featureLevel=99))
    *_, last = driven.effects
    assert isinstance(last, Halt)
    assert "only supports versions 7-30" in last.reason
    assert (Resign() in driven.effects) is is_leader
    assert driven.controller.committed.level == 30
    assert driven.receive(Tick()) == []


def test_describe_cluster() -> None:
    """Every controller describes the registered ones; brokers are not asked for here."""
    driven = led()
    answer = driven.ask(DescribeCluster())
    assert (answer.cluster_id, answer.controller_id) == (CLUSTER, 1)
    assert [(one.broker_id, one.host, one.port) for one in answer.brokers] == [
        (1, "localhost", 9093)
    ]
    assert driven.ask(DescribeCluster(1)).error_code == 114
    driven.lose()
    assert driven.ask(DescribeCluster()).controller_id == -1


def test_the_start() -> None:
    """A controller without a log has an empty state, and says nothing."""
    driven = Driven()
    assert driven.receive(Tick()) == []
    assert driven.controller.committed == EMPTY
    assert driven.controller.finalized == ({}, -1)
    assert not [one for one in driven.effects if isinstance(one, Answer)]
