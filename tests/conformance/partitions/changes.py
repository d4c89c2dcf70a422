"""Changes of partitions in KRaft mode by chance, and our records in the form of the harness."""

from collections.abc import Sequence
from random import Random
from typing import Any

from featurewatch.controller.partitions.kraft_election import (
    KraftElection,
    KraftElectionRules,
    PartitionChange,
    PartitionTarget,
    change_partition,
)
from featurewatch.controller.partitions.kraft_invariants import (
    CheckedChange,
    PartitionInvariant,
    broken_invariants,
)
from tests.conformance.partitions.kraft_questions import partition_of, written

Json = dict[str, Any]
LISTS = ("isr", "replicas", "adding", "removing")


def change_question(seed: int) -> Json:
    """A partition in any state that a log may hold, and what a controller wants of it."""
    chance = Random(f"change/{seed}")

    def some(of: Sequence[int], share: float) -> list[int]:
        chosen = [broker_id for broker_id in of if chance.random() < share]
        return chance.sample(chosen, len(chosen))

    replicas = chance.sample(range(1, 7), chance.randint(1, 5))
    elr_enabled = chance.random() < 0.5
    isr = some(replicas, 0.6)
    if not isr and not elr_enabled:
        isr = replicas[:1]
    outside = [broker_id for broker_id in range(1, 7) if broker_id not in isr]
    elr = sorted(some(outside, 0.3)) if elr_enabled else []
    leader = chance.choice([*isr, -1]) if isr else -1
    moves = chance.random() < 0.5
    target: Json = {
        "usable": some(range(1, 7), 0.7),
        "min_isr": chance.randint(1, 3),
        "election": chance.choice([*KraftElection]).value,
        "unclean_shutdown": some(range(1, 7), 0.2) if elr_enabled else [],
    }
    if chance.random() < 0.6:
        target["isr"] = some(replicas, 0.7)
    if chance.random() < 0.3:
        wanted = chance.sample(range(1, 7), chance.randint(1, 3))
        rest = sorted({*replicas} - {*wanted})
        target["replicas"] = [*wanted, *rest]
        target["removing"] = rest
        target["adding"] = sorted({*wanted} - {*replicas})
    if chance.random() < 0.2:
        target["recovering"] = chance.random() < 0.3
    return {
        "ask": "change",
        "replicas": replicas,
        "isr": isr,
        "leader": leader,
        "adding": sorted(some(replicas, 0.3)) if moves else [],
        "removing": sorted(some(replicas, 0.3)) if moves else [],
        "recovering": chance.random() < 0.2,
        "elr": elr,
        "last_known_elr": some(range(1, 7), 0.2)[:1] if elr_enabled else [],
        "elr_enabled": elr_enabled,
        "raises_epoch": chance.random() < 0.3,
        "target": target,
    }


def our_change(question: Json, release: tuple[int, int]) -> Json:
    """The fields of the record that we would write."""
    wanted = question["target"]
    lists = {name: tuple(wanted[name]) for name in LISTS if name in wanted}
    target = PartitionTarget(
        usable=frozenset(wanted["usable"]),
        min_isr=wanted["min_isr"],
        election=KraftElection(wanted["election"]),
        recovering=wanted.get("recovering"),
        unclean_shutdown=frozenset(wanted["unclean_shutdown"]),
        **lists,
    )
    return written(change_partition(_rules(question, release), partition_of(question), target))


def broken_rules(
    question: Json, record: Json, release: tuple[int, int]
) -> list[PartitionInvariant]:
    """The rules of a log that a record would break as the change of the question's partition."""
    fields: Json = {name: tuple(it) if type(it) is list else it for name, it in record.items()}
    checked = CheckedChange(
        _rules(question, release),
        partition_of(question),
        PartitionChange(**fields),
        frozenset(question["target"]["usable"]),
    )
    return broken_invariants(checked)


def _rules(question: Json, release: tuple[int, int]) -> KraftElectionRules:
    return KraftElectionRules(release, question["elr_enabled"], question["raises_epoch"])
