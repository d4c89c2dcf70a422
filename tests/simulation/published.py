"""Prints the monitor's outputs for some simulated histories, to compare processes."""

import sys
from random import Random

from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.codec.outputs import Output, encode_output
from tests.simulation.world import World

if __name__ == "__main__":
    for seed in range(12):
        events = World(Random(seed), nodes=20).history(steps=30)
        state = MonitorState.of(events[0].cluster)
        for event in events:
            outcome = step(state, event)
            state = outcome.state
            outputs: list[Output] = [*outcome.changes, *outcome.alerts]
            for output in outputs:
                sys.stdout.write(f"{encode_output(output).value!r}\n")
