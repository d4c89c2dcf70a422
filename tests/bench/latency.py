"""``commit_to_alert_p50`` and ``_p99``: from the controller's append to the alert on its topic.

A controller that registers with a range that a finalized level excludes fires an alert; when it
registers again with a good one the alert is resolved. Each registration is one change in the
metadata log of a real controller, stamped by it at the append (its append linger is 0: otherwise
the stamp is given up to 25 ms before the append). The baseline is one bare message from produce to
consume on the same bus. The two take turns, with a pause before each: changes and messages come one
at a time to processes that wait.
"""

import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.stack.kafka.specs import combined
from featurewatch.stack.wire.light_nodes import LightNodes
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert
from featurewatch.streams.topics import ALERTS, DEAD_LETTERS
from featurewatch.streams.types import NodeId
from tests.processes import Process, wait_ready

GHOST = NodeId(9)
GOOD, BAD = (7, 30), (1, 9)
PAUSE_S = (0.01, 0.06)
RULE = "incompatible-node"


def run(bus: BusSettings, changes: int = 200, nodes: int = 1) -> Iterator[dict[str, Any]]:
    """Both measures, on a quorum of this many 4.3.0 nodes started for it."""
    with tempfile.TemporaryDirectory(prefix="featurewatch-") as name:
        directory = Path(name)
        spec = combined(["4.3.0"] * nodes, properties={"controller.quorum.append.linger.ms": "0"})
        with Cluster(spec, directory / "cluster", temporary=True) as cluster:
            on_bus = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
            processes = [
                Process(
                    "watch", ["watch", "--controllers", cluster.controllers, *on_bus], directory
                ),
                Process("worker", ["worker", *on_bus], directory),
            ]
            try:
                for process in processes:
                    process.start()
                wait_ready(processes)
                delays, bare = _take_turns(bus, cluster, changes)
            finally:
                for process in processes:
                    process.kill()
    for quantile, at in (("p50", 0.5), ("p99", 0.99)):
        value, baseline = (_quantile(delays_ms, at) for delays_ms in (delays, bare))
        yield {
            "measure": f"commit_to_alert_{quantile}",
            "unit": "ms",
            "value": round(value, 1),
            "baseline": round(baseline, 1),
            "ratio": round(value / baseline, 2),
            "changes": changes,
            "controllers": nodes,
        }


def _take_turns(
    bus: BusSettings, cluster: Cluster, changes: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of each change, and of as many bare messages."""
    chance = random.Random(584)
    delays, bare = [], []
    light = LightNodes(cluster.controllers, cluster.cluster_id, connections=1)
    with light, _Arrivals(bus) as arrivals:
        arrivals.send_bare(warm_up=True)
        for number in range(changes):
            supported = BAD if number % 2 == 0 else GOOD
            time.sleep(chance.uniform(*PAUSE_S))
            light.register_controller(GHOST, {"metadata.version": supported})
            delays.append(arrivals.alert())
            time.sleep(chance.uniform(*PAUSE_S))
            bare.append(arrivals.send_bare())
    return delays, bare


class _Arrivals:
    """Reads alerts and bare messages in a separate thread, and notes when each came."""

    def __init__(self, bus: BusSettings) -> None:
        self._names = bus.topic(ALERTS), bus.topic(DEAD_LETTERS)
        self._consumer = Consumer(
            bus.client()
            | {"group.id": "bench", "enable.auto.commit": False, "fetch.wait.max.ms": 500}
        )
        self._producer = Producer(bus.client(linger_ms=0) | {"acks": "all"})
        self._came = threading.Event()
        self._delay_ms = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "_Arrivals":
        assigned = [
            TopicPartition(name, number, -1)
            for name in self._names
            for number in self._consumer.list_topics(name, timeout=10).topics[name].partitions
        ]
        self._consumer.assign(assigned)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()

    def alert(self) -> float:
        """Waits for the next alert; milliseconds from its cause's append to its arrival."""
        return self._next("an alert")

    def send_bare(self, *, warm_up: bool = False) -> float:
        """Sends a bare message; milliseconds until it came back."""
        while True:
            self._producer.produce(self._names[1], str(time.time() * 1000).encode())
            self._producer.poll(0)
            try:
                return self._next("a message", 2.0 if warm_up else 20.0)
            except TimeoutError:
                if not warm_up:
                    raise

    def _next(self, what: str, timeout_s: float = 20.0) -> float:
        if not self._came.wait(timeout_s):
            raise TimeoutError(f"{what} did not come")
        self._came.clear()
        return self._delay_ms

    def _read(self) -> None:
        while not self._done.is_set():
            message = self._consumer.poll(0.1)
            now_ms = time.time() * 1000
            if message is None or message.error() is not None:
                continue
            if message.topic() == self._names[1]:
                self._delay_ms = now_ms - float(message.value() or b"0")
            else:
                alert = decode_alert(message.value())
                if alert.rule != RULE:
                    continue
                self._delay_ms = now_ms - alert.at_ms
            self._came.set()


def _quantile(values: list[float], at: float) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[round(at * 100) - 1]
