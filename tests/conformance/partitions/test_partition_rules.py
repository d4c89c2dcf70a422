"""The rules of partitions against the classes of Kafka 3.9.1.

Both get the same questions by chance: elections, replica lists under reassignment, and placements.
A failure prints the seed of its question.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from featurewatch.controller.partitions.selectors import RELEASED_SELECTORS
from featurewatch.stack.java.jars import Cache
from tests.conformance.feature_control.kafka import ControllerHarness
from tests.conformance.partitions.compare import (
    ELECTIONS,
    PLACEMENTS,
    REASSIGNED_LISTS,
    ZOOKEEPER_RELEASE,
    Case,
    zookeeper_rules,
)
from tests.conformance.partitions.questions import our_election, our_states
from tests.plugins.nightly import case_count, case_seeds

pytestmark = pytest.mark.stack

CASES = case_count(10_000)
"""Of each kind; some seconds in all."""


@pytest.fixture(scope="module")
def kafka(
    stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """Kafka 3.9.1's own classes."""
    with zookeeper_rules(stack_cache, tmp_path_factory.mktemp("partition-rules")) as harness:
        yield harness


@pytest.fixture(scope="module")
def seeds() -> range:
    """The seeds of this run."""
    return case_seeds(10_000)


@pytest.fixture(scope="module")
def elections(kafka: ControllerHarness, seeds: range) -> list[Case]:
    """Elections as Kafka decides them."""
    return ELECTIONS.cases(kafka, seeds)


@pytest.mark.form("released")
def test_states_are_those_of_kafka(kafka: ControllerHarness) -> None:
    """The released tables of both machines are Kafka's own, numbers included (C-14 as released,
    C-36 as released)."""
    (answer,) = kafka.responses([{"ask": "states"}])
    assert {
        state: [number, *sorted(previous)] for state, (number, *previous) in answer.items()
    } == {state: [number, *sorted(previous)] for state, (number, *previous) in our_states().items()}


@pytest.mark.form("released")
def test_selectors_elect_as_kafka_does(elections: list[Case]) -> None:
    """Leaders, ISRs and receivers of all four selectors are Kafka's.

    That is C-18, C-20, C-22, C-24, and C-15 as released, C-16 as released, C-17 as released,
    C-19 as released, C-21 as released, C-23 as released, C-25 as released.
    """
    different = ELECTIONS.differences(elections, ZOOKEEPER_RELEASE)
    assert not different, f"{len(different)} differ\n{different[0]}"


def test_elections_reach_every_rule(elections: list[Case]) -> None:
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
def test_each_difference_of_the_document_is_detected(planted: str, elections: list[Case]) -> None:
    """A selector with one rule of the document instead of Kafka's does not pass."""
    changed: dict[str, Any] = {planted: not getattr(RELEASED_SELECTORS, planted)}
    dialect = replace(RELEASED_SELECTORS, **changed)
    kind = ELECTIONS._replace(ours=lambda question, _: our_election(question, dialect))
    assert kind.differences(elections, ZOOKEEPER_RELEASE)


@pytest.mark.form("released")
def test_reassigned_lists_are_those_of_kafka(kafka: ControllerHarness, seeds: range) -> None:
    """A list on its way to a target, canceled or replaced, has Kafka's order (C-43 as released)."""
    cases = REASSIGNED_LISTS.cases(kafka, seeds)
    different = REASSIGNED_LISTS.differences(cases, ZOOKEEPER_RELEASE)
    assert not different, f"{len(different)} differ\n{different[0]}"


def test_replicas_are_placed_as_kafka_does(kafka: ControllerHarness, seeds: range) -> None:
    """With racks and without, the same brokers in the same order, and the same errors."""
    cases = PLACEMENTS.cases(kafka, seeds)
    different = PLACEMENTS.differences(cases, ZOOKEEPER_RELEASE)
    assert not different, f"{len(different)} differ\n{different[0]}"
    assert len({answer["error"].split(":")[0] for _, _, answer in cases if "error" in answer}) == 4
