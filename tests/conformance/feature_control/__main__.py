"""Compares the model with Kafka, releases from 3.9 to 4.4.

``python -m tests.conformance.feature_control [CASES [SEED [RELEASE]]]``

For each release it prints how many cases were compared, what Kafka said how often, and the first
differences. The exit code is 3 if there are any.
"""

import sys
import tempfile
from pathlib import Path

from featurewatch.stack.java.jars import Cache, default_cache
from tests.conformance.feature_control.compare import cases, differences, kinds
from tests.conformance.feature_control.kafka import ALL_RELEASES, controller_harness


def main(arguments: list[str]) -> int:
    """Compares that many cases for each release."""
    numbers = [int(argument) for argument in arguments[:2]]
    number, seed = (*numbers, *(10_000, 0)[len(numbers) :])
    wrong = 0
    for release in arguments[2:] or ALL_RELEASES:
        with (
            tempfile.TemporaryDirectory() as directory,
            controller_harness(release, Cache(default_cache()), Path(directory)) as kafka,
        ):
            compared = cases(kafka, release, range(seed, seed + number))
        different = differences(compared)
        lines = [
            f"Kafka {release} on Java {kafka.java}: {number} cases from seed {seed}, "
            f"{len(different)} differences",
            *(f"{times:8} {kind}" for kind, times in kinds(compared).most_common()),
            *different[:5],
        ]
        sys.stdout.write("\n".join(lines) + "\n")
        wrong += len(different)
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
