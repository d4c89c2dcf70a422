"""Follows topics in a thread, and applies their messages in the event loop or in that thread."""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from confluent_kafka import Message

from featurewatch.common.service_state import STATE
from featurewatch.common.threads import run_in_thread
from featurewatch.streams.bus.errors import BusError, BusPropertiesError
from featurewatch.streams.bus.passed_over import PassedOver
from featurewatch.streams.bus.reader import TopicReader
from featurewatch.streams.bus.settings import BusSettings
from featurewatch.streams.topics import Topic

_BATCH: Final = 500
"""Messages that are applied at once; between two batches the event loop does other work."""

_POLL_S: Final = 0.5
_RETRY_S: Final = 1.0
_MAX_RETRY_S: Final = 5.0
_LASTING_S: Final = 15.0
"""How long something prevents messages before it is logged: workers that start at the same time
create the topics."""

_TURN_S: Final = 120.0
"""A turn takes half a second, and a reading to the end fails after ten without a message."""

_T = TypeVar("_T")


class FailureLog:
    """Logs what keeps a feed from its messages once it has lasted ``after_s`` seconds."""

    def __init__(self, log: logging.Logger, consequence: str, after_s: float = _LASTING_S) -> None:
        self.log = log
        self._consequence = consequence
        self._after_s = after_s
        self._began_s: float | None = None
        self._logged = ""

    def note(self, error: str | None) -> None:
        """Notes the current state; None: messages may come."""
        now_s = time.monotonic()
        if error is None:
            self._began_s, self._logged = None, ""
            return
        if self._began_s is None:
            self._began_s = now_s
        if now_s - self._began_s >= self._after_s and error != self._logged:
            self._logged = error
            self.log.warning("%s: %s", self._consequence, error)


class TopicFeed:
    """A receiver of the messages of some topics.

    Each reading from the start is `begin`, `apply` for what the topics have, `end`, and then
    `apply` for what comes; `report` gets what prevents messages now, or None, twice a second.
    A message that `apply_message` cannot apply is logged and passed over, whatever it raises.
    """

    def __init__(self, failures: FailureLog) -> None:
        self._failures = failures
        self._passed_over = PassedOver(failures.log)

    def begin(self) -> None:
        """The topics are read from the start."""

    def apply(self, messages: Iterable[Message]) -> None:
        """Applies some messages."""
        for message in messages:
            try:
                self.apply_message(message)
            except OSError:  # of this process: nobody reads its output, or a disk is full
                raise
            except Exception as error:
                self._passed_over.note(message, error)
        self.applied()

    def apply_message(self, message: Message) -> None:
        """Applies one message, or raises and has changed nothing."""
        raise NotImplementedError

    def applied(self) -> None:
        """Some messages have been applied."""

    def end(self) -> None:
        """The topics have been read to their end."""

    def report(self, error: str | None) -> None:
        """Notes why nothing arrives; None: nothing is known to prevent it."""
        self._failures.note(error)


async def follow_feed(
    feed: TopicFeed,
    bus: BusSettings,
    topics: Iterable[Topic],
    *,
    in_loop: bool = True,
    **options: Any,
) -> None:
    """Reads topics into a feed until cancelled, from the start after each failure.

    The feed is called in the event loop, or in the thread that reads. ``options`` are those of
    `TopicReader`.

    Raises:
        BusPropertiesError: The bus' properties are wrong.
    """
    open_reader = partial(TopicReader, bus, *topics, log=None, **options)
    loop = asyncio.get_running_loop()

    def call_in_loop(work: Callable[..., None], *arguments: Any) -> None:
        async def run() -> None:
            work(*arguments)

        asyncio.run_coroutine_threadsafe(run(), loop).result()

    def call_here(work: Callable[..., None], *arguments: Any) -> None:
        work(*arguments)

    read = partial(_read, feed, open_reader, call_in_loop if in_loop else call_here)
    wait_s = _RETRY_S
    while True:
        began_s = time.monotonic()
        try:
            await run_in_thread(read, "featurewatch-feed")
        except BusPropertiesError:
            raise
        except BusError as error:
            feed.report(str(error))
        if time.monotonic() - began_s > _LASTING_S:
            wait_s = _RETRY_S
        await asyncio.sleep(wait_s)
        wait_s = min(wait_s * 2, _MAX_RETRY_S)


def _read(
    feed: TopicFeed,
    open_reader: Callable[[], TopicReader],
    call: Callable[..., None],
    stopped: threading.Event,
) -> None:
    name = f"the reading of topics by {type(feed).__name__.strip('_')}"
    with contextlib.closing(open_reader()) as reader, STATE.loop(name, _TURN_S) as loop:
        call(feed.begin)
        for batch in _batches(reader.read_existing(), _BATCH):
            if stopped.is_set():
                return
            call(feed.apply, batch)
            loop.turn()
        call(feed.end)
        while not stopped.is_set():
            loop.turn()
            call(feed.report, reader.error)
            if messages := reader.poll_batch(_POLL_S):
                call(feed.apply, messages)


def _batches(items: Iterator[_T], size: int) -> Iterator[list[_T]]:
    while batch := list(islice(items, size)):
        yield batch
