"""From other threads into the loop: in order, once, and bounded."""

import asyncio
import threading

from featurewatch.streams.zookeeper.event_queue import (
    EventQueue,
    ReadCompleted,
    SessionConnected,
    SessionDisconnected,
    SessionEvent,
    WatchTriggered,
)
from featurewatch.streams.zookeeper.paths import TargetKind, WatchTarget
from featurewatch.streams.zookeeper.watcher.requests import Synced


async def test_what_is_put_by_a_thread_is_taken_in_order():
    """Nothing is left behind, however the two threads meet."""
    inbox = EventQueue()
    put = [ReadCompleted(number, Synced(), 0) for number in range(20_000)]

    def work() -> None:
        for item in put:
            inbox.put(item)

    thread = threading.Thread(target=work)
    thread.start()
    events: list[SessionEvent] = []
    async with asyncio.timeout(30):
        while len(events) < len(put):
            await inbox.wait(60)
            events.extend(inbox.take())
    thread.join()
    assert events == put


async def test_a_lost_connection_makes_void_what_came_over_it():
    """However often connections come and go while nobody takes anything, little is kept."""
    inbox = EventQueue()
    for number in range(1000):
        inbox.put(SessionConnected(number))
        inbox.put(WatchTriggered(number, WatchTarget("/feature", TargetKind.DATA)))
        inbox.put(SessionDisconnected(permanent=False))
    inbox.put(SessionConnected(1000))
    assert list(inbox.take()) == [SessionDisconnected(permanent=False), SessionConnected(1000)]


async def test_waiting_ends_with_its_time():
    """Without news the wait returns empty."""
    inbox = EventQueue()
    await inbox.wait(0.01)
    assert list(inbox.take()) == []


def test_events_for_a_closed_loop_are_dropped():
    """Events that a thread puts afterwards are dropped."""

    async def make() -> EventQueue:
        return EventQueue()

    inbox = asyncio.run(make())
    inbox.put(SessionDisconnected(permanent=True))
