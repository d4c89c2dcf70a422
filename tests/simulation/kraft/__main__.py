"""Runs histories by hand: ``python -m tests.simulation.kraft --seeds 1000 --from 0``."""

import argparse
import sys
import time

from tests.simulation.kraft.world import World


def run(seed: int) -> World:
    """Plays one history; a failure notes its seed."""
    try:
        world = World(seed)
        world.play()
    except BaseException as error:
        error.add_note(f"seed {seed}: python -m tests.simulation.kraft --seeds 1 --from {seed}")
        raise
    return world


def main() -> None:
    """Plays the histories that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.kraft")
    parser.add_argument("--seeds", type=int, default=100, help="how many histories")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    options = parser.parse_args()
    began = time.monotonic()
    elections = committed = changes = 0
    for seed in range(options.first, options.first + options.seeds):
        world = run(seed)
        elections += world.auditor.elections
        committed += len(world.auditor.committed)
        changes += world.changes
    sys.stdout.write(
        f"{options.seeds} histories in {time.monotonic() - began:.1f} s: {elections} elections,"
        f" {committed} committed batches, {changes} changes of the voters\n"
    )


if __name__ == "__main__":
    main()
