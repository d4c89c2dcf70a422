"""The ZooKeeper source against bare kazoo, on a real server.

``zookeeper_sync_vs_raw_reads``: from the opening of a session to the first image of a cluster of
ten thousand brokers, in znodes per second; the baseline opens a session, lists the brokers and
reads each with a watch, pipelined, and does nothing with what it reads. The two take turns.

``znode_change_to_alert_p50`` and ``_p99``: from before a broker's znode is written to the alert on
its topic, through ``watch`` and ``worker`` as processes; the baseline is from before a write to the
callback of a bare watch. They take turns too.
"""

import asyncio
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Consumer, TopicPartition
from kazoo.client import KazooClient

from featurewatch.stack.zookeeper.ensemble import Ensemble
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.outputs import decode_alert
from featurewatch.streams.events import ZnodeSnapshot
from featurewatch.streams.topics import ALERTS
from featurewatch.streams.zookeeper.settings import ZookeeperSettings
from featurewatch.streams.zookeeper.source import ZookeeperSource
from tests.processes import Process, wait_ready

CLUSTER = "5L6g3nShT-eMCtK--X86sw"
ROOT = "/bench"
GHOST = "/brokers/ids/9"
PAUSE_S = (0.01, 0.06)
RULE = "incompatible-node"


def broker(highest: int) -> bytes:
    """What a broker writes, with one feature up to a level."""
    return orjson.dumps(
        {
            "version": 5,
            "host": "kafka-1.example",
            "port": 9092,
            "jmx_port": 9999,
            "timestamp": "1772443800251",
            "endpoints": ["PLAINTEXT://kafka-1.example:9092"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "rack": "a",
            "features": {"group_coordinator": {"min_version": 1, "max_version": highest}},
        }
    )


def register(client: KazooClient, brokers: int) -> None:
    """Makes a cluster: its id, one finalized feature at level 2, brokers that support it."""
    identity = orjson.dumps({"version": "1", "id": CLUSTER})
    client.create(f"{ROOT}/cluster/id", identity, makepath=True)
    client.ensure_path(f"{ROOT}/brokers/ids")
    levels = {"group_coordinator": {"max_version_level": 2}}
    feature = orjson.dumps({"version": 2, "status": 1, "features": levels})
    client.create(f"{ROOT}/feature", feature)
    made = [
        client.create_async(f"{ROOT}/brokers/ids/{number}", broker(2)) for number in range(brokers)
    ]
    for pending in made:
        pending.get()


def first_image(brokers: int = 10_000, rounds: int = 7) -> Iterator[dict[str, Any]]:
    """The first measure, on a separate server."""
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as name,
        Ensemble(Path(name) / "server", temporary=True) as server,
    ):
        hosts = server.connect_string + ROOT
        with _client(server.connect_string) as client:
            register(client, brokers)
        _bare_s(hosts)
        pairs = [(asyncio.run(_source_s(hosts)), _bare_s(hosts)) for _ in range(rounds)]
    ours = statistics.median(brokers / own for own, _ in pairs)
    bare = statistics.median(brokers / bare for _, bare in pairs)
    yield {
        "measure": "zookeeper_sync_vs_raw_reads",
        "unit": "znodes/s",
        "value": round(ours),
        "baseline": round(bare),
        "ratio": round(statistics.median(bare / own for own, bare in pairs), 2),
        "znodes": brokers,
        "rounds": rounds,
    }


class _FirstImage:
    """A sink that waits for the last chunk."""

    error: str | None = None

    def __init__(self) -> None:
        self.whole = asyncio.Event()

    async def publish(self, _topic: Any, event: Any) -> None:
        """Takes note of the last chunk."""
        if isinstance(event, ZnodeSnapshot) and event.last:
            self.whole.set()

    async def flush(self) -> None:
        """Nothing is on its way."""


async def _source_s(hosts: str) -> float:
    sink = _FirstImage()
    began = time.perf_counter()
    task = asyncio.ensure_future(ZookeeperSource(ZookeeperSettings(hosts), sink).run())
    await asyncio.wait_for(sink.whole.wait(), 120)
    took_s = time.perf_counter() - began
    task.cancel()
    await asyncio.wait([task])
    return took_s


