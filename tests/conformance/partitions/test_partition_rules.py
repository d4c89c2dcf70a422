"""The rules of partitions against the classes of Kafka 3.9.1.

Both get the same questions by chance: elections, replica lists under reassignment, and placements.
A failure prints the seed of its question.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import SystemRandom

import pytest

from featurewatch.controller.partitions.selectors import RELEASED_SELECTORS
from featurewatch.deploy.java.jars import Cache
from tests.conformance.feature_control.kafka import ControllerHarness, java_harness
from tests.conformance.partitions.questions import (
    Json,
    election_question,
    our_election,
    our_placement,
    our_reassignment,
    our_states,
    placement_question,
    reassignment_question,
)

pytestmark = pytest.mark.stack

CASES = 10_000
"""Of each kind; some seconds in all."""

SOURCE = Path(__file__).with_name("java") / "PartitionRules.java"


@pytest.fixture(scope="module")
def kafka(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """Kafka 3.9.1's own classes."""
    directory = tmp_path_factory.mktemp("partition-rules")
    with java_harness([SOURCE], "PartitionRules", "3.9.1", stack_cache, directory) as harness:
        yield harness


@pytest.fixture(scope="module")
def first_seed() -> int:
    """The first of the seeds, never used before."""
    return SystemRandom().randrange(1 << 40)


@pytest.fixture(scope="module")
def elections(kafka: ControllerHarness, first_seed: int) -> list[tuple[int, Json, Json]]:
    """Seeds, questions about elections, and Kafka's answers."""
    return answered(kafka, first_seed, election_question)


def answered(
    kafka: ControllerHarness, first_seed: int, question: Callable[[int], Json]
) -> list[tuple[int, Json, Json]]:
    """Seeds, questions and Kafka's answers."""
    seeds = range(first_seed, first_seed + CASES)
    questions = [question(seed) for seed in seeds]
    return [*zip(seeds, questions, kafka.responses(questions), strict=True)]


def differences(cases: list[tuple[int, Json, Json]], ours: Callable[[Json], Json]) -> list[str]:
    """The cases in which we decide otherwise."""
    return [
        f"seed {seed}: {question}\n Kafka {answer}\n we    {ours(question)}"
        for seed, question, answer in cases
        if ours(question) != answer
    ]


def test_states_are_those_of_kafka(kafka: ControllerHarness) -> None:
    """The released tables of both machines are Kafka's own, numbers included (C-14, C-36)."""
    (answer,) = kafka.responses([{"ask": "states"}])
    assert {
        state: [number, *sorted(previous)] for state, (number, *previous) in answer.items()
    } == {state: [number, *sorted(previous)] for state, (number, *previous) in our_states().items()}


def test_selectors_elect_as_kafka_does(elections: list[tuple[int, Json, Json]]) -> None:
    """Leaders, ISRs and receivers of all four selectors are Kafka's (C-15 to C-25)."""
    different = differences(elections, our_election)
    assert not different, f"{len(different)} differ\n{different[0]}"


def test_elections_reach_every_rule(elections: list[tuple[int, Json, Json]]) -> None:
    """Each selector succeeds and fails often, and many elections are unclean."""
    counts = Counter((question["ask"], bool(answer)) for _, question, answer in elections)
    assert len(counts) == 8
    assert min(counts.values()) > CASES // 100, counts
    assert sum(answer.get("unclean", False) for _, _, answer in elections) > CASES // 100


@pytest.mark.parametrize(
    "planted",
    [
        "ties_by_isr",
        "always_unclean",
        "reassigned_in_isr",
        "preferred_alive",
        "shutdown_alive",
        "informs_stopping",
    ],
)
def test_each_difference_of_the_document_is_detected(
    planted: str, elections: list[tuple[int, Json, Json]]
) -> None:
    """A selector with one rule of the document instead of Kafka's does not pass."""
    changed = {planted: not getattr(RELEASED_SELECTORS, planted)}
    dialect = replace(RELEASED_SELECTORS, **changed)
    assert differences(elections, lambda question: our_election(question, dialect))


def test_reassigned_lists_are_those_of_kafka(kafka: ControllerHarness, first_seed: int) -> None:
    """A list on its way to a target, canceled or replaced, has Kafka's order (C-43)."""
    different = differences(answered(kafka, first_seed, reassignment_question), our_reassignment)
    assert not different, f"{len(different)} differ\n{different[0]}"


def test_replicas_are_placed_as_kafka_does(kafka: ControllerHarness, first_seed: int) -> None:
    """With racks and without, the same brokers in the same order, and the same errors."""
    cases = answered(kafka, first_seed, placement_question)
    different = differences(cases, our_placement)
    assert not different, f"{len(different)} differ\n{different[0]}"
    assert len({answer["error"].split(":")[0] for _, _, answer in cases if "error" in answer}) == 4
