"""Runs histories by hand: ``python -m tests.simulation.kraft.controllers --seeds 100 --from 0``."""

import argparse
import sys
import time

from tests.simulation.kraft.controllers.world import ControllerWorld


def run(seed: int) -> ControllerWorld:
    """Plays one history; a failure notes its seed."""
    try:
        world = ControllerWorld(seed)
        world.play()
    except BaseException as error:
        command = "python -m tests.simulation.kraft.controllers"
        error.add_note(f"seed {seed}: {command} --seeds 1 --from {seed}")
        raise
    return world


def main() -> None:
    """Plays the histories that the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.kraft.controllers")
    parser.add_argument("--seeds", type=int, default=20, help="how many histories")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    options = parser.parse_args()
    began = time.monotonic()
    elections = committed = answers = levels = ended = 0
    for seed in range(options.first, options.first + options.seeds):
        world = run(seed)
        elections += world.auditor.elections
        committed += len(world.auditor.committed)
        answers += world.metadata.answers
        levels += world.metadata.level_changes
        ended += len(world.ended)
    sys.stdout.write(
        f"{options.seeds} histories in {time.monotonic() - began:.1f} s: {elections} elections,"
        f" {committed} committed batches, {answers} answers that were held against the log,"
        f" {levels} levels, {ended} controllers that ended\n"
    )


if __name__ == "__main__":
    main()
