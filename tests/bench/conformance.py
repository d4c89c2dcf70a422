"""``conformance_cases`` and ``conformance_mismatches``: the model of Kafka's controller against it.

Updates, registrations and replays by chance go to the classes of each release from 3.9 to 4.3, and
to the model: any other code, text, record or order is a mismatch. Seeds are new at each run, and
the first of them is printed, so that a case can be asked again with ``python -m
tests.conformance.feature_control 1 SEED RELEASE``.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom
from typing import Any, Final

from featurewatch.deploy.java.jars import Cache, default_cache
from tests.conformance.feature_control.compare import cases, differences, kinds
from tests.conformance.feature_control.kafka import ALL_RELEASES, controller_harness

CASES: Final = 5_000
"""For each release."""


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
