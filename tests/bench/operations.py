"""``operations_fold_vs_levels_only`` and ``operations_rss_mb``.

A cluster of a thousand topics with a hundred partitions each, then changes: of a hundred records
ninety are partition changes, nine fencing changes, one a registration. A worker with --operations
follows them; the baseline is a bare consumer that parses the same messages with ``orjson.loads``.
The memory is that of a worker process that holds the hundred thousand partitions.
"""

import asyncio
import itertools
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import CommitKind, LogCommit, SourceState, SourceStatus
from featurewatch.streams.topics import METADATA_LOG
from tests.bench.restart import _measure, _rss_mb, _wait_for_change
from tests.bench.worker import CLUSTER, consume_raw, fencing, level, record, registration
from tests.processes import Process

TOPICS, PARTITIONS, BROKERS, OTHERS = 1000, 100, 100, 50
"""``OTHERS`` are brokers without partitions, which register and are fenced meanwhile."""

MIN_RATIO, MAX_RSS_MB = 0.15, 400
_BATCH = 1000


def fold(bus: BusSettings, changes: int = 300_000) -> Iterator[dict[str, Any]]:
    """The rate of a worker that follows operations."""
    created, messages = asyncio.run(_fill(bus, changes))
    raw_s = consume_raw(bus, messages)
    own_s = asyncio.run(_run_worker(bus, created, created + changes))
    total = created + changes
    own, raw = changes / own_s, total / raw_s
    yield {
        "measure": "operations_fold_vs_levels_only",
        "unit": "records/s",
        "value": round(own),
        "baseline": round(raw),
        "ratio": round(own / raw, 3),
        "bar": MIN_RATIO,
        "records": changes,
        "partitions": TOPICS * PARTITIONS,
    }


def memory(bus: BusSettings, directory: Path, changes: int = 100_000) -> Iterator[dict[str, Any]]:
    """The memory of a worker process that holds all partitions, after as many changes."""
    asyncio.run(_fill(bus, changes))
    command = ["worker", "--operations", "--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    worker = Process("worker", command, directory)
    worker.start()
    try:
        _wait_for_change(bus, 21, 300)
        rss_mb = _rss_mb(worker.pid)
    finally:
        worker.kill()
    yield _measure("operations_rss_mb", rss_mb, MAX_RSS_MB, partitions=TOPICS * PARTITIONS)


def commits(changes: int) -> Iterator[list[dict[str, Any]]]:
    """The records of each commit: brokers, a topic each, the changes, and a level at the end."""
    offset = BROKERS + OTHERS + 1
    yield [level(0, 20), *(_broker(number, number - 1) for number in range(1, offset))]
    for topic in range(TOPICS):
        yield [
            record(offset, "TOPIC_RECORD", 0, {"name": f"t-{topic}", "topicId": _id(topic)}),
            *(_partition(offset + 1 + index, topic, index) for index in range(PARTITIONS)),
        ]
        offset += PARTITIONS + 1
    last = offset + changes - 1
    source = _changes(offset)
    for first in range(offset, last, _BATCH):
        yield [next(source) for _ in range(min(_BATCH, last - first))]
    yield [level(last, 21)]


def _changes(offset: int) -> Iterator[dict[str, Any]]:
    """A topic at a time: its partitions lose leader or follower, and get it back later."""
    chance = random.Random(584)
    cycles: dict[int, Iterator[dict[str, Any]]] = {}
    while True:
        topic = chance.randrange(TOPICS)
        if topic not in cycles:
            cycles[topic] = itertools.cycle(_cycle(topic, by_leader=chance.random() < 0.3))
        fields = next(cycles[topic])
        for index in range(PARTITIONS):
            while offset % 10 == 0:
                other = BROKERS + chance.randrange(OTHERS)
                is_new = offset % 100 == 50
                yield _broker(offset, other) if is_new else fencing(offset, other, -1)
                offset += 1
            data = {"partitionId": index, "topicId": _id(topic), **fields}
            yield record(offset, "PARTITION_CHANGE_RECORD", 2, data)
            offset += 1


def _cycle(topic: int, *, by_leader: bool) -> list[dict[str, Any]]:
    replicas = _replicas(topic)
    if by_leader:
        lost = {"isr": replicas[1:], "leader": replicas[1]}
        return [lost, {"isr": replicas}, {"leader": replicas[0]}]
    return [{"isr": replicas[:2]}, {"isr": replicas}]


def _replicas(topic: int) -> list[int]:
    return [(topic + step) % BROKERS for step in range(3)]


def _id(topic: int) -> str:
    return f"0bKTXEVPTfuGSoW5y{topic:05d}"


def _partition(offset: int, topic: int, index: int) -> dict[str, Any]:
    replicas = _replicas(topic)
    data = {
        "partitionId": index,
        "topicId": _id(topic),
        "replicas": replicas,
        "isr": replicas,
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": replicas[0],
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": ["uuvXmPhLnqsb_kWMV_2zEw"] * 3,
    }
    return record(offset, "PARTITION_RECORD", 1, data)


def _broker(offset: int, node: int) -> dict[str, Any]:
    it = registration(offset, node)
    it["data"]["fenced"] = node >= BROKERS
    return it


async def _fill(bus: BusSettings, changes: int) -> tuple[int, int]:
    """Publishes the log; returns how many records come before the changes, and the messages."""
    await asyncio.to_thread(ensure_topics, bus)
    now = int(time.time() * 1000)
    status = SourceStatus(CLUSTER, "kraft", SourceState.FOLLOWING, -1, -1, 0, 1, 1, "", now)
    messages = 0
    async with Publisher(bus) as publisher:
        await publisher.publish(METADATA_LOG, status)
        for records in commits(changes):
            first, last = records[0]["offset"], records[-1]["offset"]
            commit = LogCommit(CLUSTER, CommitKind.BATCH, first, last, 1, now, records, {}, now)
            await publisher.publish(METADATA_LOG, commit)
            messages += 1
        await publisher.flush()
    return BROKERS + OTHERS + 1 + TOPICS * (PARTITIONS + 1), messages


async def _run_worker(bus: BusSettings, created: int, total: int) -> float:
    """Seconds in which a worker follows the changes, once it has the partitions."""
    limits = replace(DEFAULT_LIMITS, operations=True)
    worker = Worker(WorkerSettings(bus, worker_id=f"bench-{time.time()}", limits=limits))
    running = asyncio.ensure_future(worker.run())
    began = 0.0
    while worker.offset(CLUSTER) < total - 1:
        if running.done():
            running.result()
        if worker.offset(CLUSTER) < created - 1:
            began = time.perf_counter()
        await asyncio.sleep(0.005)
    elapsed = time.perf_counter() - began
    worker.stop()
    await running
    return elapsed
