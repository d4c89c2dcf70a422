"""Runs any number of histories: ``python -m tests.simulation.reference --seeds 10000 --from 0``.

With ``--topics`` they are of topics; a seed that fails is printed and counted, and the others go
on.
"""

import argparse
import sys
import traceback
from collections import Counter
from time import perf_counter

from tests.simulation.reference import topic_world
from tests.simulation.reference.world import World

STEPS = 900


def run(seed: int, steps: int = STEPS) -> World:
    """Runs one history; a failure is raised with its seed."""
    try:
        world = World(seed)
        world.play(steps)
    except BaseException as error:
        error.add_note(f"seed {seed}: python -m tests.simulation.reference --seeds 1 --from {seed}")
        raise
    return world


def main() -> None:
    """Runs the histories and prints a summary."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.reference")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--topics", action="store_true", help="histories of topics")
    options = parser.parse_args()
    if options.topics:
        sys.exit(1 if run_topics(options.first, options.seeds) else 0)
    start_s, written, elections, exits, outcomes = perf_counter(), 0, 0, 0, Counter[str]()
    for seed in range(options.first, options.first + options.seeds):
        world = run(seed, options.steps)
        written += len(world.auditor.written)
        elections += world.auditor.elections
        exits += world.exits
        outcomes.update(world.auditor.outcomes())
    seconds = perf_counter() - start_s
    sys.stdout.write(
        f"{options.seeds} histories in {seconds:.1f} s ({options.seeds / seconds:.0f}/s):"
        f" {elections} elections, {written} updates written, {exits} brokers stopped; answers:"
        f" {', '.join(f'{name} {number}' for name, number in outcomes.most_common())}\n"
    )


def run_topics(first: int, seeds: int) -> int:
    """Runs histories of topics and prints a summary; how many failed."""
    start_s, elections, deleted, acknowledged, failed = perf_counter(), 0, 0, 0, 0
    for seed in range(first, first + seeds):
        try:
            auditor = topic_world.run(seed).auditor
        except Exception as error:
            failed += 1
            place = traceback.extract_tb(error.__traceback__)[-1]
            sys.stdout.write(f"seed {seed}: {error!r:.300} ({place.filename}:{place.lineno})\n")
            sys.stdout.flush()
            continue
        elections += auditor.elections
        deleted += auditor.deleted
        acknowledged += sum(map(len, auditor.acknowledged.values()))
    seconds = perf_counter() - start_s
    sys.stdout.write(
        f"{seeds} histories of topics in {seconds:.1f} s ({seeds / seconds:.0f}/s): {failed} "
        f"failed, {elections} elections, {deleted} partitions deleted, {acknowledged} writes "
        "acknowledged\n"
    )
    return failed


if __name__ == "__main__":
    main()
