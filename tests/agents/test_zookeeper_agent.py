"""A worker on a real bus that is told of ZooKeeper."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.timers import topic_of_source
from featurewatch.agents.worker import Worker
from featurewatch.cli.output.topic_reader import TopicReader
from featurewatch.deploy.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.events import SourceState, ZookeeperEvent
from featurewatch.streams.topics import (
    ALERTS,
    API_VERSIONS,
    FEATURE_CHANGES,
    METADATA_LOG,
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


async def until(worker: Worker, wished: Callable[[ClusterImage], bool]) -> ClusterImage:
    """The cluster's image, once it is as wished."""
    deadline = time.monotonic() + 60
    while (image := worker.image(CLUSTER)) is None or not wished(image):
        assert time.monotonic() < deadline, image
        await asyncio.sleep(0.02)
    return image


async def publish(bus: BusSettings, *events: ZookeeperEvent) -> None:
    """Puts events on the topic as the source does, seen now."""
    async with Publisher(bus) as publisher:
        for event in events:
            now = int(time.time() * 1000)
            await (await publisher.publish(ZOOKEEPER, replace(event, seen_ms=now)))


def values_on(bus: BusSettings, topic: Topic, count: int) -> list[bytes]:
    """The first messages of a topic, once there are so many."""
    found: list[bytes] = []
    deadline = time.monotonic() + 30
    with contextlib.closing(TopicReader(bus, topic)) as reader:
        while len(found) < count:
            assert time.monotonic() < deadline, found
            found += [message.value() or b"" for message in reader.poll(0.2)]
    return found


@pytest.mark.stack
async def test_znodes_become_changes_and_outlive_the_worker(bus: Cluster, tmp_path: Path) -> None:
    """A level, a broker and a source that falls silent are told; another worker knows them too."""
    servers, prefix = bus.bootstrap_servers, f"zookeeper-{time.time_ns()}"
    on_bus = BusSettings(servers, prefix=prefix, replication_factor=1)
    await asyncio.to_thread(ensure_topics, on_bus)
    settings = WorkerSettings(on_bus, data_directory=tmp_path, silent_after_s=5)
    begin = z.reading("s1", [z.broker(1, NEW, 10), z.features({TV: 1}, 5, 2)], 50, chunks=2)
    async with running(settings) as worker:
        await publish(on_bus, *begin, z.following())
        image = await until(worker, lambda image: image.ready)
        assert (image.authority, image.features.epoch) == (Authority.ZOOKEEPER, 2)
        await publish(on_bus, z.change(z.features({TV: 2}, 5, 3), 60))
        await publish(on_bus, z.change(z.broker(2, {TV: (0, 1)}, 61), 61))
        image = await until(worker, lambda image: len(image.nodes) == 2)
    async with running(settings) as worker:
        again = await until(worker, lambda image: image.zookeeper.zxid == 61)
        assert (again.nodes, again.features) == (image.nodes, image.features)
        await until(worker, lambda image: image.sources["zookeeper"].state is SourceState.SILENT)
    changes = [decode_change(value) for value in values_on(on_bus, FEATURE_CHANGES, 2)]
    assert [(change.after, change.epoch, change.provenance["zxid"]) for change in changes] == [
        (1, 2, 7),
        (2, 3, 8),
    ]
    alerts = {decode_alert(value).rule for value in values_on(on_bus, ALERTS, 3)}
    assert alerts == {"incompatible-node", "level-above-support", "source-stalled"}


def test_each_source_has_its_topic() -> None:
    """A silence is said where the source itself would speak."""
    sources = ("kraft", "zookeeper", "api-versions")
    assert [topic_of_source(source) for source in sources] == [
        METADATA_LOG,
        ZOOKEEPER,
        API_VERSIONS,
    ]
