"""The rules of partitions against Kafka's own classes: kinds of cases, and what differs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from featurewatch.stack.java.jars import Cache
from tests.conformance.feature_control.kafka import ControllerHarness, java_harness, logs_source
from tests.conformance.partitions import questions
from tests.conformance.partitions.changes import change_question, our_change
from tests.conformance.partitions.kraft_questions import (
    begin_question,
    our_begin,
    our_striped,
    striped_question,
)

Json = dict[str, Any]
Release = tuple[int, int]

_JAVA: Final = Path(__file__).with_name("java")
ZOOKEEPER_RELEASE: Final = "3.9.1"
KRAFT_RELEASES: Final = {"3.9.1": "v391", "4.3.0": "v430", "4.4.0": "v430"}
"""The releases, and the folder of what differs between them."""


class Case(NamedTuple):
    """What was decided: by which seed, the question, and Kafka's answer."""

    seed: int
    question: Json
    answer: Json


class CaseKind(NamedTuple):
    """A kind of decision: the question of a seed, and our answer to it for a release."""

    question: Callable[[int], Json]
    ours: Callable[[Json, Release], Json]

    def cases(self, kafka: ControllerHarness, seeds: range) -> list[Case]:
        """The cases of these seeds, decided by Kafka."""
        asked = [self.question(seed) for seed in seeds]
        answers = kafka.responses(asked)
        return [*map(Case._make, zip(seeds, asked, answers, strict=True))]

    def differences(self, cases: list[Case], release: str) -> list[str]:
        """The cases in which we decide otherwise, as texts with their seeds."""
        number = version_of(release)
        decided = [(case, self.ours(case.question, number)) for case in cases]
        return [difference(case, ours) for case, ours in decided if ours != case.answer]


ELECTIONS: Final = CaseKind(questions.election_question, lambda it, _: questions.our_election(it))
REASSIGNED_LISTS: Final = CaseKind(
    questions.reassignment_question, lambda it, _: questions.our_reassignment(it)
)
PLACEMENTS: Final = CaseKind(
    questions.placement_question, lambda it, _: questions.our_placement(it)
)
CHANGES: Final = CaseKind(change_question, our_change)
REASSIGNMENTS: Final = CaseKind(begin_question, our_begin)
STRIPED_PLACEMENTS: Final = CaseKind(striped_question, our_striped)

ZOOKEEPER_KINDS: Final = {
    "elections": ELECTIONS,
    "reassigned lists": REASSIGNED_LISTS,
    "placements": PLACEMENTS,
}
KRAFT_KINDS: Final = {
    "changes": CHANGES,
    "reassignments": REASSIGNMENTS,
    "striped placements": STRIPED_PLACEMENTS,
}


@contextmanager
def zookeeper_rules(cache: Cache, directory: Path) -> Iterator[ControllerHarness]:
    """The classes of Kafka's controller in ZooKeeper mode, compiled into a directory."""
    sources = [_JAVA / "PartitionRules.java"]
    with java_harness(sources, "PartitionRules", ZOOKEEPER_RELEASE, cache, directory) as kafka:
        yield kafka


@contextmanager
def kraft_rules(release: str, cache: Cache, directory: Path) -> Iterator[ControllerHarness]:
    """The classes of a release's KRaft controller, compiled into a directory."""
    names = ("PartitionChanges", "Placements", "Reassignments")
    sources = [_JAVA / f"{name}.java" for name in names]
    sources += sorted((_JAVA / KRAFT_RELEASES[release]).glob("*.java"))
    sources.append(logs_source(release))
    main_class = "org.apache.kafka.controller.PartitionChanges"
    with java_harness(sources, main_class, release, cache, directory) as kafka:
        yield kafka


def version_of(release: str) -> Release:
    """The release as numbers."""
    major, minor, _ = release.split(".")
    return int(major), int(minor)


def difference(case: Case, ours: Json) -> str:
    """A case in which we decide otherwise."""
    return f"seed {case.seed}: {case.question}\n Kafka {case.answer}\n we    {ours}"
