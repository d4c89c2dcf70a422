"""What a worker reads ahead is bounded in bytes, not only in messages."""

from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import faust
import pytest
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread

from featurewatch.agents.consumer_thread import (
    MAX_QUEUED_BYTES,
    ConsumerThread,
    JumpLog,
    ReadAhead,
)

MESSAGE_BYTES = 12 << 20


@pytest.fixture
async def channel(tmp_path: Path) -> AsyncIterator[Any]:
    """The channel of an agent that takes nothing."""
    app = faust.App("read-ahead", datadir=str(tmp_path), autodiscover=False)
    yield aiter(app.topic("input"))
    app.topics.clear()


def _messages(count: int) -> list[Any]:
    return [SimpleNamespace(value=bytes(MESSAGE_BYTES), offset=number) for number in range(count)]


async def test_nothing_is_fetched_while_too_much_waits(
    channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust alone would take 4,096 messages of up to 16 MiB each."""
    fetches = 0

    async def fetch(*_: Any, **__: Any) -> dict[Any, Any]:
        nonlocal fetches
        fetches += 1
        [message] = _messages(1)
        channel.queue.put_nowait(SimpleNamespace(message=message))
        return {"partition": [message]}

    monkeypatch.setattr(AIOKafkaConsumerThread, "_fetch_records", fetch)
    thread = ConsumerThread.__new__(ConsumerThread)
    thread.jumps = JumpLog()
    thread._read_ahead = ReadAhead(MAX_QUEUED_BYTES)
    thread.consumer = SimpleNamespace(app=channel.app, _is_changelog_tp=lambda _: False)
    subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=None))
    consumer = SimpleNamespace(_subscription=subscription)
    for _ in range(20):
        await thread._fetch_records(consumer)
    assert fetches == channel.queue.qsize() == MAX_QUEUED_BYTES // MESSAGE_BYTES + 1
    channel.queue.get_nowait()
    await thread._fetch_records(consumer)
    assert fetches == MAX_QUEUED_BYTES // MESSAGE_BYTES + 2


def test_what_waits_is_counted_only_where_it_could_be_too_much() -> None:
    """A count walks all waiting messages, and a busy worker fetches hundreds of times a second."""
    counts = iter((40, 101, 100))
    ahead = ReadAhead(100)
    ahead.fetched(100)
    assert not ahead.is_full(lambda: pytest.fail("was counted"))
    ahead.fetched(1)
    assert not ahead.is_full(lambda: next(counts))
    ahead.fetched(60)
    assert not ahead.is_full(lambda: pytest.fail("was counted"))
    ahead.fetched(1)
    assert ahead.is_full(lambda: next(counts))
    assert not ahead.is_full(lambda: next(counts))
