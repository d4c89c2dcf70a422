"""One message stops nobody: hostile messages on the input topics of a worker on a real bus."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.monitor.readiness.state_timers import DEFAULT_LIMITS
from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import MAX_MESSAGE_BYTES, BusSettings
from featurewatch.streams.bus.topic_keeper import TopicKeeper
from featurewatch.streams.bus.topics import ensure_topics
from featurewatch.streams.codec.events import encode
from featurewatch.streams.codec.outputs import decode_alert
from featurewatch.streams.events import MAX_PAYLOAD_BYTES, DeadLetter, SourceResync
from featurewatch.streams.outputs import Alert
from featurewatch.streams.topics import (
    ALERTS,
    DEAD_LETTERS,
    METADATA_LOG,
    RESYNC_REQUESTS,
    Topic,
)
from featurewatch.streams.types import ClusterId
from tests.agents.events import CLUSTER, following, levels
from tests.streams.dead_letters import decode_dead_letter
from tests.waiting import eventually, until_async, until_ended

pytestmark = pytest.mark.stack

BEYOND_RFC3339_MS = 400_000_000_000_000


@pytest.fixture
async def worker(bus: Cluster, tmp_path: Path) -> AsyncIterator[Worker]:
    """A worker that has applied two events of one cluster, on separate topics."""
    prefix = f"hostile-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, partitions=2, replication_factor=1)
    ensure_topics(settings)
    # No supervisor starts this worker again, so a slow machine must not make it end.
    worker = Worker(
        WorkerSettings(
            settings,
            data_directory=tmp_path,
            silent_after_s=600,
            stuck_after_s=600,
            limits=replace(DEFAULT_LIMITS, partitions=2),
        )
    )
    running = asyncio.ensure_future(worker.run())
    try:
        await asyncio.wait_for(worker.ready.wait(), 60)
        await _publish(settings, [levels(1, {"metadata.version": 20}), following(1)])
        await until_async(lambda: worker.offset(CLUSTER) == 1, 30)
        yield worker
    finally:
        worker.stop()
        await until_ended(running, 60)


async def _publish(bus: BusSettings, events: list[Any]) -> None:
    async with Publisher(bus) as publisher:
        for event in events:
            await publisher.publish(METADATA_LOG, event)


async def _goes_on(worker: Worker, timeout_s: float = 30) -> None:
    """The next event of the same cluster is applied."""
    offset = worker.offset(CLUSTER) + 1
    await _publish(worker.settings.bus, [levels(offset, {"metadata.version": 21})])
    await until_async(lambda: worker.offset(CLUSTER) == offset, timeout_s)


def _produce(
    bus: BusSettings, value: bytes, time_ms: int = 0, partition: int = 0, **settings: Any
) -> None:
    """A message of the cluster on the metadata log's topic, as any producer could write it.

    Its cluster is on partition 0.
    """
    producer = Producer(bus.client(message_max_bytes=MAX_MESSAGE_BYTES) | settings)
    errors: list[KafkaError | None] = []
    producer.produce(
        bus.topic(METADATA_LOG),
        value,
        CLUSTER.encode(),
        partition=partition,
        timestamp=time_ms,
        on_delivery=lambda error, _: errors.append(error),
    )
    producer.flush(20)
    assert errors == [None]


def _read(bus: BusSettings, topic: Topic) -> list[bytes]:
    with contextlib.closing(TopicReader(bus, topic)) as reader:
        return [message.value() or b"" for message in reader.read_existing()]


def _dead_letters(worker: Worker) -> list[DeadLetter]:
    return [decode_dead_letter(value) for value in _read(worker.settings.bus, DEAD_LETTERS)]


def _alerts(worker: Worker, rule: str) -> list[Alert]:
    alerts = [decode_alert(value) for value in _read(worker.settings.bus, ALERTS)]
    return [alert for alert in alerts if alert.rule == rule]


def _allow_any_time(bus: BusSettings) -> None:
    """As brokers before 4.0 do (KIP-937), on a topic with the producers' times."""
    configs = {
        "message.timestamp.after.max.ms": str(2**63 - 1),
        "message.timestamp.type": "CreateTime",
    }
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in configs.items()
    ]
    topic = ConfigResource(ResourceType.TOPIC, bus.topic(METADATA_LOG), incremental_configs=entries)
    admin = AdminClient(bus.client())
    (changed,) = admin.incremental_alter_configs([topic]).values()
    changed.result(60)


