"""Clusters under the document's controller over a faulty ZooKeeper; the auditor sees planted bugs.

A controller may die between any two effects of any operation, so a failover begins after every
step of each. The rules are those of Kafka Controller Internals (`document_auditor`).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest

from featurewatch.controller.partitions.assignment import ReplicaAssignment, without
from featurewatch.controller.partitions.selectors import SelectedLeader
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics import partition_machine
from featurewatch.reference.zookeeper.machines.topics.context import ControllerContext
from featurewatch.reference.zookeeper.machines.topics.dialect import (
    DOCUMENT_OPERATIONS,
    OperationsDialect,
)
from featurewatch.reference.zookeeper.machines.topics.operations import creation, reassignment
from featurewatch.reference.zookeeper.machines.topics.operations.parts import OperationParts
from featurewatch.reference.zookeeper.machines.topics.state_store import (
    FencedWriter,
    PartitionStateStore,
)
from tests.plugins.nightly import case_seeds
from tests.simulation.reference import node
from tests.simulation.reference.test_topic_simulation import (
    accepts_all,
    isr_without_leader,
    lossy,
    lower_epoch,
    not_written,
    nothing,
    same_epoch,
    unfenced,
)
from tests.simulation.reference.topic_world import PartitionLeadership, run

pytestmark = pytest.mark.form("document")

SEEDS: Final = 1_000
STEPS: Final = 600


def test_topics_survive_under_the_document() -> None:
    """Whatever dies between any two effects, the document's invariants hold.

    Only the newest controller writes (C-01), and a state before a broker learns of it (C-10). The
    first live replica leads a new partition (C-07). A leader from outside the ISR is elected only
    if no member of it is alive (C-16), is the ISR then (C-17), and alone may lose acknowledged
    writes; no election takes others into the ISR (C-24). A replica is stopped before it leaves the
    ISR (C-33), a started broker gets UpdateMetadata first (C-40). AR is OAR + RAR, the present
    replicas first (C-43, C-66), RAR is written at the end, when it is the ISR (C-46, C-50, C-52,
    C-65) and its request still exists (C-53); once all run, every reassignment ends (C-42, C-56).
    """
    counts = {"elections": 0, "unclean": 0, "empty": 0, "reassigned": 0, "acknowledged": 0}
    seeds = case_seeds(SEEDS)
    for seed in seeds:
        auditor = run(seed, STEPS, DOCUMENT_OPERATIONS).auditor
        counts["acknowledged"] += sum(map(len, auditor.acknowledged.values()))
        for name in counts.keys() - {"acknowledged"}:
            counts[name] += getattr(auditor, name)
    assert min(counts.values()) > len(seeds) // 3, counts
    assert min(counts["elections"], counts["reassigned"]) > len(seeds), counts
