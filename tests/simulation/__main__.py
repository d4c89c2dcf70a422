"""Runs any number of histories: ``python -m tests.simulation --seeds 0..1000000``.

Each seed plays three parts: ``source`` (the KRaft observer follows a quorum that elects, loses and
cuts), ``znodes`` (the ZooKeeper watcher follows lagging servers, and the worker what it publishes),
and ``worker`` (the worker reads a cluster's whole history, audited step by step; and again with
crashes between rows, after which the bus delivers messages a second time). A seed that fails is
printed and counted, and the others continue.
"""

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator
from random import Random
from time import perf_counter, process_time

from featurewatch.streams.events import LogGap
from tests.simulation import histories, watched_znodes
from tests.simulation.engine import Engine
from tests.streams.kraft.observer import simulated_observer

REPORT_EVERY = 10_000


def play_worker(seed: int) -> None:
    """A history, audited; and again with a worker that dies after any row, for which the bus
    delivers again from somewhere before."""
    events, calm = histories.run(seed)
    dice, killed, first = Random(seed), Engine(), 0
    killed.limits = calm.limits
    for end in sorted(dice.sample(range(1, len(events)), 2)):
        killed.apply_all(events[first:end], first)
        killed.apply(events[end], rows_written=dice.randrange(6), offset=end)
        first = max(0, end - dice.randint(0, 6))
    killed.apply_all(events[first:], first)
    assert killed.state == calm.state, "another state after deaths"
    assert Engine(killed.rows).state == calm.state, "rows hold another state after deaths"
    assert set(calm.published) <= set(killed.published), "an output is missing"
    if not any(isinstance(event, LogGap) and event.reset for event in events):
        assert set(killed.published) == set(calm.published), "one key, two contents"


PARTS: dict[str, Callable[[int], None]] = {
    "source": simulated_observer.play,
    "znodes": watched_znodes.run,
    "worker": play_worker,
}


def failures(seeds: range, parts: dict[str, Callable[[int], None]]) -> Iterator[str]:
    """The failing seeds with their part and reason; a line of progress goes to stderr."""
    start_s = perf_counter()
    for number, seed in enumerate(seeds, start=1):
        for name, play in parts.items():
            try:
                play(seed)
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                yield f"seed {seed}, {name}: {error!r:.300} ({place.filename}:{place.lineno})"
        if number % REPORT_EVERY == 0:
            sys.stderr.write(f"{number} of {len(seeds)} seeds, {perf_counter() - start_s:.0f} s\n")


def seed_range(text: str) -> range:
    """``A..B``: the seeds from A up to, but not with, B."""
    first, separator, end = text.partition("..")
    if not separator or int(end) <= int(first):
        raise argparse.ArgumentTypeError(f"{text} is not A..B with A below B")
    return range(int(first), int(end))


def main() -> None:
    """Plays the seeds; ends with 1 if any failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=seed_range, default=range(1000), metavar="A..B")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this one; repeatable")
    options = parser.parse_args()
    parts = {name: PARTS[name] for name in options.part or PARTS}
    cpu_s, failed = process_time(), 0
    for failure in failures(options.seeds, parts):
        failed += 1
        sys.stdout.write(failure + "\n")
        sys.stdout.flush()
    cpu_s = process_time() - cpu_s
    count = len(options.seeds)
    sys.stdout.write(
        f"{count} seeds through {', '.join(parts)}: {failed} failed,"
        f" {cpu_s:.0f} s of CPU ({cpu_s / count * 1000:.1f} s per 1,000)\n"
    )
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