async def test_a_message_on_another_partition_is_nobodys(worker: Worker) -> None:
    """As a producer with another partitioner writes it: no loss, no count, a dead letter."""
    _produce(worker.settings.bus, b"a test message", partition=1)
    assert await asyncio.to_thread(eventually, lambda: bool(_dead_letters(worker)), 30)
    await _goes_on(worker)
    assert not [*_alerts(worker, "unreadable"), *_alerts(worker, "messages-lost")]


@pytest.mark.parametrize("end", ["commit", "abort"])
async def test_the_marker_of_a_transaction_is_passed_over(worker: Worker, end: str) -> None:
    """A producer's transaction leaves offsets without a message; what was aborted is not read."""
    bus = worker.settings.bus
    producer = Producer(bus.client() | {"transactional.id": f"mirror-{uuid.uuid4().hex[:8]}"})
    producer.init_transactions(30)
    producer.begin_transaction()
    event = encode(METADATA_LOG, levels(2, {"metadata.version": 19}))
    producer.produce(bus.topic(METADATA_LOG), event.value, event.key, partition=0)
    assert producer.flush(10) == 0
    (producer.commit_transaction if end == "commit" else producer.abort_transaction)(30)
    if end == "commit":
        await until_async(lambda: worker.offset(CLUSTER) == 2, 30)
    await _goes_on(worker)
    assert not _alerts(worker, "messages-lost")


async def test_large_garbage_is_a_dead_letter_cut_to_its_beginning(worker: Worker) -> None:
    """12 MiB of garbage become a dead letter with their first 4 MiB, length and digest."""
    garbage = bytes(range(256)) * (12 * 4096)
    _produce(worker.settings.bus, garbage)
    await _goes_on(worker)
    (letter,) = _dead_letters(worker)
    assert letter.payload == garbage[:MAX_PAYLOAD_BYTES]
    assert (letter.payload_bytes, letter.payload_sha256) == (
        len(garbage),
        sha256(garbage).hexdigest(),
    )


async def test_a_time_after_the_year_9999_is_clamped(worker: Worker) -> None:
    """The timestamp of a message is its producer's: whatever it is, the worker continues."""
    _allow_any_time(worker.settings.bus)
    event = encode(METADATA_LOG, levels(2, {"metadata.version": 19}))
    _produce(worker.settings.bus, event.value or b"", BEYOND_RFC3339_MS)
    _produce(worker.settings.bus, b"garbage", BEYOND_RFC3339_MS)
    await _goes_on(worker)
    assert len(_dead_letters(worker)) == 1


def _with(**fields: Any) -> dict[str, Any]:
    value = encode(METADATA_LOG, levels(2, {"metadata.version": 19})).value
    content: dict[str, Any] = orjson.loads(value or b"")
    return content | fields


NAME = "n" * 30_000
MANY = [
    {
        "offset": 2 + number,
        "type": "FEATURE_LEVEL_RECORD",
        "version": 0,
        "data": {"name": f"{NAME}{number}", "featureLevel": 1},
    }
    for number in range(400)
]
UNREADABLE = {
    "offset": 2,
    "type": "X" * 1_000_000,
    "version": 0,
    "data": {},
    "reason": "r" * 9_000_000,
}

