"""A topic that is deleted while it is written and read: nothing ends, and nothing is reordered."""

import asyncio
import contextlib
import uuid
from functools import partial

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message

pytestmark = pytest.mark.stack


def _create(admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 1, 1)])[name].result(30)


def _read(bus: BusSettings, name: str) -> list[int]:
    """The numbers on a topic."""
    consumer = Consumer(
        bus.client(group_id="numbers", enable_auto_commit=False, enable_partition_eof=True)
    )
    consumer.assign([TopicPartition(name, 0, 0)])
    numbers = []
    with contextlib.closing(consumer):
        while (message := consumer.poll(60)) is not None and message.error() is None:
            numbers.append(int(message.value() or b""))
        assert message is not None
    return numbers


@pytest.mark.parametrize("absence_s", [0.0, 1.0, pytest.param(35.0, marks=pytest.mark.nightly)])
async def test_messages_wait_for_a_topic_that_was_deleted(bus: Cluster, absence_s: float) -> None:
    """What the old topic did not get is on the new one, in order; other topics go on."""
    settings = BusSettings(bus.bootstrap_servers, partitions=1, replication_factor=1)
    gone, other = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("gone", "other"))
    admin = AdminClient(settings.client())
    for name in (gone, other):
        _create(admin, name)
    async with Publisher(settings, max_in_flight=100_000) as publisher:
        acknowledged: list[int] = []
        sent = 0

        def note(number: int, _: object) -> None:
            acknowledged.append(number)

        async def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                number, sent = sent, sent + 1
                message = Message(b"k", str(number).encode(), [])
                delivery = await publisher.send(gone, message)
                delivery.add_done_callback(partial(note, number))
                await publisher.send(other, message)
                await asyncio.sleep(0.001)

        await send(200)
        traffic = asyncio.ensure_future(send(500))
        await asyncio.to_thread(admin.delete_topics([gone])[gone].result, 30)
        await asyncio.sleep(absence_s)
        on_old = set(acknowledged)
        await asyncio.to_thread(_create, admin, gone)
        await traffic
        await send(100)
        async with asyncio.timeout(30):
            await publisher.flush()
        assert publisher.error is None
    numbers = _read(settings, gone)
    assert numbers == sorted(set(numbers))
    assert numbers == list(range(numbers[0], sent)) and set(range(numbers[0])) <= on_old
    assert _read(settings, other) == list(range(sent))
