"""A worker on a real bus is fed what no source would send: it is kept, told, and passed over."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import Message
from featurewatch.streams.codec.outputs import decode_alert
from featurewatch.streams.events import CommitKind, DeadLetter, LogCommit, SourceState, SourceStatus
from featurewatch.streams.outputs import Alert, AlertState
from featurewatch.streams.topics import ALERTS, API_VERSIONS, DEAD_LETTERS, METADATA_LOG
from featurewatch.streams.types import ClusterId
from tests.streams.dead_letters import decode_dead_letter

CLUSTER = ClusterId("poisoned-cluster")
KEY = CLUSTER.encode()
POISON = (
    b"",
    b"not JSON",
    b"\xff\xfe\x00",
    b"[1, 2]",
    b'{"kind": "nonsense"}',
    b'{"kind": "batch", "cluster": "poisoned-cluster"}',
    b'{"kind": "status", "cluster": "another-cluster"}',
    b'{"a":' * 2000,
    b"x" * 2_000_000,
)


@contextlib.asynccontextmanager
async def running(settings: BusSettings, directory: Path) -> AsyncIterator[Worker]:
    """A worker in this event loop."""
    worker = Worker(WorkerSettings(settings, data_directory=directory))
    task = asyncio.ensure_future(worker.run())
    try:
        await asyncio.wait_for(worker.ready.wait(), 60)
        yield worker
    finally:
        worker.stop()
        await task


async def until_offset(worker: Worker, offset: int) -> None:
    """Waits until a place of the log is in the worker's tables."""
    deadline = time.monotonic() + 60
    while worker.offset(CLUSTER) < offset:
        assert time.monotonic() < deadline, f"stuck at {worker.offset(CLUSTER)}"
        await asyncio.sleep(0.02)


def level(offset: int, value: int) -> LogCommit:
    """A commit that finalizes metadata.version."""
    data = {"name": "metadata.version", "featureLevel": value}
    record = {"offset": offset, "type": "FEATURE_LEVEL_RECORD", "version": 0, "data": data}
    return LogCommit(CLUSTER, CommitKind.BATCH, offset, offset, 1, 1000, [record], {}, 1000)


@pytest.mark.stack
async def test_poison_is_kept_and_reported_and_stops_nothing(bus: Cluster, tmp_path: Path) -> None:
    """Each unreadable message is a dead letter with its bytes; an alert fires; the rest is read."""
    settings = BusSettings(
        bus.bootstrap_servers, prefix=f"poison-{time.time_ns()}", replication_factor=1
    )
    await asyncio.to_thread(ensure_topics, settings)
    now = int(time.time() * 1000)
    status = SourceStatus(CLUSTER, "kraft", SourceState.FOLLOWING, 1, 1, 2, 1, 1, "", now)
    async with running(settings, tmp_path) as worker, Publisher(settings) as publisher:
        await publisher.publish(METADATA_LOG, level(1, 19))
        await publisher.publish(METADATA_LOG, status)
        await publisher.flush()
        await until_offset(worker, 1)  # unreadable messages count for clusters that are known
        for topic in (METADATA_LOG, API_VERSIONS):
            for payload in POISON:
                await publisher.send(settings.topic(topic), Message(KEY, payload, []))
        await publisher.publish(METADATA_LOG, level(2, 20))
        await publisher.flush()
        await until_offset(worker, 2)
        await asyncio.to_thread(_wait_for_letters, settings, 2 * len(POISON))
    dead_letters = _letters(settings)
    assert sorted(dead_letter.payload for dead_letter in dead_letters) == sorted(2 * POISON)
    assert all(
        dead_letter.reason and str(dead_letter.cluster) == CLUSTER for dead_letter in dead_letters
    )
    firing = [alert for alert in _alerts(settings).values() if alert.state is AlertState.FIRING]
    assert [alert.rule for alert in firing] == ["unreadable"]
    # At least; a larger count alone is published a minute later at the earliest.
    assert firing[0].evidence["count"] in (1, 2, 5, 10)


@pytest.mark.stack
async def test_a_record_without_its_fields_is_reported_and_the_others_count(
    bus: Cluster, tmp_path: Path
) -> None:
    """A registration without a broker id fires an alert; the level beside it is taken in."""
    settings = BusSettings(
        bus.bootstrap_servers, prefix=f"poison-{time.time_ns()}", replication_factor=1
    )
    await asyncio.to_thread(ensure_topics, settings)
    good = level(2, 20)
    broken = {"offset": 1, "type": "REGISTER_BROKER_RECORD", "version": 3, "data": {}}
    commit = LogCommit(CLUSTER, CommitKind.BATCH, 1, 2, 1, 1000, [broken, *good.records], {}, 1000)
    async with running(settings, tmp_path) as worker, Publisher(settings) as publisher:
        await publisher.publish(METADATA_LOG, commit)
        await publisher.flush()
        await until_offset(worker, 2)
        image = worker.image(CLUSTER)
    assert image is not None
    assert dict(image.features.levels) == {"metadata.version": 20}
    rules = {alert.rule for alert in _alerts(settings).values()}
    assert rules == {"unreadable"}


def _wait_for_letters(settings: BusSettings, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(_letters(settings)) < count:
        assert time.monotonic() < deadline


def _letters(settings: BusSettings) -> list[DeadLetter]:
    with contextlib.closing(TopicReader(settings, DEAD_LETTERS)) as reader:
        letters = [decode_dead_letter(message.value()) for message in reader.read_existing()]
    return [letter for letter in letters if isinstance(letter, DeadLetter)]


def _alerts(settings: BusSettings) -> dict[str, Alert]:
    with contextlib.closing(TopicReader(settings, ALERTS)) as reader:
        alerts = [decode_alert(message.value()) for message in reader.read_existing()]
    return {alert.id: alert for alert in alerts}
