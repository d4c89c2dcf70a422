"""Partition changes of KRaft controllers against ``PartitionChangeBuilder`` of 3.9.1 and 4.3.0."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

import pytest

from featurewatch.deploy.java.jars import Cache
from tests.conformance.feature_control.kafka import java_harness
from tests.conformance.partitions.changes import Json, change_question, our_change

pytestmark = pytest.mark.stack

CASES = 10_000
"""For each release; some seconds."""

JAVA = Path(__file__).with_name("java")
FOLDERS = {"3.9.1": "v391", "4.3.0": "v430"}
Case = tuple[int, Json, Json]


@pytest.fixture(scope="module", params=FOLDERS)
def release(request: pytest.FixtureRequest) -> str:
    """A release of Kafka."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def cases(
    release: str, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Case]]:
    """Seeds that were never used before, their questions, and Kafka's records."""
    first = SystemRandom().randrange(1 << 40)
    seeds = range(first, first + CASES)
    questions = [change_question(seed) for seed in seeds]
    sources = [JAVA / "PartitionChanges.java", JAVA / FOLDERS[release] / "Builders.java"]
    main_class = "org.apache.kafka.controller.PartitionChanges"
    directory = tmp_path_factory.mktemp("partition-changes")
    with java_harness(sources, main_class, release, stack_cache, directory) as kafka:
        yield [*zip(seeds, questions, kafka.responses(questions), strict=True)]


def version_of(release: str) -> tuple[int, int]:
    """The release as numbers."""
    major, minor, _ = release.split(".")
    return int(major), int(minor)


def differences(cases: list[Case], release: tuple[int, int]) -> list[str]:
    """The cases in which we would write another record."""
    return [
        f"seed {seed}: {question}\n Kafka {answer}\n we    {our_change(question, release)}"
        for seed, question, answer in cases
        if our_change(question, release) != answer
    ]


def test_records_are_those_of_kafka(cases: list[Case], release: str) -> None:
    """Leader, ISR, replicas, recovery state and eligible leaders are written as Kafka does."""
    different = differences(cases, version_of(release))
    assert not different, f"{len(different)} of {len(cases)} differ\n{different[0]}"


def test_changes_reach_every_field(cases: list[Case]) -> None:
    """Every field is written often, and some changes are none."""
    counts = Counter(name for _, _, answer in cases for name in answer or ["empty"])
    assert "error" not in counts, counts
    assert len(counts) == 9
    assert min(counts.values()) > CASES // 200, counts


def test_another_release_is_detected(cases: list[Case], release: str) -> None:
    """The rules of the other release do not pass."""
    (other,) = FOLDERS.keys() - {release}
    assert differences(cases, version_of(other))
