"""What the verdict costs in a cluster of 10,000 nodes: from scratch, and after one change.

``readiness_10000_nodes_ms`` is the whole verdict for a release with every blocker and its remedy:
half of the nodes are of an older release, and one in a hundred is fenced. What was computed before
is forgotten first. ``readiness_change_ms`` is what one registration costs: to fold it, to judge all
rules, to know since when, and to derive the cluster's state. Both are the best of several runs
(a busy machine only adds to it).
"""

import sys
import time
from collections.abc import Iterator
from typing import Any

import orjson

from featurewatch.controller.kraft import release_of
from featurewatch.monitor.readiness import ReadinessReport, assess_readiness, refusals
from featurewatch.monitor.readiness import upgrade_state as states
from featurewatch.monitor.readiness.upgrade_state import upgrade_state_of
from featurewatch.monitor.step import MonitorState, step
from tests.bench.event_cost import registrations
from tests.simulation import records as r
from tests.simulation.records import CLUSTER, MV

NODES = 10_000
RUNS = 7


def cluster_of(nodes: int) -> MonitorState:
    """Half of the brokers are of 4.0, half of 4.3; three controllers of 4.3 are voters."""
    old, new = release_of("4.0").ranges(), release_of("4.3").ranges()
    brokers = (r.register(i, new if i % 2 else old, fenced=i % 100 == 0) for i in range(nodes))
    controllers = (r.register_controller(nodes + i, new) for i in range(3))
    voters = r.leader_change(nodes, range(nodes, nodes + 3))
    records = [voters, r.level(MV, 25), *controllers, *brokers]
    state = step(MonitorState.of(CLUSTER), r.commit(len(records), *records)).state
    return step(state, r.following(len(records))).state


def from_scratch(state: MonitorState) -> tuple[float, ReadinessReport]:
    """Milliseconds for the verdict, and it."""
    for cached in (states.upgrade_state_of_classes, refusals._refusal_text):
        cached.cache_clear()
    began = time.perf_counter()
    report = assess_readiness(state.image, release_of("4.3"), now_ms=10**6)
    return (time.perf_counter() - began) * 1e3, report


def change_ms(state: MonitorState) -> float:
    """Milliseconds a registration, of many."""
    events = [*registrations(NODES)]
    shift = state.image.log.provenance.offset
    moved = [r.commit(shift + 1 + i, *event.records) for i, event in enumerate(events)]
    began = time.perf_counter()
    for event in moved:
        state = step(state, event).state
        upgrade_state_of(state.image)
    return (time.perf_counter() - began) / len(moved) * 1e3


def run() -> Iterator[dict[str, Any]]:
    """The measures, as `make bench` wants them."""
    state = cluster_of(NODES)
    scratch = [from_scratch(state) for _ in range(RUNS)]
    blocking = len(scratch[0][1].blockers)
    value = min(ms for ms, _ in scratch)
    yield {"measure": "readiness_10000_nodes_ms", "value": round(value, 1), "blockers": blocking}
    change = min(change_ms(state) for _ in range(RUNS))
    yield {"measure": "readiness_change_ms", "value": round(change, 3)}


if __name__ == "__main__":
    for measurement in run():
        sys.stdout.write(orjson.dumps(measurement).decode() + "\n")
