"""``recovery_after_outage_s``: how soon the worker follows again when the bus has recovered.

The bus is killed for two minutes under a worker in a separate process, while a source continues to
publish. The time runs from the moment at which the bus is ready again until a change that the
worker has published since is read. The baseline is the same time for a bare consumer of the
worker's input: both clients have their reconnecting and the source's in their time.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import FEATURE_CHANGES, METADATA_LOG, Topic
from tests.agents.events import following, levels
from tests.processes import Process, wait_ready

OUTAGE_S = 120.0
_INTERVAL_S = 0.1
_DEADLINE_S = 60.0


def run(
    bus: BusSettings, directory: Path, cluster: Cluster, outage_s: float = OUTAGE_S
) -> Iterator[dict[str, Any]]:
    """The measure, in seconds; ``cluster`` is the bus, of one node."""
    command = ["worker", "--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    worker = Process("worker", command, directory)
    worker.start()
    try:
        wait_ready([worker])
        with (
            _Source(bus),
            _Arrivals(bus, FEATURE_CHANGES) as ours,
            _Arrivals(bus, METADATA_LOG) as bare,
        ):
            _wait(lambda: min(ours.count, bare.count) >= 20)
            cluster.node(1).kill()
            time.sleep(outage_s)
            before = ours.count, bare.count
            cluster.node(1).start()
            returned_s = time.monotonic()
            _wait(lambda: ours.count > before[0] and bare.count > before[1])
            value = max(ours.first_after(before[0]) - returned_s, 0.0)
            baseline = max(bare.first_after(before[1]) - returned_s, 0.0)
        starts = worker.starts if worker.ended is None else worker.starts + 1
    finally:
        worker.kill()
    yield {
        "measure": "recovery_after_outage_s",
        "value": round(value, 2),
        "baseline": round(baseline, 2),
        "ratio": round(value / max(baseline, 0.01), 2),
        "outage_s": outage_s,
        "worker_processes": starts,
    }


class _Source:
    """Publishes a change of a level every tenth of a second."""

    def __init__(self, bus: BusSettings) -> None:
        self._bus = bus
        self._done = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._publish()))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    async def _publish(self) -> None:
        # More than two minutes of messages wait for the bus.
        async with Publisher(self._bus, max_in_flight=10_000) as publisher:
            offset = 0
            while not self._done.is_set():
                offset += 1
                event = levels(offset, {"metadata.version": 10 + offset % 2})
                await publisher.publish(METADATA_LOG, event)
                if offset == 1:
                    await publisher.publish(METADATA_LOG, following(1))
                await asyncio.sleep(_INTERVAL_S)


class _Arrivals:
    """The messages of a topic in a bare consumer, with the time at which each was read."""

    def __init__(self, bus: BusSettings, topic: Topic) -> None:
        self._reader = TopicReader(bus, topic)
        self._times: list[float] = []
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._read)

    def __enter__(self) -> "_Arrivals":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self._reader.close()

    @property
    def count(self) -> int:
        """How many messages were read."""
        return len(self._times)

    def first_after(self, count: int) -> float:
        """When the first message after ``count`` messages was read, in monotonic seconds."""
        return self._times[count]

    def _read(self) -> None:
        while not self._done.is_set():
            for _ in self._reader.poll(0.1):
                self._times.append(time.monotonic())


def _wait(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {_DEADLINE_S:g} s")
        time.sleep(0.01)
