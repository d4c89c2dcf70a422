"""What a worker reads ahead is bounded in bytes, not only in messages."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from featurewatch.agents.consumer_thread import MAX_QUEUED_BYTES, ConsumerThread, queued_bytes

MESSAGE_BYTES = 12 << 20


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[Any]:
    """The channel of an agent that takes nothing."""
    app = faust.App("read-ahead", datadir=str(tmp_path), autodiscover=False)
    yield aiter(app.topic("input"))
    app.topics.clear()


def _put(channel: Any) -> None:
    message = SimpleNamespace(value=bytes(MESSAGE_BYTES))
    channel.queue.put_nowait(SimpleNamespace(message=message))


async def test_nothing_is_fetched_while_too_much_waits(
    channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust alone would take 4,096 messages of up to 16 MiB each."""
    fetched: list[int] = []

    async def fetch(*_: Any, **__: Any) -> dict[Any, Any]:
        fetched.append(queued_bytes(channel.app.topics))
        return {}

    monkeypatch.setattr(AIOKafkaConsumerThread, "_fetch_records", fetch)
    thread = ConsumerThread.__new__(ConsumerThread)
    thread.consumer = SimpleNamespace(app=channel.app)
    subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=None))
    consumer = SimpleNamespace(_subscription=subscription)
    for _ in range(20):
        await thread._fetch_records(consumer)
        if len(fetched) > channel.queue.qsize():
            _put(channel)
    assert channel.queue.qsize() == MAX_QUEUED_BYTES // MESSAGE_BYTES + 1
    channel.queue.get_nowait()
    await thread._fetch_records(consumer)
    assert len(fetched) == MAX_QUEUED_BYTES // MESSAGE_BYTES + 2
