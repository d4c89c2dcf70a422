"""Clusters under the document's controller over a faulty ZooKeeper; the auditor sees planted bugs.

A controller may die between any two effects of any operation, so a failover begins after every
step of each. The rules are those of Kafka Controller Internals (`document_auditor`).
"""

from dataclasses import replace
from typing import Any, Final

import pytest

from featurewatch.controller.partitions import selectors
from featurewatch.controller.partitions.assignment import ReplicaAssignment, without
from featurewatch.controller.partitions.selectors import SelectedLeader
from featurewatch.reference.zookeeper.machines.replicas.light_replicas import LightReplicas
from featurewatch.reference.zookeeper.machines.task_queue import Task
from featurewatch.reference.zookeeper.machines.topics import partition_machine
from featurewatch.reference.zookeeper.machines.topics.context import (
    ControllerContext,
    PartitionLeadership,
)
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
from tests.simulation.reference import topic_bugs as plants
from tests.simulation.reference.topic_world import run

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


# -- planted bugs ----------------------------------------------------------------------------------

Patch = tuple[object, str, Any]


def _first(*, leader: int, reverses: bool) -> Any:
    """A first election of another live replica, or with another order of the ISR."""

    def select(partition: Any) -> SelectedLeader | None:
        selected = selectors.select_first(partition)
        if selected is None:
            return None
        isr = selected.isr[::-1] if reverses else selected.isr
        return SelectedLeader(selected.isr[leader], isr, selected.receivers)

    return select


def _outside_the_isr(dialect: Any, partition: Any, **_: Any) -> SelectedLeader | None:
    """Elects the last live replica, whoever is in the ISR."""
    selected = selectors.select_offline(dialect, partition)
    if selected is None:
        return None
    leader = selected.receivers[-1]
    return SelectedLeader(leader, (leader,), selected.receivers)


def _with_all_live(dialect: Any, partition: Any, **_: Any) -> SelectedLeader | None:
    """Takes all live replicas into the ISR."""
    selected = selectors.select_offline(dialect, partition)
    return selected and selected._replace(isr=selected.receivers)


def _ends_early(*_: Any) -> Task[bool]:
    """A reassignment waits for nothing."""
    yield from ()
    return True


def _without_adding(assignment: ReplicaAssignment, target: Any) -> ReplicaAssignment:
    """OAR + RAR, without what was added."""
    appended = _APPEND(assignment, target)
    return replace(appended, adding=()) if appended.removing else appended


def _acknowledges_all(self: LightReplicas, partition: Any) -> list[int]:
    """A leader acknowledges what its followers have not fetched."""
    replica = self.replicas[partition]
    done = [value for value, _ in replica.waiting]
    replica.waiting = []
    return done


def _metadata_without_partitions(self: OperationParts, brokers: Any, partitions: Any) -> None:
    if not [*partitions]:
        _METADATA(self, brokers, [])


_APPEND = ReplicaAssignment.append
_METADATA = OperationParts.send_metadata

