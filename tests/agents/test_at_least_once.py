"""The ledger: what may be committed."""

import asyncio

import pytest

from featurewatch.agents.at_least_once import IncompleteEventError, OffsetTracker


class _Bus:
    def __init__(self) -> None:
        self.flushed = 0

    async def flush(self) -> None:
        await asyncio.sleep(0)
        self.flushed += 1


def test_only_finished_offsets_are_committed() -> None:
    """What comes next is the offset after the last finished one, by partition; else nothing."""
    ledger = OffsetTracker(_Bus().flush)
    assert ledger.next_offset("log-0") is None
    ledger.mark_processed("log-0", 6)
    ledger.mark_processed("log-1", 0)
    assert (
        ledger.next_offset("log-0"),
        ledger.next_offset("log-1"),
        ledger.next_offset("log-2"),
    ) == (7, 1, None)


def test_an_assignment_begins_at_what_is_committed() -> None:
    """After partitions were assigned anew nothing that was finished before counts."""
    ledger = OffsetTracker(_Bus().flush)
    ledger.mark_processed("log-0", 6)
    ledger.reset()
    assert ledger.next_offset("log-0") is None


async def test_a_commit_waits_for_the_bus() -> None:
    """Settling returns after the bus has all that was sent."""
    bus = _Bus()
    await OffsetTracker(bus.flush).wait_acknowledged()
    assert bus.flushed == 1


async def test_nothing_is_committed_after_an_event_was_broken_off() -> None:
    """Once an event could not be finished every commit of this process is refused."""
    bus = _Bus()
    ledger = OffsetTracker(bus.flush)
    ledger.mark_processed("log-0", 1)
    ledger.fail()
    ledger.mark_processed("log-0", 2)
    for _ in range(2):
        with pytest.raises(IncompleteEventError, match="broken off"):
            await ledger.wait_acknowledged()
    assert bus.flushed == 0


async def test_a_bus_that_fails_refuses_the_commit() -> None:
    """What the flush raises comes out of settling."""

    async def fail() -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await OffsetTracker(fail).wait_acknowledged()
