"""What a KRaft controller decides about partitions, against the classes of 3.9.1, 4.3.0 and 4.4.0.

Changes against ``PartitionChangeBuilder``, the begin of reassignments against
``ReplicationControlManager``, placements against ``StripedReplicaPlacer``.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

from featurewatch.controller.partitions.kraft_invariants import PartitionInvariant
from featurewatch.stack.java.jars import Cache
from tests.conformance.feature_control.kafka import ControllerHarness
from tests.conformance.partitions.changes import broken_rules
from tests.conformance.partitions.compare import (
    CHANGES,
    KRAFT_RELEASES,
    REASSIGNMENTS,
    STRIPED_PLACEMENTS,
    Case,
    kraft_rules,
    version_of,
)
from tests.plugins.nightly import case_count, case_seeds

pytestmark = pytest.mark.stack

CASES = case_count(10_000)
"""Of each kind for each release; some seconds."""


@pytest.fixture(scope="module", params=KRAFT_RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """A release of Kafka."""
    name: str = request.param
    return name


@pytest.fixture(scope="module")
def kafka(
    release: str, stack_cache: Cache, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControllerHarness]:
    """Its own classes."""
    with kraft_rules(release, stack_cache, tmp_path_factory.mktemp("kraft-rules")) as harness:
        yield harness


@pytest.fixture(scope="module")
def seeds() -> range:
    """The seeds of this run."""
    return case_seeds(10_000)


@pytest.fixture(scope="module")
def changes(kafka: ControllerHarness, seeds: range) -> list[Case]:
    """Changes as Kafka writes them."""
    return CHANGES.cases(kafka, seeds)


def test_records_are_those_of_kafka(changes: list[Case], release: str) -> None:
    """Leader, ISR, replicas, recovery state and eligible leaders are written as Kafka does."""
    different = CHANGES.differences(changes, release)
    assert not different, f"{len(different)} of {len(changes)} differ\n{different[0]}"


def test_changes_reach_every_field(changes: list[Case]) -> None:
    """Every field is written often, and some changes write nothing."""
    counts = Counter(name for _, _, answer in changes for name in answer or ["empty"])
    assert "error" not in counts, counts
    assert len(counts) == 9
    assert min(counts.values()) > CASES // 200, counts


def test_another_release_is_detected(changes: list[Case], release: str) -> None:
    """The rules of another release, those of 3.9 or 4.3, do not pass."""
    other = next(one for one in KRAFT_RELEASES if one != release)
    assert CHANGES.differences(changes, other)


def test_reassignments_begin_as_in_kafka(
    kafka: ControllerHarness, seeds: range, release: str
) -> None:
    """New ones, and those that replace another: the record has Kafka's fields, if there is one."""
    cases = REASSIGNMENTS.cases(kafka, seeds)
    different = REASSIGNMENTS.differences(cases, release)
    assert not different, f"{len(different)} of {len(cases)} differ\n{different[0]}"
    counts = Counter(name for _, _, answer in cases for name in answer or ["empty"])
    assert counts.keys() >= {"empty", "replicas", "adding", "removing", "leader", "isr", "elr"}
    assert "error" not in counts
    other = next(one for one in KRAFT_RELEASES if one != release)
    assert REASSIGNMENTS.differences(cases, other)


def test_replicas_are_striped_as_in_kafka(
    kafka: ControllerHarness, seeds: range, release: str
) -> None:
    """The same brokers in the same order where Kafka draws the first ones, and the same texts."""
    cases = STRIPED_PLACEMENTS.cases(kafka, seeds)
    different = STRIPED_PLACEMENTS.differences(cases, release)
    assert not different, f"{len(different)} of {len(cases)} differ\n{different[0]}"
    refused = Counter(answer["refused"][:12] for _, _, answer in cases if "refused" in answer)
    assert len(refused) == 3
    assert min(refused.values()) > CASES // 100, refused


def test_elections_of_kafka_keep_the_rule_of_their_order(changes: list[Case], release: str) -> None:
    """No record of Kafka's is taken for one that elects a wrong replica, and another leader is."""
    number, elections, planted = version_of(release), 0, 0
    rule = PartitionInvariant.ELECTION_ORDER
    for seed, question, record in changes:
        leader = record.get("leader", -1)
        if leader in (-1, question["leader"]):
            continue
        elections += 1
        assert rule not in broken_rules(question, record, number), f"seed {seed}"
        isr: list[int] = record["isr"] if "isr" in record else question["isr"]
        usable: list[int] = question["target"]["usable"]
        others = {*isr} & {*usable} - {leader, question["leader"]}
        if leader in usable and not record.get("recovering", question["recovering"]):
            for other in others:
                planted += 1
                assert rule in broken_rules(question, record | {"leader": other}, number), (
                    f"seed {seed}"
                )
    assert elections > CASES // 10
    assert planted > CASES // 10
