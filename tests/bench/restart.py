"""``worker_rss_mb_10000_nodes`` and ``restart_after_kill_s``.

Ten thousand brokers of two releases are in the tables of a worker in a separate process. Its
memory is read; then it is killed with SIGKILL, started again at once, and the time runs until the
first change that came meanwhile is on the topic: by then its state is recovered.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_change, decode_snapshot
from featurewatch.streams.events import CommitKind, LogCommit, SourceState, SourceStatus
from featurewatch.streams.topics import FEATURE_CHANGES, METADATA_LOG, STATE
from tests.bench.worker import CLUSTER, level, registration
from tests.processes import Process

PER_COMMIT = 20
MAX_RSS_MB, MAX_RESTART_S = 250, 8


def run(
    bus: BusSettings, directory: Path, store: str = "memory", nodes: int = 10_000
) -> Iterator[dict[str, Any]]:
    """Both measures. ``baseline`` is the bar; the ratio is value to bar."""
    asyncio.run(_fill(bus, nodes))
    command = ["worker", "--store", store, "--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    worker = Process("worker", command, directory)
    worker.start()
    try:
        _wait_for_nodes(bus, nodes)
        rss_mb = _rss_mb(worker.pid)
        yield _measure("worker_rss_mb_10000_nodes", rss_mb, MAX_RSS_MB, store=store)
        worker.kill()
        killed = time.perf_counter()
        worker.start()
        asyncio.run(_publish(bus, [_commit([level(nodes + 1, 21)])]))
        _wait_for_change(bus, 21)
        elapsed_s = time.perf_counter() - killed
    finally:
        worker.kill()
    yield _measure("restart_after_kill_s", elapsed_s, MAX_RESTART_S, store=store)


async def _fill(bus: BusSettings, nodes: int) -> None:
    await asyncio.to_thread(ensure_topics, bus)
    offsets = iter(range(1, nodes + 1))
    events: list[LogCommit | SourceStatus] = [_commit([level(0, 20)])]
    for _ in range(nodes // PER_COMMIT):
        chosen = [next(offsets) for _ in range(PER_COMMIT)]
        events.append(_commit([registration(offset, offset - 1) for offset in chosen]))
    now = int(time.time() * 1000)
    events.append(
        SourceStatus(CLUSTER, "kraft", SourceState.FOLLOWING, nodes, 1, nodes + 1, 1, 1, "", now)
    )
    await _publish(bus, events)


def _commit(records: list[dict[str, Any]]) -> LogCommit:
    now = int(time.time() * 1000)
    first, last = records[0]["offset"], records[-1]["offset"]
    return LogCommit(CLUSTER, CommitKind.BATCH, first, last, 1, now, records, {}, now)


async def _publish(bus: BusSettings, events: list[Any]) -> None:
    async with Publisher(bus) as publisher:
        for event in events:
            await publisher.publish(METADATA_LOG, event)


def _wait_for_nodes(bus: BusSettings, nodes: int) -> None:
    with contextlib.closing(TopicReader(bus, STATE)) as reader:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for message in reader.poll(0.2):
                snapshot = decode_snapshot(message.value())
                if (
                    sum(len(capability_class.nodes) for capability_class in snapshot.classes)
                    == nodes
                    and snapshot.ready
                ):
                    return
    raise TimeoutError(f"the worker did not come to {nodes} nodes")


def _wait_for_change(bus: BusSettings, after: int, timeout_s: float = 60) -> None:
    with contextlib.closing(TopicReader(bus, FEATURE_CHANGES)) as reader:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            for message in reader.poll(0.01):
                if decode_change(message.value()).after == after:
                    return
    raise TimeoutError("the worker that was started again said nothing")


def _rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"the memory of process {pid} is not told here")


def _measure(name: str, value: float, bar: float, **facts: Any) -> dict[str, Any]:
    return {
        "measure": name,
        "value": round(value, 2),
        "baseline": bar,
        "ratio": round(value / bar, 3),
        **facts,
    }
