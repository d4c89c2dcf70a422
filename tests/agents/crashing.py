"""A worker that kills itself at a chosen point: ``crashing.py POINT BOOTSTRAP PREFIX DIRECTORY``.

The point concerns the event that finalizes `LEVEL`; ``nowhere`` is an ordinary worker.
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
from featurewatch.tables.faust_table import changelog_topic

POINTS = ("before-say", "between-say-and-keep", "between-rows", "before-commit")
LEVEL = 30


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


class _Crash:
    """Replaces methods of the worker by ones that end it."""

    def __init__(self, point: str, changelog: str) -> None:
        self._point = point
        self._changelog = changelog
        self._in_event = False
        self._seen = False
        self._say, self._keep = EventProcessor._publish, EventProcessor._persist
        self._send, self._settle = Publisher.send, OffsetTracker.wait_acknowledged

    def install(self) -> None:
        """From now on the worker ends at the point."""
        crash = self

        async def say(desk: EventProcessor, result: Any) -> None:
            crash._in_event = any(change.after == LEVEL for change in result.step.changes)
            crash._seen |= crash._in_event
            crash.reach("before-say")
            await crash._say(desk, result)

        async def keep(desk: EventProcessor, *arguments: Any) -> None:
            crash.reach("between-say-and-keep")
            await crash._keep(desk, *arguments)
            crash._in_event = False

        async def send(
            publisher: Publisher, topic: str, message: Message, partition: int = -1
        ) -> asyncio.Future[None]:
            delivery = await crash._send(publisher, topic, message, partition)
            if topic == crash._changelog and crash._in_event:
                await delivery  # this row is kept, and those after it are not
                crash.reach("between-rows")
            return delivery

        async def settle(ledger: OffsetTracker) -> None:
            if crash._seen and not crash._in_event and crash._point == "before-commit":
                _die()
            await crash._settle(ledger)

        for owner, name, method in (
            *((EventProcessor, "_publish", say), (EventProcessor, "_persist", keep)),
            *((Publisher, "send", send), (OffsetTracker, "wait_acknowledged", settle)),
        ):
            setattr(owner, name, method)

    def reach(self, point: str) -> None:
        """Ends here if this is the point and the event the right one."""
        if self._in_event and point == self._point:
            _die()


def main(point: str, bootstrap: str, prefix: str, directory: str) -> None:
    """Runs the worker until it ends itself or is ended."""
    bus = BusSettings(bootstrap, prefix=prefix, partitions=2, replication_factor=1)
    settings = WorkerSettings(bus, data_directory=Path(directory), silent_after_s=600)
    _Crash(point, changelog_topic(settings.app_id)).install()
    asyncio.run(Worker(settings).run())


if __name__ == "__main__":
    main(*sys.argv[1:])
