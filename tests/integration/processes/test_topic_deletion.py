"""A topic that is deleted while it is written and read: nothing ends, and nothing is reordered."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from featurewatch.stack.kafka.cluster import Cluster
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec import events

pytestmark = pytest.mark.stack


class _ReportingProducer:
    """A producer that also notes at which offset the bus acknowledged each number of a topic."""

    def __init__(self, producer: Any, topic: str) -> None:
        self._producer = producer
        self._topic = topic
        self.offsets: dict[int, int | None] = {}

    def produce(
        self,
        topic: str,
        value: bytes,
        on_delivery: Callable[[KafkaError | None, Message], None],
        **rest: Any,
    ) -> None:
        """Hands a message over."""

        def report(error: KafkaError | None, message: Message) -> None:
            if error is None and topic == self._topic:
                self.offsets[int(value)] = message.offset()
            on_delivery(error, message)

        self._producer.produce(topic, value=value, on_delivery=report, **rest)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)


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
    """Messages that the old topic did not get are on the new one, in order; other topics continue.

    The offset with which a message was acknowledged shows which topic got it: on the old one it is
    the message's number, on the new one the place at which it is read. When the acknowledgement is
    noticed shows nothing: the broker takes messages until it has applied the deletion, which is
    after the controller's answer.
    """
    settings = BusSettings(bus.bootstrap_servers, partitions=1, replication_factor=1)
    gone, other = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("gone", "other"))
    admin = AdminClient(settings.client())
    for name in (gone, other):
        _create(admin, name)
    async with Publisher(settings, max_in_flight=100_000) as publisher:
        producer = publisher._producer = _ReportingProducer(publisher._producer, gone)
        sent = 0

        async def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                message = events.Message(b"k", str(sent).encode(), [])
                sent += 1
                await publisher.send(gone, message)
                await publisher.send(other, message)
                await asyncio.sleep(0.001)

        await send(200)
        await publisher.flush()
        traffic = asyncio.ensure_future(send(500))
        await asyncio.to_thread(admin.delete_topics([gone])[gone].result, 30)
        await asyncio.sleep(absence_s)
        await asyncio.to_thread(_create, admin, gone)
        await traffic
        await send(100)
        async with asyncio.timeout(30):
            await publisher.flush()
        assert publisher.error is None
    numbers = _read(settings, gone)
    first = numbers[0]
    assert numbers == list(range(first, sent))
    assert first >= 200  # those that were acknowledged before the deletion
    on_old = {number: number for number in range(first)}
    on_new = {number: number - first for number in numbers}
    assert producer.offsets == on_old | on_new
    assert _read(settings, other) == list(range(sent))
