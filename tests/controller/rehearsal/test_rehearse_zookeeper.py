"""Rehearsals in ZooKeeper mode: operations alone, each from the state after the one before."""

from featurewatch.controller.partitions.kraft_election import NO_LEADER, KraftPartition
from featurewatch.controller.rehearsal.rehearse import (
    StepOutcome,
    StepVerdict,
    rehearse_zookeeper,
)
from featurewatch.controller.rehearsal.steps import parse
from featurewatch.streams.types import NodeId
from tests.controller.rehearsal.partitions.cluster_states import P0, P1, cluster


def played(*steps: str) -> list[StepOutcome]:
    """The outcomes on a topic with the replicas 1, 2 and 1."""
    partitions = cluster(None, (1, 2), (1,))
    return rehearse_zookeeper(NodeId(3), partitions, [parse(step) for step in steps])


def states(outcome: StepOutcome) -> tuple[KraftPartition, KraftPartition]:
    """Both partitions after a step."""
    partitions = outcome.after.partitions
    assert partitions is not None
    return partitions.partitions[P0], partitions.partitions[P1]


def test_operations_follow_from_each_other() -> None:
    """A broker dies and returns, and its leaders are moved back; the controller responds."""
    dead, back, preferred = played("lose:1", "start:1", "elect-preferred")
    assert dead.responder == "controller 3 (ZooKeeper mode)"
    lone = KraftPartition((1,), (1,), NO_LEADER)
    assert states(dead) == (KraftPartition((1, 2), (2,), 2), lone)
    assert states(back) == (KraftPartition((1, 2), (2, 1), 2), KraftPartition((1,), (1,), 1))
    assert states(preferred)[0].leader == 1
    assert {outcome.verdict for outcome in (dead, back, preferred)} == {StepVerdict.ACCEPTED}


def test_a_restart_is_of_the_live_brokers() -> None:
    """One after the other, as in KRaft mode."""
    outcomes = played("restart:brokers")
    assert [outcome.step.text for outcome in outcomes] == [
        f"{verb}:broker-{broker_id}" for broker_id in (1, 2, 3, 4) for verb in ("stop", "register")
    ]
    assert {*states(outcomes[-1])[0].isr} == {1, 2}


def test_steps_of_no_meaning_are_refused() -> None:
    """Levels, controllers, and brokers that are not there."""
    outcomes = played(
        "upgrade:metadata.version=20", "stop:controller-1", "lose:9", "unregister:broker-1"
    )
    assert {outcome.verdict for outcome in outcomes} == {StepVerdict.REFUSED}
    assert [outcome.messages[0] for outcome in outcomes] == [
        *["in ZooKeeper mode brokers, partitions and topics are rehearsed, and no levels"] * 2,
        "broker-9 is not there, and cannot be lost",
        "in ZooKeeper mode brokers, partitions and topics are rehearsed, and no levels",
    ]
