"""`OffsetTracker`: the offsets that may be committed."""

import asyncio

import pytest

from featurewatch.agents.at_least_once import IncompleteEventError, OffsetTracker


class _Bus:
    def __init__(self) -> None:
        self.flushed = 0

    async def flush(self) -> None:
        await asyncio.sleep(0)
        self.flushed += 1


def test_only_processed_offsets_are_committed() -> None:
    """The next offset of a partition is the one after its last processed offset, else None."""
    tracker = OffsetTracker(_Bus().flush)
    assert tracker.next_offset("log-0") is None
    tracker.mark_processed("log-0", 6)
    tracker.mark_processed("log-1", 0)
    assert (
        tracker.next_offset("log-0"),
        tracker.next_offset("log-1"),
        tracker.next_offset("log-2"),
    ) == (7, 1, None)


def test_an_assignment_starts_at_the_last_commit() -> None:
    """A new assignment clears the offsets that were processed before it."""
    tracker = OffsetTracker(_Bus().flush)
    tracker.mark_processed("log-0", 6)
    tracker.reset()
    assert tracker.next_offset("log-0") is None


async def test_a_commit_waits_for_the_bus() -> None:
    """`wait_acknowledged` returns after the bus has acknowledged everything that was sent."""
    bus = _Bus()
    await OffsetTracker(bus.flush).wait_acknowledged()
    assert bus.flushed == 1


async def test_nothing_is_committed_after_an_event_failed() -> None:
    """Once an event was not processed to its end, every commit of this process is refused."""
    bus = _Bus()
    tracker = OffsetTracker(bus.flush)
    tracker.mark_processed("log-0", 1)
    tracker.fail()
    tracker.mark_processed("log-0", 2)
    for _ in range(2):
        with pytest.raises(IncompleteEventError, match="interrupted"):
            await tracker.wait_acknowledged()
    assert bus.flushed == 0


async def test_a_bus_that_fails_refuses_the_commit() -> None:
    """`wait_acknowledged` raises the error of the flush."""

    async def fail() -> None:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await OffsetTracker(fail).wait_acknowledged()