BUGS: dict[str, tuple[Patch | dict[str, Any], str]] = {
    "a deposed controller can write": (
        (FencedWriter, "write", plants.unfenced),
        "only the newest controller writes",
    ),
    "an election keeps the leader epoch": (
        (PartitionLeadership, "changed", plants.same_epoch),
        "one leader per epoch",
    ),
    "an election lowers the leader epoch": (
        (PartitionLeadership, "changed", plants.lower_epoch),
        "leader epochs only grow",
    ),
    "an election leaves the leader out of the ISR": (
        (PartitionLeadership, "changed", plants.isr_without_leader),
        "a leader is in the ISR",
    ),
    "states are announced that were not written": (
        (PartitionStateStore, "update", plants.not_written),
        "a state is written before it is sent",
    ),
    "brokers accept a deposed controller": (
        (LightReplicas, "receive", plants.accepts_all),
        "no request of a deposed controller is accepted",
    ),
    "the last live replica leads a new partition": (
        (partition_machine, "select_first", _first(leader=-1, reverses=False)),
        "the first live replica leads a new partition",
    ),
    "the first ISR is reversed": (
        (partition_machine, "select_first", _first(leader=0, reverses=True)),
        "the first ISR has the order of the assignment",
    ),
    "a leader is elected outside a live ISR": (
        (partition_machine, "select_offline", _outside_the_isr),
        "an unclean leader is elected only if no ISR member is alive",
    ),
    "an unclean leader takes others into the ISR": (
        (partition_machine, "select_offline", _with_all_live),
        "an unclean leader is the ISR",
    ),
    "an election takes others into the ISR": (
        (partition_machine, "select_offline", _with_all_live),
        "the controller takes nobody into an ISR",
    ),
    "StopReplica comes last": (
        {"stops_first": False},
        "a replica is stopped before it leaves the ISR",
    ),
    "a started broker gets its metadata last": (
        (OperationParts, "send_metadata", _metadata_without_partitions),
        "UpdateMetadata comes first",
    ),
    "the target comes first": ({"appends_target": False}, "AR is OAR + RAR"),
    "what a reassignment adds is not written": (
        (ReplicaAssignment, "append", _without_adding),
        "OAR can be read from ZooKeeper",
    ),
    "requests are not noted": (
        {"notes_requests": False},
        "the target is in ZooKeeper until its reassignment ends",
    ),
    "the order of the target is lost": (
        (
            ReplicaAssignment,
            "target",
            property(lambda assignment: without(assignment.replicas, assignment.removing)),
        ),
        "AR is RAR at the end",
    ),
    "a reassignment does not wait": (
        (reassignment.Reassignments, "_is_complete", _ends_early),
        "a reassignment ends with RAR in sync, and nobody else",
    ),
    "a change of the order does not wait": (
        {"takes_all_steps": False},
        "a reassignment ends with RAR in sync, and nobody else",
    ),
    "requests stay": (
        (reassignment.Reassignments, "_forget", plants.nothing),
        "every request of a reassignment ends",
    ),
    "reassignments are not completed": (
        (reassignment.Reassignments, "complete", plants.nothing),
        "every reassignment ends",
    ),
    "leaders acknowledge at once": (
        (LightReplicas, "acknowledged", _acknowledges_all),
        "an acknowledged write is lost",
    ),
    "new partitions are not started": (
        (creation.TopicCreation, "start_partitions", plants.nothing),
        "every partition is created",
    ),
    "dead leaders are not noticed": (
        (ControllerContext, "leaderless_partitions", lambda _: []),
        "every partition is led",
    ),
    "replicas stay on the controllers": (
        (creation.TopicCreation, "leave_controllers", plants.nothing),
        "followers are in sync",
    ),
    "requests to a broker are lost": (
        (node.Channels, "send", plants.lossy),
        "every broker learns",
    ),
}


FIRST_SEEDS: Final = {
    "a leader is elected outside a live ISR": 17,
    "an election leaves the leader out of the ISR": 13,
    "an election takes others into the ISR": 17,
    "a change of the order does not wait": 9,
    "brokers accept a deposed controller": 72,
    "leaders acknowledge at once": 13,
}
"""A history in which a rare bug was seen; later ones are tried where the code has changed."""


@pytest.mark.parametrize("bug", BUGS)
def test_the_auditor_notices(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each planted bug breaks its invariant in one of the first histories."""
    planted, rule = BUGS[bug]
    dialect: OperationsDialect = DOCUMENT_OPERATIONS
    if isinstance(planted, dict):
        dialect = replace(dialect, **planted)
    else:
        monkeypatch.setattr(*planted)
    broken = []
    first = FIRST_SEEDS.get(bug, 0)
    for seed in range(first, first + 200):
        try:
            run(seed, STEPS, dialect)
        except AssertionError as error:
            broken.append(str(error))
            if rule in broken[-1]:
                return
    pytest.fail(f"no history broke the rule that {rule}, but {sorted({*broken})[:5]}")
