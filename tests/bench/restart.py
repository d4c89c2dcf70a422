"""``worker_rss_mb_10000_nodes`` and ``restart_after_kill_s``.

Ten thousand brokers of two releases stand in the tables of a worker, a process of its own. Its
memory is read; then it is killed with SIGKILL, started again at once, and the time runs until the
first change that came meanwhile is on the topic: by then its state is recovered.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from cli.reading import TopicReader
from streams.bus import BusSettings, Publisher, ensure_topics
from streams.events import CommitKind, LogCommit, SourceState, SourceStatus
from streams.output_codec import decode_change, decode_snapshot
from streams.topics import FEATURE_CHANGES, METADATA_LOG, STATE
from tests.bench.worker import CLUSTER, level, registration

PER_COMMIT = 20
MAX_RSS_MB, MAX_RESTART_S = 250, 8


def run(bus: BusSettings, directory: Path, nodes: int, store: str) -> Iterator[dict[str, Any]]:
    """Both measures. ``baseline`` is the bar; the ratio is value to bar."""
    asyncio.run(_fill(bus, nodes))
    with _worker(bus, directory, store) as process:
        _wait_for_nodes(bus, nodes)
        yield _measure("worker_rss_mb_10000_nodes", _rss_mb(process.pid), MAX_RSS_MB, store=store)
        process.send_signal(signal.SIGKILL)
        process.wait()
    killed = time.perf_counter()
    asyncio.run(_publish(bus, [_commit([level(nodes + 1, 21)])]))
    with _worker(bus, directory, store):
        _wait_for_change(bus, 21)
        elapsed = time.perf_counter() - killed
    yield _measure("restart_after_kill_s", elapsed, MAX_RESTART_S, store=store)


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


@contextlib.contextmanager
def _worker(bus: BusSettings, directory: Path, store: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {
        **os.environ,
        "FEATUREWATCH_WORKER__DATA_DIRECTORY": str(directory),
        "FEATUREWATCH_BUS__PARTITIONS": str(bus.partitions),
        "FEATUREWATCH_WEB__WORKER_PORT": "0",
    }
    command = [sys.executable, "-m", "cli", "worker", "--store", store]
    command += ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    process = subprocess.Popen(command, env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for_nodes(bus: BusSettings, nodes: int) -> None:
    with contextlib.closing(TopicReader(bus, STATE)) as reader:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for message in reader.coming(0.2):
                known = decode_snapshot(message.value())
                if sum(len(each.nodes) for each in known.classes) == nodes and known.ready:
                    return
    raise TimeoutError(f"the worker did not come to {nodes} nodes")


def _wait_for_change(bus: BusSettings, after: int) -> None:
    with contextlib.closing(TopicReader(bus, FEATURE_CHANGES)) as reader:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for message in reader.coming(0.01):
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


def main() -> None:
    """``python -m tests.bench.restart BOOTSTRAP [STORE]``."""
    prefix = f"restart-{int(time.time())}"
    bus = BusSettings(sys.argv[1], prefix=prefix, partitions=1, replication_factor=1)
    store = sys.argv[2] if len(sys.argv) > 2 else "memory"
    for measure in run(bus, Path(f"/tmp/{prefix}"), 10_000, store):  # noqa: S108 - a scratch place
        print(orjson.dumps(measure).decode(), flush=True)


if __name__ == "__main__":
    main()
