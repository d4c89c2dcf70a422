"""A worker on a real bus that processes ZooKeeper events."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.events import SourceState, ZookeeperEvent
from featurewatch.streams.topics import (
    ALERTS,
    FEATURE_CHANGES,
    ZOOKEEPER,
    Topic,
)
from featurewatch.tables.image.cluster import Authority, ClusterImage
from tests.simulation import znodes as z
from tests.simulation.records import CLUSTER, NEW, TV


@contextlib.asynccontextmanager
async def running(settings: WorkerSettings) -> AsyncIterator[Worker]:
    """A worker in this event loop."""
    worker = Worker(settings)
    task = asyncio.ensure_future(worker.run())
    try:
        await asyncio.wait_for(worker.ready.wait(), 60)
        yield worker
    finally:
        worker.stop()
        await task


async def until(worker: Worker, condition: Callable[[ClusterImage], bool]) -> ClusterImage:
    """Waits until the cluster's image meets a condition, and returns it."""
    deadline = time.monotonic() + 60
    while (image := worker.image(CLUSTER)) is None or not condition(image):
        assert time.monotonic() < deadline, image
        await asyncio.sleep(0.02)
    return image


async def publish(bus: BusSettings, *events: ZookeeperEvent) -> None:
    """Publishes events as the source does, with the current time."""
    async with Publisher(bus) as publisher:
        for event in events:
            now_ms = int(time.time() * 1000)
            await (await publisher.publish(ZOOKEEPER, replace(event, seen_ms=now_ms)))


def values_on(bus: BusSettings, topic: Topic, count: int) -> list[bytes]:
    """The values of a topic's first messages; waits until there are ``count``."""
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    with contextlib.closing(TopicReader(bus, topic)) as reader:
        while len(values) < count:
            assert time.monotonic() < deadline, values
            values += [message.value() or b"" for message in reader.poll(0.2)]
    return values


@pytest.mark.stack
async def test_znodes_become_changes_and_survive_the_worker(bus: Cluster, tmp_path: Path) -> None:
    """Levels, brokers and a silent source become outputs; the next worker restores the state."""
    servers, prefix = bus.bootstrap_servers, f"zookeeper-{time.time_ns()}"
    on_bus = BusSettings(servers, prefix=prefix, replication_factor=1)
    await asyncio.to_thread(ensure_topics, on_bus)
    settings = WorkerSettings(on_bus, data_directory=tmp_path, silent_after_s=5)
    events = z.reading("s1", [z.broker(1, NEW, 10), z.features({TV: 1}, 5, 2)], 50, chunks=2)
    async with running(settings) as worker:
        await publish(on_bus, *events, z.following())
        image = await until(worker, lambda image: image.ready)
        assert (image.authority, image.features.epoch) == (Authority.ZOOKEEPER, 2)
        await publish(on_bus, z.change(z.features({TV: 2}, 5, 3), 60))
        await publish(on_bus, z.change(z.broker(2, {TV: (0, 1)}, 61), 61))
        image = await until(worker, lambda image: len(image.nodes) == 2)
    async with running(settings) as worker:
        restored = await until(worker, lambda image: image.zookeeper.zxid == 61)
        assert (restored.nodes, restored.features) == (image.nodes, image.features)
        await until(
            worker, lambda image: image.sources.statuses["zookeeper"].state is SourceState.SILENT
        )
    changes = [decode_change(value) for value in values_on(on_bus, FEATURE_CHANGES, 2)]
    assert [(change.after, change.epoch, change.provenance["zxid"]) for change in changes] == [
        (1, 2, 7),
        (2, 3, 8),
    ]
    alerts = {decode_alert(value).rule for value in values_on(on_bus, ALERTS, 3)}
    assert alerts == {"incompatible-node", "level-above-support", "source-stalled"}
