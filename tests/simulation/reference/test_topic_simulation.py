"""Clusters with topics over a faulty ZooKeeper; the auditor sees planted bugs."""

from typing import Any

import pytest

from featurewatch.controller.partitions import selectors
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics import partition_machine
from featurewatch.reference.zookeeper.machines.topics import topic_controller as controller
from featurewatch.reference.zookeeper.machines.topics.context import (
    ControllerContext,
    PartitionLeadership,
)
from featurewatch.reference.zookeeper.machines.topics.operations import (
    brokers,
    creation,
    deletion,
    reassignment,
)
from featurewatch.reference.zookeeper.machines.topics.state_store import (
    FencedWriter,
    PartitionStateStore,
    StateUpdates,
)
from tests.plugins.nightly import case_count
from tests.simulation.reference import node
from tests.simulation.reference.topic_world import run

SEEDS = case_count(300)
BLOCK = 30


@pytest.mark.parametrize("block", range(0, SEEDS, BLOCK))
def test_topics_survive(block: int) -> None:
    """Whatever dies between any two effects, the invariants hold (C-01, C-10, C-46, C-56).

    One leader per partition and epoch; leader epochs only grow; only the newest controller writes;
    a state is written before a broker learns of it; no acknowledged write is lost; and once
    everyone runs, every partition is led, every reassignment and deletion has ended, and every
    broker knows the newest state.
    """
    elections = acknowledged = deleted = 0
    for seed in range(block, block + BLOCK):
        auditor = run(seed).auditor
        elections += auditor.elections
        deleted += auditor.deleted
        acknowledged += sum(map(len, auditor.acknowledged.values()))
    assert elections > BLOCK
    assert acknowledged > BLOCK
    assert deleted > BLOCK // 10


# -- planted bugs ----------------------------------------------------------------------------------


def _nothing(*_: Any, **__: Any) -> Task[None]:
    yield from ()


def _unfenced(_: FencedWriter, operations: list[Any]) -> Task[list[Any]]:
    return [*(yield tuple(operations))]


def _same_epoch(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    return PartitionLeadership(
        leader, isr, state.leader_epoch, controller_epoch, state.partition_epoch, recovering
    )


def _unclean(dialect: Any, partition: Any, *, allow_unclean: bool = False) -> Any:
    del allow_unclean
    return selectors.select_offline(dialect, partition, allow_unclean=True)


def _lower_epoch(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    epoch = state.leader_epoch - 1
    return PartitionLeadership(
        leader, isr, epoch, controller_epoch, state.partition_epoch, recovering
    )


def _empty_isr(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    del isr
    return _CHANGED(state, leader, (), controller_epoch, recovering=recovering)


def _isr_without_leader(
    state: PartitionLeadership,
    leader: int,
    isr: tuple[int, ...],
    controller_epoch: int,
    *,
    recovering: bool,
) -> PartitionLeadership:
    isr = tuple(member for member in isr if member != leader) or isr
    return _CHANGED(state, leader, isr, controller_epoch, recovering=recovering)


def _not_written(_: PartitionStateStore, leaderships: Any) -> Task[StateUpdates]:
    """States count as written that are only in memory."""
    yield from ()
    return StateUpdates(dict(leaderships), [])


def _accepts_all(self: LightReplicas, request: Any) -> Any:
    self.controller_epoch = 0
    return _RECEIVE(self, request)


_CHANGED = PartitionLeadership.changed
_RECEIVE = LightReplicas.receive
_SEND = node.Channels.send


def _lossy(self: node.Channels, broker_id: int, request: Any) -> None:
    if broker_id != 1 or not getattr(request, "states", ()):
        _SEND(self, broker_id, request)


BUGS: dict[str, tuple[object, str, Any, str]] = {
    "a deposed controller can write": (
        FencedWriter,
        "write",
        _unfenced,
        "only the newest controller writes",
    ),
    "an election keeps the leader epoch": (
        PartitionLeadership,
        "changed",
        _same_epoch,
        "one leader per epoch",
    ),
    "an election lowers the leader epoch": (
        PartitionLeadership,
        "changed",
        _lower_epoch,
        "leader epochs only grow",
    ),
    "an election empties the ISR": (
        PartitionLeadership,
        "changed",
        _empty_isr,
        "an ISR has members",
    ),
    "an election leaves the leader out of the ISR": (
        PartitionLeadership,
        "changed",
        _isr_without_leader,
        "a leader is in the ISR",
    ),
    "states are announced that were not written": (
        PartitionStateStore,
        "update",
        _not_written,
        "a state is written before it is sent",
    ),
    "brokers accept a deposed controller": (
        LightReplicas,
        "receive",
        _accepts_all,
        "no request of a deposed controller is accepted",
    ),
    "new partitions are not started": (
        creation.TopicCreation,
        "start_partitions",
        _nothing,
        "every partition is created",
    ),
    "any live replica is elected": (
        partition_machine,
        "select_offline",
        _unclean,
        "an acknowledged write is lost",
    ),
    "reassignments are not resumed": (
        reassignment.Reassignments,
        "complete",
        _nothing,
        "every reassignment ends",
    ),
    "deletions are not resumed": (
        deletion.TopicDeletion,
        "resume_topics",
        _nothing,
        "every deletion ends",
    ),
    "dead leaders are not noticed": (
        ControllerContext,
        "leaderless_partitions",
        lambda _: [],
        "every partition is led",
    ),
    "watches are not set again": (
        controller.TopicController,
        "on_reconnected",
        lambda _: None,
        "every",
    ),
    "requests to a broker are lost": (node.Channels, "send", _lossy, "every broker learns"),
    "new brokers get no states": (brokers.BrokerChanges, "_start", _nothing, "every"),
    "replicas stay on the controllers": (
        creation.TopicCreation,
        "leave_controllers",
        _nothing,
        "followers are in sync",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_auditor_notices(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each planted bug breaks its invariant in one of the first histories."""
    owner, name, planted, rule = BUGS[bug]
    monkeypatch.setattr(owner, name, planted)
    broken = []
    for seed in range(200):
        try:
            run(seed, steps=1200)
        except AssertionError as error:
            broken.append(str(error))
            if rule in broken[-1]:
                return
    pytest.fail(f"no history broke the rule that {rule}, but {sorted(set(broken))[:5]}")
