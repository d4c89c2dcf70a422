"""Compares our voter with Kafka's.

``python -m tests.conformance.raft [HISTORIES [SEED [RELEASE]]]``

For each release it prints how many histories and steps were compared, the kinds of steps, and the
first differences. The exit code is 3 if there are any.
"""

import sys
import tempfile
from pathlib import Path

from featurewatch.stack.java.jars import Cache, default_cache
from tests.conformance.raft.compare import compare
from tests.conformance.raft.kafka import RELEASES, raft_voters


def main(arguments: list[str]) -> int:
    """Compares that many histories for each release."""
    numbers = [int(argument) for argument in arguments[:2]]
    number, seed = (*numbers, *(10_000, 0)[len(numbers) :])
    wrong = 0
    for release in arguments[2:] or RELEASES:
        with (
            tempfile.TemporaryDirectory() as directory,
            raft_voters(release, Cache(default_cache()), Path(directory)) as kafka,
        ):
            found = compare(kafka, release, range(seed, seed + number))
        lines = [
            f"Kafka {release}: {found.histories} histories from seed {seed}, {found.steps} steps,"
            f" {len(found.differences)} differences",
            *(f"{times:8} {kind}" for kind, times in found.kinds.most_common()),
            *(f"{times:8} on purpose: {name}" for name, times in found.deliberate.most_common()),
            *found.differences[:5],
        ]
        sys.stdout.write("\n".join(lines) + "\n")
        wrong += len(found.differences)
    return 3 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
