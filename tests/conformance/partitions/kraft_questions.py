"""Reassignments and placements in KRaft mode by chance, and our results in Kafka's form."""

from collections.abc import Sequence
from dataclasses import asdict
from random import Random
from typing import Any, Final

from featurewatch.controller.partitions.kraft_election import (
    KraftElectionRules,
    KraftPartition,
    PartitionChange,
)
from featurewatch.controller.partitions.kraft_reassignment import begin_reassignment
from featurewatch.controller.partitions.placement import PlacementError
from featurewatch.controller.partitions.striped_placement import UsableBroker, place_striped

Json = dict[str, Any]
Release = tuple[int, int]

BROKERS: Final = 7
"""The registered brokers are 1 to so many."""
RACKS: Final = ("r2", "r10", "ä", "R1")


def begin_question(seed: int) -> Json:
    """A partition in any state, perhaps reassigned already, and the replicas that are wanted.

    The last known leader is a replica: for another one Kafka's controller fails with an exception.
    """
    chance = Random(f"begin/{seed}")
    broker_ids = range(1, BROKERS + 1)

    def some(of: Sequence[int], share: float) -> list[int]:
        chosen = [broker_id for broker_id in of if chance.random() < share]
        return chance.sample(chosen, len(chosen))

    replicas = chance.sample(broker_ids, chance.randint(1, 5))
    elr_enabled = chance.random() < 0.5
    isr = some(replicas, 0.7)
    if not isr and not elr_enabled:
        isr = replicas[:1]
    outside = [broker_id for broker_id in replicas if broker_id not in isr]
    moves = chance.random() < 0.5
    target = chance.sample(broker_ids, chance.randint(1, 4))
    if chance.random() < 0.1:
        target = chance.sample(replicas, len(replicas))
    return {
        "ask": "reassign",
        "brokers": BROKERS,
        "usable": some(broker_ids, 0.8),
        "min_isr": chance.randint(1, 3),
        "replicas": replicas,
        "isr": isr,
        "leader": chance.choice([*isr, -1]) if isr else -1,
        "adding": sorted(some(replicas, 0.3)) if moves else [],
        "removing": sorted(some(replicas, 0.3)) if moves else [],
        "recovering": chance.random() < 0.1,
        "elr": sorted(some(outside, 0.5)) if elr_enabled else [],
        "last_known_elr": some(replicas, 0.3)[:1] if elr_enabled else [],
        "elr_enabled": elr_enabled,
        "target": target,
    }


def striped_question(seed: int) -> Json:
    """Brokers with racks, without, or mixed, some of them fenced, and a number of partitions."""
    chance = Random(f"stripe/{seed}")
    racks: list[str | None] = [*chance.sample(RACKS, chance.randint(1, 4))]
    kind = chance.random()
    if kind < 0.3:
        racks = [None]
    elif kind < 0.5:
        racks.append(None)
    fenced = chance.choice([0.0, 0.2, 0.6])
    broker_ids = chance.sample(range(30), chance.randint(0, 9))
    return {
        "ask": "place",
        "brokers": [[it, chance.choice(racks), chance.random() < fenced] for it in broker_ids],
        "partitions": chance.choice([1, 1, 2, 7, 25]),
        "factor": chance.choice([-1, 0, 1, 2, 2, 3, 3, 4, 6]),
    }


def partition_of(question: Json) -> KraftPartition:
    """The partition of a question about a change or a reassignment."""
    return KraftPartition(
        replicas=tuple(question["replicas"]),
        isr=tuple(question["isr"]),
        leader=question["leader"],
        adding=tuple(question["adding"]),
        removing=tuple(question["removing"]),
        recovering=question["recovering"],
        elr=tuple(question["elr"]),
        last_known_elr=tuple(question["last_known_elr"]),
    )


def written(change: PartitionChange) -> Json:
    """The fields of a record in the form of the harness, which has no directories."""
    return {
        name: [*value] if isinstance(value, tuple) else value
        for name, value in asdict(change).items()
        if value is not None and name != "has_directories"
    }


def our_begin(question: Json, release: Release) -> Json:
    """The fields of the record that begins the reassignment."""
    rules = KraftElectionRules(release, question["elr_enabled"])
    usable = frozenset(question["usable"])
    min_isr = min(question["min_isr"], len(question["replicas"]))
    partition = partition_of(question)
    return written(begin_reassignment(rules, partition, question["target"], usable, min_isr))


def our_striped(question: Json, release: Release) -> Json:
    """The replicas of each partition, or Kafka's text."""
    brokers = [UsableBroker(*broker) for broker in question["brokers"]]
    try:
        placed = place_striped(brokers, question["partitions"], question["factor"], release)
    except PlacementError as error:
        return {"refused": str(error)}
    return {"replicas": [[*replicas] for replicas in placed]}
