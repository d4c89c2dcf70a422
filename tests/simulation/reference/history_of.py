"""Prints the transactions of some histories with topics, one a line.

``python -m tests.simulation.reference.history_of`` prints the same whatever the order of sets.
"""

import sys

from tests.simulation.reference.topic_world import run


def main() -> None:
    """The transactions of the seeds 0 to 19."""
    for seed in range(20):
        for transaction in run(seed).history.log:
            changes = [(change.path, change.kind.name) for change in transaction.changes]
            line = seed, transaction.zxid, transaction.session, changes
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