HOSTILE = {
    "nested reason": _with(records=[UNREADABLE | {"reason": "NESTED"}]),
    "nested data": _with(
        records=[UNREADABLE | {"type": "FEATURE_LEVEL_RECORD", "data": ["NESTED"]}]
    ),
    "long reason": _with(records=[UNREADABLE]),
    "long names": _with(records=MANY, last_offset=1 + len(MANY)),
    "level of another kind": _with(
        records=[
            {
                "offset": 2,
                "type": "FEATURE_LEVEL_RECORD",
                "version": 0,
                "data": {"name": ["a"], "featureLevel": {"a": 1}},
            }
        ]
    ),
    "data without fields": _with(
        records=[{"offset": 2, "type": "REGISTER_BROKER_RECORD", "version": 3, "data": {}}]
    ),
    "huge number": _with(
        records=[
            {
                "offset": 2,
                "type": "REGISTER_BROKER_RECORD",
                "version": 3,
                "data": {"brokerId": 2**63, "features": []},
            }
        ]
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_event_is_applied_or_set_aside(worker: Worker, name: str) -> None:
    """Whatever an event holds, the events after it are applied, of the same cluster and others."""
    value = orjson.dumps(HOSTILE[name]).replace(b'"NESTED"', b"[" * 1000 + b"]" * 1000)
    _produce(worker.settings.bus, value)
    other = ClusterId("another-cluster-000000")
    await _publish(worker.settings.bus, [levels(1, {"metadata.version": 20}, other)])
    await until_async(lambda: worker.offset(other) == 1, 30)
    await _goes_on(worker)
    assert max(map(len, _read(worker.settings.bus, ALERTS)), default=0) < 200_000


def _is_committed(worker: Worker, topic: str) -> bool:
    """Waits until the worker has committed all that is in a topic of one partition."""
    partition = TopicPartition(topic, 0)
    consumer = Consumer(worker.settings.bus.client(group_id=worker.settings.app_id))
    try:
        _, end = consumer.get_watermark_offsets(partition, timeout=30)
        return eventually(lambda: consumer.committed([partition], timeout=30)[0].offset == end)
    finally:
        consumer.close()


async def test_offsets_that_go_back_are_reported_and_read(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not taken for messages that were processed before, also without topics' ids.

    Brokers before 2.8 have no ids; and brokers that lost acknowledged messages keep the id.
    """
    monkeypatch.setattr(TopicKeeper, "check", lambda _: {})
    bus = worker.settings.bus
    await _publish(bus, [following(1)] * 20)
    admin = AdminClient(bus.client())
    name = bus.topic(METADATA_LOG)
    # A commit of the old topic's position that comes late would count for the new one.
    assert await asyncio.to_thread(_is_committed, worker, name)
    admin.delete_topics([name])[name].result(30)
    deadline = time.monotonic() + 90
    while name in admin.list_topics(timeout=60).topics:
        assert time.monotonic() < deadline
        await asyncio.sleep(0.1)
    await asyncio.to_thread(ensure_topics, bus)
    await _goes_on(worker, timeout_s=90)  # the consumer asks for the topics every ten seconds
    await until_async(lambda: bool(_alerts(worker, "messages-lost")), 30)
    (alert,) = _alerts(worker, "messages-lost")
    assert "recreated" in alert.summary


async def test_a_worker_that_begins_in_the_middle_of_a_topic_knows_that(
    bus: Cluster, tmp_path: Path
) -> None:
    """State that expired before the first worker is requested from the source, and not assumed."""
    prefix = f"late-{uuid.uuid4().hex[:8]}"
    settings = BusSettings(bus.bootstrap_servers, prefix=prefix, partitions=1, replication_factor=1)
    ensure_topics(settings)
    other = ClusterId("begins-anew-0000000000")
    begin = replace(levels(1, {"metadata.version": 20}), cluster=other, first_offset=0)
    whole = [begin, replace(following(1), cluster=other)]
    await _publish(settings, [levels(1, {"metadata.version": 20}), following(1), *whole])
    place = TopicPartition(settings.topic(METADATA_LOG), 0, 1)
    admin = AdminClient(settings.client())
    for future in admin.delete_records([place]).values():
        future.result(30)
    worker = Worker(WorkerSettings(settings, data_directory=tmp_path, silent_after_s=600))
    running = asyncio.ensure_future(worker.run())
    try:
        await until_async(lambda: worker.image(other) is not None, 60)
        await until_async(lambda: bool(_alerts(worker, "messages-lost")), 30)
        (alert,) = _alerts(worker, "messages-lost")
        assert (alert.cluster, alert.evidence["topic"]) == (CLUSTER, "metadata-log")
        image = worker.image(CLUSTER)
        assert image is not None
        assert not image.ready
        await until_async(lambda: bool(_read(settings, RESYNC_REQUESTS)), 30)
        assert orjson.loads(_read(settings, RESYNC_REQUESTS)[0])["cluster"] == CLUSTER
        again = SourceResync(CLUSTER, "kraft", False, "requested", following(1).seen_ms)
        await _publish(settings, [again, levels(1, {"metadata.version": 20}), following(1)])
        await until_async(
            lambda: [a.state for a in _alerts(worker, "messages-lost")][-1] == "resolved", 30
        )
        # The alert is resolved by the first of the three messages.
        await until_async(lambda: (read := worker.image(CLUSTER)) is not None and read.ready, 30)
        image = worker.image(CLUSTER)
        assert image is not None
        assert dict(image.features.levels) == {"metadata.version": 20}
    finally:
        worker.stop()
        await until_ended(running, 60)
