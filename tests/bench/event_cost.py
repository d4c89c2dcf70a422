"""What one registration costs in a cluster of 10,000 nodes, against one of 10.

Prints one JSON object: ``value`` and ``baseline`` are microseconds to fold and judge one
registration and to make its rows, the best of several runs (a busy machine only adds to it).
Half of the registrations change a node's release, and every other one makes the node incompatible.
"""

import sys
import time
from collections.abc import Iterator

import orjson

from featurewatch.monitor.rows import rows_of_step
from featurewatch.monitor.step import MonitorState, step
from featurewatch.streams.events import LogCommit
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, KV, MV, TV

OLD = {MV: (1, 21), KV: (0, 1)}
NEW = {MV: (7, 30), KV: (0, 1), TV: (0, 2)}
EVENTS = 400
RUNS = 9


def cluster_of(nodes: int) -> MonitorState:
    """A cluster that has been read to its end, half of it on each of two releases."""
    registrations = (r.register(i, NEW if i % 2 else OLD, fenced=False) for i in range(nodes))
    records = [r.level(MV, 21), *registrations]
    state = step(MonitorState.of(CLUSTER), r.commit(nodes, *records)).state
    return step(state, r.following(nodes)).state


def registrations(nodes: int) -> Iterator[LogCommit]:
    """Nodes over the whole cluster register, one in turn on each release."""
    ranges = (OLD, NEW, {MV: (22, 30)}, NEW)
    for i in range(EVENTS):
        node_id = i * 7919 % nodes
        yield r.commit(nodes + 1 + i, r.register(node_id, ranges[i % 4], epoch=i))


def cost_us(start: MonitorState, events: list[LogCommit]) -> float:
    """Microseconds a registration."""
    state = start
    began = time.perf_counter()
    for event in events:
        outcome = step(state, event)
        rows_of_step(state, outcome)
        state = outcome.state
    return (time.perf_counter() - began) / len(events) * 1e6


def measure() -> dict[str, object]:
    """The measure, as `make bench` wants it; large and small take turns."""
    cases = {nodes: (cluster_of(nodes), [*registrations(nodes)]) for nodes in (10, 10_000)}
    best = dict.fromkeys(cases, float("inf"))
    for _ in range(RUNS):
        for nodes, (start, events) in cases.items():
            best[nodes] = min(best[nodes], cost_us(start, events))
    value, baseline = best[10_000], best[10]
    return {
        "measure": "event_cost_10000_vs_10_nodes",
        "value": round(value, 1),
        "baseline": round(baseline, 1),
        "ratio": round(value / baseline, 2),
    }


if __name__ == "__main__":
    sys.stdout.write(orjson.dumps(measure()).decode() + "\n")
