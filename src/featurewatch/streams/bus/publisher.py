"""Publishes events: idempotent, in order, acknowledged by all in-sync replicas, bounded in flight.

librdkafka sends in its own threads. One thread of ours waits for its reports and
hands them to the event loop. While the bus is down nothing is lost and nothing fails: messages in
flight wait, and so do further calls of `Publisher.publish`.

librdkafka gives up the messages of a topic that was deleted. They wait here, in their order, until
the topic was recreated (`streams.bus.topic_keeper`); messages of other topics are still sent.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from featurewatch.common.text import error_line
from featurewatch.kafka.client_config.renewal import TlsFilesWatch
from featurewatch.kafka.shortage import can_open_files
from featurewatch.streams.bus.client_errors import NO_TOPIC, no_answer
from featurewatch.streams.bus.errors import (
    BusUnavailableError,
    EventTooLargeError,
    FencedError,
    PublishDeniedError,
    PublishError,
)
from featurewatch.streams.bus.settings import (
    LOG,
    MAX_EVENT_BYTES,
    MAX_MESSAGE_BYTES,
    SOURCE_REQUEST_TIMEOUT_S,
    BusSettings,
)
from featurewatch.streams.codec import events
from featurewatch.streams.topics import Topic

OnErrorChange = Callable[[str | None], None]
"""Called with one line when the bus accepts no messages, and with None when it does again."""

_POLL_S: Final = 0.2
_STALL_S: Final = 5.0
_PROBE_S: Final = 1.0

_GUARANTEES: Final = {
    "enable.idempotence": True,
    "acks": "all",
    # A message that fails for good stops the producer, so that none after it gets through: a
    # source resumes after what it published last, and would never see the gap.
    "enable.gapless.guarantee": True,
    "message.timeout.ms": 0,
    # The same partition for a key as Java's and aiokafka's partitioners.
    "partitioner": "murmur2_random",
}

# librdkafka calls the guarantee experimental at every start, and a bus that has just started makes
# it ask twice; neither is news to anybody.
_NO_NEWS: Final = ("enable.gapless.guarantee", "Coordinator load in progress")
LOG.addFilter(lambda record: not any(text in record.getMessage() for text in _NO_NEWS))

_Delivery = asyncio.Future[None]
_Report = tuple[_Delivery, int, KafkaError | None]


class _Pending(NamedTuple):
    """A message that the bus has not acknowledged; ``number`` orders the messages."""

    number: int
    since_s: float
    topic: str
    message: events.Message
    partition: int
    size: int


def _ignore(_: str | None) -> None:
    """The default for ``on_error``."""


class Publisher:
    """Publishes to the bus; use as ``async with Publisher(settings) as publisher``.

    At most ``max_in_flight`` messages and about ``max_bytes`` bytes wait for acknowledgement; one
    message larger than ``max_bytes`` goes alone. ``on_error`` is called in the event loop. A
    process that was paused for more than ``max_pause_s`` seconds publishes nothing more. A
    connection on which a request takes longer than ``request_timeout_s`` seconds is reopened; None
    is what ``socket.timeout.ms`` of the bus' properties says, or `SOURCE_REQUEST_TIMEOUT_S`.
    ``monotonic`` gives seconds of a clock that does not go back.
    """

    def __init__(
        self,
        bus: BusSettings,
        *,
        max_in_flight: int = 1000,
        max_bytes: int = 32 * 1024 * 1024,
        on_error: OnErrorChange | None = None,
        max_pause_s: float | None = None,
        request_timeout_s: float | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._max_in_flight = max_in_flight
        self._max_bytes = max_bytes
        self._on_error = on_error or _ignore
        self._max_pause_s = max_pause_s
        self._request_timeout_s = request_timeout_s
        self._monotonic = monotonic
        self._alive_s = monotonic()
        self._lock = asyncio.Lock()
        self._moved = asyncio.Event()
        self._pending: dict[_Delivery, _Pending] = {}
        self._parked: dict[str, dict[int, _Delivery]] = {}
        self._count = 0
        self._bytes = 0
        self._failure: PublishError | None = None
        self._error: str | None = None
        # Only the thread touches these, except that it hands over whole lists.
        self._reports: list[_Report] = []
        self._last_error = ""
        self._was_short = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._producer: Any = None
        self.published = 0

    @property
    def in_flight(self) -> int:
        """How many messages the bus has not acknowledged yet."""
        return len(self._pending)

    @property
    def bus(self) -> BusSettings:
        """The bus that this publishes to."""
        return self._bus

    @property
    def waits_for_topic(self) -> bool:
        """Whether messages wait for a topic that the bus does not have."""
        return bool(self._parked)

    @property
    def error(self) -> str | None:
        """Why the bus accepts no messages now, in one line; None: no error is known."""
        return self._error

    async def start(self) -> None:
        """Starts the producer; does not wait for the bus.

        Raises:
            PublishDeniedError: The settings are wrong.
        """
        self._loop = asyncio.get_running_loop()
        self._tls_files = TlsFilesWatch(self._bus.properties)
        try:
            self._producer = Producer(self._config() | {"error_cb": self._note_error}, logger=LOG)
        except KafkaException as error:
            raise PublishDeniedError(
                f"the bus' properties are wrong: {error.args[0].str()}"
            ) from error
        self._thread = threading.Thread(target=self._poll, name="featurewatch-bus", daemon=True)
        self._thread.start()

    async def publish(self, topic: Topic, event: events.AnyEvent) -> asyncio.Future[None]:
        """Hands an event over, once there is room; the future is done when the bus has it.

        Messages of one caller keep their order. The future need not be awaited: `flush` does, and
        a failure is raised from every later call too.

        Raises:
            EventTooLargeError: The bus would refuse the event; nothing is sent, and others are not
                affected.
            PublishError: This message or one before it can never be delivered.
        """
        return await self.send(self._bus.topic(topic), events.encode(topic, event))

    async def send(
        self, topic: str, message: events.Message, partition: int = -1
    ) -> asyncio.Future[None]:
        """`publish` for a message that is already encoded and a full topic name.

        ``partition`` -1 leaves it to the key.
        """
        size = len(message.value or b"") + len(message.key)
        if message.size > MAX_EVENT_BYTES:
            raise EventTooLargeError(
                f"an event of {message.size} bytes for {topic}, and the bus accepts "
                f"{MAX_EVENT_BYTES}"
            )
        async with self._lock:
            while self._pending and not self._has_room(size):
                await self._move()
            self._check_pause()
            self._check()
            delivery: _Delivery = self._loop.create_future()
            self._count += 1
            pending = _Pending(self._count, self._monotonic(), topic, message, partition, size)
            self._pending[delivery] = pending
            self._bytes += size
            if topic in self._parked:
                self._park(delivery, pending)
            else:
                self._produce(delivery, pending)
            self._check()
            return delivery

    async def flush(self) -> None:
        """Waits until the bus has all that was published before; raises `PublishError`."""
        # Not until nothing is in flight: others may continue to publish all the time.
        if self._pending:
            await asyncio.wait(list(self._pending))
        self._check()

    async def close(self, timeout_s: float = 10) -> None:
        """Flushes and stops.

        Raises `BusUnavailableError` if the bus does not take the rest within ``timeout_s`` seconds:
        it is dropped then, and will be published again after a restart.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self.flush()
        except TimeoutError:
            raise BusUnavailableError(
                f"the bus at {self._bus.bootstrap_servers} did not take the last "
                f"{len(self._pending)} messages within {timeout_s:g} s"
            ) from None
        finally:
            await self.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The error that ended the block matters more than messages in flight.
        if kind is None:
            await self.close()
        else:
            await self.stop()

    async def stop(self) -> None:
        """Stops at once; what is in flight is dropped."""
        self._stopping.set()
        if self._thread is not None:
            await asyncio.to_thread(self._end, self._thread)
            self._thread = None

    def _end(self, thread: threading.Thread) -> None:
        """Ends librdkafka, in a thread: it may wait for requests that are under way."""
        thread.join()
        producer, self._producer = self._producer, None
        producer.purge()

    def _config(self) -> dict[str, Any]:
        """The producer's settings."""
        timeout_ms = round((self._request_timeout_s or SOURCE_REQUEST_TIMEOUT_S) * 1000)
        configured_ms = self._bus.properties.get("socket.timeout.ms", timeout_ms)
        client = self._bus.client(
            linger_ms=0,
            message_max_bytes=MAX_MESSAGE_BYTES,
            socket_timeout_ms=configured_ms if self._request_timeout_s is None else timeout_ms,
            socket_connection_setup_timeout_ms=timeout_ms,
        )
        return client | _GUARANTEES

    def _before_produce(self) -> None:
        """Called before each message is handed to the producer; a subclass may refuse it."""

    def _has_room(self, size: int) -> bool:
        return len(self._pending) < self._max_in_flight and self._bytes + size <= self._max_bytes

    async def _move(self) -> None:
        """Waits for the next report; raises what failed."""
        self._check()
        self._moved.clear()
        await self._moved.wait()
        self._check()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    # In the event loop

    def _produce(self, delivery: _Delivery, pending: _Pending) -> bool:
        """Hands a message to the producer; false: it waits for its topic, or it failed."""
        topic, message, size = pending.topic, pending.message, pending.size

        def report(error: KafkaError | None, _: Message) -> None:
            self._reports.append((delivery, size, error))

        try:
            self._before_produce()
            self._producer.produce(
                topic,
                value=message.value,
                key=message.key,
                partition=pending.partition,
                headers=message.headers,
                on_delivery=report,
            )
        except (KafkaException, BufferError) as exception:
            error = exception.args[0]
            if isinstance(error, KafkaError) and error.code() in NO_TOPIC:
                self._park(delivery, pending)
            else:
                text = f"a message of {size} bytes was not taken for {topic}: {exception}"
                self._fail(self._failure_of(error, text))
            return False
        return True

    def _park(self, delivery: _Delivery, pending: _Pending) -> None:
        """Keeps a message until its topic was made again."""
        self._parked.setdefault(pending.topic, {})[pending.number] = delivery
        self._set_error(
            f"topic {pending.topic} is not on the bus at {self._bus.bootstrap_servers}: waiting "
            "until it is made again"
        )

    def _unpark(self) -> None:
        """Hands over the messages whose topics are there again, in their order."""
        parked, self._parked = self._parked, {}
        for topic, deliveries in parked.items():
            for number in sorted(deliveries):
                delivery = deliveries[number]
                pending = self._pending.get(delivery)
                if pending is None:
                    continue
                if topic in self._parked:
                    self._park(delivery, pending)
                else:
                    self._produce(delivery, pending)

    def _settle(self, reports: list[_Report]) -> None:
        for delivery, size, error in reports:
            pending = self._pending.get(delivery)
            if pending is None:
                continue
            if error is not None and error.code() in NO_TOPIC and self._failure is None:
                self._park(delivery, pending)
                continue
            del self._pending[delivery]
            self._bytes -= size
            if error is None:
                self.published += 1
                if not delivery.done():
                    delivery.set_result(None)
            else:
                self._fail(self._failure_of(error, f"the bus refused a message: {error.str()}"))
                self._reject(delivery)
        if self._failure is None and not self._parked:
            self._set_error(None)
        self._moved.set()

    def _failure_of(self, error: object, text: str) -> PublishError:  # noqa: ARG002 - a subclass's
        """The failure that a producer's error means; ``text`` describes it in one line."""
        return PublishError(text)

    def _fail(self, failure: PublishError) -> None:
        """The first failure is the cause; all that is in flight fails with it."""
        if self._failure is None:
            self._failure = failure
            self._set_error(str(failure))
        for delivery in self._pending:
            self._reject(delivery)
        self._pending.clear()
        self._parked.clear()
        self._bytes = 0
        self._moved.set()

    def _reject(self, delivery: _Delivery) -> None:
        if not delivery.done():
            delivery.set_exception(self._failure or PublishError("stopped"))
            delivery.exception()  # retrieved: a delivery need not be awaited

    def _set_error(self, error: str | None) -> None:
        if error != self._error:
            self._error = error
            self._on_error(error)

    def _check_stall(self, last_error: str) -> None:
        oldest = next(iter(self._pending.values()), None)
        since_s = self._monotonic() if oldest is None else oldest.since_s
        if self._monotonic() - since_s > _STALL_S and self._error is None:
            self._set_error(
                f"the bus at {self._bus.bootstrap_servers} has acknowledged nothing for "
                f"{_STALL_S:g} s{last_error and f' ({last_error})'}: waiting for it"
            )

    def _note_answer(self) -> None:
        if self._failure is None and not self._pending:
            self._set_error(None)

    def _check_pause(self) -> None:
        """Fails if the thread, which runs five times a second, last ran too long ago."""
        pause_s = self._monotonic() - self._alive_s
        if self._max_pause_s is not None and pause_s > self._max_pause_s:
            self._fail(_paused(pause_s))

    # In the thread

    def _poll(self) -> None:
        try:
            self._poll_until_stopped()
        except Exception as error:
            # Nothing would be delivered any more, and nobody would be told.
            LOG.exception("the thread of the producer failed")
            failure = PublishError(f"the thread of the producer failed ({error_line(error)})")
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._fail, failure)

    def _poll_until_stopped(self) -> None:
        while not self._stopping.is_set():
            now_s = self._monotonic()
            if self._max_pause_s is not None and now_s - self._alive_s > self._max_pause_s:
                # At once, before the pause is forgotten: the loop may be about to publish.
                self._failure = self._failure or _paused(now_s - self._alive_s)
                self._loop.call_soon_threadsafe(self._fail, self._failure)
            self._alive_s = now_s
            try:
                self._producer.poll(_POLL_S)
            except KafkaException as error:
                # poll raises a fatal error too, besides the error callback.
                text = f"the producer stopped for good: {error.args[0].str()}"
                failure = self._failure_of(error.args[0], text)
                self._loop.call_soon_threadsafe(self._fail, failure)
                return
            if self._tls_files.replacement() is not None:
                self._loop.call_soon_threadsafe(self._fail, _certificates_replaced())
                return
            if self._was_short and can_open_files():
                self._loop.call_soon_threadsafe(self._fail, _slow_for_good())
                return
            if self._reports:
                reports, self._reports = self._reports, []
                self._loop.call_soon_threadsafe(self._settle, reports)
            else:
                self._loop.call_soon_threadsafe(self._check_stall, self._last_error)
                if self._error is not None and not self._pending:
                    self._probe()
            if self._parked:
                self._find_topics()

    def _find_topics(self) -> None:
        """Looks for topics that were made again: librdkafka does so every five minutes."""
        try:
            self._producer.list_topics(timeout=1)  # all: by name it might make one with defaults
        except KafkaException as error:
            self._last_error = error.args[0].str()
        else:
            self._loop.call_soon_threadsafe(self._unpark)

    def _probe(self) -> None:
        """Ends the error of a bus that answers again: no message that is sent would show it."""
        try:
            self._producer.list_topics(timeout=_PROBE_S)
        except KafkaException:
            return
        self._loop.call_soon_threadsafe(self._note_answer)
        self._stopping.wait(_PROBE_S)

    def _note_error(self, error: KafkaError) -> None:
        """Notes an error of librdkafka, which recovers on its own unless the error is fatal."""
        is_summary = error.code() == KafkaError._ALL_BROKERS_DOWN
        reason = self._last_error if is_summary and self._last_error else error.str()
        self._last_error = reason
        self._was_short = self._was_short or not can_open_files()
        if error.fatal():
            failure = self._failure_of(error, f"the producer stopped for good: {error.str()}")
            self._loop.call_soon_threadsafe(self._fail, failure)
        elif error.code() in (KafkaError._ALL_BROKERS_DOWN, KafkaError._AUTHENTICATION):
            text = no_answer(self._bus, reason)
            self._loop.call_soon_threadsafe(self._set_error, text)


def _slow_for_good() -> PublishError:
    """A broker's thread that librdkafka starts without a descriptor for its wake-ups, as it does
    without saying so, sends once a second for as long as the producer lives."""
    return PublishError(
        "this process had no file descriptor left for its connections to the bus; now it has some "
        "again, and restarts"
    )


def _certificates_replaced() -> PublishError:
    """librdkafka reads the files of a login only when a client is created."""
    return PublishError("the TLS files of the bus were replaced: this process restarts its clients")


def _paused(pause_s: float) -> FencedError:
    return FencedError(
        f"this process was paused for {pause_s:.1f} s, longer than its session on the bus: "
        "another worker may have taken over, so this one ends and restarts"
    )