def _bare_s(hosts: str) -> float:
    began = time.perf_counter()
    with _client(hosts) as client:
        names = client.get_children("/brokers/ids", lambda _: None)
        reads = [client.get_async(f"/brokers/ids/{name}", lambda _: None) for name in names]
        for read in reads:
            read.get()
        return time.perf_counter() - began


def change_to_alert(bus: BusSettings, changes: int = 200) -> Iterator[dict[str, Any]]:
    """The second measure, on a server of its own and the given bus."""
    with (
        tempfile.TemporaryDirectory(prefix="featurewatch-") as name,
        Ensemble(Path(name) / "server", temporary=True) as server,
        _client(server.connect_string) as client,
    ):
        directory = Path(name)
        register(client, 3)
        client.create(ROOT + GHOST, broker(2))
        client.create("/bare", b"")
        on_bus = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
        hosts = server.connect_string + ROOT
        processes = [
            Process("watch", ["watch", "--zookeeper", hosts, *on_bus], directory),
            Process("worker", ["worker", *on_bus], directory),
        ]
        try:
            for process in processes:
                process.start()
            wait_ready(processes)
            delays, bare = _take_turns(bus, client, server.connect_string, changes)
        finally:
            for process in processes:
                process.kill()
    for quantile, at in (("p50", 50), ("p99", 99)):
        value, baseline = (_quantile(each, at) for each in (delays, bare))
        yield {
            "measure": f"znode_change_to_alert_{quantile}",
            "unit": "ms",
            "value": round(value, 1),
            "baseline": round(baseline, 1),
            "ratio": round(value / baseline, 2),
            "changes": changes,
        }


def _take_turns(
    bus: BusSettings, client: KazooClient, hosts: str, changes: int
) -> tuple[list[float], list[float]]:
    """Milliseconds of each change, and of as many bare watches."""
    chance = random.Random(584)
    delays, bare = [], []
    with _Alerts(bus) as alerts, _client(hosts) as watcher:
        for number in range(changes):
            content = broker(1 if number % 2 == 0 else 2)
            time.sleep(chance.uniform(*PAUSE_S))
            began = time.perf_counter()
            client.set(ROOT + GHOST, content)
            delays.append((alerts.next() - began) * 1000)
            time.sleep(chance.uniform(*PAUSE_S))
            bare.append(_bare_ms(client, watcher))
    return delays, bare


def _bare_ms(client: KazooClient, watcher: KazooClient) -> float:
    fired = threading.Event()
    at: list[float] = []

    def note(_: Any) -> None:
        at.append(time.perf_counter())
        fired.set()

    watcher.get("/bare", note)
    began = time.perf_counter()
    client.set("/bare", b"")
    if not fired.wait(20):
        raise TimeoutError("a bare watch did not fire")
    return (at[0] - began) * 1000


class _Alerts:
    """Reads alerts of the one rule in a separate thread, and notes when each came."""

    def __init__(self, bus: BusSettings) -> None:
        self._name = bus.topic(ALERTS)
        self._consumer = Consumer(
            bus.client() | {"group.id": "bench-zookeeper", "enable.auto.commit": False}
        )
        self._came = threading.Event()
        self._at = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "_Alerts":
        topic = self._consumer.list_topics(self._name, timeout=10).topics[self._name]
        partitions = [TopicPartition(self._name, number) for number in topic.partitions]
        for partition in partitions:
            # Where the end is, is settled before the first alert and not by the first poll.
            partition.offset = self._consumer.get_watermark_offsets(partition, timeout=10)[1]
        self._consumer.assign(partitions)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._consumer.close()

    def next(self) -> float:
        """Waits for the next alert; when it came."""
        if not self._came.wait(20):
            raise TimeoutError("an alert did not come")
        self._came.clear()
        return self._at

    def _read(self) -> None:
        while not self._done.is_set():
            message = self._consumer.poll(0.1)
            now = time.perf_counter()
            if message is None or message.error() is not None:
                continue
            if decode_alert(message.value()).rule == RULE:
                self._at = now
                self._came.set()


@contextmanager
def _client(hosts: str) -> Iterator[KazooClient]:
    """A session for as long as the context lasts."""
    client = KazooClient(hosts)
    client.start(30)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def _quantile(values: list[float], at: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[at - 1]
