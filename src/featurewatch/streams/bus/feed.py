"""Follows topics in a thread and applies their messages in the event loop.

The topics are read by assignment, without a consumer group: any number of processes may follow
them, and nobody else is disturbed. While the bus is away, the feed is told why.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from confluent_kafka import Message

from featurewatch.common.threads import run_in_thread
from featurewatch.streams.bus.errors import BusError
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import Topic

_BATCH: Final = 500
"""Messages that are applied at once; between two batches the event loop does other work."""

_POLL_S: Final = 0.5
_RETRY_S: Final = 1.0
_MAX_RETRY_S: Final = 5.0
_LASTING_S: Final = 15.0
"""What prevents messages for so long is logged."""

_T = TypeVar("_T")


class TopicFeed(Protocol):
    """What messages of some topics are applied to, in the event loop.

    Each reading from the beginning is `begin`, `apply` for what the topics have, `end`, and then
    `apply` for what comes; `report` gets what prevents messages now, or None.
    """

    bus: BusSettings

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics to follow."""
        ...

    def begin(self) -> None:
        """The topics are read from their beginning."""
        ...

    def apply(self, messages: Iterable[Message]) -> None:
        """Applies some messages."""
        ...

    def end(self) -> None:
        """The topics have been read to their end."""
        ...

    def report(self, error: str | None) -> None:
        """Notes why nothing arrives; None: nothing is known to prevent it."""
        ...


class LastingFailure:
    """Logs what keeps a feed from its messages, if it lasts: topics are made by workers that start
    at the same time."""

    def __init__(self, log: logging.Logger, consequence: str) -> None:
        self._log = log
        self._consequence = consequence
        self._began_s: float | None = None
        self._logged = ""

    def note(self, error: str | None) -> None:
        """Notes the state now; None: messages may come."""
        now_s = time.monotonic()
        if error is None:
            self._began_s, self._logged = None, ""
            return
        if self._began_s is None:
            self._began_s = now_s
        if now_s - self._began_s >= _LASTING_S and error != self._logged:
            self._logged = error
            self._log.warning("%s: %s", self._consequence, error)


async def follow_feed(feed: TopicFeed) -> None:
    """Reads a feed's topics until cancelled, from the beginning after each failure.

    Raises:
        BusPropertiesError: The bus' properties are wrong.
    """
    wait_s = _RETRY_S
    while True:
        began_s = time.monotonic()
        try:
            await _read_in_thread(feed)
        except BusError as error:
            feed.report(str(error))
        if time.monotonic() - began_s > _LASTING_S:
            wait_s = _RETRY_S
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, _MAX_RETRY_S)


async def _read_in_thread(feed: TopicFeed) -> None:
    loop = asyncio.get_running_loop()

    def apply(work: Callable[..., None], *arguments: Any) -> None:
        async def run() -> None:
            work(*arguments)

        asyncio.run_coroutine_threadsafe(run(), loop).result()

    await run_in_thread(lambda stopped: _read(feed, apply, stopped), "featurewatch-feed")


def _read(feed: TopicFeed, apply: Callable[..., None], stopped: threading.Event) -> None:
    with contextlib.closing(TopicReader(feed.bus, *feed.topics)) as reader:
        apply(feed.begin)
        for batch in _batches(reader.read_existing(), _BATCH):
            if stopped.is_set():
                return
            apply(feed.apply, batch)
        apply(feed.end)
        while not stopped.is_set():
            apply(feed.report, reader.error)
            for message in reader.poll(_POLL_S):
                apply(feed.apply, [message])
                if stopped.is_set():
                    return


def _batches(items: Iterator[_T], size: int) -> Iterator[list[_T]]:
    while batch := list(islice(items, size)):
        yield batch
