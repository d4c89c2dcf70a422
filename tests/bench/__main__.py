"""Measures speed and memory, each against a peer or a bare loop in the same run.

``python -m tests.bench [NAME …]`` prints one JSON object a measure on stdout; without names all are
taken: decode, event-cost, worker, operations, operations-memory, latency, restart, outage,
web, web-clients,
zookeeper, znode-change, readiness, conformance, conformance-partitions, reference,
controller-failover, controller-changes, unavailability, features, topics, startup, page, pipeline,
replay, history, audit, growth, executors.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import single_bus
from featurewatch.streams.bus.settings import BusSettings
from tests.bench import (
    audit,
    conformance,
    controller,
    decode,
    event_cost,
    executors,
    features,
    growth,
    history,
    latency,
    operations,
    outage,
    page,
    pipeline,
    readiness,
    reference,
    replay,
    restart,
    startup,
    topics,
    unavailability,
    web,
    worker,
    zookeeper,
)

Measures = Iterator[dict[str, Any]]


def on_a_bus(measures: Callable[[BusSettings, Path], Measures], partitions: int = 1) -> Measures:
    """Measures with a bus of their own, which ends with them."""
    yield from on_a_cluster(lambda bus, directory, _: measures(bus, directory), partitions)


def on_a_cluster(
    measures: Callable[[BusSettings, Path, Cluster], Measures], partitions: int
) -> Measures:
    """`on_a_bus` for measures that stop and start the bus."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        with Cluster(single_bus(), directory / "bus", temporary=True) as bus:
            settings = BusSettings(
                bus.bootstrap_servers,
                prefix=f"bench-{time.time_ns()}",
                partitions=partitions,
                replication_factor=1,
            )
            yield from measures(settings, directory, bus)


def _event_cost() -> Measures:
    yield event_cost.measure()


BENCHES: dict[str, Callable[[], Measures]] = {
    "decode": decode.run,
    "event-cost": _event_cost,
    "worker": lambda: on_a_bus(lambda bus, _: worker.run(bus)),
    "operations": lambda: on_a_bus(lambda bus, _: operations.fold(bus)),
    "operations-memory": lambda: on_a_bus(operations.memory, partitions=8),
    "latency": lambda: on_a_bus(lambda bus, _: latency.run(bus), partitions=8),
    "restart": lambda: on_a_bus(restart.run, partitions=8),
    "outage": lambda: on_a_cluster(outage.run, partitions=8),
    "zookeeper": zookeeper.first_image,
    "znode-change": lambda: on_a_bus(lambda bus, _: zookeeper.change_to_alert(bus), partitions=8),
    "readiness": readiness.run,
    "conformance": conformance.run,
    "conformance-partitions": conformance.partitions,
    "reference": reference.run,
    "controller-failover": controller.failover,
    "controller-changes": controller.changes,
    "unavailability": unavailability.run,
    "features": features.run,
    "topics": topics.run,
    "startup": startup.run,
    "page": lambda: on_a_bus(page.run, partitions=8),
    "pipeline": pipeline.run,
    "replay": replay.run,
    "history": history.run,
    "audit": audit.run,
    "growth": growth.run,
    "executors": executors.run,
    "web": web.not_modified,
    "web-clients": lambda: on_a_bus(lambda bus, _: web.followed(bus), partitions=8),
}


def main(names: list[str]) -> int:
    """Takes the named measures, or all; 2 if there is no such name."""
    unknown = [name for name in names if name not in BENCHES]
    if unknown:
        sys.stderr.write(f"no such bench: {', '.join(unknown)}; there are {', '.join(BENCHES)}\n")
        return 2
    for name in names or BENCHES:
        sys.stderr.write(f"measuring: {name}\n")
        for measure in BENCHES[name]():
            print(orjson.dumps(measure).decode(), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
