"""Clusters with topics over a faulty ZooKeeper; the auditor sees planted bugs."""

from typing import Any

import pytest

from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas
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
)
from tests.plugins.nightly import case_count
from tests.simulation.reference import node
from tests.simulation.reference import topic_bugs as plants
from tests.simulation.reference.topic_world import run

SEEDS = case_count(300)
BLOCK = 30


@pytest.mark.parametrize("block", range(0, SEEDS, BLOCK))
def test_topics_survive(block: int) -> None:
    """Whatever dies between any two effects, the invariants hold (C-01, C-10, C-56).

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


BUGS: dict[str, tuple[object, str, Any, str]] = {
    "a deposed controller can write": (
        FencedWriter,
        "write",
        plants.unfenced,
        "only the newest controller writes",
    ),
    "an election keeps the leader epoch": (
        PartitionLeadership,
        "changed",
        plants.same_epoch,
        "one leader per epoch",
    ),
    "an election lowers the leader epoch": (
        PartitionLeadership,
        "changed",
        plants.lower_epoch,
        "leader epochs only grow",
    ),
    "an election empties the ISR": (
        PartitionLeadership,
        "changed",
        plants.empty_isr,
        "an ISR has members",
    ),
    "an election leaves the leader out of the ISR": (
        PartitionLeadership,
        "changed",
        plants.isr_without_leader,
        "a leader is in the ISR",
    ),
    "states are announced that were not written": (
        PartitionStateStore,
        "update",
        plants.not_written,
        "a state is written before it is sent",
    ),
    "brokers accept a deposed controller": (
        LightReplicas,
        "receive",
        plants.accepts_all,
        "no request of a deposed controller is accepted",
    ),
    "new partitions are not started": (
        creation.TopicCreation,
        "start_partitions",
        plants.nothing,
        "every partition is created",
    ),
    "any live replica is elected": (
        partition_machine,
        "select_offline",
        plants.unclean,
        "an acknowledged write is lost",
    ),
    "reassignments are not resumed": (
        reassignment.Reassignments,
        "complete",
        plants.nothing,
        "every reassignment ends",
    ),
    "deletions are not resumed": (
        deletion.TopicDeletion,
        "resume_topics",
        plants.nothing,
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
    "requests to a broker are lost": (node.Channels, "send", plants.lossy, "every broker learns"),
    "new brokers get no states": (brokers.BrokerChanges, "_start", plants.nothing, "every"),
    "replicas stay on the controllers": (
        creation.TopicCreation,
        "leave_controllers",
        plants.nothing,
        "followers are in sync",
    ),
}

FIRST_SEEDS = {
    "brokers accept a deposed controller": 28,
    "any live replica is elected": 45,
    "watches are not set again": 112,
    "requests to a broker are lost": 11,
}
"""Where a bug that shows late is looked for first."""


@pytest.mark.parametrize("bug", BUGS)
def test_the_auditor_notices(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each planted bug breaks its invariant in one of the first histories."""
    owner, name, planted, rule = BUGS[bug]
    monkeypatch.setattr(owner, name, planted)
    broken = []
    first = FIRST_SEEDS.get(bug, 0)
    for seed in range(first, first + 200):
        try:
            run(seed, steps=1200)
        except AssertionError as error:
            broken.append(str(error))
            if rule in broken[-1]:
                return
    pytest.fail(f"no history broke the rule that {rule}, but {sorted(set(broken))[:5]}")
