"""``worker_vs_raw_consumer``: metadata records per second from the topic to the tables.

A million records lie on ``metadata-log``: of a hundred ninety are partition changes, nine fencing
changes, one a registration (every fiftieth of them a level instead). The worker takes them in to
its tables and changelog; the baseline is a bare confluent-kafka consumer that parses the same
messages with ``orjson.loads`` and does nothing with them.
"""

import asyncio
import random
import time
from collections.abc import Iterator
from typing import Any

import orjson
from confluent_kafka import Consumer

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.events import CommitKind, LogCommit, SourceState, SourceStatus
from featurewatch.streams.topics import METADATA_LOG
from featurewatch.streams.types import ClusterId

CLUSTER = ClusterId("bench-cluster-0000000")
SUPPORTED = {"metadata.version": (7, 30), "group.version": (0, 1), "kraft.version": (0, 1)}


def records(total: int, nodes: int) -> Iterator[dict[str, Any]]:
    """The registrations of all nodes, then records in the proportions that the module names."""
    chance = random.Random(584)
    for offset in range(total):
        if offset < nodes:
            yield registration(offset, offset)
        elif offset % 100 == 50:
            if offset % 5000 == 50:
                yield level(offset, 20 + offset // 5000 % 2)
            else:
                yield registration(offset, chance.randrange(nodes))
        elif offset % 11 == 0 and offset % 100:
            yield fencing(offset, chance.randrange(nodes), chance.choice((-1, 1)))
        else:
            yield partition_change(offset)


def record(offset: int, kind: str, version: int, data: dict[str, Any]) -> dict[str, Any]:
    """A record in the form that events have."""
    return {"offset": offset, "type": kind, "version": version, "data": data}


def registration(offset: int, node: int) -> dict[str, Any]:
    """A broker that registers, with what a real one says."""
    features = [
        {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
        for name, (low, high) in SUPPORTED.items()
    ]
    listener = {"name": "PLAINTEXT", "host": "broker", "port": 9092, "securityProtocol": 0}
    data = {
        "brokerId": node,
        "isMigratingZkBroker": False,
        "incarnationId": f"incarnation-{offset:010d}",
        "brokerEpoch": offset,
        "endPoints": [listener],
        "features": features,
        "rack": None,
        "fenced": True,
        "inControlledShutdown": False,
        "logDirs": ["uuvXmPhLnqsb_kWMV_2zEw"],
    }
    return record(offset, "REGISTER_BROKER_RECORD", 3, data)


def fencing(offset: int, node: int, fenced: int) -> dict[str, Any]:
    """A broker that is fenced (1) or unfenced (-1)."""
    data = {"brokerId": node, "brokerEpoch": 1, "fenced": fenced}
    return record(offset, "BROKER_REGISTRATION_CHANGE_RECORD", 1, data)


def level(offset: int, value: int) -> dict[str, Any]:
    """A finalized metadata.version."""
    data = {"name": "metadata.version", "featureLevel": value}
    return record(offset, "FEATURE_LEVEL_RECORD", 0, data)


def partition_change(offset: int) -> dict[str, Any]:
    """A partition whose leader and in-sync replicas change."""
    data = {
        "partitionId": offset % 64,
        "topicId": "0bKTXEVPTfuGSoW5yRjbtg",
        "isr": [1, 2, 3],
        "leader": 1 + offset % 3,
    }
    return record(offset, "PARTITION_CHANGE_RECORD", 2, data)


async def fill(bus: BusSettings, total: int, nodes: int, batch: int) -> int:
    """Publishes the records in commits of ``batch``; returns the number of messages."""
    await asyncio.to_thread(ensure_topics, bus)
    now = int(time.time() * 1000)
    messages = 0
    async with Publisher(bus) as publisher:
        await publisher.publish(METADATA_LOG, _status(SourceState.FOLLOWING, now))
        source = records(total, nodes)
        for first in range(0, total, batch):
            chunk = [next(source) for _ in range(min(batch, total - first))]
            last = first + len(chunk) - 1
            event = LogCommit(CLUSTER, CommitKind.BATCH, first, last, 1, now, chunk, {}, now)
            await publisher.publish(METADATA_LOG, event)
            messages += 1
        await publisher.flush()
    return messages


def _status(state: SourceState, now: int) -> SourceStatus:
    return SourceStatus(CLUSTER, "kraft", state, -1, -1, 0, 1, 1, "", now)


def consume_raw(bus: BusSettings, messages: int) -> float:
    """Seconds in which a bare consumer reads and parses the messages, its start-up left out."""
    consumer = Consumer(
        bus.client() | {"group.id": f"bench-{time.time()}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([bus.topic(METADATA_LOG)])
    left, began = messages + 1, 0.0
    while left:
        for message in consumer.consume(200, timeout=1.0):
            began = began or time.perf_counter()
            orjson.loads(message.value() or b"")
            left -= 1
    elapsed = time.perf_counter() - began
    consumer.close()
    return elapsed


async def run_worker(bus: BusSettings, total: int) -> float:
    """Seconds in which a worker takes in the records, its start-up left out."""
    worker = Worker(WorkerSettings(bus, worker_id=f"bench-{time.time()}"))
    running = asyncio.ensure_future(worker.run())
    ready = asyncio.ensure_future(worker.ready.wait())
    await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
    began = time.perf_counter()
    while worker.offset(CLUSTER) < total - 1:
        if running.done():
            running.result()
        if worker.offset(CLUSTER) < 0:
            began = time.perf_counter()
        await asyncio.sleep(0.005)
    elapsed = time.perf_counter() - began
    worker.stop()
    await running
    return elapsed


def run(
    bus: BusSettings, total: int = 1_000_000, nodes: int = 100, batch: int = 1000
) -> Iterator[dict[str, Any]]:
    """The measure, with ``batch`` records in a commit of a cluster of ``nodes`` brokers."""
    messages = asyncio.run(fill(bus, total, nodes, batch))
    raw = consume_raw(bus, messages)
    own = asyncio.run(run_worker(bus, total))
    raw = min(raw, consume_raw(bus, messages))
    yield {
        "measure": "worker_vs_raw_consumer",
        "unit": "records/s",
        "value": round(total / own),
        "baseline": round(total / raw),
        "ratio": round(raw / own, 3),
        "records": total,
        "records_per_message": batch,
        "brokers": nodes,
    }
