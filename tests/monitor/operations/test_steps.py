"""The steps of operations that a log leads to, one operation at a time."""

from dataclasses import replace

import pytest

from featurewatch.streams.events import RecordJson
from featurewatch.streams.outputs import ElectionReason, OperationKind, OperationPhase
from tests.monitor.operations.handwritten import TOPIC, Worker, change, partitions
from tests.simulation import records as r
from tests.simulation.records import record


def test_topics_are_created_grown_and_deleted() -> None:
    """One step each, with the number of partitions."""
    worker = Worker("4.3", [1, 2, 3], [2, 3, 1])
    (created,) = worker.created
    (added,) = worker.commit(*partitions(2, [3, 1, 2]))
    (deleted,) = worker.commit(record("REMOVE_TOPIC_RECORD", {"topicId": TOPIC}))
    kinds = [step.kind for step in (created, added, deleted)]
    assert kinds == [
        OperationKind.TOPIC_CREATION,
        OperationKind.PARTITION_ADDITION,
        OperationKind.TOPIC_DELETION,
    ]
    assert created.summary == "Topic orders was created with 2 partitions, 3 replicas each"
    assert added.summary == "Topic orders was extended by 1 partition, from number 2 on"
    assert deleted.details["partitions"] == 3


def test_a_reassignment_begins_moves_and_completes() -> None:
    """Its steps have one operation, and say how many of the new replicas have caught up."""
    worker = Worker("4.3", [1, 2, 3])
    (began,) = worker.commit(
        change(0, replicas=[4, 5, 3, 1, 2], addingReplicas=[4, 5], removingReplicas=[1, 2])
    )
    (moved,) = worker.commit(change(0, isr=[1, 2, 3, 4]))
    done = worker.commit(
        change(
            0, isr=[3, 4, 5], replicas=[4, 5, 3], leader=4, addingReplicas=[], removingReplicas=[]
        )
    )
    election, completed = sorted(done, key=lambda step: step.kind)
    assert [began.phase, moved.phase, completed.phase] == [
        OperationPhase.BEGAN,
        OperationPhase.PROGRESSED,
        OperationPhase.COMPLETED,
    ]
    assert len({began.operation, moved.operation, completed.operation}) == 1
    assert began.summary == "Partition orders-0 moves from 3,1,2 to 4,5,3"
    assert moved.summary == "Partition orders-0 moves: 1 of 2 new replicas caught up"
    assert completed.summary == "Partition orders-0 has moved to 4,5,3"
    assert election.reason == ElectionReason.REASSIGNMENT


def test_a_reassignment_is_replaced_and_canceled() -> None:
    """It continues under the same operation, and ends where it was."""
    worker = Worker("4.3", [1, 2, 3])
    (began,) = worker.commit(
        change(0, replicas=[4, 2, 3, 1], addingReplicas=[4], removingReplicas=[1])
    )
    (replaced,) = worker.commit(
        change(0, replicas=[5, 2, 3, 1, 4], addingReplicas=[5], removingReplicas=[1, 4])
    )
    (canceled,) = worker.commit(
        change(0, replicas=[2, 3, 1, 4], leader=1, addingReplicas=[], removingReplicas=[])
    )
    assert replaced.phase is OperationPhase.REPLACED
    assert canceled.phase is OperationPhase.CANCELED
    assert began.operation == replaced.operation == canceled.operation


def _fencing(broker_id: int) -> RecordJson:
    return r.change(broker_id, fenced=1)


@pytest.mark.parametrize(
    ("records", "reason", "broker", "summary"),
    [
        (
            [change(0, isr=[2, 3], leader=2), change(1, isr=[2, 3]), _fencing(1)],
            ElectionReason.FAILURE,
            1,
            "Broker 1 failed or restarted: 1 partition got another leader",
        ),
        (
            [r.change(1, shutdown=1), change(0, isr=[2, 3], leader=2)],
            ElectionReason.CONTROLLED_SHUTDOWN,
            1,
            "Broker 1 is shutting down: 1 partition got another leader",
        ),
        (
            [change(2, leader=1)],
            ElectionReason.PREFERRED,
            -1,
            "Preferred leaders were elected: 1 partition got another leader",
        ),
        (
            [change(0, leader=4, isr=[4], leaderRecoveryState=1)],
            ElectionReason.UNCLEAN,
            1,
            "Unclean election after leader 1, acknowledged writes may be lost: "
            "1 partition got another leader",
        ),
        (
            [change(0, leader=2, isr=[2, 3])],
            ElectionReason.OFFLINE_REPLICA,
            1,
            "Replicas on broker 1 went offline: 1 partition got another leader",
        ),
    ],
)
def test_elections_have_their_reason(
    records: list[RecordJson], reason: ElectionReason, broker: int, summary: str
) -> None:
    """By whom the leader was lost, and how many partitions got another one."""
    worker = Worker("4.3", [1, 2, 3], [2, 1, 3], [1, 2, 3])
    worker.commit(change(2, leader=2, isr=[2, 3]), change(2, isr=[1, 2, 3]))
    steps = [step for step in worker.commit(*records) if step.kind is OperationKind.ELECTION]
    (election,) = steps
    assert (election.reason, election.broker) == (reason, broker)
    assert election.summary == summary


def test_a_partition_that_loses_its_last_leader_gets_one_back() -> None:
    """Both are steps: without a leader, and with one after the broker came back."""
    worker = Worker("3.9", [1])
    (lost,) = worker.commit(change(0, leader=-1), _fencing(1))
    (found,) = worker.commit(r.change(1, fenced=-1), change(0, leader=1))
    assert lost.details["without_leader"] == 1
    assert found.reason == ElectionReason.RETURN
    assert found.summary == "A broker recovered: 1 partition without a leader got one"


def test_a_controlled_shutdown_begins_and_ends() -> None:
    """With the request, and when the broker leads nothing."""
    worker = Worker("4.3", [1, 2, 3])
    began, election = worker.commit(r.change(1, shutdown=1), change(0, isr=[2, 3], leader=2))
    (ended,) = worker.commit(r.change(1, fenced=1))
    assert began.kind is ended.kind is OperationKind.CONTROLLED_SHUTDOWN
    assert (began.phase, ended.phase) == (OperationPhase.BEGAN, OperationPhase.COMPLETED)
    assert began.operation == ended.operation
    assert election.kind is OperationKind.ELECTION


def test_an_election_of_thousands_is_one_step() -> None:
    """They are counted, and twenty are named."""
    worker = Worker("4.3", *([1, 2, 3] for _ in range(3000)))
    changes = [change(index, isr=[2, 3], leader=2) for index in range(3000)]
    (election,) = worker.commit(*changes, _fencing(1))
    assert election.details["partitions"] == 3000
    assert len(election.details["elections"]) == 20
    assert election.details["elections"][0] == ["orders-0", 1, 2]


def test_a_step_that_is_published_again_is_the_same() -> None:
    """A commit that is processed again after a crash has the same ids and contents."""
    worker = Worker("4.3", [1, 2, 3])
    before, commit = worker.engine.state, worker.log.commit([change(0, isr=[2, 3], leader=2)])
    first = worker.engine.apply(commit).outputs
    worker.engine.state = before
    assert worker.engine.apply(replace(commit)).outputs == first
