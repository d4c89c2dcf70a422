"""A worker that kills itself at a given point: ``crashing.py POINT BOOTSTRAP PREFIX DIRECTORY``.

The point is in the processing of the event that finalizes `LEVEL`; with ``nowhere`` the worker
never kills itself.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any, NoReturn

from featurewatch.agents.at_least_once import OffsetTracker
from featurewatch.agents.processor import EventProcessor
from featurewatch.agents.settings import WorkerSettings
from featurewatch.agents.worker import Worker
from featurewatch.streams.bus.publisher import Publisher
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.codec.events import Message
from featurewatch.tables.rows import changelog_topic

POINTS = ("before-publish", "before-persist", "between-rows", "before-commit")
LEVEL = 30


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("SIGKILL did not end the process")


class _Crash:
    """Replaces methods of the worker by methods that kill it."""

    def __init__(self, point: str, changelog: str) -> None:
        self._point = point
        self._changelog = changelog
        self._in_event = False
        self._was_in_event = False
        self._publish, self._persist = EventProcessor._publish, EventProcessor._persist
        self._send, self._wait = Publisher.send, OffsetTracker.wait_acknowledged

    def install(self) -> None:
        """Replaces the methods: from then on the worker kills itself at the point."""
        crash = self

        async def publish(processor: EventProcessor, writes: Any) -> None:
            changes = writes.result.step.changes
            crash._in_event = any(change.after == LEVEL for change in changes)
            crash._was_in_event |= crash._in_event
            crash.reach("before-publish")
            await crash._publish(processor, writes)

        async def persist(processor: EventProcessor, *arguments: Any) -> None:
            crash.reach("before-persist")
            await crash._persist(processor, *arguments)
            crash._in_event = False

        async def send(
            publisher: Publisher, topic: str, message: Message, partition: int = -1
        ) -> asyncio.Future[None]:
            delivery = await crash._send(publisher, topic, message, partition)
            if topic == crash._changelog and crash._in_event:
                await delivery  # this row is persisted, the rows after it are not
                crash.reach("between-rows")
            return delivery

        async def wait_acknowledged(tracker: OffsetTracker) -> None:
            if crash._was_in_event and not crash._in_event and crash._point == "before-commit":
                _die()
            await crash._wait(tracker)

        for owner, name, method in (
            *((EventProcessor, "_publish", publish), (EventProcessor, "_persist", persist)),
            *((Publisher, "send", send), (OffsetTracker, "wait_acknowledged", wait_acknowledged)),
        ):
            setattr(owner, name, method)

    def reach(self, point: str) -> None:
        """Kills the process if this is the point, during the event that finalizes `LEVEL`."""
        if self._in_event and point == self._point:
            _die()


def main(point: str, bootstrap: str, prefix: str, directory: str) -> None:
    """Runs the worker until it kills itself or is killed."""
    bus = BusSettings(bootstrap, prefix=prefix, partitions=2, replication_factor=1)
    settings = WorkerSettings(bus, data_directory=Path(directory), silent_after_s=600)
    _Crash(point, changelog_topic(settings.app_id)).install()
    asyncio.run(Worker(settings).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
