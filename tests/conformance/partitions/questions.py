"""Questions on the rules of partitions by chance, and our answers to them in Kafka's form."""

from collections.abc import Sequence
from random import Random
from typing import Any

from featurewatch.controller.partitions.assignment import ReplicaAssignment
from featurewatch.controller.partitions.placement import (
    PlacementError,
    PlacementStart,
    place_replicas,
)
from featurewatch.controller.partitions.selectors import (
    RELEASED_SELECTORS,
    ElectionInput,
    SelectorDialect,
    select_controlled_shutdown,
    select_offline,
    select_preferred,
    select_reassigned,
)
from featurewatch.controller.partitions.states import RELEASED_PARTITIONS, RELEASED_REPLICAS

Json = dict[str, Any]

ELECTIONS = ("offline", "reassigned", "preferred", "shutdown")
RACKS = ("r2", "r10", "ä", "\U0001f600", "\uffee", "R1")
"""Names that Java orders otherwise than Python does are among them."""


def election_question(seed: int) -> Json:
    """A partition in any state, and an election."""
    chance = Random(f"election/{seed}")
    brokers = [*range(1, chance.randint(2, 8))]

    def some(of: Sequence[int], share: float) -> list[int]:
        chosen = [broker_id for broker_id in of if chance.random() < share]
        return chance.sample(chosen, len(chosen))

    replicas = some(brokers, 0.7)
    isr = some(replicas, 0.6)
    return {
        "ask": chance.choice(ELECTIONS),
        "replicas": replicas,
        "adding": some(replicas, 0.2),
        "removing": some(replicas, 0.2),
        "leader": chance.choice([*isr, -1]),
        "isr": isr,
        "brokers": some(brokers, 0.7),
        "stopping": some(brokers, 0.25),
        "failed": some(brokers, 0.1),
        "unclean": chance.random() < 0.5,
    }


def reassignment_question(seed: int) -> Json:
    """An assignment, perhaps one that is being reassigned, and another target."""
    chance = Random(f"reassign/{seed}")
    replicas = chance.sample(range(9), chance.randint(0, 6))
    return {
        "ask": "reassign",
        "replicas": replicas,
        "adding": [broker_id for broker_id in replicas if chance.random() < 0.3],
        "removing": [broker_id for broker_id in replicas if chance.random() < 0.3],
        "target": chance.sample(range(9), chance.randint(0, 6)),
    }


def placement_question(seed: int) -> Json:
    """Brokers with racks, without, or mixed, and a number of partitions."""
    chance = Random(f"place/{seed}")
    racks: list[str | None] = [*chance.sample(RACKS, chance.randint(1, 4))]
    kind = chance.random()
    if kind < 0.4:
        racks = [None]
    elif kind < 0.45:
        racks.append(None)
    brokers = chance.sample(range(30), chance.randint(1, 10))
    return {
        "ask": "place",
        "brokers": [[broker_id, chance.choice(racks)] for broker_id in brokers],
        "partitions": chance.choice([-1, 0, 1, 2, 7, 25]),
        "factor": chance.choice([0, 1, 2, 2, 3, 3, 4, 6]),
        "index": chance.randrange(len(brokers) + 3),
        "first": chance.choice([-1, 0, 0, 1, 5, 11]),
    }


def our_election(question: Json, dialect: SelectorDialect = RELEASED_SELECTORS) -> Json:
    """Our result, with the epochs that a successful election adds."""
    failed, registered = {*question["failed"]}, {*question["brokers"]}
    stopping = {*question["stopping"]}
    partition = ElectionInput(
        _assignment(question),
        tuple(question["isr"]),
        registered - stopping - failed,
        (registered & stopping) - failed,
    )
    match question["ask"]:
        case "offline":
            selected = select_offline(dialect, partition, allow_unclean=question["unclean"])
        case "reassigned":
            selected = select_reassigned(dialect, partition)
        case "preferred":
            selected = select_preferred(dialect, partition)
        case _:
            selected = select_controlled_shutdown(dialect, partition, stopping)
    if selected is None:
        return {}
    return {
        "leader": selected.leader,
        "epochs": 1,
        "unclean": selected.is_unclean,
        "isr": [*selected.isr],
        "receivers": [*selected.receivers],
    }


def our_reassignment(question: Json) -> Json:
    """The assignment on its way to the target."""
    after = _assignment(question).reassign_to(question["target"])
    return {
        name: [*getattr(after, name)]
        for name in ("replicas", "adding", "removing", "origin", "target")
    }


def our_placement(question: Json) -> Json:
    """The replicas of each partition, or the error."""
    start = PlacementStart(question["index"], question["index"], question["first"])
    racks = dict(question["brokers"])
    try:
        placed = place_replicas(racks, question["partitions"], question["factor"], start)
    except PlacementError as error:
        return {"error": str(error)}
    return {str(partition): [*replicas] for partition, replicas in placed.items()}


def our_states() -> dict[str, list[Any]]:
    """The number of each state, and the states that may precede it."""
    partitions = {
        str(state): [state.number, *map(str, previous)]
        for state, previous in RELEASED_PARTITIONS.items()
    }
    replicas = {
        str(state): [state.number, *map(str, previous)]
        for state, previous in RELEASED_REPLICAS.items()
    }
    return partitions | replicas


def _assignment(question: Json) -> ReplicaAssignment:
    return ReplicaAssignment(
        *(tuple(question[name]) for name in ("replicas", "adding", "removing"))
    )
