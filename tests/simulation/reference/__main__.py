"""Any number of histories: ``python -m tests.simulation.reference --seeds 10000 --from 0``."""

import argparse
import sys
from collections import Counter
from time import perf_counter

from tests.simulation.reference.world import World

STEPS = 900


def run(seed: int, steps: int = STEPS) -> World:
    """One history; what is wrong is raised with its seed."""
    try:
        world = World(seed)
        world.play(steps)
    except BaseException as error:
        error.add_note(f"seed {seed}: python -m tests.simulation.reference --seeds 1 --from {seed}")
        raise
    return world


def main() -> None:
    """Play them, and say how fast."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.reference")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    began, written, elections, exits, told = perf_counter(), 0, 0, 0, Counter[str]()
    for seed in range(options.first, options.first + options.seeds):
        world = run(seed, options.steps)
        written += len(world.auditor.written)
        elections += world.auditor.elections
        exits += world.exits
        told.update(world.auditor.results())
    took = perf_counter() - began
    sys.stdout.write(
        f"{options.seeds} histories in {took:.1f} s ({options.seeds / took:.0f}/s):"
        f" {elections} elections, {written} updates written, {exits} brokers stopped; answers:"
        f" {', '.join(f'{name} {number}' for name, number in told.most_common())}\n"
    )


if __name__ == "__main__":
    main()
