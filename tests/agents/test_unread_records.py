"""What was fetched and is not read is freed at once, without a search for garbage."""

import gc
import weakref
from collections.abc import Iterator

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from featurewatch.agents.unread_records import free_unread_records

COUNT = 4
READ_COMMITTED = 1


@pytest.fixture(autouse=True)
def patched(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As in a worker, until the end of the test."""
    monkeypatch.setattr(fetcher, "PartitionRecords", fetcher.PartitionRecords)
    free_unread_records()
    free_unread_records()
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def fetched() -> fetcher.PartitionRecords:
    """The records of a fetch, as aiokafka makes them of a response."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 20)
    for offset in range(COUNT):
        builder.append(offset, 0, b"key", b"value of %d" % offset, [])
    records = MemoryRecords(bytes(builder.build()))
    place = TopicPartition("topic", 0)
    return fetcher.PartitionRecords(place, records, [], 0, None, None, True, READ_COMMITTED)


@pytest.mark.parametrize("read", [0, 1, COUNT])
def test_records_are_freed_when_they_are_dropped(read: int) -> None:
    """Whether none, some or all of them were read: a rebalance drops them at any of these times."""
    records = fetched()
    for _ in range(read):
        next(records)
    dropped = weakref.ref(records)
    del records
    assert dropped() is None


def test_records_are_read_as_before() -> None:
    """All of them, and the position moves on with each."""
    records = fetched()
    positions = [(record.offset, record.value, records.next_fetch_offset) for record in records]
    assert positions == [(n, b"value of %d" % n, n + 1) for n in range(COUNT)]
