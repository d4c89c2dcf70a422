"""Workers that share partitions, and sources that fall silent, on a real bus."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.outputs import decode_alert, decode_change
from featurewatch.streams.outputs import AlertState
from featurewatch.streams.topics import ALERTS, FEATURE_CHANGES, METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.agents.events import CLUSTER, following, levels
from tests.processes import Process, wait_ready
from tests.waiting import until_ended

pytestmark = pytest.mark.stack

CLUSTERS = [ClusterId(f"shared-cluster-{number:07d}") for number in range(16)]


def _settings(bus: Cluster) -> BusSettings:
    prefix = f"agents-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, partitions=4, replication_factor=1)
    ensure_topics(settings)
    return settings


def _worker(name: str, bus: BusSettings, directory: Path) -> Process:
    on_bus = ["--bus", bus.bootstrap_servers, "--prefix", bus.prefix]
    return Process(name, ["worker", "--id", name, *on_bus], directory)


async def _publish(bus: BusSettings, events: list[Any]) -> None:
    async with Publisher(bus) as publisher:
        for event in events:
            await publisher.publish(METADATA_LOG, event)


def test_another_worker_takes_over_from_one_that_was_killed(
    bus: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two workers share the clusters; after one is killed the other continues with all of them."""
    monkeypatch.setenv("FEATUREWATCH_BUS__PARTITIONS", "4")
    settings = _settings(bus)
    workers = [_worker(name, settings, tmp_path) for name in ("one", "two")]
    try:
        for worker in workers:
            worker.start()
        wait_ready(workers)
        first = [levels(1, {"metadata.version": 20}, cluster) for cluster in CLUSTERS]
        asyncio.run(_publish(settings, [*first, *(following(1, cluster) for cluster in CLUSTERS)]))
        expected = {(cluster, 1, 20) for cluster in CLUSTERS}
        _until(settings, lambda changes: changes >= expected)
        workers[0].kill()
        second = [levels(2, {"metadata.version": 21}, cluster) for cluster in CLUSTERS]
        asyncio.run(_publish(settings, list(second)))
        expected |= {(cluster, 2, 21) for cluster in CLUSTERS}
        _until(settings, lambda changes: changes == expected)
        assert workers[1].ended is None, workers[1].log.read_text()
    finally:
        for worker in workers:
            worker.kill()


def _until(bus: BusSettings, condition: Callable[[set[tuple[str, int, int]]], bool]) -> None:
    """Waits until the published changes, as (cluster, revision, level), meet a condition."""
    deadline = time.monotonic() + 60
    changes: dict[str, tuple[str, int, int]] = {}
    with contextlib.closing(TopicReader(bus, FEATURE_CHANGES)) as reader:
        while not condition(set(changes.values())):
            assert time.monotonic() < deadline, sorted(changes.values())
            for message in reader.poll(0.2):
                change = decode_change(message.value())
                content = (change.cluster, change.revision, int(change.after))
                assert changes.setdefault(change.id, content) == content


async def test_a_silent_source_is_an_alert_until_its_next_event(
    bus: Cluster, tmp_path: Path
) -> None:
    """After ``silent_after_s`` without an event source-stalled fires; the next one resolves it."""
    settings = _settings(bus)
    worker = Worker(WorkerSettings(settings, data_directory=tmp_path, silent_after_s=1))
    running = asyncio.ensure_future(worker.run())
    try:
        await asyncio.wait_for(worker.ready.wait(), 60)
        await _publish(settings, [levels(1, {"metadata.version": 20}), following(1)])
        firing = await asyncio.to_thread(_wait_for_alert, settings, AlertState.FIRING)
        assert "it has not reported" in firing
        await _publish(settings, [following(1)])
        await asyncio.to_thread(_wait_for_alert, settings, AlertState.RESOLVED)
    finally:
        worker.stop()
        await until_ended(running, 60)


def _wait_for_alert(bus: BusSettings, state: AlertState) -> str:
    """The summary of the first alert of source-stalled that is in a state."""
    deadline = time.monotonic() + 60
    with contextlib.closing(TopicReader(bus, ALERTS)) as reader:
        while time.monotonic() < deadline:
            for message in reader.poll(0.2):
                alert = decode_alert(message.value())
                key = (alert.cluster, alert.rule, alert.state)
                if key == (CLUSTER, "source-stalled", state):
                    return alert.summary
    raise TimeoutError(f"source-stalled was not {state}")
