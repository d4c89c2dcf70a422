"""The model of Kafka's controller against its own classes: cases, and how many of them differ.

``conformance_cases`` and ``conformance_mismatches`` are about features.

Updates, registrations and replays by chance go to the classes of each release from 3.9 to 4.4, and
to the model: any other code, text, record or order is a mismatch. Seeds are new at each run, and
the first of them is printed, so that a case can be asked again with ``python -m
tests.conformance.feature_control 1 SEED RELEASE``.

``conformance_partition_cases`` and ``conformance_partition_mismatches`` are about partitions: the
elections, lists and placements of ZooKeeper mode, and the changes, reassignments and placements of
KRaft mode. The texts on stderr have the seed and the question of what differs.

``conformance_raft_histories`` and ``conformance_raft_mismatches`` are about the voter of the
reference quorum: histories of events, given to it and to ``KafkaRaftClient`` of three releases.
What differs on purpose is in a table, ``tests/conformance/raft/differences.py``.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from featurewatch.controller.kraft.conformance.compare import cases, differences, kinds
from featurewatch.stack.java.jars import Cache, default_cache
from tests.conformance.feature_control.kafka import (
    ALL_RELEASES,
    ControllerHarness,
    controller_harness,
)
from tests.conformance.partitions.compare import (
    KRAFT_KINDS,
    KRAFT_RELEASES,
    ZOOKEEPER_KINDS,
    ZOOKEEPER_RELEASE,
    CaseKind,
    kraft_rules,
    zookeeper_rules,
)
from tests.conformance.raft.compare import Comparison
from tests.conformance.raft.compare import compare as compare_histories
from tests.conformance.raft.kafka import RELEASES as RAFT_RELEASES
from tests.conformance.raft.kafka import raft_voters

CASES: Final = 5_000
"""For each release."""

PARTITION_CASES: Final = 5_000
"""Of each kind for each release."""

HISTORIES: Final = 10_000
"""Of a voter, for each release."""


def run(number: int = CASES) -> Iterator[dict[str, Any]]:
    """Both measures, over all releases; what differs goes to stderr."""
    first = SystemRandom().randrange(1 << 40)
    mismatches: dict[str, int] = {}
    texts: set[str] = set()
    for release in ALL_RELEASES:
        with (
            tempfile.TemporaryDirectory(prefix="featurewatch-") as directory,
            controller_harness(release, Cache(default_cache()), Path(directory)) as kafka,
        ):
            compared = cases(kafka, release, range(first, first + number))
        different = differences(compared)
        texts |= kinds(compared).keys()
        mismatches[release] = len(different)
        for difference in different[:5]:
            sys.stderr.write(f"{difference}\n")
    yield {
        "measure": "conformance_cases",
        "value": number * len(mismatches),
        "releases": list(mismatches),
        "first_seed": first,
        "different_texts": len(texts),
    }
    yield {
        "measure": "conformance_mismatches",
        "value": sum(mismatches.values()),
        "by_release": mismatches,
    }


def partitions(number: int = PARTITION_CASES) -> Iterator[dict[str, Any]]:
    """Both measures about partitions; what differs goes to stderr."""
    first = SystemRandom().randrange(1 << 40)
    seeds = range(first, first + number)
    mismatches: dict[str, int] = {}
    cache = Cache(default_cache())

    def compare(
        release: str,
        rules: Callable[[Path], AbstractContextManager[ControllerHarness]],
        kinds: Mapping[str, CaseKind],
    ) -> None:
        with (
            tempfile.TemporaryDirectory(prefix="featurewatch-") as directory,
            rules(Path(directory)) as kafka,
        ):
            for name, kind in kinds.items():
                different = kind.differences(kind.cases(kafka, seeds), release)
                mismatches[f"{name} of {release}"] = len(different)
                for difference in different[:5]:
                    sys.stderr.write(f"{name} of {release}: {difference}\n")

    compare(ZOOKEEPER_RELEASE, partial(zookeeper_rules, cache), ZOOKEEPER_KINDS)
    for release in KRAFT_RELEASES:
        compare(release, partial(kraft_rules, release, cache), KRAFT_KINDS)
    yield {
        "measure": "conformance_partition_cases",
        "value": number * len(mismatches),
        "first_seed": first,
    }
    yield {
        "measure": "conformance_partition_mismatches",
        "value": sum(mismatches.values()),
        "by_kind": mismatches,
    }


def raft(number: int = HISTORIES) -> Iterator[dict[str, Any]]:
    """Both measures about the voter; what differs goes to stderr."""
    first = SystemRandom().randrange(1 << 40)
    found: dict[str, Comparison] = {}
    for release in RAFT_RELEASES:
        with (
            tempfile.TemporaryDirectory(prefix="featurewatch-") as directory,
            raft_voters(release, Cache(default_cache()), Path(directory)) as kafka,
        ):
            found[release] = compare_histories(kafka, release, range(first, first + number))
        for difference in found[release].differences[:5]:
            sys.stderr.write(f"{difference}\n")
    yield {
        "measure": "conformance_raft_histories",
        "value": sum(one.histories for one in found.values()),
        "steps": sum(one.steps for one in found.values()),
        "releases": list(found),
        "first_seed": first,
    }
    yield {
        "measure": "conformance_raft_mismatches",
        "value": sum(len(one.differences) for one in found.values()),
        "by_release": {release: len(one.differences) for release, one in found.items()},
        "on_purpose": {release: dict(one.deliberate) for release, one in found.items()},
    }
